"""The table of exceptions, cell by cell: class, category, and the remedy that the message ends with."""

from __future__ import annotations

import itertools

import pytest

from streams_runtime.errors import (
    FatalStateStoreException,
    InvalidStateStoreException,
    InvalidStateStorePartitionException,
    NotUpToBoundException,
    RetryableStateStoreException,
    StateStoreMigratedException,
    StateStoreNotAvailableException,
    StreamsNotStartedException,
    StreamsRebalancingException,
    UnknownStateStoreException,
)
from streams_runtime.query.stores.verdicts import Found, Situation, check, settled, verdict
from streams_runtime.states import ClientState

NOT_STARTED = StreamsNotStartedException
REBALANCING = StreamsRebalancingException
MIGRATED = StateStoreMigratedException
NOT_AVAILABLE = StateStoreNotAvailableException
ELSEWHERE = InvalidStateStorePartitionException

TABLE = {  # state: what a query of an open, closed, restoring, absent partition meets
    "CREATED": (NOT_STARTED, NOT_STARTED, NOT_STARTED, NOT_STARTED),
    "REBALANCING": (REBALANCING, REBALANCING, REBALANCING, REBALANCING),
    "RUNNING": (None, MIGRATED, REBALANCING, ELSEWHERE),
    "PENDING_SHUTDOWN": (NOT_AVAILABLE, NOT_AVAILABLE, NOT_AVAILABLE, NOT_AVAILABLE),
    "NOT_RUNNING": (NOT_AVAILABLE, NOT_AVAILABLE, NOT_AVAILABLE, NOT_AVAILABLE),
    "PENDING_ERROR": (NOT_AVAILABLE, NOT_AVAILABLE, NOT_AVAILABLE, NOT_AVAILABLE),
    "ERROR": (NOT_AVAILABLE, NOT_AVAILABLE, NOT_AVAILABLE, NOT_AVAILABLE),
}
SITUATIONS = (Situation.OPEN, Situation.CLOSED, Situation.RESTORING, Situation.ELSEWHERE)
REMEDIES = {
    NOT_STARTED: "retry once it is RUNNING",
    REBALANCING: "retry with the same handle",
    MIGRATED: "discard the handle and look the store up again",
    NOT_AVAILABLE: "do not retry here, ask another instance",
    ELSEWHERE: "ask the instance that has it",
}


def found(situation: Situation, *partitions: int) -> Found:
    return Found("counts", situation, partitions, 3, "http://here:1")


@pytest.mark.parametrize(("state", "column"), [*itertools.product(ClientState, range(4))])
def test_every_state_and_situation_meets_the_exception_of_the_table(state: ClientState, column: int) -> None:
    expected = TABLE[state][column]
    if expected is None:
        check(state, found(SITUATIONS[column], 1))
        return
    with pytest.raises(InvalidStateStoreException) as raised:
        check(state, found(SITUATIONS[column], 1))
    assert raised.type is expected
    assert str(raised.value).endswith(REMEDIES[expected])
    assert "'counts'" in str(raised.value)
    assert "http://here:1" in str(raised.value)


def test_stale_contents_are_read_while_rebalancing_too_and_nothing_else_changes() -> None:
    stale = TABLE | {"REBALANCING": (None, REBALANCING, REBALANCING, REBALANCING)}
    assert {state: tuple(verdict(state, each, stale=True) for each in SITUATIONS) for state in ClientState} == stale


@pytest.mark.parametrize(
    ("category", "members"),
    [
        (RetryableStateStoreException, {NOT_STARTED, REBALANCING, MIGRATED, NotUpToBoundException}),
        (FatalStateStoreException, {NOT_AVAILABLE, UnknownStateStoreException, ELSEWHERE}),
    ],
)
def test_the_exceptions_of_queries_have_the_two_categories(
    category: type[Exception], members: set[type[Exception]]
) -> None:
    assert set(category.__subclasses__()) == members


def test_a_partition_that_the_store_does_not_have_is_named_as_such() -> None:
    with pytest.raises(ELSEWHERE, match="has 3 partitions, numbered from 0, so partition 7 is on no instance"):
        check(ClientState.RUNNING, found(Situation.ELSEWHERE, 7))


def test_an_instance_with_none_of_the_partitions_says_so() -> None:
    with pytest.raises(ELSEWHERE, match="none of its 3 partitions"):
        check(ClientState.RUNNING, found(Situation.ELSEWHERE))


def test_what_was_seen_during_a_rebalance_that_is_over_is_not_taken_for_final() -> None:
    assert settled(ClientState.REBALANCING, ClientState.RUNNING) is ClientState.REBALANCING


@pytest.mark.parametrize("after", [state for state in ClientState if state is not ClientState.RUNNING])
def test_the_later_state_explains_what_was_found(after: ClientState) -> None:
    assert settled(ClientState.RUNNING, after) is after
