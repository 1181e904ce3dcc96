"""Every kind of node that meets stores, or other stages of a batch, with its store side."""

from __future__ import annotations

from streams_runtime.processors import dedupe_records, merge_inputs
from streams_runtime.processors.aggregates import aggregate
from streams_runtime.processors.contract import Apply
from streams_runtime.processors.joins import global_table_join, join_foreign_key, stream_stream_join, stream_table_join
from streams_runtime.processors.tables import (
    source_table,
    stream_to_table,
    suppress_changes,
    table_changes,
    table_to_stream,
)
from streams_runtime.processors.user_processors import process_records
from streams_runtime.topology.declared.foreign_key_step import ForeignKeySide
from streams_runtime.topology.nodes.aggregate_node import AggregateNode
from streams_runtime.topology.nodes.dedupe_node import DedupeNode
from streams_runtime.topology.nodes.join_node import JoinNode
from streams_runtime.topology.nodes.process_node import ProcessNode
from streams_runtime.topology.nodes.source_and_sink_nodes import TableSourceNode
from streams_runtime.topology.nodes.step_nodes import MergeNode
from streams_runtime.topology.nodes.stream_join_node import StreamJoinNode
from streams_runtime.topology.nodes.suppress_node import SuppressNode
from streams_runtime.topology.nodes.table_nodes import ToStreamNode, ToTableNode
from streams_runtime.topology.table_parts import TablePart

_APPLIED: dict[type, Apply] = {
    TableSourceNode: source_table.apply,
    ToTableNode: stream_to_table.apply,
    ToStreamNode: table_to_stream.apply,
    SuppressNode: suppress_changes.apply,
    TablePart: table_changes.apply,
    AggregateNode: aggregate.apply,
    StreamJoinNode: stream_stream_join.apply,
    ForeignKeySide: join_foreign_key.apply,
    DedupeNode: dedupe_records.apply,
    ProcessNode: process_records.apply,
    MergeNode: merge_inputs.apply,
}


def apply_of(node: object) -> Apply:
    """The store side of a node, or of a part of the topology that is worked off as one."""
    if isinstance(node, JoinNode):
        return stream_table_join.apply if node.on is None else global_table_join.apply
    return _APPLIED[type(node)]
