"""Spark's side of one batch, as the store side asks for it while it applies the batch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from streams_runtime.batch.encode import Bytes
from streams_runtime.batch.late_records import Missed
from streams_runtime.batch.stage import Emission, StageInput, StoreBatch
from streams_runtime.pipeline.batch_input import BatchInput
from streams_runtime.pipeline.compile import Compiler
from streams_runtime.state.aggregates.aggregate_state import AggregateState
from streams_runtime.state.serdes import Serde
from streams_runtime.state.shown_values import Shown
from streams_runtime.topology.nodes.aggregate_node import AggregateNode
from streams_runtime.topology.nodes.foreign_key_nodes import ForeignKeyJoinNode
from streams_runtime.topology.nodes.source_and_sink_nodes import SinkNode
from streams_runtime.topology.table_parts import TablePart

if TYPE_CHECKING:
    from streams_runtime.pipeline.runner import SubTopologyRunner


@dataclass(frozen=True, slots=True)
class BatchSparkSide:
    """The compiled topology and the runner of a sub-topology, about one batch (processors.contract.SparkSide)."""

    compiler: Compiler
    runner: SubTopologyRunner
    batch: BatchInput

    def aggregate(self, node: str) -> AggregateState:
        """The state of an aggregate node."""
        return self.compiler.aggregate(node)

    def emits_per_update(self, aggregate: str) -> bool:
        """Whether every change of an aggregate counts."""
        return self.compiler.emits_per_update(aggregate)

    def shown_by(self, table: str) -> Shown:
        """How what a table's store holds becomes what is seen of it."""
        return self.compiler.shown_by(table)

    def key_serde(self, node: str) -> Serde:
        """How the keys of a node's rows are written."""
        return self.compiler.key_serde(node)

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
        return self.runner.fork_path_between(source, name)

    def tables(self, part: TablePart, snapshots: pa.Table) -> pa.Table:
        """What tables have in each snapshot (see pipeline.steps.table_rows.tables_of_snapshots)."""
        return self.runner.by_spark.of_snapshots(part, snapshots, self.compiler.tables, part)

    def foreign_keys(self, node: ForeignKeyJoinNode, side: TablePart, snapshots: pa.Table) -> pa.Table:
        """What the rows of the left table name in each snapshot."""
        return self.runner.by_spark.of_snapshots(side, snapshots, self.compiler.foreign_keys, node, side)

    def rows_sent(self, side: TablePart, snapshots: pa.Table) -> pa.Table:
        """The rows of the right table in each snapshot."""
        return self.runner.by_spark.of_snapshots(side, snapshots, self.compiler.rows_sent, side)

    def joined_by_foreign_key(self, node: ForeignKeyJoinNode, side: TablePart, snapshots: pa.Table) -> pa.Table:
        """The join's rows over those of the left table."""
        return self.runner.by_spark.of_snapshots(side, snapshots, self.compiler.joined_by_foreign_key, node, side)

    def fragments(self, node: AggregateNode, since: Mapping[int, int], begun_with: StageInput | None) -> StoreBatch:
        """The batch's fragments of sessions, cut by the stream time of each partition before the batch."""
        return self.runner.again(node, self.batch, since, begun_with)

    def late_records(
        self,
        node: AggregateNode,
        since: Mapping[int, int],
        missed: Sequence[Missed],
        begun_with: StageInput | None,
    ) -> Emission:
        """The records that came too late for a window of the node, for its topic of late records."""
        return self.runner.late(node, self.batch, since, missed, begun_with)
