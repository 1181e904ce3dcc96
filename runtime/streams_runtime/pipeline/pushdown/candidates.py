"""What of a sub-topology is done outside of Spark's JVM: its first stage by the scan, and stages behind joins."""

from __future__ import annotations

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructField, StructType, TimestampType

from streams_runtime.batch.columns import ORDER_TIME, RECORD, WINDOW_START
from streams_runtime.pipeline.formats.json_read import json_reader
from streams_runtime.pipeline.known import Known
from streams_runtime.pipeline.pushdown.after_join import AfterJoin
from streams_runtime.pipeline.pushdown.arrow_plans import RowPlan
from streams_runtime.pipeline.pushdown.partial_columns import stage_of
from streams_runtime.pipeline.pushdown.scan_plan import plan_of, row_plan_of
from streams_runtime.pipeline.pushdown.single_rows import row_stage_of, table_stage_of
from streams_runtime.pipeline.pushdown.taken_over import TakenOver, ToAggregate, ToMatch, ToTable
from streams_runtime.pipeline.spark.frames import value_columns
from streams_runtime.pipeline.spark.observed import Observed
from streams_runtime.pipeline.stages.stage_frames import OutputFrame
from streams_runtime.pipeline.stages.stage_outputs import output_frames
from streams_runtime.pipeline.steps.partial_aggregates import partial_aggregates
from streams_runtime.pipeline.steps.table_join_frames import result_columns
from streams_runtime.pipeline.steps.written_rows import sink_format
from streams_runtime.pipeline.topology_traits import Traits
from streams_runtime.topology.nodes.aggregate_node import AggregateNode
from streams_runtime.topology.nodes.all_nodes import Node
from streams_runtime.topology.nodes.join_node import JoinNode
from streams_runtime.topology.nodes.plan_node import PlanNode
from streams_runtime.topology.nodes.source_and_sink_nodes import (
    RepartitionSourceNode,
    SinkNode,
    SourceNode,
    TableSourceNode,
)
from streams_runtime.topology.plan import SubTopology


