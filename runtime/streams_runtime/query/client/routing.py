"""What a querying client does about a failure, and which instance it asks for what; no I/O."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from streams_runtime.errors import (
    InvalidStateStorePartitionException,
    StateStoreMigratedException,
    StateStoreNotAvailableException,
    StreamsException,
    StreamsRebalancingException,
)
from streams_runtime.kafka.producer.partitioner import partition_for
from streams_runtime.query.stores.verdicts import named
from streams_runtime.query.stores.views import KeySerde
from streams_runtime.query.wire.problems import InstanceNotReachableException, problem_of
from streams_runtime.retry_backoff import backoff_delay

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
    """One request that failed: what to raise in the end, and what its problem document names besides.

    `url` is the instance that failed, `owner` the URL to ask instead, `retry_after` is in seconds.
    """

    error: StreamsException
    url: str
    owner: str | None = None
    retry_after: float | None = None


def pause(failure: Failure, failures: int, jitter: float = 0.0) -> float:
    """Seconds to wait before the next request, after so many `failures` in a row, this one included.

    `jitter`, from 0 to 1, spreads the pauses of clients that failed at the same moment: over the second half of a pause
    of one's own, or over the quarter that follows the `Retry-After` of the answer.
    """
    if failure.retry_after is not None:
        return failure.retry_after * (1 + jitter / 4)
    return backoff_delay(failures - 1, SHORTEST_PAUSE_SECONDS, LONGEST_PAUSE_SECONDS) * (1 - jitter / 2)


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
    return Next.RETRY if problem_of(error).kind.category == "retryable" else Next.GIVE_UP


def copies_may_have_it(error: StreamsException) -> bool:
    """Whether another instance may answer from a copy where one failed so.

    Also where a client that wants committed contents gives up: an instance in ERROR is no reason why its standby
    should not answer.
    """
    return next_step(error) is not Next.GIVE_UP or isinstance(error, StateStoreNotAvailableException)


@dataclass(frozen=True, slots=True)
class Directory:
    """Who has the partitions of one store, as `/stores/{store}/owners` lists them. `urls` is by partition.

    `key` reads the store's keys; None: the instance did not say how they are written.
    """

    store: str
    partitions: int
    urls: Mapping[int, str]
    key: KeySerde | None = None

    def owner_of_key(self, text: str) -> str | None:
        """The instance that has a key, None where it is not known: then any instance redirects to it."""
        if self.key is None:
            return None
        try:
            data = self.key.encode(self.key.parse(text))
        except ValueError:
            return None  # an instance says what is wrong with it
        return self.urls.get(partition_for(data, self.partitions))

    def partitions_by_url(self, only: int | None = None) -> Mapping[str, tuple[int, ...]]:
        """Which partitions to ask of which instance, every one once; or `only` one.

        Raises:
            StreamsRebalancingException: a partition is on no instance at the moment; retry.
            InvalidStateStorePartitionException: the store has no such partition.
        """
        partitions = range(self.partitions)
        if only is not None and only not in partitions:
            raise InvalidStateStorePartitionException(
                f"store {self.store!r} has {self.partitions} partitions, numbered from 0, so partition {only} is on no"
                " instance; ask for one that there is"
            )
        wanted = partitions if only is None else (only,)
        nobody = [partition for partition in wanted if partition not in self.urls]
        if nobody:
            raise StreamsRebalancingException(
                f"store {self.store!r}: {named(nobody)} is on no instance at the moment; retry once one has it"
            )
        grouped: dict[str, tuple[int, ...]] = {}
        for partition in wanted:
            url = self.urls[partition]
            grouped[url] = (*grouped.get(url, ()), partition)
        return grouped


def directory_of(document: Mapping[str, Any]) -> Directory:
    """From the document of `/stores/{store}/owners`."""
    urls = {row["partition"]: row["url"] for row in document["owners"]}
    return Directory(document["store"], document["partitions"], urls, _key_serde(document.get("keyFormat")))


def _key_serde(name: str | None) -> KeySerde | None:
    if name is None:
        return None
    from streams_runtime.state.serdes import key_serde
    from streams_runtime.topology.nodes.source_and_sink_nodes import Format

    return key_serde(Format(name, None))
