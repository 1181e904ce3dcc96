"""An application's batches, one after the other: the runtime's own code between topics in memory and real stores."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import cast

from streams_runtime.errors import FailedProcessingException
from streams_runtime.kafka.producer.batch_producer import BatchProducer
from streams_runtime.kafka.types import TopicPartition
from streams_runtime.pipeline.batch_input import BatchInput, batch_of_nothing
from streams_runtime.pipeline.compiled_topology import Compiled
from streams_runtime.pipeline.spark.query_failures import translating
from streams_runtime.processing.batch_processor import BatchProcessor
from streams_runtime.processing.batch_work import Counters, Outcome
from streams_runtime.processing.failures.error_policy import ErrorPolicy
from streams_runtime.processing.failures.isolation import Isolation
from streams_runtime.processing.failures.sink_topics import SinkTopics
from streams_runtime.processing.global_tables import GlobalUpdate, open_global_store
from streams_runtime.state.database.rocksdb_options import DEFAULT_OPTIONS, RocksDBOptions
from streams_runtime.state.global_store import GlobalStore
from streams_runtime.state.state_directory import StateDirectory
from streams_runtime.tasks.assignment import inputs_of_task
from streams_runtime.tasks.task import Task
from streams_runtime.testing.driver_records import START
from streams_runtime.testing.memory_topics import EveryTopic, Logs, batch_of
from streams_runtime.testing.mock_producer import MockProducer
from streams_runtime.topology.own_topics import OwnTopics
from streams_runtime.topology.partition_counts import tasks
from streams_runtime.topology.plan import SubTopology, TaskId, Topology

Policies = tuple[ErrorPolicy, ErrorPolicy]
_OWNER = "topology-test-driver"
_FAIL = ErrorPolicy("fail")


class TopologyRunner:
    """Every task of an application, open and running. Used by one thread."""

    def __init__(
        self,
        topology: Topology,
        compiled: Compiled,
        policies: Policies,
        counts: Mapping[str, int],
        folder: Path,
        options: RocksDBOptions = DEFAULT_OPTIONS,
        others: int = 1,
        without_topic: ErrorPolicy = _FAIL,
    ) -> None:
        """`policies`: what becomes of records that can't be read, and of those over which a step fails;
        `without_topic`: of those for which an expression gives no topic. `counts` are the partitions of all topics that
        are read, by the application or by a test; `others` are those of each topic that only an expression names.

        Raises:
            ProcessorStateException: the stores can't be made in `folder`.
            UserCodeException: a processor of the user's can't be made, or its init failed.
        """
        self.topology = topology
        self.counters = Counters()
        self.logs = Logs(counts, others)
        ids = tasks(topology, counts)
        with ExitStack() as undo:
            directory = undo.enter_context(StateDirectory(folder, topology.application_id, _OWNER, options=options))
            self.global_stores: dict[str, GlobalStore] = {}
            self._global_updates: dict[str, GlobalUpdate] = {}
            for sub in topology.global_tables:
                global_store = open_global_store(sub, directory)
                undo.callback(global_store.close)
                update = GlobalUpdate(global_store, compiled.runners[sub.id], policies[0], self.counters)
                self.global_stores[sub.nodes[0].name] = global_store
                self._global_updates[global_store.changelog.topic] = update
            self.tasks = {
                sub.id: running_tasks(
                    undo, sub, [each for each in ids if each.subtopology == sub.id], counts, directory
                )
                for sub in topology.subtopologies
            }
            self._closing = undo.pop_all()
        self._sinks = SinkTopics(without_topic, EveryTopic(), (), (), {}, OwnTopics.of(topology))
        self.now = round(START.timestamp() * 1000)
        """The clock of processors of users' own, in ms: a test moves it."""
        self._processor = BatchProcessor(
            compiled.runners, policies[0], self.counters, self.global_stores, policies[1], lambda: self.now
        )
        try:
            self._call_what_is_due()
        except BaseException:
            self.close()
            raise

    def work(self) -> None:
        """Process all that waits, and what comes of it, until nothing is left: sub-topology by sub-topology, upstream
        first, each with all that waits for it as one batch. Global tables are brought up to date before.

        Raises whatever ends a batch in the runtime. Nothing of that batch is written, unless it was being done once
        more in parts; what waits is forgotten.
        """
        try:
            for topic, update in self._global_updates.items():
                self._bring_up_to_date(topic, update)
            while any(self._work_on(sub) for sub in self.topology.subtopologies):
                pass
        except BaseException:
            self.forget()
            raise

    def advance(self, milliseconds: int) -> None:
        """Move the clock, call what is due by it, and process what comes of that. Raises as `work`."""
        self.now += milliseconds
        self._call_what_is_due()
        self.work()

    def _call_what_is_due(self) -> None:
        """Once for each sub-topology; tasks whose processors have no objects yet get them."""
        for sub in self.topology.subtopologies:
            if self._processor.is_due(sub, self.tasks[sub.id]):
                self._process(sub, batch_of_nothing({}))

    def forget(self) -> None:
        """Leave out what waits to be processed."""
        for sub in self.topology.every_subtopology:
            self.logs.take(self.logs.read_by(sub))

    def close(self) -> None:
        """Close the stores. May be called twice."""
        self._closing.close()

    def _bring_up_to_date(self, topic: str, update: GlobalUpdate) -> None:
        waiting = self.logs.take((topic,))
        if waiting:
            batch = batch_of(waiting)
            ends = {each.partition.partition: each.end for each in batch.ranges}
            with translating(batch.ranges):
                update.apply(batch, ends)

    def _work_on(self, sub: SubTopology) -> bool:
        """Whether something waited for the sub-topology."""
        waiting = self.logs.take(self.logs.read_by(sub))
        if waiting:
            batch = batch_of(waiting)
            try:
                self._process(sub, batch)
            except FailedProcessingException as error:
                isolation = self._processor.isolation(sub, batch, error)
                if isolation is None:
                    raise
                while not isolation.is_done:
                    self._process_part(sub, isolation)
        return bool(waiting)

    def _process_part(self, sub: SubTopology, isolation: Isolation) -> None:
        """The next part of a batch of which a record fails."""
        part = isolation.part()
        try:
            self._process(sub, part)
        except FailedProcessingException as error:
            if not error.of_a_record:
                raise
            if isolation.failed():
                self._commit(partial(self._processor.leave_out, sub, part, error))
                isolation.left_out()
        else:
            isolation.passed()

    def _process(self, sub: SubTopology, batch: BatchInput) -> None:
        with translating(batch.ranges):
            result = self._processor.compute(sub, batch)
            self._commit(partial(self._processor.apply, sub, self.tasks[sub.id], batch, result, sinks=self._sinks))

    def _commit(self, process: Callable[[BatchProducer], Outcome]) -> None:
        """Write what it sends, and then into the stores what it leaves for them."""
        sent = MockProducer(self.logs.partition_count)
        # A batch's output goes through `send` alone.
        outcome = process(cast(BatchProducer, sent))
        for each in sent.records:
            self.logs.append(each, sent.placed.get((each.topic, each.key), each.key))
        store(outcome, self.logs.end)
        self.counters.batches += 1


def running_tasks(
    stack: ExitStack, sub: SubTopology, ids: Iterable[TaskId], counts: Mapping[str, int], directory: StateDirectory
) -> dict[int, Task]:
    """Tasks of a sub-topology by partition, with empty stores; closed with `stack`.

    Raises:
        ProcessorStateException: a store can't be made.
    """
    running = {}
    for task_id in ids:
        task = Task(task_id, sub, inputs_of_task(sub, task_id.partition, counts))
        task.open(directory)
        stack.callback(task.close)
        task.run()
        running[task_id.partition] = task
    return running


def store(outcome: Outcome, end: Callable[[TopicPartition], int]) -> None:
    """Write what a committed batch has held; `end` says where a changelog ends then."""
    for held in outcome.held:
        held.store.write(held.updates, end(held.store.changelog) if held.offset is None else held.offset)
