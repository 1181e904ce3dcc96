"""Which exception a query meets, by the client's state and by what became of the partition (KIP-216)."""

from __future__ import annotations

import enum
from collections.abc import Iterable
from dataclasses import dataclass

from streams_runtime.errors import (
    InvalidStateStoreException,
    InvalidStateStorePartitionException,
    StateStoreMigratedException,
    StateStoreNotAvailableException,
    StreamsNotStartedException,
    StreamsRebalancingException,
)
from streams_runtime.states import ClientState


class Situation(enum.Enum):
    """What a query finds where a partition should be."""

    OPEN = "open"
    CLOSED = "closed"  # it was here when the handle was made, or a moment ago
    RESTORING = "restoring"  # assigned to this instance, not yet readable
    ELSEWHERE = "elsewhere"  # not assigned to this instance


_ENDING = frozenset(
    {ClientState.PENDING_SHUTDOWN, ClientState.NOT_RUNNING, ClientState.PENDING_ERROR, ClientState.ERROR}
)

_WHILE_RUNNING: dict[Situation, type[InvalidStateStoreException] | None] = {
    Situation.OPEN: None,
    Situation.CLOSED: StateStoreMigratedException,
    # A thread may report RUNNING a moment before its newest task is readable.
    Situation.RESTORING: StreamsRebalancingException,
    Situation.ELSEWHERE: InvalidStateStorePartitionException,
}


def verdict(state: ClientState, situation: Situation, stale: bool = False) -> type[InvalidStateStoreException] | None:
    """The exception that a query meets, or None where it is answered.

    Only a RUNNING client answers: a store that is still open in another state may lose its place at any
    moment, and the state alone decides what the caller does. Whoever wants `stale` contents has taken that
    into account, and gets what lies open while the client is REBALANCING too.
    """
    if state is ClientState.CREATED:
        return StreamsNotStartedException
    if state in _ENDING:
        return StateStoreNotAvailableException
    if state is ClientState.REBALANCING:
        return None if stale and situation is Situation.OPEN else StreamsRebalancingException
    return _WHILE_RUNNING[situation]


def settled(before: ClientState, after: ClientState) -> ClientState:
    """The state that decides, when the situation was found between two reads of the state.

    A client that was REBALANCING and is RUNNING now may have shown a situation that is over: the caller
    retries. Otherwise the later state is the one that explains what was found.
    """
    return before if after is ClientState.RUNNING else after


@dataclass(frozen=True, slots=True)
class Found:
    """The store of a query and what became of its partitions; `partitions` are those that are in `situation`."""

    store: str
    situation: Situation
    partitions: tuple[int, ...]
    of: int  # how many partitions the store has over all instances
    url: str  # of this instance


def check(state: ClientState, found: Found, stale: bool = False) -> None:
    """Return where the query can be answered.

    Raises:
        StreamsNotStartedException, StreamsRebalancingException, StateStoreMigratedException,
        StateStoreNotAvailableException, InvalidStateStorePartitionException: as `verdict` says.
    """
    exception = verdict(state, found.situation, stale)
    if exception is not None:
        raise exception(_message(exception, state, found))


def _message(exception: type[InvalidStateStoreException], state: ClientState, found: Found) -> str:
    store = f"store {found.store!r}"
    where = f"this instance ({found.url})"
    if exception is StreamsNotStartedException:
        return f"{store} can't be read: {where} is CREATED, not started; retry once it is RUNNING"
    if exception is StateStoreNotAvailableException:
        return f"{store} is closed: {where} is {state}; do not retry here, ask another instance"
    if exception is StreamsRebalancingException and state is ClientState.REBALANCING:
        return f"{store} can't be read now: {where} is REBALANCING; retry with the same handle"
    if exception is StreamsRebalancingException:
        return f"{store}: {where} is still restoring {named(found.partitions)}; retry with the same handle"
    if exception is StateStoreMigratedException:
        return (
            f"{store}: {named(found.partitions)} was closed on {where} after the handle was made;"
            " discard the handle and look the store up again"
        )
    return _elsewhere_message(store, where, found)


def _elsewhere_message(store: str, where: str, found: Found) -> str:
    if not found.partitions:
        return f"{store} has none of its {found.of} partitions on {where}; ask an instance that has some"
    beyond = [partition for partition in found.partitions if not 0 <= partition < found.of]
    if beyond:
        return (
            f"{store} has {found.of} partitions, numbered from 0, so {named(beyond)} is on no instance;"
            " ask for one that there is, on the instance that has it"
        )
    return f"{store}: {named(found.partitions)} is not on {where}; ask the instance that has it"


def named(partitions: Iterable[int]) -> str:
    """`partition 2`, or `partitions 0, 2`."""
    numbers = sorted(partitions)
    return f"partition{'s' if len(numbers) > 1 else ''} {', '.join(map(str, numbers))}"
