"""Runs one batch of a sub-topology through Spark: raw records in, rows for stores and topics out."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from streams_runtime.batch.columns import ORDER_TIME, OUT_KEY, OUT_TIME, OUT_VALUE
from streams_runtime.batch.encode import encoded, headers_of
from streams_runtime.batch.late_records import Missed
from streams_runtime.batch.rows import table_rows
from streams_runtime.batch.stage import Emission, StageInput, StageOutput, StoreBatch, TableRows, store_batch_of
from streams_runtime.errors import FailedProcessingException
from streams_runtime.kafka.consumer.record_table import RAW_SCHEMA
from streams_runtime.kafka.types import TopicPartition
from streams_runtime.pipeline.batch_input import BatchInput, OffsetRange
from streams_runtime.pipeline.batch_spark_side import BatchSparkSide
from streams_runtime.pipeline.compile import Compiler
from streams_runtime.pipeline.emissions import Emissions
from streams_runtime.pipeline.formats.diagnose import reason
from streams_runtime.pipeline.formats.registered_format import RegisteredFormat
from streams_runtime.pipeline.kinds.spark_kinds import kind_of
from streams_runtime.pipeline.pushdown.after_join import AfterJoin
from streams_runtime.pipeline.pushdown.scanned_records import Answer
from streams_runtime.pipeline.pushdown.taken_over import NONE_READ, TakenOver, add_answers
from streams_runtime.pipeline.record_reader import RecordReader
from streams_runtime.pipeline.spark.observed import Observed
from streams_runtime.pipeline.spark.query_failures import translating
from streams_runtime.pipeline.stages.spark_stages import SparkStages
from streams_runtime.pipeline.stages.stage_frames import OutputFrame
from streams_runtime.pipeline.steps.usable_rows import usable
from streams_runtime.topology.fork_paths import fork_path_between, keeps_order, orders_by_time
from streams_runtime.topology.nodes.aggregate_node import AggregateNode
from streams_runtime.topology.nodes.source_and_sink_nodes import (
    FromTopicNode,
    RepartitionSourceNode,
    SinkNode,
    SourceNode,
    TableSourceNode,
)
from streams_runtime.topology.plan import SubTopology
from streams_runtime.topology.stage_order import stage_order

# Batches that are Spark's at once after one that the scan could not do: it would read them in vain, most likely.
_SPARK_BATCHES = 10


class SubTopologyRunner:
    """Runs the batches of one sub-topology."""

    has_spark = True

    def __init__(self, compiler: Compiler, reader: RecordReader, sub: SubTopology, take_over: bool = True) -> None:
        """`take_over`: the scan takes over what it can of the first stage; the results are the same."""
        self._compiler = compiler
        self._reader = reader
        self._sub = sub
        self.stages = stage_order(sub)
        self.emissions = Emissions(compiler, sub)
        self._keeps_order = keeps_order(sub)
        self._orders_by_time = orders_by_time(sub)
        self._taken_over = compiler.taken_over(sub) if take_over else []
        self._behind = compiler.joins_taken_over(sub) if take_over else {}
        self._spark_batches = 0
        self.by_spark = SparkStages(compiler, reader, sub, self.emissions)
        self._aggregates = {node.name: node for node in sub.nodes if isinstance(node, AggregateNode)}
        self._sources = [
            node for node in sub.nodes if isinstance(node, SourceNode | TableSourceNode | RepartitionSourceNode)
        ]

    @property
    def is_taken_over(self) -> bool:
        """Whether the scan does the first stage, and Spark what the scan can't read."""
        return bool(self._taken_over)

    def run(self, batch: BatchInput) -> StageOutput:
        """The first stage: everything up to the stores, and what goes to topics without passing one.

        Records that can't be read are left out and accounted for; the caller decides what becomes of the batch.

        Raises what Compiler.learn raises.
        """
        if batch.records is not None:
            self._learn(lambda name: self._fetched(name, batch))
        result = self._run(batch)
        if batch.records is None and result.broken and self._learn(lambda name: self.broken(name, batch)):
            # Spark has read records by itself whose schemas nobody had met before; now they are known.
            result = self._run(batch)
        return result

    def _run(self, batch: BatchInput) -> StageOutput:
        if self._taken_over and not self._spark_batches:
            found = self._answered(self._taken_over, batch)
            if found is not None:
                return found
            self._spark_batches = _SPARK_BATCHES
        elif self._spark_batches:
            self._spark_batches -= 1
        return self.by_spark.first(batch)

    def _answered(self, over: Sequence[TakenOver], batch: BatchInput) -> StageOutput | None:
        """The stage as the scan has done it, but for the records that it leaves to Spark; None: all are left to it."""
        answers: list[Answer] = []
        for each in over:
            answers.append(self._reader.answer(each.source, batch, each.stage))
            if not answers[-1].done:
                return None
        left = pa.concat_tables(answer.left.select(RAW_SCHEMA.names) for answer in answers)
        sparks = self.by_spark.first(BatchInput(batch.ranges, left)) if left.num_rows else None
        read = NONE_READ
        if self._orders_by_time and sparks is not None and sparks.readable:
            read = self._read_by_spark(BatchInput(batch.ranges, left))
        result = StageOutput() if sparks is None else StageOutput(sparks.accounts, sparks.dropped, sparks.late)
        return result if add_answers(over, answers, result, sparks, read) else None

    def _read_by_spark(self, batch: BatchInput) -> pa.Table:
        """Where the records are that Spark can read, and their times, as those that take turns are wanted."""
        found = [NONE_READ]
        for node in self._sources:
            readable = self._compiler.decoder(node.name).readable(self._decoded(node, batch, headers=False))
            times = readable.select("_topic", "_partition", "_offset", F.col("_timestamp").alias(ORDER_TIME)).toArrow()
            found.append(times.cast(NONE_READ.schema))
        return pa.concat_tables(found)

    def records(self, batch: BatchInput) -> pa.Table:
        """The batch's records as they came (RAW_SCHEMA)."""
        return pa.concat_tables(
            self._reader.read(node, batch).toArrow().select(RAW_SCHEMA.names).cast(RAW_SCHEMA) for node in self._sources
        )

    def order_times(self, batch: BatchInput) -> pa.Table:
        """Where the records are that can be read, and the times that decide on their order.

        Where a source's expression for the time fails by itself, they are those that the records have for the brokers.
        """
        try:
            with translating(batch.ranges):
                return self._read_by_spark(batch)
        except FailedProcessingException as error:
            if not error.of_a_record:
                raise
        found = self.records(batch)
        columns = (found["topic"], found["partition"], found["offset"], found["timestamp"])
        return pa.table(list(columns), names=NONE_READ.schema.names)

    def warm_up(self) -> None:
        """Run a batch of one record without a value, which changes nothing.

        Spark loads its classes and compiles its code with the first query of a kind; this way not with the first
        records. Users' functions are not called with a record that nobody wrote: with them the batch has none.
        Where the scan does the stage, a first query may never come.
        """
        if self.is_taken_over:
            return
        for node in (each for each in self._sources if not each.by_pattern):
            tombstone = [None, None, node.topic, 0, 0, 0, None]
            columns = [pa.array([value], field.type) for value, field in zip(tombstone, RAW_SCHEMA, strict=True)]
            where = OffsetRange(TopicPartition(node.topic, 0), 0, 1)
            record = pa.table(columns, schema=RAW_SCHEMA)
            self.run(BatchInput((where,), record.slice(1) if self._compiler.has_functions else record))

    @property
    def taken_over(self) -> Sequence[TakenOver]:
        """What the scan does of the first stage; nothing: all of it is Spark's."""
        return self._taken_over

    @property
    def after_joins(self) -> Mapping[str, AfterJoin]:
        """The stages behind joins that need no Spark, by the joins' names."""
        return self._behind

    def side(self, batch: BatchInput) -> BatchSparkSide:
        """What the store side may ask while it applies the batch."""
        return BatchSparkSide(self._compiler, self, batch)

    def why_unreadable(self, source: str, key: bytes | None, value: bytes | None, time: int | None) -> str:
        """The first thing that is wrong with a record of a source. Raises as `diagnose.reason`."""
        return reason(self._compiler.decoder(source), key, value, time)

    def run_after(self, found: StageInput) -> StageOutput:
        """The stage behind a node whose store side has passed on these rows (SparkKind.behind)."""
        result = StageOutput(begun_with=found)
        over = self._behind.get(found.node.name)
        rows = None if over is None else over.rows(found.rows)
        if rows is not None:
            result.emissions = [self.emissions.of_columns(sink, made) for sink, made in rows]
            return result
        kind_of(found.node).learn(found.node, found.rows, self._compiler.known)
        outputs = partial(self._compiler.frames_behind, self._sub, found.node)
        self.by_spark.behind(found.node.name, found.rows, outputs, result)
        return result

    def fork_path_between(self, source: str, name: str) -> tuple[int, ...] | None:
        """What the way from one node to another adds to a row's ELEMENT; None where no places are kept."""
        return fork_path_between(self._sub, source, name) if self._keeps_order else None

    def again(
        self, node: AggregateNode, batch: BatchInput, since: Mapping[int, int], behind: StageInput | None = None
    ) -> StoreBatch:
        """The stage of one aggregate of sessions once more, with the stream time of each partition before it."""
        rows = self._rows_for(node, batch, behind, headers=False)
        state = self._compiler.aggregate(node.name)
        table = self._compiler.partial_aggregates(node, rows, Observed(), since).toArrow()
        return store_batch_of(node, table, [column.name for column in state.columns])

    def late(
        self,
        node: AggregateNode,
        batch: BatchInput,
        since: Mapping[int, int],
        found: Sequence[Missed],
        behind: StageInput | None = None,
    ) -> Emission:
        """The records that came too late for a window of the node, for its topic of those; `since` as for `again`,
        `found` as the
        compiler wants it.
        """
        rows = self._rows_for(node, batch, behind, headers=True)
        table = self._compiler.late_records(node, rows, since, found).toArrow()
        keys, values = encoded(table[OUT_KEY]), encoded(table[OUT_VALUE])
        return Emission(
            node.late_topic or "",
            False,
            keys,
            values,
            table[OUT_TIME].to_pylist(),
            headers_of(table["_headers"].to_pylist()),
        )

    def _rows_for(self, node: AggregateNode, batch: BatchInput, behind: StageInput | None, headers: bool) -> DataFrame:
        """The rows that the aggregate takes of the batch, or of what stands behind a join, a dedupe or a toStream."""
        if behind is not None:
            output_frames = self._compiler.frames_behind(
                self._sub, behind.node, self._compiler.known.frame(behind.rows)
            )
        else:
            readable = {
                each.name: self._compiler.decoder(each.name).readable(self._decoded(each, batch, headers))
                for each in self._sources
            }
            output_frames = self._compiler.first_stage_frames(self._sub, readable)
        (rows,) = (each.rows for each in output_frames if each.node is node)
        return rows.where(usable(node))

    def run_table(self, name: str, rows: TableRows) -> StageOutput:
        """The second stage: an aggregate's new rows through the steps and sinks behind it."""
        result = StageOutput()
        consumers = self._sub.consumers_of(name)
        direct = [consumer for consumer in consumers if isinstance(consumer, SinkNode) and consumer.is_direct]
        result.emissions = self.emissions.direct(direct, rows) if direct else []
        if len(direct) < len(consumers):
            node = self._aggregates[name]
            if node.windows is None or not node.windows.only_final:
                rows = rows.in_order_of_times()
            table = table_rows(rows.keys, rows.partitions, rows.timestamps, rows.columns, rows.windows, rows.gone)

            def outputs(rows: DataFrame, peeks: dict[str, Observed], is_whole: bool) -> list[OutputFrame]:
                found = self._compiler.table_frames(self._sub, name, rows, peeks, is_whole)
                return [each for each in found if each.node not in direct]

            self.by_spark.behind(name, table, outputs, result)
        return result

    def broken(self, source: str, batch: BatchInput) -> pa.Table:
        """The batch's records of a source that can't be read, as they came."""
        node = next(node for node in self._sources if node.name == source)
        return self._compiler.decoder(source).broken(self._decoded(node, batch, headers=True)).toArrow()

    def _learn(self, records: Callable[[str], pa.Table]) -> bool:
        """Have the schemas at hand that a batch's keys and values were written with; whether any was new."""
        new = False
        for node in self._sources:
            decoder = self._compiler.decoder(node.name)
            formats = {"key": decoder.key, "value": decoder.value}
            if any(isinstance(each, RegisteredFormat) for each in formats.values()):
                table = records(node.name)
                for part, each in formats.items():
                    new |= self._compiler.learn(each, table[part])
        return new

    def _fetched(self, source: str, batch: BatchInput) -> pa.Table:
        node = next(node for node in self._sources if node.name == source)
        assert batch.records is not None
        return batch.records_of(node)

    def _decoded(self, node: FromTopicNode, batch: BatchInput, headers: bool) -> DataFrame:
        decoder = self._compiler.decoder(node.name)
        return decoder.decode(self._reader.read(node, batch, decoder.wanted(headers)))
