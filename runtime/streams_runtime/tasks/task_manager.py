"""A thread's tasks: opened as their partitions arrive, closed as they go, and where each one is read from."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Mapping
from contextlib import ExitStack
from typing import Protocol

from streams_runtime.kafka.types import TopicPartition
from streams_runtime.metrics.thread_recorder import ThreadRecorder
from streams_runtime.restore.restorer import StateRestorer
from streams_runtime.restore.state_updater import StateUpdater
from streams_runtime.state.state_directory import StateDirectory
from streams_runtime.state.store import LocalStore
from streams_runtime.states import TaskState
from streams_runtime.tasks.assignment import complete_tasks
from streams_runtime.tasks.positions import Beginnings, CommittedOffsets, Positions, positions_of
from streams_runtime.tasks.task import Task
from streams_runtime.tasks.task_stores import damage_of, set_damaged_aside
from streams_runtime.topology.plan import TaskId, Topology

_LOGGER = logging.getLogger("streams_runtime.tasks")
_EARLIEST = Beginnings()


class Standbys(Protocol):
    """The standby tasks of the client (tasks.standbys.StandbyTasks)."""

    def promote(self, tasks: Collection[TaskId]) -> None:
        """These tasks become active here: their standbys are closed when this returns, and none is opened."""

    def let_go(self, tasks: Collection[TaskId]) -> None:
        """These tasks are no longer active here; their stores are closed."""


class Snapshots(Protocol):
    """What makes snapshots of stores (snapshots.snapshotter.Snapshotter)."""

    def add(
        self, task: TaskId, stores: Collection[LocalStore], inputs: Callable[[], Mapping[TopicPartition, int]]
    ) -> None:
        """The task runs."""

    def remove(self, tasks: Collection[TaskId]) -> None:
        """The tasks close."""


class TaskManager:
    """Keeps tasks in step with the assignment. Its thread calls everything; `tasks` may be read from any."""

    def __init__(
        self,
        topology: Topology,
        directory: StateDirectory,
        updater: StateUpdater,
        offsets: CommittedOffsets,
        standbys: Standbys | None = None,
        recorder: ThreadRecorder | None = None,
        snapshots: Snapshots | None = None,
        beginnings: Beginnings = _EARLIEST,
    ) -> None:
        """`standbys` are the client's, which has none of a task while it is open here; None: it keeps none at all.

        `recorder`: what counts the tasks that are opened and closed. `snapshots`: what makes snapshots of the stores of
        running tasks; None: nothing does. `beginnings`: where inputs begin without a committed offset.
        """
        self._beginnings = beginnings
        self._snapshots = snapshots
        self._recorder = recorder or ThreadRecorder()
        self._topology = topology
        self._directory = directory
        self._updater = updater
        self._offsets = offsets
        self._standbys = standbys
        self._assigned: frozenset[TopicPartition] = frozenset()
        self._tasks: dict[TaskId, Task] = {}
        self._topic_ids: dict[str, str] = {}
        self._awaited: set[TaskId] = set()

    @property
    def topic_ids(self) -> Mapping[str, str]:
        """The ids that the running tasks' input topics had when the first of them was given its offsets; a copy."""
        return dict(self._topic_ids)

    @property
    def tasks(self) -> Mapping[TaskId, Task]:
        """The open tasks; a copy."""
        return dict(self._tasks)

    @property
    def settled(self) -> bool:
        """Whether every assigned partition belongs to a task that runs."""
        running = [task for task in self._tasks.values() if task.state is TaskState.RUNNING]
        return self._assigned == frozenset(each for task in running for each in task.inputs)

    def running(self, subtopology: int) -> dict[int, Task]:
        """The running tasks of a sub-topology, by partition."""
        return {
            task_id.partition: task
            for task_id, task in self._tasks.items()
            if task_id.subtopology == subtopology and task.state is TaskState.RUNNING
        }

    def assigned(self, partitions: frozenset[TopicPartition]) -> None:
        """The group has given these partitions; `open_new` opens what is complete now."""
        self._assigned |= partitions

    def open_new(self, counts: Mapping[str, int]) -> None:
        """Open the tasks that have all their inputs, and start to restore them.

        A standby of such a task is closed first: the task goes on with its folder, and restores only what is missing.
        A task that another thread of this client has not let go of yet, since it has not heard that the group took it
        away, is left to the next call (as Kafka Streams does on a LockException).

        Raises:
            ProcessorStateException: a store can't be opened.
        """
        opened: dict[StateRestorer, Task] = {}
        complete = complete_tasks(self._topology, self._assigned, counts)
        new = [task_id for task_id in complete if task_id not in self._tasks]
        if self._standbys is not None and new:
            self._standbys.promote(new)
        for task_id in self._free(new):
            task = Task(task_id, self._topology.subtopologies[task_id.subtopology], complete[task_id])
            opened |= dict.fromkeys(task.open(self._directory), task)
            self._tasks = {**self._tasks, task_id: task}
            self._recorder.tasks_created.record(1, self._recorder.clock())
        self._updater.add(opened)

    def _free(self, tasks: Collection[TaskId]) -> list[TaskId]:
        taken = {task for task in tasks if self._directory.tasks.in_use(task)}
        for task in sorted(taken - self._awaited):
            _LOGGER.warning("task %s is another thread's still: it is opened here when that has closed it", task)
        self._awaited = taken
        return [task for task in tasks if task not in taken]

    def restored(self, group: str) -> Positions:
        """Let tasks run whose stores are complete; returns where their inputs are to be read from.

        Raises whatever ended the state updater, and what positions_of raises; BrokerNotAvailableException: call again.
        """
        completed = self._updater.completed()
        ready = [task for task in self._tasks.values() if task.state is TaskState.RESTORING]
        for task in ready:
            task.note_restored(completed)
        ready = [task for task in ready if task.is_restored]
        inputs = frozenset(each for task in ready for each in task.inputs)
        # Before the offsets: those of a topic that is made anew in between are taken for the old one's then, and so
        # its records are read from their beginning once that is noticed.
        ids = self._offsets.topic_ids({each.topic for each in inputs}) if inputs else {}
        positions = positions_of(self._offsets, group, inputs, self._beginnings)
        self._topic_ids = ids | self._topic_ids
        for task in ready:
            task.run()
            task.stored = {each: positions.next[each] for each in task.inputs if each in positions.next}
            if self._snapshots is not None:
                self._snapshots.add(task.id, task.stores.values(), lambda task=task: task.stored)  # type: ignore[misc]
        return positions

    def note_stored(self, offsets: Mapping[TopicPartition, int]) -> None:
        """The stores have all records of inputs that are before these offsets."""
        for task in self._tasks.values():
            if not task.inputs.isdisjoint(offsets):
                task.stored = {each: offsets.get(each, known) for each, known in task.stored.items()}

    def revoked(self, partitions: frozenset[TopicPartition]) -> frozenset[TopicPartition]:
        """Close the tasks that lose an input; returns all inputs of those."""
        self._assigned -= partitions
        return self._close([task for task in self._tasks.values() if task.inputs & partitions])

    def close_all(self) -> frozenset[TopicPartition]:
        """Close all tasks; returns their inputs. They are still assigned: `open_new` opens them again, and restores."""
        return self._close(list(self._tasks.values()), leaving=False)

    def close_restoring(self) -> bool:
        """Close the tasks whose stores are not complete yet; whether there are any. `open_new` opens them again.

        Nothing is left then of what the restore consumer knows of their changelogs.
        """
        restoring = [task for task in self._tasks.values() if task.state is TaskState.RESTORING]
        self._close(restoring, leaving=False)
        return bool(restoring)

    def follow(self, renewed: Mapping[str, str]) -> None:
        """Let running tasks go on with changelogs that were made anew: all that those will have is in their stores.

        `renewed` are topics with their ids; a user's topic among them is not the log of a store that was made from it.

        Raises:
            ProcessorStateException: a store can't be written.
        """
        for task in self._tasks.values():
            sources = {spec.name for spec in task.sub.stores if spec.source_changelog}
            for name, store in task.stores.items():
                topic_id = renewed.get(store.changelog.topic)
                if topic_id is not None and name not in sources and task.state is TaskState.RUNNING:
                    store.follow(topic_id, 0)

    @property
    def any_damaged(self) -> bool:
        """Whether `close_damaged` has something to do."""
        return any(damage_of(task.stores.values()) for task in self._tasks.values())

    def close_damaged(self) -> frozenset[TopicPartition]:
        """Close the tasks with a store whose files were found damaged, by whoever read them; returns their inputs.

        The damaged stores are set aside. The tasks are still assigned: `open_new` opens them again, and restores
        those stores from their beginning.

        Raises:
            ProcessorStateException: a folder can't be moved.
        """
        damaged = [task for task in self._tasks.values() if damage_of(task.stores.values())]
        if not damaged:
            return frozenset()
        inputs = self._close(damaged, leaving=False)
        for task in damaged:
            set_damaged_aside(task.stores, self._directory)
        return inputs

    def close(self) -> None:
        """Close everything."""
        self._assigned = frozenset()
        self._close(list(self._tasks.values()))

    def _close(self, tasks: Collection[Task], leaving: bool = True) -> frozenset[TopicPartition]:
        if self._snapshots is not None:
            self._snapshots.remove([task.id for task in tasks])
        self._updater.remove({each for task in tasks for each in task.changelogs})
        self._tasks = {task_id: task for task_id, task in self._tasks.items() if task not in tasks}
        for _ in tasks:
            self._recorder.tasks_closed.record(1, self._recorder.clock())
        with ExitStack() as closing:
            if self._standbys is not None and leaving:
                closing.callback(self._standbys.let_go, [task.id for task in tasks])
            for task in tasks:
                closing.callback(task.close)
        read = {each.topic for task in self._tasks.values() for each in task.inputs}
        self._topic_ids = {topic: each for topic, each in self._topic_ids.items() if topic in read}
        return frozenset(each for task in tasks for each in task.inputs)
