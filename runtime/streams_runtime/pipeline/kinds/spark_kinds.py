"""Every kind of node, with its Spark side."""

from __future__ import annotations

from typing import Any

from streams_runtime.pipeline.kinds.join_kinds import DedupeKind, JoinKind, StreamJoinKind
from streams_runtime.pipeline.kinds.passing_kinds import (
    BranchKind,
    FlatMapKind,
    HeadersKind,
    KeyByKind,
    MergeKind,
    SplitKind,
    ToStreamKind,
    TransformKind,
)
from streams_runtime.pipeline.kinds.peek_kind import PeekKind
from streams_runtime.pipeline.kinds.process_kind import ProcessKind
from streams_runtime.pipeline.kinds.regroup_kind import RegroupKind
from streams_runtime.pipeline.kinds.running_aggregate_kind import AggregateKind
from streams_runtime.pipeline.kinds.sink_kinds import RepartitionSinkKind, SinkKind
from streams_runtime.pipeline.kinds.source_kinds import RepartitionSourceKind, SourceKind, TableSourceKind
from streams_runtime.pipeline.kinds.spark_kind import SparkKind
from streams_runtime.pipeline.kinds.suppress_kind import SuppressKind
from streams_runtime.pipeline.kinds.table_kinds import (
    ForeignKeyJoinKind,
    ResponseKind,
    SubscribeKind,
    TableJoinKind,
    ToTableKind,
)
from streams_runtime.topology.nodes.aggregate_node import AggregateNode
from streams_runtime.topology.nodes.dedupe_node import DedupeNode
from streams_runtime.topology.nodes.foreign_key_nodes import ForeignKeyJoinNode, ResponseNode, SubscribeNode
from streams_runtime.topology.nodes.join_node import JoinNode
from streams_runtime.topology.nodes.plan_node import PlanNode
from streams_runtime.topology.nodes.process_node import OutputNode, ProcessNode
from streams_runtime.topology.nodes.regroup_node import RegroupNode
from streams_runtime.topology.nodes.source_and_sink_nodes import (
    RepartitionSinkNode,
    RepartitionSourceNode,
    SinkNode,
    SourceNode,
    TableSourceNode,
)
from streams_runtime.topology.nodes.step_nodes import KeyByNode, MergeNode, TransformNode
from streams_runtime.topology.nodes.stream_join_node import StreamJoinNode
from streams_runtime.topology.nodes.stream_nodes import BranchNode, FlatMapNode, HeadersNode, PeekNode, SplitNode
from streams_runtime.topology.nodes.suppress_node import SuppressNode
from streams_runtime.topology.nodes.table_nodes import TableJoinNode, ToStreamNode, ToTableNode

_KINDS: dict[type[PlanNode], SparkKind[Any]] = {
    SourceNode: SourceKind(),
    TableSourceNode: TableSourceKind(),
    RepartitionSourceNode: RepartitionSourceKind(),
    TransformNode: TransformKind(),
    KeyByNode: KeyByKind(),
    MergeNode: MergeKind(),
    FlatMapNode: FlatMapKind(),
    SplitNode: SplitKind(),
    BranchNode: BranchKind(),
    OutputNode: BranchKind(),
    HeadersNode: HeadersKind(),
    PeekNode: PeekKind(),
    AggregateNode: AggregateKind(),
    DedupeNode: DedupeKind(),
    ProcessNode: ProcessKind(),
    JoinNode: JoinKind(),
    StreamJoinNode: StreamJoinKind(),
    TableJoinNode: TableJoinKind(),
    ForeignKeyJoinNode: ForeignKeyJoinKind(),
    SubscribeNode: SubscribeKind(),
    ResponseNode: ResponseKind(),
    ToTableNode: ToTableKind(),
    ToStreamNode: ToStreamKind(),
    SuppressNode: SuppressKind(),
    RegroupNode: RegroupKind(),
    RepartitionSinkNode: RepartitionSinkKind(),
    SinkNode: SinkKind(),
}


def kind_of(node: PlanNode) -> SparkKind[Any]:
    """The Spark side of a node."""
    return _KINDS[type(node)]
