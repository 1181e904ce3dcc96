"""Batches of a sub-topology while Spark is still starting, by what its analysis found out at an earlier start.

What is computed is what a runner with Spark computes where the scan answers for all records of a batch: the same code
does both. Everything else waits for Spark: a batch, before anything comes of it; and what only Spark can tell while a
batch is applied, in the midst of it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from streams_runtime.batch.encode import Bytes
from streams_runtime.batch.late_records import Missed
from streams_runtime.batch.stage import Emission, StageInput, StageOutput, StoreBatch, TableRows
from streams_runtime.pipeline.batch_input import BatchInput
from streams_runtime.pipeline.pushdown.scan_stages import answered_here
from streams_runtime.pipeline.pushdown.taken_over import add_answers
from streams_runtime.pipeline.without_spark.column_emissions import ColumnEmissions
from streams_runtime.pipeline.without_spark.findings import Findings
from streams_runtime.state.aggregates.aggregate_state import AggregateState
from streams_runtime.state.serdes import Serde
from streams_runtime.state.shown_values import Shown, as_stored, shown
from streams_runtime.topology.fork_paths import fork_path_between, keeps_order
from streams_runtime.topology.nodes.aggregate_node import AggregateNode
from streams_runtime.topology.nodes.foreign_key_nodes import ForeignKeyJoinNode
from streams_runtime.topology.nodes.join_node import JoinNode
from streams_runtime.topology.nodes.source_and_sink_nodes import (
    RepartitionSourceNode,
    SinkNode,
    SourceNode,
    TableSourceNode,
)
from streams_runtime.topology.nodes.step_nodes import TransformNode
from streams_runtime.topology.plan import SubTopology
from streams_runtime.topology.stage_order import stage_order
from streams_runtime.topology.table_parts import TablePart, per_update_aggregates, table_parts

if TYPE_CHECKING:
    from streams_runtime.pipeline.batch_spark_side import BatchSparkSide
    from streams_runtime.pipeline.runner import SubTopologyRunner


class SparkNeeded(Exception):
    """A batch has to wait for Spark; nothing has come of it. Read it again."""


def is_done_early(sub: SubTopology, findings: Findings) -> bool:
    """Whether batches of fetched records need no Spark, but for records that only Spark can judge."""
    return (
        bool(findings.first_stages.get(sub.id))
        and not table_parts(sub)
        and all(_is_done_early(node, sub, findings) for node in sub.nodes)
    )


def _is_done_early(node: object, sub: SubTopology, findings: Findings) -> bool:
    match node:
        case SourceNode() | TableSourceNode() | RepartitionSourceNode() | TransformNode() | SinkNode():
            return True
        case AggregateNode():
            behind = sub.consumers_of(node.name)
            return node.late_topic is None and all(isinstance(each, SinkNode) and each.is_direct for each in behind)
        case JoinNode():
            return node.name in findings.after_joins.get(sub.id, {})
        case _:
            return False


class EarlyRunner:
    """Runs batches of one sub-topology without Spark (processing.batch_runner.BatchRunner)."""

    has_spark = False

    def __init__(self, findings: Findings, sub: SubTopology, spark: Callable[[], SubTopologyRunner]) -> None:
        """`spark` waits for Spark, and gives the sub-topology's runner; it raises what kept Spark from starting."""
        self.stages = stage_order(sub)
        self.emissions = ColumnEmissions(findings, sub)
        self.spark = spark
        self._findings = findings
        self._sub = sub
        self._over = findings.first_stages[sub.id] if is_done_early(sub, findings) else ()
        self._behind = findings.after_joins.get(sub.id, {})

    def run(self, batch: BatchInput) -> StageOutput:
        """The first stage. Raises SparkNeeded: ranges, another stage, or a record that only Spark can judge."""
        if batch.records is None or not self._over:
            raise SparkNeeded
        answers = [answered_here(each.stage, batch.records_of(each.source)) for each in self._over]
        if any(not each.done or each.left.num_rows for each in answers):
            raise SparkNeeded
        result = StageOutput()
        if not add_answers(self._over, answers, result):
            raise SparkNeeded
        return result

    def run_after(self, found: StageInput) -> StageOutput:
        """The stage behind a join."""
        over = self._behind.get(found.node.name)
        rows = None if over is None else over.rows(found.rows)
        if rows is None:
            return self.spark().run_after(found)
        return StageOutput(emissions=[self.emissions.of_columns(sink, made) for sink, made in rows], begun_with=found)

    def run_table(self, name: str, rows: TableRows) -> StageOutput:
        """The stage behind an aggregate."""
        consumers = self._sub.consumers_of(name)
        sinks = [each for each in consumers if isinstance(each, SinkNode) and each.is_direct]
        if len(sinks) < len(consumers):
            return self.spark().run_table(name, rows)
        return StageOutput(emissions=self.emissions.direct(sinks, rows) if sinks else [])

    def side(self, batch: BatchInput) -> EarlySide:
        """What the store side may ask while it applies the batch."""
        return EarlySide(self._findings, self._sub, self, batch)

    def broken(self, source: str, batch: BatchInput) -> pa.Table:
        """The batch's records of a source that can't be read, as they came."""
        return self.spark().broken(source, batch)

    def records(self, batch: BatchInput) -> pa.Table:
        """The batch's records as they came."""
        return self.spark().records(batch)

    def order_times(self, batch: BatchInput) -> pa.Table:
        """Where the records are that can be read, and the times that decide on their order."""
        return self.spark().order_times(batch)

    def why_unreadable(self, source: str, key: bytes | None, value: bytes | None, time: int | None) -> str:
        """The first thing that is wrong with a record of a source."""
        return self.spark().why_unreadable(source, key, value, time)


