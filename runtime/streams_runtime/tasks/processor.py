"""One batch of a sub-topology: through Spark, into the stores' next contents, out to the topics.

Nothing is written to a store here: a batch's updates are *held* until its output is acknowledged and its offsets are
committed, so that a crash before that leaves the stores as the changelogs have them, and queries see committed state.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from streams_runtime.kafka.producer import BatchProducer
from streams_runtime.kafka.types import TopicPartition
from streams_runtime.pipeline.compile import Compiler
from streams_runtime.pipeline.dedupe import ToDedupe
from streams_runtime.pipeline.merges import ToMerge
from streams_runtime.pipeline.runner import SubTopologyRunner
from streams_runtime.pipeline.source import BatchInput
from streams_runtime.pipeline.stage import Behind, Emission, Keyed, StageResult, ToJoin
from streams_runtime.pipeline.stream_joins import StreamsToJoin
from streams_runtime.pipeline.to_table import Streamed
from streams_runtime.state.global_store import GlobalStore
from streams_runtime.state.store import KeyValueStore, Updates
from streams_runtime.state.stores import AnyStore
from streams_runtime.tasks.closing import closed
from streams_runtime.tasks.dedupe import deduped
from streams_runtime.tasks.foreign_joins import met
from streams_runtime.tasks.gathered import gathered, merged_in_turn
from streams_runtime.tasks.global_joins import looked_up
from streams_runtime.tasks.joins import matched
from streams_runtime.tasks.late_log import LEFT_OUT, NOT_KEPT, NOT_REMEMBERED, LateLog
from streams_runtime.tasks.peeks import PeekLog, Totals, added_up
from streams_runtime.tasks.sessions import merged_sessions, must_be_cut_anew
from streams_runtime.tasks.sliding import merged_sliding
from streams_runtime.tasks.stream_joins import join_streams
from streams_runtime.tasks.table_changes import told_changes
from streams_runtime.tasks.task import Task
from streams_runtime.tasks.told import Told, in_turn
from streams_runtime.tasks.told_windows import told_one_by_one
from streams_runtime.tasks.unreadable import ErrorPolicy, dead_letters
from streams_runtime.tasks.updates import Merged, merged, stream_times, table_updates
from streams_runtime.topology.foreign_keys import ForeignKeySide
from streams_runtime.topology.nodes import AggregateNode, TableSourceNode
from streams_runtime.topology.plan import SubTopology
from streams_runtime.topology.table_nodes import ToTableNode
from streams_runtime.topology.table_parts import TablePart
from streams_runtime.topology.windows import SessionWindows, SlidingWindows


@dataclass(slots=True)
class Counters:
    """What a client has done since it started; each thread adds to its own."""

    records_processed: int = 0
    batches: int = 0
    records_dropped: int = 0
    late_records: int = 0
    deserialization_errors: int = 0
    dead_letters: int = 0
    peeks: Totals = field(default_factory=dict)
    """Replaced as a whole, never changed: others read it meanwhile."""


@dataclass(frozen=True, slots=True)
class Held:
    """Updates of one store partition that wait for the commit.

    `offset` is the changelog offset that comes next afterwards; None: where the changelog ends once all is produced.
    """

    store: AnyStore
    updates: Updates
    offset: int | None


@dataclass(slots=True)
class Outcome:
    """What a batch leaves behind: held updates and the offsets to commit."""

    held: list[Held] = field(default_factory=list)
    offsets: dict[TopicPartition, int] = field(default_factory=dict)
    records: int = 0


@dataclass(frozen=True, slots=True)
class _Work:
    """A batch that is being applied: with what, for which tasks (by partition), and what has come of it so far."""

    runner: SubTopologyRunner
    sub: SubTopology
    tasks: Mapping[int, Task]
    batch: BatchInput
    producer: BatchProducer
    outcome: Outcome
    changes: dict[str, Keyed] = field(default_factory=dict)
    """Of the batch, by the node that keeps the table."""

    def send(self, emission: Emission) -> None:
        """Send records to their topic."""
        records = (emission.keys, emission.values, emission.timestamps, emission.partition)
        self.producer.send(emission.topic, *records, headers=emission.headers, placed_by=emission.placed_by)

    def hold(self, store: AnyStore, updates: Updates) -> None:
        """Send what a store will have to its changelog, and keep it until the commit."""
        topic, partition = store.changelog.topic, store.changelog.partition
        self.producer.send(topic, updates.keys, updates.values, updates.timestamps, partition)
        self.outcome.held.append(Held(store, updates, None))

    def tables(self, join: ToJoin) -> dict[int, KeyValueStore]:
        """The store of the table that is joined with, by partition."""
        (name,) = (store.name for store in self.sub.stores if store.node == join.node.table)
        return {partition: task.key_value_store(name) for partition, task in self.tasks.items()}


class BatchProcessor:
    """Processes batches of all sub-topologies of a thread. Used by that thread only."""

    def __init__(
        self,
        compiler: Compiler,
        runners: Mapping[int, SubTopologyRunner],
        policy: ErrorPolicy,
        counters: Counters,
        global_stores: Mapping[str, GlobalStore] | None = None,
    ) -> None:
        """`global_stores` are those of the global tables, by the names of the tables."""
        self._global_stores = global_stores or {}
        self._compiler = compiler
        self._runners = runners
        self._policy = policy
        self._counters = counters
        self._peek_log = PeekLog()
        self._late_log = LateLog()

    def compute(self, sub: SubTopology, batch: BatchInput) -> StageResult:
        """Spark's part of a batch of one sub-topology: needs no store and changes nothing. May run on any thread."""
        return self._runners[sub.id].run(batch) if batch.has_records else StageResult()

    def apply(
        self,
        sub: SubTopology,
        tasks: Mapping[int, Task],
        batch: BatchInput,
        result: StageResult,
        producer: BatchProducer,
    ) -> Outcome:
        """The rest of it: what the stores of the tasks (by partition) will hold, and the output to the producer.

        Raises:
            DeserializationException: a record can't be read and the policy is `fail`; nothing was produced.
            StreamsException: a total left its range, or an expression failed.
        """
        work = _Work(self._runners[sub.id], sub, tasks, batch, producer, Outcome(records=result.records))
        letters = dead_letters(self._policy, self._compiler, work.runner, batch, result)
        for letter in letters:
            work.send(letter)
        work.outcome.offsets = {each.partition: each.end for each in batch.ranges}
        waiting: dict[str, Behind] = {}  # by the node that a stage begins behind
        self._apply(work, result, waiting)
        for each in work.runner.stages:
            if isinstance(each, ForeignKeySide):
                self._join_by_foreign_key(work, each, result)
            elif isinstance(each, TablePart):
                told = told_changes(each, work.changes, work.runner, tasks, self._compiler)
                for emission in told.emissions:
                    work.send(emission)
                waiting |= {streamed.node.name: streamed for streamed in told.streams}
            elif each in waiting:
                found = self._met(work, waiting.pop(each))
                if len(found.rows):
                    self._apply(work, work.runner.run_behind(found), waiting)
        self._counters.records_processed += result.records
        self._counters.deserialization_errors += result.broken
        self._counters.dead_letters += sum(len(each) for each in letters)
        return work.outcome

    def _met(self, work: _Work, found: Behind) -> Behind:
        """What goes on of the rows that wait for stores, once they have met these."""
        match found:
            case ToJoin():
                table = found.node.table
                if found.node.on is not None:
                    return looked_up(found, self._global_stores[table])
                show = self._compiler.shown_by(table)
                return matched(found, work.changes.get(table), work.tables(found), show)
            case StreamsToJoin():
                return self._join_streams(work, found)
            case ToDedupe():
                return self._dedupe(work, found)
            case ToMerge():
                return merged_in_turn(found)
            case Streamed():
                return found

    def _apply(self, work: _Work, stage: StageResult, waiting: dict[str, Behind]) -> None:
        """One stage: its output, what its rows come to in the stores, and in `waiting` what other stages begin with."""
        for emission in stage.emissions:
            work.send(emission)
        for keyed in stage.keyed:
            match keyed.node:
                case AggregateNode() as node if self._compiler.is_told(node.name):
                    self._tell(work, stage, keyed, node)
                case AggregateNode() as node:
                    self._aggregate(work, stage, keyed, node, waiting)
                case ToTableNode() as node:
                    self._keep(work, in_turn(keyed), node)
                case TableSourceNode() as node:
                    work.changes[node.name] = keyed
                    work.outcome.held += _held_table(keyed, node, work.tasks, work.outcome.offsets)
        begun: tuple[Behind, ...] = (*stage.joins, *stage.stream_joins, *stage.dedupes, *stage.merges)
        for each in begun:
            waiting[each.node.name] = gathered(waiting, each)
        self._counters.records_dropped += stage.dropped
        self._counters.late_records += stage.late.total()
        self._counters.peeks = added_up(self._counters.peeks, stage.peeks)
        self._peek_log.take(stage.peeks)

    def _keep(self, work: _Work, keyed: Keyed, node: ToTableNode) -> None:
        """The rows of a toTable, in turn."""
        work.changes[node.name] = keyed
        for partition, updates in table_updates(keyed).items():
            work.hold(work.tasks[partition].stores[node.store], updates)

    def _tell(self, work: _Work, stage: StageResult, keyed: Keyed, node: AggregateNode) -> None:
        """The changes of an aggregate of which every one counts."""
        if len(keyed.keys):
            stores = {partition: task.stores[node.store] for partition, task in work.tasks.items()}
            told = told_one_by_one(self._compiler.aggregate(node.name), keyed, stores)
            self._send_late(work, stage, node, stores, told)
            work.changes[node.name] = told.changes
            for partition, updates in told.updates.items():
                work.hold(stores[partition], updates)

    def _send_late(
        self, work: _Work, stage: StageResult, node: AggregateNode, stores: Mapping[int, AnyStore], new: Merged | Told
    ) -> None:
        """The records that came too late for a window, where they are wanted; nothing is in the stores yet."""
        here = stage.late[node.name] + new.late
        self._late_log.take(node.name, here, f"they went to {node.late_topic}" if node.late_topic else LEFT_OUT)
        if node.late_topic is not None and here:
            times = stream_times(stores)
            work.send(work.runner.late(node, node.late_topic, work.batch, times, new.missed, stage.behind))
        self._counters.late_records += new.late

    def _aggregate(
        self, work: _Work, stage: StageResult, keyed: Keyed, node: AggregateNode, waiting: dict[str, Behind]
    ) -> None:
        if len(keyed.keys) == 0:
            return
        stores = {partition: task.stores[node.store] for partition, task in work.tasks.items()}
        state = self._compiler.aggregate(node.name)
        if isinstance(node.windows, SessionWindows):
            times = stream_times(stores)
            if must_be_cut_anew(keyed, times):
                keyed = work.runner.again(node, work.batch, times, stage.behind)
            new = merged_sessions(state, keyed, stores)
        elif isinstance(node.windows, SlidingWindows):
            new = merged_sliding(state, keyed, stores)
        else:
            new = merged(state, keyed, stores)
        self._send_late(work, stage, node, stores, new)
        if not new.updates:
            return
        for partition, updates in new.updates.items():
            work.hold(stores[partition], updates)
        rows = new.rows
        if node.windows is not None and node.windows.only_final:
            rows = closed(state, node.windows, new, stores, self._compiler.key_serde(node.name))
        if len(rows):
            self._apply(work, work.runner.run_table(node, rows), waiting)

    def _join_by_foreign_key(self, work: _Work, side: ForeignKeySide, result: StageResult) -> None:
        """One side of such a join: what it tells the other one, and what the join's result comes to."""
        done = met(side, self._compiler, work.changes, result.arrived, work.tasks)
        for emission in done.emissions:
            work.send(emission)
        for store, updates in done.updates:
            work.hold(store, updates)
        if done.changes is not None:
            work.changes[side.node.name] = done.changes

    def _join_streams(self, work: _Work, join: StreamsToJoin) -> StreamsToJoin:
        """The results of a join of streams; what its stores will hold goes to their changelogs."""
        stores = {partition: task.stores for partition, task in work.tasks.items()}
        joined = join_streams(join, stores, self._compiler.key_serde(join.node.name))
        for store, updates in joined.updates:
            work.hold(store, updates)
        self._counters.records_dropped += joined.dropped
        self._counters.late_records += joined.late
        self._late_log.take(join.node.name, joined.late, NOT_KEPT)
        return joined.results

    def _dedupe(self, work: _Work, given: ToDedupe) -> ToDedupe:
        """The records that are no duplicates; what the store will hold goes to its changelog."""
        found = deduped(given, {partition: task.stores for partition, task in work.tasks.items()})
        for store, updates in found.updates:
            work.hold(store, updates)
        self._counters.records_dropped += found.duplicates
        self._counters.late_records += found.late
        self._late_log.take(given.node.name, found.late, NOT_REMEMBERED)
        return found.passed


def _held_table(
    keyed: Keyed, node: TableSourceNode, tasks: Mapping[int, Task], ends: Mapping[TopicPartition, int]
) -> list[Held]:
    """Every partition that was read gets its new offset, also when no record of it was kept."""
    updates = table_updates(keyed)
    nothing = Updates([], [], [])
    return [
        Held(
            task.key_value_store(node.store),
            updates.get(partition, nothing),
            ends[TopicPartition(node.topic, partition)],
        )
        for partition, task in tasks.items()
        if TopicPartition(node.topic, partition) in ends
    ]