class Candidates:
    """Looks through a compiled topology for what can be taken over."""

    def __init__(self, spark: SparkSession, traits: Traits, known: Known) -> None:
        self._spark = spark
        self._traits = traits
        self._known = known

    def first_stage(self, sub: SubTopology, headers: bool) -> list[TakenOver]:
        """What the scan does of each source, with `headers` if these are wanted; nothing unless it can do all."""
        sources = [node for node in sub.nodes if not node.inputs]
        if sub.id in self._traits.forks or any(not self._is_read_as_it_is(node) for node in sources):
            return []
        order_times = sub.id in self._traits.order_times
        more = [StructField(ORDER_TIME, TimestampType())] if order_times else []
        schemas = {node.name: [*self._known.outputs[node.name].schema.fields, *more] for node in sources}
        frames = {name: self._nothing(StructType(fields)) for name, fields in schemas.items()}
        found: dict[str, TakenOver] = {}
        for output in output_frames(self._traits, sub, frames, {}):
            source = _only_source(output.node, sub)
            over = None
            if source is not None and source.name not in found:
                over = self._of(output, source, headers, order_times)
            if over is None:
                return []
            found[over.source.name] = over
        return list(found.values()) if len(found) == len(sources) else []

    def after_joins(self, sub: SubTopology) -> dict[str, AfterJoin]:
        """The stages behind joins with tables that need no Spark, by the joins' names."""
        if sub.id in self._traits.forks:
            return {}
        found = {node.name: self._behind(sub, node) for node in sub.nodes if isinstance(node, JoinNode)}
        return {name: over for name, over in found.items() if over is not None}

    def _is_read_as_it_is(self, source: Node) -> bool:
        # Records of several topics have an order among each other, which a scan of one topic knows nothing of.
        by_pattern = isinstance(source, SourceNode) and source.by_pattern
        decoder = self._known.decoders.get(source.name)
        return decoder is not None and decoder.timestamp is None and not by_pattern

    def _of(self, output: OutputFrame, source: PlanNode, headers: bool, order_times: bool) -> TakenOver | None:
        decoder = self._known.decoders[source.name]
        match output.node, source:
            case AggregateNode() as node, SourceNode() | RepartitionSourceNode():
                return self._of_aggregate(node, output.rows, source)
            case TableSourceNode() as node, _:
                stage = table_stage_of(decoder.key.name, decoder.json, headers, order_times)
                return None if stage is None else ToTable(node, stage)
            case JoinNode(on=None) as node, SourceNode() | RepartitionSourceNode():
                rows = output.rows.drop(RECORD)
                plan = row_plan_of(rows)
                if plan is None:
                    return None
                schema = to_arrow_schema(rows.schema)
                match_ = row_stage_of(plan, decoder.key.name, decoder.json, not node.left, headers, schema)
                return None if match_ is None else ToMatch(source, node, match_)
            case _:
                return None

    def _of_aggregate(
        self, node: AggregateNode, rows: DataFrame, source: SourceNode | RepartitionSourceNode
    ) -> ToAggregate | None:
        state, decoder = self._known.aggregates[node.name], self._known.decoders[source.name]
        if node.name in self._traits.per_update or not state.merges_in_columns or _subtracts(node):
            return None
        listed = {each.name: f"sum({each.listed})" for each in state.columns if each.listed is not None}
        asked = (F.expr(listed.get(each.name, each.expression)).alias(each.name) for each in state.columns)
        plan = plan_of(rows.agg(*asked), listed)
        stage = None if plan is None else stage_of(plan, decoder.key.name, decoder.json, node.windows)
        if stage is None:
            return None
        partials = partial_aggregates(self._traits, state, node, rows, Observed())
        columns = [column.name for column in state.columns]
        return ToAggregate(source, node, stage, to_arrow_schema(partials.schema), columns)

    def _behind(self, sub: SubTopology, node: JoinNode) -> AfterJoin | None:
        if node.on is not None:
            return None
        decoder, rows = self._known.decoders[node.table], self._known.outputs[node.input].drop(RECORD)
        if decoder.json is None or node.table.lower() in {name.lower() for name in rows.columns}:
            return None
        table = StructField(node.table, StructType.fromDDL(decoder.value.schema or ""))
        beside = self._nothing(StructType([*rows.schema.fields, table]))
        joined = beside.select(*result_columns(node, tuple(rows.columns)))
        sinks: list[tuple[SinkNode, RowPlan]] = []
        for output in output_frames(self._traits, sub, {node.name: joined}, {}):
            if not isinstance(output.node, SinkNode) or not self._is_written_here(output.node, output.rows):
                return None
            plan = row_plan_of(output.rows)
            if plan is None:
                return None
            sinks.append((output.node, plan))
        return AfterJoin(node.table, decoder.json, sinks)

    def _is_written_here(self, sink: SinkNode, rows: DataFrame) -> bool:
        """Whether rows become records without Spark, of which the same can be read as of those that it writes."""
        if (
            not sink.is_direct
            or WINDOW_START in rows.columns
            or any((sink.name, part) in self._known.registered for part in ("key", "value"))
        ):
            return False
        declared = sink_format(sink, rows)
        columns = StructType([rows.schema[name] for name in value_columns(rows)])
        return declared != "json" or json_reader(to_arrow_schema(columns)) is not None

    def _nothing(self, schema: StructType) -> DataFrame:
        return self._spark.createDataFrame([], schema)


def _only_source(node: PlanNode, sub: SubTopology) -> PlanNode | None:
    """The source whose records alone reach the node, by nodes with one input."""
    by_name = {each.name: each for each in sub.nodes}
    while node.inputs:
        names = node.streams
        if len(names) != 1 or names[0] not in by_name:
            return None
        node = by_name[names[0]]
    return node


def _subtracts(node: AggregateNode) -> bool:
    return any(each.subtracts for each in node.aggregates)