@dataclass(frozen=True, slots=True)
class EarlySide:
    """What was found out about the topology, and Spark for the rest of it (processors.contract.SparkSide)."""

    findings: Findings
    sub: SubTopology
    runner: EarlyRunner
    batch: BatchInput

    def aggregate(self, node: str) -> AggregateState:
        """The state of an aggregate node."""
        return self.findings.aggregate(node)

    def emits_per_update(self, aggregate: str) -> bool:
        """Whether every change of an aggregate counts."""
        return aggregate in per_update_aggregates(self.sub)

    def shown_by(self, table: str) -> Shown:
        """How what a table's store holds becomes what is seen of it."""
        return shown(self.findings.aggregates[table]) if table in self.findings.aggregates else as_stored

    def key_serde(self, node: str) -> Serde:
        """How the keys of a node's rows are written."""
        return self.findings.key_serde(node) if node in self.findings.keys else self._spark.key_serde(node)

    def record_times(self) -> pa.Table:
        """Where the batch's readable records are, and the times that decide on their order."""
        return self.runner.order_times(self.batch)

    def sink_keys(self, sink: SinkNode, keys: pa.ChunkedArray) -> Bytes:
        """Keys as the sink writes them."""
        return self.runner.emissions.keys(sink, keys)

    def sink_values(self, sink: SinkNode, values: pa.ChunkedArray) -> Bytes:
        """Values as the sink writes them."""
        return self.runner.emissions.values(sink, values)

    def fork_path(self, source: str, name: str) -> tuple[int, ...] | None:
        """What the path from one node to another adds to a row's ELEMENT; None where no places are kept."""
        return fork_path_between(self.sub, source, name) if keeps_order(self.sub) else None

    def tables(self, part: TablePart, snapshots: pa.Table) -> pa.Table:
        """What tables have in each snapshot."""
        return self._spark.tables(part, snapshots)

    def foreign_keys(self, node: ForeignKeyJoinNode, side: TablePart, snapshots: pa.Table) -> pa.Table:
        """What the rows of the left table name in each snapshot."""
        return self._spark.foreign_keys(node, side, snapshots)

    def rows_sent(self, side: TablePart, snapshots: pa.Table) -> pa.Table:
        """The rows of the right table in each snapshot."""
        return self._spark.rows_sent(side, snapshots)

    def joined_by_foreign_key(self, node: ForeignKeyJoinNode, side: TablePart, snapshots: pa.Table) -> pa.Table:
        """The join's rows over those of the left table."""
        return self._spark.joined_by_foreign_key(node, side, snapshots)

    def fragments(self, node: AggregateNode, since: Mapping[int, int], begun_with: StageInput | None) -> StoreBatch:
        """The batch's fragments of sessions, cut by the stream time of each partition before the batch."""
        return self._spark.fragments(node, since, begun_with)

    def late_records(
        self, node: AggregateNode, since: Mapping[int, int], missed: Sequence[Missed], begun_with: StageInput | None
    ) -> Emission:
        """The records that came too late for a window of the node, for its topic of late records."""
        return self._spark.late_records(node, since, missed, begun_with)

    @property
    def _spark(self) -> BatchSparkSide:
        return self.runner.spark().side(self.batch)
