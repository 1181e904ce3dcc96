"""Which remedy a failure calls for, and which instance is asked for which partitions."""

from __future__ import annotations

import pytest

from streams_runtime.errors import StreamsException, StreamsRebalancingException
from streams_runtime.query.problems import KINDS, InstanceNotReachableException
from streams_runtime.query.routing import Failure, Next, next_step, partitions_by_url, pause

STEPS = {
    "StreamsNotStartedException": Next.RETRY,
    "StreamsRebalancingException": Next.RETRY,
    "StateStoreMigratedException": Next.REDISCOVER,
    "StateStoreNotAvailableException": Next.GIVE_UP,
    "UnknownStateStoreException": Next.GIVE_UP,
    "InvalidStateStorePartitionException": Next.REDISCOVER,
    "BrokerNotAvailableException": Next.RETRY,
    "InvalidQueryException": Next.GIVE_UP,
    "StoreTypeMismatch": Next.GIVE_UP,
    "NotSupportedException": Next.GIVE_UP,
}


@pytest.mark.parametrize("exception", KINDS, ids=lambda exception: exception.__name__)
def test_every_problem_has_its_remedy(exception: type[StreamsException]) -> None:
    assert next_step(exception("x")) is STEPS[exception.__name__]


def test_an_instance_that_is_gone_is_looked_for_and_a_defect_ends_the_query() -> None:
    assert next_step(InstanceNotReachableException("x")) is Next.REDISCOVER
    assert next_step(StreamsException("x")) is Next.GIVE_UP


def test_the_answers_own_pause_counts() -> None:
    assert [pause(Failure(StreamsException("x"), "u", retry_after=7.0), n) for n in (1, 9)] == [7.0, 7.0]


def test_other_pauses_grow_to_a_limit() -> None:
    pauses = [pause(Failure(StreamsException("x"), "u"), n) for n in range(1, 5000)]
    assert pauses[:3] == [0.1, 0.2, 0.4]
    assert (max(pauses), pauses[-1]) == (2.0, 2.0)


def row(partition: int, url: str) -> dict[str, object]:
    return {"partition": partition, "instance": url, "url": url}


def test_every_partition_is_asked_of_one_instance() -> None:
    owners = [row(2, "a"), row(0, "a"), row(1, "b")]
    assert partitions_by_url("counts", {"partitions": 3, "owners": owners}) == {"a": (0, 2), "b": (1,)}


def test_a_partition_that_nobody_has_is_worth_a_retry_and_is_named() -> None:
    with pytest.raises(StreamsRebalancingException, match="'counts': partitions 0, 2 is on no instance"):
        partitions_by_url("counts", {"partitions": 3, "owners": [row(1, "b")]})
