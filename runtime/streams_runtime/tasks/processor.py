"""One batch of a sub-topology: through Spark, into the stores' next contents, out to the topics.

Nothing is written to a store here: a batch's updates are *held* until its output is acknowledged and its offsets are
committed, so that a crash before that leaves the stores as the changelogs have them, and queries see committed state.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field

from streams_runtime.errors import DeserializationException
from streams_runtime.kafka.producer import BatchProducer, Headers
from streams_runtime.kafka.types import TopicPartition
from streams_runtime.pipeline.compile import Compiler
from streams_runtime.pipeline.decode import Account
from streams_runtime.pipeline.diagnose import reason
from streams_runtime.pipeline.runner import Emission, Keyed, StageResult, SubTopologyRunner
from streams_runtime.pipeline.source import BatchInput
from streams_runtime.state.store import Updates
from streams_runtime.state.stores import AnyStore
from streams_runtime.tasks.closing import closed
from streams_runtime.tasks.task import Task
from streams_runtime.tasks.updates import merged, table_updates
from streams_runtime.topology.plan import AggregateNode, SubTopology, TableSourceNode

_LOGGER = logging.getLogger("streams_runtime.tasks")
_EXCEPTION = DeserializationException.__name__


@dataclass(frozen=True, slots=True)
class ErrorPolicy:
    """What becomes of a record that can't be read: `fail`, `continue`, or `deadLetter` with its topic."""

    kind: str
    topic: str | None = None


@dataclass(slots=True)
class Counters:
    """What a client has done since it started; each thread adds to its own."""

    records_processed: int = 0
    batches: int = 0
    records_dropped: int = 0
    late_records: int = 0
    deserialization_errors: int = 0
    dead_letters: int = 0


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


class BatchProcessor:
    """Processes batches of all sub-topologies of a thread. Used by that thread only."""

    def __init__(
        self,
        compiler: Compiler,
        runners: Mapping[int, SubTopologyRunner],
        policy: ErrorPolicy,
        counters: Counters,
    ) -> None:
        self._compiler = compiler
        self._runners = runners
        self._policy = policy
        self._counters = counters

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
        runner = self._runners[sub.id]
        letters = self._unreadable(runner, batch, result)
        outcome = Outcome(records=result.records)
        for emission in (*letters, *result.emissions):
            _send(producer, emission)
        ends = {each.partition: each.end for each in batch.ranges}
        for keyed in result.keyed:
            if isinstance(keyed.node, AggregateNode):
                self._aggregate(runner, keyed, keyed.node, tasks, producer, outcome)
            else:
                outcome.held += _held_table(keyed, keyed.node, tasks, ends)
        outcome.offsets = ends
        self._counters.records_processed += result.records
        self._counters.records_dropped += result.dropped
        self._counters.late_records += result.late
        self._counters.deserialization_errors += result.broken
        self._counters.dead_letters += sum(len(each) for each in letters)
        return outcome

    def _aggregate(
        self,
        runner: SubTopologyRunner,
        keyed: Keyed,
        node: AggregateNode,
        tasks: Mapping[int, Task],
        producer: BatchProducer,
        outcome: Outcome,
    ) -> None:
        if len(keyed.keys) == 0:
            return
        stores = {partition: task.stores[node.store] for partition, task in tasks.items()}
        new = merged(self._compiler.aggregate(node.name), keyed, stores)
        self._counters.late_records += new.late
        if not new.updates:
            return
        for partition, updates in new.updates.items():
            store = stores[partition]
            producer.send(store.changelog.topic, updates.keys, updates.values, updates.timestamps, partition)
            outcome.held.append(Held(store, updates, None))
        shown = (new.rows, new.finished)
        if node.windows is not None and node.windows.only_final:
            shown = closed(self._compiler.aggregate(node.name), new, stores, self._compiler.key_serde(node.name))
        for emission in runner.run_table(node, *shown) if len(shown[0].keys) else ():
            _send(producer, emission)

    def _unreadable(self, runner: SubTopologyRunner, batch: BatchInput, result: StageResult) -> list[Emission]:
        """Apply the policy to records that can't be read; the dead letters, if it is to send them."""
        letters = []
        for source, account in result.accounts.items():
            if account.first is None:
                continue
            if self._policy.kind == "fail":
                raise self._failure(source, account)
            _LOGGER.warning(
                "%d records of source %s could not be read and were %s; the first is %s",
                account.broken,
                source,
                "left out" if self._policy.topic is None else f"sent to {self._policy.topic}",
                self._failure(source, account),
            )
            if self._policy.topic is not None:
                letters.append(self._dead_letters(runner, source, batch, self._policy.topic))
        return letters

    def _failure(self, source: str, account: Account) -> DeserializationException:
        record = account.first
        assert record is not None
        why = reason(self._compiler.decoder(source), record.key, record.value)
        return DeserializationException(record.topic, record.partition, record.offset, why)

    def _dead_letters(self, runner: SubTopologyRunner, source: str, batch: BatchInput, topic: str) -> Emission:
        """The records as they came, with headers that say why (named as in KIP-1034)."""
        decoder = self._compiler.decoder(source)
        rows = runner.broken(source, batch).to_pylist()
        headers: list[Headers | None] = []
        for row in rows:
            why = {
                "exception": _EXCEPTION,
                "message": reason(decoder, row["key"], row["value"]),
                "topic": row["_topic"],
                "partition": row["_partition"],
                "offset": row["_offset"],
            }
            own = [(each["key"], each["value"]) for each in row["_headers"] or []]
            headers.append([*own, *((f"__streams.errors.{name}", str(text).encode()) for name, text in why.items())])
        return Emission(
            topic,
            False,
            [row["key"] for row in rows],
            [row["value"] for row in rows],
            [row["_timestamp"] for row in rows],
            headers,
        )


def _send(producer: BatchProducer, emission: Emission) -> None:
    records = (emission.keys, emission.values, emission.timestamps)
    producer.send(emission.topic, *records, headers=emission.headers, placed_by=emission.placed_by)


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
