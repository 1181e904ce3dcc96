"""What restoration says in the log: Kafka Streams' lines with their levels, and this project's own warnings."""

from __future__ import annotations

import logging
from collections.abc import Iterable

from streams_runtime.kafka.types import TopicPartition
from streams_runtime.topology.plan import TaskId

TRACE = 5
logging.addLevelName(TRACE, "TRACE")
_LOGGER = logging.getLogger("streams_runtime.restore")


def added(partition: TopicPartition) -> None:
    """A restorer was registered."""
    _LOGGER.log(TRACE, "Added restorer for changelog %s", partition)


def starting(partitions: Iterable[TopicPartition]) -> None:
    """These begin to be restored."""
    _LOGGER.debug("Start restoring state stores from changelog topics %s", sorted(map(str, partitions)))


def checkpoint(task: TaskId, store: str, partition: TopicPartition, offset: int | None, exactly_once: bool) -> None:
    """Whether the task's store knows where it was, and what follows where it does not."""
    if offset is not None:
        _LOGGER.log(TRACE, "Found checkpoint %d from changelog %s for store %s.", offset, partition, store)
        return
    _LOGGER.log(
        TRACE, "Did not find checkpoint from changelog %s for store %s, rewinding to beginning.", partition, store
    )
    if exactly_once:
        _LOGGER.info(
            "No checkpoint found for task %s state store %s changelog %s with EOS turned on. Reinitializing the task"
            " and restore its state from the beginning.",
            task,
            store,
            partition,
        )
    else:
        _LOGGER.info("Restoring task %s's state store %s from beginning of the changelog %s", task, store, partition)


def restoring(partition: TopicPartition, offset: int, end: int) -> None:
    """From where to where."""
    _LOGGER.debug("Restoring partition %s from offset %d to endOffset %d", partition, offset, end)


def unnamed(store: str, partition: TopicPartition) -> None:
    """The brokers were asked for a changelog and did not name it."""
    _LOGGER.warning(
        "the brokers do not name the changelog %s of the store %s: its topic is not there, or its leader is being"
        " chosen. The store waits for it, and the brokers are asked again every second",
        partition,
        store,
    )


def wiped(store: str, partition: TopicPartition, why: str) -> None:
    """A store's contents can't be gone on from."""
    _LOGGER.warning(
        "Store %s can't go on with its changelog %s from where it was: %s. The store is wiped and restored from the"
        " beginning",
        store,
        partition,
        why,
    )


def damaged(error: Exception) -> None:
    """Files of a store are damaged; whoever has the task sees to it."""
    _LOGGER.warning("%s", error)
