"""What the rows that leave Spark become: batches for stores, inputs of further stages, records for topics."""

from __future__ import annotations

from dataclasses import dataclass
from functools import singledispatchmethod

from pyspark.sql import DataFrame, Observation
from pyspark.sql import functions as F

from streams_runtime.batch.columns import ORDINAL, OUT_KEY, OUT_TIME, OUT_VALUE, RECORD, VALUE, further
from streams_runtime.batch.stage import StageInput, StageOutput, store_batch_of
from streams_runtime.pipeline.compile import Compiler
from streams_runtime.pipeline.emissions import Emissions
from streams_runtime.pipeline.spark.observed import observed
from streams_runtime.pipeline.stage_outputs import Terminal
from streams_runtime.pipeline.steps.applied_nodes import taken
from streams_runtime.pipeline.steps.dedupe_ids import with_ids
from streams_runtime.pipeline.steps.to_table_rows import kept_rows
from streams_runtime.topology.nodes.all_nodes import (
    AggregateNode,
    JoinNode,
    MergeNode,
    RepartitionSinkNode,
    RepartitionSourceNode,
    SinkNode,
    TableSourceNode,
)
from streams_runtime.topology.nodes.dedupe_node import DedupeNode
from streams_runtime.topology.nodes.stream_join_node import StreamJoinNode
from streams_runtime.topology.nodes.stream_nodes import PeekNode
from streams_runtime.topology.nodes.table_nodes import ToTableNode
from streams_runtime.topology.nodes.window_kinds import TimeWindows


@dataclass(frozen=True)
class Collector:
    """Runs the queries of a sub-topology's outlets. `headers`: whether something of it wants records' headers."""

    compiler: Compiler
    emissions: Emissions
    headers: bool

    @singledispatchmethod
    def collect(self, node: Terminal, rows: DataFrame, result: StageOutput) -> None:  # noqa: ARG002 - those below do
        """Compute the rows that reach the node, and put what it makes of them into `result`."""
        raise TypeError(f"rows do not leave Spark at a {type(node).__name__}")

    @collect.register
    def _(self, node: AggregateNode, rows: DataFrame, result: StageOutput) -> None:
        dropped, late = Observation(), Observation()
        usable = taken(node, rows, dropped)
        state = self.compiler.aggregate(node.name)
        table = self.compiler.partial_aggregates(node, usable, late).toArrow()
        result.dropped += observed(dropped, "dropped")
        result.late[node.name] += observed(late, "late") if isinstance(node.windows, TimeWindows) else 0
        names = [column.name for column in state.columns]
        if self.compiler.emits_per_update(node.name):
            names += [*ORDINAL, *further(usable.columns), "_headers"]
        result.store_batches.append(store_batch_of(node, table, names))

    @collect.register
    def _(self, node: ToTableNode, rows: DataFrame, result: StageOutput) -> None:
        table = kept_rows(rows, self.headers)
        result.dropped += table[OUT_KEY].null_count
        names = [name for name in table.column_names if name not in ("_partition", OUT_KEY, OUT_TIME)]
        result.store_batches.append(store_batch_of(node, table, names))

    @collect.register
    def _(self, node: TableSourceNode, rows: DataFrame, result: StageOutput) -> None:
        beside = [*ORDINAL, *further(rows.columns), *(["_headers"] if self.headers else [])]
        table = rows.selectExpr(
            "_partition",
            f"case when _key is not null then {RECORD}.key end {OUT_KEY}",
            f"unix_millis({RECORD}.timestamp) {OUT_TIME}",
            f"{RECORD}.value {OUT_VALUE}",
            *beside,
        ).toArrow()
        result.store_batches.append(store_batch_of(node, table, [OUT_VALUE, *beside]))
        result.dropped += table[OUT_KEY].null_count

    @collect.register
    def _(self, node: RepartitionSourceNode, rows: DataFrame, result: StageOutput) -> None:
        raw = (f"_key {OUT_KEY}", f"{VALUE} {OUT_VALUE}", f"unix_millis(_timestamp) {OUT_TIME}")
        ordinal = (*ORDINAL, *further(rows.columns))
        result.arrived[node.name] = rows.selectExpr("_partition", *raw, *ordinal).toArrow()

    @collect.register
    def _(self, node: JoinNode, rows: DataFrame, result: StageOutput) -> None:
        dropped = Observation()
        usable = taken(node, rows.drop(RECORD), dropped)
        result.inputs.append(StageInput(node, usable.toArrow()))
        result.dropped += observed(dropped, "dropped")

    @collect.register
    def _(self, node: StreamJoinNode | MergeNode, rows: DataFrame, result: StageOutput) -> None:
        result.inputs.append(StageInput(node, rows.toArrow()))

    @collect.register
    def _(self, node: DedupeNode, rows: DataFrame, result: StageOutput) -> None:
        result.inputs.append(StageInput(node, with_ids(node, rows).toArrow()))

    @collect.register
    def _(self, node: RepartitionSinkNode, rows: DataFrame, result: StageOutput) -> None:
        dropped = Observation()
        usable = taken(node, rows, dropped)
        result.emissions.append(self.emissions.of_rows(node, usable))
        result.dropped += observed(dropped, "dropped")

    @collect.register
    def _(self, node: SinkNode, rows: DataFrame, result: StageOutput) -> None:
        result.emissions.append(self.emissions.of_rows(node, rows))

    @collect.register
    def _(self, node: PeekNode, rows: DataFrame, result: StageOutput) -> None:  # noqa: ARG002 - as all of them
        rows.agg(F.count(F.lit(1))).toArrow()  # what it shows is observed by a query
