"""One batch of a sub-topology: through Spark, into the stores' next contents, out to the topics.

Nothing is written to a store here: a batch's updates are *held* until its output is acknowledged and its offsets are
committed, so that a crash before that leaves the stores as the changelogs have them, and queries see committed state.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import ParamSpec

import pyarrow as pa

from streams_runtime.batch.drop_reasons import DropReason
from streams_runtime.batch.stage import StageInput, StageOutput, StoreBatch
from streams_runtime.errors import FailedProcessingException
from streams_runtime.kafka.consumer.record_table import RAW_SCHEMA
from streams_runtime.kafka.producer.batch_producer import BatchProducer
from streams_runtime.metrics.sampled import NOTHING, spread_of
from streams_runtime.pipeline.batch_input import BatchInput
from streams_runtime.processing.age_log import AgeLog
from streams_runtime.processing.batch_runner import BatchRunner
from streams_runtime.processing.batch_work import BatchWork, Counters, Held, Outcome
from streams_runtime.processing.failures.error_policy import ErrorPolicy
from streams_runtime.processing.failures.failed_records import is_of_a_record, letter_of
from streams_runtime.processing.failures.isolation import Isolation, isolation_of
from streams_runtime.processing.failures.sink_topics import SinkTopics
from streams_runtime.processing.failures.unreadable_records import dead_letters
from streams_runtime.processing.late_log import LateLog
from streams_runtime.processing.node_names import NodeNames
from streams_runtime.processing.peek_log import PeekLog, added_up
from streams_runtime.processors.contract import Applied, ApplyContext, system_time
from streams_runtime.processors.registry import apply_of
from streams_runtime.processors.user_processors.process_records import has_due
from streams_runtime.state.global_store import GlobalStore
from streams_runtime.tasks.task import Task
from streams_runtime.topology.nodes.process_node import ProcessNode
from streams_runtime.topology.nodes.source_and_sink_nodes import FromTopicNode, TableSourceNode
from streams_runtime.topology.partition_counts import ChangelogSpan
from streams_runtime.topology.plan import SubTopology

_P = ParamSpec("_P")
_FAIL = ErrorPolicy("fail")


class BatchProcessor:
    """Processes batches of all sub-topologies of a thread. Used by that thread only."""

    def __init__(
        self,
        runners: Mapping[int, BatchRunner],
        policy: ErrorPolicy,
        counters: Counters,
        global_stores: Mapping[str, GlobalStore] | None = None,
        failed: ErrorPolicy = _FAIL,
        clock: Callable[[], int] = system_time,
        spans: Mapping[str, ChangelogSpan] | None = None,
    ) -> None:
        """`policy` is about records that can't be read, `failed` about those over which a step fails.

        `global_stores` are those of the global tables, by the names of the tables. `clock` gives ms: processors
        of users' own go by it. `spans`: for how long changelogs keep things, by their names (see AgeLog).
        """
        self._clock = clock
        self._failed = failed
        self._global_stores = global_stores or {}
        self._runners = runners
        self._policy = policy
        self._counters = counters
        self._peek_log = PeekLog()
        self._late_log = LateLog()
        self._age_log = AgeLog(spans or {}, clock)
        self._names: dict[int, NodeNames] = {}

    def compute(self, sub: SubTopology, batch: BatchInput) -> StageOutput:
        """Spark's part of a batch of one sub-topology: needs no store and changes nothing. May run on any thread."""
        return self._runners[sub.id].run(batch) if batch.has_records else StageOutput()

    def apply(
        self,
        sub: SubTopology,
        tasks: Mapping[int, Task],
        batch: BatchInput,
        result: StageOutput,
        producer: BatchProducer,
        sinks: SinkTopics | None = None,
    ) -> Outcome:
        """The rest of it: what the stores of the tasks (by partition) will hold, and the output to the producer.

        `sinks`: what the topics take that are written; None: there is no topic that could refuse a record.

        Raises:
            DeserializationException: a record can't be read and the policy is `fail`; nothing was produced.
            FailedProcessingException: an expression or a function failed. Unless that is to `fail`, nothing was
                produced and nothing counted: see `isolation`.
            StreamsException: a total left its range.
        """
        runner, outcome = self._runners[sub.id], Outcome(records=result.records)
        changes: dict[str, StoreBatch] = {}
        context = self._context(sub, tasks, batch, changes, result.arrived)
        names = self._names.get(sub.id)
        if names is None:
            names = self._names[sub.id] = NodeNames.of(sub)
        effects: list[Callable[[], None]] | None = None if self._failed.kind == "fail" else []
        counters = self._counters
        work = BatchWork(runner, names, producer, outcome, context, changes, counters, sinks, effects=effects)
        letters = dead_letters(self._policy, runner, batch, result)
        work.do(self._note_read, work, result)
        for letter in letters:
            work.send(letter)
        outcome.offsets = {each.partition: each.end for each in batch.ranges}
        self._take_stage(work, result)
        for each in runner.stages:
            if not isinstance(each, str):
                self._take(work, apply_of(each)(each, context), each.name, context)
            elif (begun := work.waiting.pop(each, None) or _without_rows(sub, each)) is not None:
                work.do(work.recorder.entered, each, len(begun.rows))
                self._take(work, apply_of(begun.node)(begun, context), each, context, begun)
        work.finish()
        self._counters.records_processed += result.records
        self._counters.deserialization_errors += result.broken
        self._counters.dead_letters += sum(len(each) for each in letters)
        return outcome

    def is_due(self, sub: SubTopology, tasks: Mapping[int, Task]) -> bool:
        """Whether a step has anything to call by the machine's clock: then a batch without records is due.

        Raises UserCodeException: a class can't be made, or its init failed.
        """
        processes = _processes(sub)
        if not processes or not tasks or not self._runners[sub.id].has_spark:
            return False
        context = self._context(sub, tasks, BatchInput((), RAW_SCHEMA.empty_table()), {}, {})
        due = [has_due(node, context) for node in processes]
        return any(due)

    def _context(
        self,
        sub: SubTopology,
        tasks: Mapping[int, Task],
        batch: BatchInput,
        changes: Mapping[str, StoreBatch],
        arrived: Mapping[str, pa.Table],
    ) -> ApplyContext:
        return ApplyContext(
            self._runners[sub.id].side(batch),
            sub,
            {partition: task.stores for partition, task in tasks.items()},
            self._global_stores,
            changes,
            arrived,
            {(each.partition.topic, each.partition.partition): each.end for each in batch.ranges},
            processors={partition: task.processors for partition, task in tasks.items()} if _processes(sub) else {},
            clock=self._clock,
            is_tick=not batch.has_records,
        )

    def isolation(self, sub: SubTopology, batch: BatchInput, error: BaseException) -> Isolation | None:
        """The parts in which a batch that failed is to be done once more; None: the error ends it."""
        if self._failed.kind == "fail" or not is_of_a_record(error):
            return None
        tables = {node.topic for node in sub.nodes if isinstance(node, TableSourceNode)}
        return isolation_of(batch, self._runners[sub.id].order_times(batch), tables)

    def leave_out(
        self, sub: SubTopology, batch: BatchInput, error: FailedProcessingException, producer: BatchProducer
    ) -> Outcome:
        """What remains of a batch of one record, over which a step fails: its letter, if there is to be one."""
        record = self._runners[sub.id].records(batch)
        letter = letter_of(self._failed, record, error)
        if letter is not None:
            producer.send(letter.topic, letter.keys, letter.values, letter.timestamps, headers=letter.headers)
            self._counters.dead_letters += len(letter)
        names = NodeNames.of(sub)
        sources = [node for node in sub.nodes if isinstance(node, FromTopicNode)]
        for topic in record["topic"].to_pylist():
            source = next(node.name for node in sources if node.reads(topic))
            self._counters.recorder.drop(names.step(source), DropReason.FAILED, 1)
        self._counters.records_processed += record.num_rows
        self._counters.processing_errors += record.num_rows
        return Outcome(offsets={each.partition: each.end for each in batch.ranges}, records=record.num_rows)

    def _take_stage(self, work: BatchWork, stage: StageOutput) -> None:
        """One stage: its output, what its rows come to in the stores, and what other stages begin with."""
        for emission in stage.emissions:
            work.send(emission)
        context = replace(work.context, begun_with=stage.begun_with, late=stage.late)
        for rows in stage.store_batches:
            self._take(work, apply_of(rows.node)(rows, context), rows.node.name, context)
        for begun in stage.inputs:
            work.wait(begun)
        work.do(self._drop, work, stage.dropped)
        work.do(self._late, work, stage.late)
        work.do(self._peek, stage)

    def _take(
        self, work: BatchWork, applied: Applied, name: str, context: ApplyContext, begun: StageInput | None = None
    ) -> None:
        """What one node makes of its rows; then the stage behind it, if there is anything for it to do."""
        for emission in applied.emissions:
            work.send(emission)
        for store, updates in applied.updates:
            work.hold(store, updates)
            work.do(self._age_log.take, store.changelog.topic, updates.timestamps)
        work.outcome.held += [Held(*each) for each in applied.source_updates]
        if applied.changes is not None:
            work.changes[name] = applied.changes
        for each in applied.inputs:
            work.wait(each)
        work.do(self._drop, work, {(name, reason): records for reason, records in applied.dropped.items()})
        work.do(self._late, work, {name: applied.late}, applied.late_reason)
        if name in work.names.ends:
            times = sum((spread_of(updates.timestamps) for _, updates in applied.updates), NOTHING)
            if times.count:
                work.do(work.recorder.aged, name, times)
        work.do(self._late_log.take, name, context.late[name] + applied.late, applied.late_outcome)
        if begun is not None and applied.rows is not None and len(applied.rows):
            self._take_stage(work, work.runner.run_after(StageInput(begun.node, applied.rows)))
        if applied.table_rows is not None and len(applied.table_rows):
            self._take_stage(work, work.runner.run_table(name, applied.table_rows))

    def _note_read(self, work: BatchWork, result: StageOutput) -> None:
        """What the sources have read."""
        for source, account in result.accounts.items():
            work.recorder.read(source, work.names.topics[source], account.records, account.times)
            work.recorder.drop(work.names.step(source), DropReason.UNREADABLE, account.broken)

    def _peek(self, stage: StageOutput) -> None:
        self._counters.peeks = added_up(self._counters.peeks, stage.peeks)
        self._peek_log.take(stage.peeks)

    def _drop(self, work: BatchWork, dropped: Mapping[tuple[str, str], int]) -> None:
        self._counters.records_dropped += sum(dropped.values())
        for (node, reason), records in dropped.items():
            work.recorder.drop(work.names.step(node), reason, records)

    def _late(self, work: BatchWork, late: Mapping[str, int], reason: DropReason = DropReason.LATE) -> None:
        self._counters.late_records += sum(late.values())
        for node, times in late.items():
            work.recorder.drop(work.names.step(node), reason, times)


def _processes(sub: SubTopology) -> list[ProcessNode]:
    return [node for node in sub.nodes if isinstance(node, ProcessNode)]


def _without_rows(sub: SubTopology, name: str) -> StageInput | None:
    """What a process step of this name begins with where no rows have come to it.

    It has to see every batch: records that do not reach it let its time come, and so does the clock.
    """
    node = next((each for each in _processes(sub) if each.name == name), None)
    return None if node is None else StageInput(node, pa.table({}))
