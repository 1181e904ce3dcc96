"""What a client is like now, for the conditions: read from memory only, so that it never waits for a broker."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from streams_runtime.kafka.types import TopicPartition
from streams_runtime.kubernetes.pod_conditions import ClientView, Failure
from streams_runtime.states import ClientState, TaskState


class TaskSeen(Protocol):
    """A task, as it is counted."""

    @property
    def state(self) -> TaskState: ...


class TasksSeen(Protocol):
    """A thread's tasks."""

    @property
    def tasks(self) -> Mapping[Any, TaskSeen]: ...


class ThreadSeen(Protocol):
    """A stream thread."""

    @property
    def tasks(self) -> TasksSeen: ...


class ClientSeen(Protocol):
    """A streams client."""

    @property
    def state(self) -> ClientState: ...

    @property
    def error(self) -> BaseException | None: ...

    @property
    def shutdown_requested(self) -> bool: ...

    @property
    def spark_ready(self) -> bool: ...

    @property
    def threads(self) -> Sequence[ThreadSeen]: ...


class RecordsLeft:
    """Counts what restorations have still to read. A StateRestoreListener of its own, for one client."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._left: dict[TopicPartition, tuple[int, int]] = {}  # position, end

    @property
    def total(self) -> int:
        """Offsets between where the restorations that go on are, and where they end."""
        with self._lock:
            return sum(max(end - position, 0) for position, end in self._left.values())

    def on_restore_start(self, partition: TopicPartition, store: str, start: int, end: int) -> None:  # noqa: ARG002
        """StateRestoreListener."""
        with self._lock:
            self._left[partition] = (start, end)

    def on_batch_restored(self, partition: TopicPartition, store: str, batch_end: int, records: int) -> None:  # noqa: ARG002
        """StateRestoreListener."""
        with self._lock:
            _, end = self._left[partition]
            self._left[partition] = (batch_end, end)

    def on_restore_end(self, partition: TopicPartition, store: str, total: int) -> None:  # noqa: ARG002
        """StateRestoreListener."""
        with self._lock:
            self._left.pop(partition, None)

    def on_restore_suspended(self, partition: TopicPartition, store: str, total: int) -> None:  # noqa: ARG002
        """StateRestoreListener."""
        with self._lock:
            self._left.pop(partition, None)


def view_of(client: ClientSeen, left: Callable[[], int], note: str = "") -> ClientView:
    """The client now; `left` gives the records that its restorations have still to read."""
    # The state first: what is counted after it is at least as new, so RUNNING is never said of tasks not yet restored.
    state, error, shutdown_requested = client.state, client.error, client.shutdown_requested
    tasks = [task.state for thread in client.threads for task in thread.tasks.tasks.values()]
    return ClientView(
        state,
        running_tasks=tasks.count(TaskState.RUNNING),
        restoring_tasks=tasks.count(TaskState.RESTORING),
        records_left=left(),
        failure=None if error is None else Failure.of(error),
        note=note,
        shutdown_requested=shutdown_requested,
        spark_ready=client.spark_ready,
    )
