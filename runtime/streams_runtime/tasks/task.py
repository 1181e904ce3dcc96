"""A task: one partition of one sub-topology, with its stores."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from contextlib import ExitStack

from streams_runtime.kafka.types import TopicPartition
from streams_runtime.processors.user_processors.processor_task import ProcessorTask
from streams_runtime.restore.restorer import StateRestorer
from streams_runtime.state.open_store import AnyStore
from streams_runtime.state.state_directory import StateDirectory
from streams_runtime.states import TASK, StateMachine, TaskState
from streams_runtime.tasks.task_stores import close_stores, open_stores
from streams_runtime.topology.plan import SubTopology, TaskId


class Task:
    """Lives on the thread that it is assigned to; its stores may be read from any thread."""

    def __init__(self, id: TaskId, sub: SubTopology, inputs: frozenset[TopicPartition]) -> None:
        self.id = id
        self.sub = sub
        self.inputs = inputs
        self.stores: dict[str, AnyStore] = {}
        self.stored: Mapping[TopicPartition, int] = {}
        """Of each input the offset that comes next: the stores have all before it. Replaced as a whole."""
        self.processors: dict[str, ProcessorTask] = {}
        """The processors of users' own by step, once they are needed."""
        self._machine = StateMachine(TASK, f"task {id}")
        self._unrestored: set[TopicPartition] = set()
        self._closing = ExitStack()

    @property
    def state(self) -> TaskState:
        """The task's state."""
        return self._machine.state

    @property
    def changelogs(self) -> frozenset[TopicPartition]:
        """The changelog partitions of the task's stores."""
        return frozenset(store.changelog for store in self.stores.values())

    def open(self, directory: StateDirectory) -> list[StateRestorer]:
        """Open the stores and begin to restore; what has to be restored is returned.

        A store with damaged files is set aside and restored from its beginning.

        Raises:
            ProcessorStateException: a store can't be opened; none is left open.
        """
        with ExitStack() as undo:
            undo.enter_context(directory.tasks.used(self.id))
            self.stores = open_stores(self.sub, self.id, directory)
            undo.callback(close_stores, self.stores)
            self._closing = undo.pop_all()
        self._unrestored = set(self.changelogs)
        self._machine.move(TaskState.RESTORING)
        sources = {spec.name: spec.source_changelog for spec in self.sub.stores}
        return [StateRestorer(self.id, store, sources[name]) for name, store in self.stores.items()]

    @property
    def is_restored(self) -> bool:
        """Whether all stores are complete."""
        return not self._unrestored

    def note_restored(self, partitions: Iterable[TopicPartition]) -> None:
        """These changelogs are complete."""
        self._unrestored -= set(partitions)

    def run(self) -> None:
        """All stores are complete: the task takes part in batches from now on."""
        self._machine.move(TaskState.RUNNING)

    def reinitialize_state_stores_for_partitions(self, partitions: Collection[TopicPartition]) -> None:
        """Wipe the stores of these changelog partitions; they stay open, and are empty."""
        for store in self.stores.values():
            if store.changelog in partitions:
                store.wipe()

    def close(self) -> None:
        """Suspend, close processors of users' own and then the stores, and end. May be called twice.

        Raises:
            ProcessorStateException: a store could not be flushed; all of them are closed nevertheless.
        """
        if self.state is TaskState.CLOSED:
            return
        if self.state in (TaskState.RUNNING, TaskState.RESTORING):
            self._machine.move(TaskState.SUSPENDED)
        self._machine.move(TaskState.CLOSED)
        for processor in self.processors.values():
            processor.close()
        self._closing.close()
