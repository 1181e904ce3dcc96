"""Topology to plans: checks every expression against Spark's analysis, and builds a batch's DataFrames."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from streams_runtime.batch.columns import OTHER
from streams_runtime.batch.late_records import Missed
from streams_runtime.batch.snapshot_columns import held_value
from streams_runtime.pipeline.analysis import analysed
from streams_runtime.pipeline.formats.decode import Decoder
from streams_runtime.pipeline.formats.registered_format import RegisteredFormat, RegisteredWriter
from streams_runtime.pipeline.formats.schema_ids import Schemas
from streams_runtime.pipeline.kinds.spark_kinds import kind_of
from streams_runtime.pipeline.pushdown.after_join import AfterJoin
from streams_runtime.pipeline.pushdown.candidates import Candidates
from streams_runtime.pipeline.pushdown.taken_over import TakenOver
from streams_runtime.pipeline.spark.observed import Observed
from streams_runtime.pipeline.stages.stage_frames import Frames, OutputFrame
from streams_runtime.pipeline.stages.stage_outputs import output_frames
from streams_runtime.pipeline.steps.foreign_key_frames import foreign_keys, results, rows_as_json, sent_format
from streams_runtime.pipeline.steps.partial_aggregates import late_rows, partial_aggregates
from streams_runtime.pipeline.steps.table_rows import rows_of_last, tables_of_snapshots
from streams_runtime.pipeline.steps.written_rows import sink_format
from streams_runtime.pipeline.topology_traits import Traits
from streams_runtime.pipeline.windowing.record_ordinals import on_one_path, with_order_time
from streams_runtime.pipeline.without_spark.findings import StoredValue
from streams_runtime.state.aggregates.aggregate_state import AggregateState
from streams_runtime.state.serdes import Serde, key_serde, value_serde
from streams_runtime.state.shown_values import Shown, as_stored, shown
from streams_runtime.topology.nodes.aggregate_node import AggregateNode
from streams_runtime.topology.nodes.all_nodes import Node
from streams_runtime.topology.nodes.foreign_key_nodes import ForeignKeyJoinNode
from streams_runtime.topology.nodes.source_and_sink_nodes import Format, SinkNode
from streams_runtime.topology.plan import SubTopology, Topology
from streams_runtime.topology.table_parts import TablePart, table_parts


class Compiler:
    """Knows each source's decoder, each key's format and each aggregate's state; compiles once, builds every batch."""

    def __init__(self, spark: SparkSession, topology: Topology, schemas: Schemas | None = None) -> None:
        """Analyse the whole topology over no records; nothing is read or run. `schemas`: for formats in a registry.

        Raises:
            InvalidApplicationException: what Spark's analysis refuses, all of it, each with its field.
        """
        self._schemas = schemas
        self._traits = Traits.of(topology)
        self.known = analysed(spark, self._traits, schemas)
        self._candidates = Candidates(spark, self._traits, self.known)

    @property
    def has_functions(self) -> bool:
        """Whether expressions may call functions of the user's."""
        return bool(self._traits.topology.functions)

    def decoder(self, source: str) -> Decoder:
        """How the source node's records are read."""
        return self.known.decoders[source]

    def registered(self, sink: str, part: str) -> RegisteredWriter | None:
        """What writes a sink's keys or values (`part`), where a registry has its schema."""
        return self.known.registered.get((sink, part))

    def register_schemas(self) -> None:
        """Register the schemas of the sinks; without effect the second time, so that it may be called again.

        Raises:
            SchemaRegistryNotAvailableException: call again.
            SchemaRegistryException: the registry refuses a schema; the message says why.
        """
        for writer in self.known.registered.values():
            assert self._schemas is not None
            writer.register(self._schemas)

    def learn(self, format: Format, data: pa.ChunkedArray) -> bool:
        """Fetch the schemas that these keys or values were written with; whether any was new.

        Raises what `register_schemas` raises.
        """
        return self.known.learn(format, data)

    def aggregate(self, node: str) -> AggregateState:
        """The state of an aggregate node."""
        return self.known.aggregates[node]

    def partial_aggregates(
        self, node: AggregateNode, rows: DataFrame, late: Observed, since: Mapping[int, int] | None = None
    ) -> DataFrame:
        """The batch's contribution to the node's state (see steps.partial_aggregates)."""
        return partial_aggregates(self._traits, self.known.aggregates[node.name], node, rows, late, since)

    def late_records(
        self, node: AggregateNode, rows: DataFrame, since: Mapping[int, int], found: Sequence[Missed]
    ) -> DataFrame:
        """The rows that came too late for a window of the node (see steps.partial_aggregates.late_rows)."""
        return late_rows(self._traits, node, rows, since, found)

    def emits_per_update(self, aggregate: str) -> bool:
        """Whether every change of an aggregate counts (see table_parts.per_update_aggregates)."""
        return aggregate in self._traits.per_update

    def shown_by(self, table: str) -> Shown:
        """How what a table's store holds becomes what is seen of it: of an aggregate, its columns as JSON."""
        return shown(self.known.aggregates[table]) if table in self.known.aggregates else as_stored

    def key_format(self, node: str) -> Format:
        """The format of the keys of the rows that a node gives."""
        return self.known.key_format(node)

    def key_serde(self, node: str) -> Serde:
        """How the keys of a node's rows are written."""
        return key_serde(self.key_format(node))

    def stored_value(self, node: str) -> StoredValue:
        """How the values of a table that is no aggregate lie in its store."""
        decoder = self.decoder(node)
        if isinstance(decoder.value, RegisteredFormat):
            return decoder.registered_value
        return value_serde(decoder.value).decode

    def value_format(self, sink: SinkNode) -> str:
        """Name of the format that a sink writes."""
        return sink_format(sink, self.known.outputs[sink.input])

    def has_several_queries(self, sub: SubTopology) -> bool:
        """Whether the first stage of a batch is more than one query."""
        return len(self._analysed_frames(sub)) > 1

    def taken_over(self, sub: SubTopology) -> list[TakenOver]:
        """What the scan does of the first stage, all of it; nothing: all of it is Spark's."""
        return self._candidates.first_stage(sub, self.needs_headers(sub))

    def joins_taken_over(self, sub: SubTopology) -> dict[str, AfterJoin]:
        """The stages behind joins with tables that need no Spark, by the joins' names."""
        return self._candidates.after_joins(sub)

    def unread_sources(self, sub: SubTopology) -> frozenset[str]:
        """Sources of which nothing is made that leaves the first stage, so that no query asks for their records."""
        by_name = {node.name: node for node in sub.nodes}
        read: set[str] = set()
        waiting = [output.node.name for output in self._analysed_frames(sub)]
        while waiting:
            here = waiting.pop()
            if here not in read:
                read.add(here)
                waiting += by_name[here].streams
        return frozenset(node.name for node in sub.nodes if not node.inputs) - read

    def needs_headers(self, sub: SubTopology) -> bool:
        """Whether a batch's records need their headers: where they go on to a topic, or an expression asks for them."""
        forwarded = any(kind_of(output.node).FORWARDS for output in self._analysed_frames(sub))
        forwarded = forwarded or any(part.leads_on for part in table_parts(sub))
        return forwarded or any("_headers" in repr(node) for node in sub.nodes)

    def first_stage_frames(
        self, sub: SubTopology, sources: Frames, peeks: dict[str, Observed] | None = None, is_whole: bool = False
    ) -> list[OutputFrame]:
        """The first stage of a batch: from the sources' readable records to where rows leave Spark.

        `peeks` is filled: by a peek's name, where a query that its records go through leaves what it has seen.
        `is_whole`: see StageFrames.
        """
        frames = dict(sources)
        if sub.id in self._traits.order_times:
            frames = {name: with_order_time(frame) for name, frame in frames.items()}
        if sub.id in self._traits.forks:
            frames = {name: on_one_path(frame) for name, frame in frames.items()}
        return output_frames(self._traits, sub, frames, peeks, is_whole)

    def table_frames(
        self, sub: SubTopology, aggregate: str, rows: DataFrame, peeks: dict[str, Observed], is_whole: bool
    ) -> list[OutputFrame]:
        """The second stage: from an aggregate's new rows (see batch.rows.table_rows) to what is behind it.

        `peeks` and `is_whole`: as for the first stage.
        """
        return output_frames(self._traits, sub, {aggregate: rows}, peeks, is_whole)

    def frames_behind(
        self,
        sub: SubTopology,
        node: Node,
        rows: DataFrame,
        peeks: dict[str, Observed] | None = None,
        is_whole: bool = False,
    ) -> list[OutputFrame]:
        """The stage behind a node: from the rows on that its store side passes on.

        `peeks` and `is_whole`: as for the first stage.
        """
        frame = kind_of(node).behind(node, rows, self.known)
        return output_frames(self._traits, sub, {node.name: frame}, peeks, is_whole)

    def tables(self, part: TablePart, snapshots: DataFrame) -> DataFrame:
        """Every table's row in each snapshot, and what sinks write of it (see table_rows.tables_of_snapshots)."""
        formats = {sink.name: self.value_format(sink) for sink in part.sinks}
        return tables_of_snapshots(part, snapshots, self.known.decoders, formats)

    def foreign_keys(self, node: ForeignKeyJoinNode, side: TablePart, snapshots: DataFrame) -> DataFrame:
        """What the rows of the left table name in each snapshot (see foreign_key_frames.foreign_keys)."""
        return foreign_keys(node, rows_of_last(side, snapshots, self.known.decoders))

    def rows_sent(self, side: TablePart, snapshots: DataFrame) -> DataFrame:
        """The rows of the right table in each snapshot (see foreign_key_frames.rows_as_json)."""
        return rows_as_json(rows_of_last(side, snapshots, self.known.decoders))

    def joined_by_foreign_key(self, node: ForeignKeyJoinNode, side: TablePart, snapshots: DataFrame) -> DataFrame:
        """The join's rows over those of the left table, which have OTHER beside them (see results)."""
        rows = rows_of_last(side, snapshots, self.known.decoders, (OTHER,))
        return results(node, rows, sent_format(self.known.outputs[node.table]))

    def learn_held(self, part: TablePart, snapshots: pa.Table) -> None:
        """Have the schemas at hand that the values of a part's sources were written with, as snapshots hold them.

        Raises what `register_schemas` raises.
        """
        for index, copy in enumerate(part.copies.sources):
            self.learn(self.known.decoders[copy.node.name].value, snapshots[held_value(index)])

    def _analysed_frames(self, sub: SubTopology) -> list[OutputFrame]:
        """The first stage's outlets, over no records."""
        sources = {node.name: self.known.outputs[node.name] for node in sub.nodes if not node.inputs}
        return self.first_stage_frames(sub, sources)
