"""Every kind of node of a plan."""

from __future__ import annotations

from streams_runtime.topology.nodes.aggregate_node import AggregateNode
from streams_runtime.topology.nodes.dedupe_node import DedupeNode
from streams_runtime.topology.nodes.foreign_key_nodes import ForeignKeyJoinNode, ResponseNode, SubscribeNode
from streams_runtime.topology.nodes.join_node import JoinNode
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
from streams_runtime.topology.nodes.stream_nodes import StreamNode
from streams_runtime.topology.nodes.suppress_node import SuppressNode
from streams_runtime.topology.nodes.table_nodes import TableJoinNode, ToStreamNode, ToTableNode

Node = (
    SourceNode
    | TableSourceNode
    | RepartitionSourceNode
    | TransformNode
    | StreamNode
    | DedupeNode
    | ProcessNode
    | OutputNode
    | KeyByNode
    | MergeNode
    | AggregateNode
    | JoinNode
    | StreamJoinNode
    | TableJoinNode
    | SubscribeNode
    | ResponseNode
    | ForeignKeyJoinNode
    | ToTableNode
    | ToStreamNode
    | SuppressNode
    | RegroupNode
    | RepartitionSinkNode
    | SinkNode
)
