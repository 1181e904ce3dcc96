"""What a querying client does about a failure, and which instance it asks for what; no I/O."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from streams_runtime.errors import (
    InvalidStateStorePartitionException,
    StateStoreMigratedException,
    StreamsException,
    StreamsRebalancingException,
)
from streams_runtime.query.problems import KINDS, InstanceNotReachableException
from streams_runtime.query.verdicts import named

# Where the answer names no time: a partition that moves in order is there at once, that of a killed instance
# when the group has noticed, so the pauses grow.
SHORTEST_PAUSE_SECONDS: Final = 0.1
LONGEST_PAUSE_SECONDS: Final = 2.0


class Next(enum.Enum):
    """The step after a failure."""

    RETRY = "retry"  # ask the same instance again
    REDISCOVER = "rediscover"  # ask any instance who has the partition now
    GIVE_UP = "give up"  # repeating can't help


@dataclass(frozen=True, slots=True)
class Failure:
    """One request that failed: what to raise in the end, and what its problem document said besides.

    `url` is the instance that was asked, `owner` the URL to ask instead, `retry_after` is in seconds.
    """

    error: StreamsException
    url: str
    owner: str | None = None
    retry_after: float | None = None


def pause(failure: Failure, failures: int) -> float:
    """Seconds to wait before the next request, after so many `failures` in a row, this one included."""
    if failure.retry_after is not None:
        return failure.retry_after
    return min(LONGEST_PAUSE_SECONDS, SHORTEST_PAUSE_SECONDS * 2.0 ** min(failures - 1, 10))


_MOVED: Final = (
    StateStoreMigratedException,
    InvalidStateStorePartitionException,
    InstanceNotReachableException,
)


def next_step(error: StreamsException) -> Next:
    """Which remedy a failure calls for.

    InvalidStateStorePartitionException is fatal where it was raised and an invitation to ask elsewhere. An
    instance that can't be reached may have been killed: its partitions move to others.
    """
    if isinstance(error, _MOVED):
        return Next.REDISCOVER
    kind = KINDS.get(type(error))
    return Next.RETRY if kind is not None and kind.category == "retryable" else Next.GIVE_UP


def partitions_by_url(store: str, document: Mapping[str, Any]) -> dict[str, tuple[int, ...]]:
    """Which partitions to ask of which URL, every one once, from the document of `/stores/{store}/owners`.

    Raises:
        StreamsRebalancingException: a partition is on no instance at the moment; retry.
    """
    owners: dict[int, str] = {row["partition"]: row["url"] for row in document["owners"]}
    partitions = range(document["partitions"])
    nobody = [partition for partition in partitions if partition not in owners]
    if nobody:
        raise StreamsRebalancingException(
            f"store {store!r}: {named(nobody)} is on no instance at the moment; retry once one has it"
        )
    grouped: dict[str, tuple[int, ...]] = {}
    for partition in partitions:
        url = owners[partition]
        grouped[url] = (*grouped.get(url, ()), partition)
    return grouped
