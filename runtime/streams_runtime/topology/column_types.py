"""The columns of each node's records, with their types where these are known without Spark."""

from __future__ import annotations

from collections.abc import Mapping

from streams_runtime.api.flow.flows import value_columns
from streams_runtime.api.flow.known_columns import Column, Columns, Type, struct_of, type_named
from streams_runtime.api.schemas.ddl_schema import parse_schema
from streams_runtime.api.sql.aggregate_calls import COUNT_DISTINCT, AggregateCall
from streams_runtime.api.steps.topology_spec import FormatSpec
from streams_runtime.topology.nodes.aggregate_node import Aggregate, AggregateNode
from streams_runtime.topology.nodes.all_nodes import Node
from streams_runtime.topology.nodes.foreign_key_nodes import ForeignKeyJoinNode
from streams_runtime.topology.nodes.join_node import JoinNode
from streams_runtime.topology.nodes.process_node import ProcessNode
from streams_runtime.topology.nodes.source_and_sink_nodes import (
    Format,
    RepartitionSourceNode,
    SourceNode,
    TableSourceNode,
)
from streams_runtime.topology.nodes.step_nodes import MergeNode, TransformNode
from streams_runtime.topology.nodes.stream_join_node import StreamJoinNode
from streams_runtime.topology.nodes.stream_nodes import FlatMapNode
from streams_runtime.topology.nodes.table_nodes import TableJoinNode
from streams_runtime.topology.plan import Topology

_ALIKE = ("count", "count_if", "avg", "approx_percentile", "bool_and", "bool_or")
Known = Mapping[str, Columns | None]


def columns_of(topology: Topology) -> Known:
    """The columns that flow out of each node, by its name; None where they are not known."""
    types = {each.name.lower(): type_named(each.returns) for each in topology.functions}
    found: dict[str, Columns | None] = {}
    for node in topology.nodes:
        columns = _columns(node, found)
        found[node.name] = None if columns is None else Columns(columns.all, types)
    return found


def state_type(aggregate: Aggregate, columns: Columns | None) -> Type | None:
    """The type of what an aggregate keeps; None where it is not known, or is the same for every argument.

    Of two expressions both, as a struct. Of counts of different values the argument's own: the same values have
    other hashes, or other texts, as another type.
    """
    if columns is None or aggregate.function in _ALIKE:
        return None
    call = AggregateCall(aggregate.function, aggregate.argument, aggregate.parameter)
    counts = aggregate.function in ("approx_count_distinct", COUNT_DISTINCT)
    kept = call.argument_type(columns) if counts else call.result_type(columns)
    if call.second is None:
        return kept
    both = (Column("by", columns.type_of(call.second)), Column("value", kept))
    return struct_of(Columns(both))


def _columns(node: Node, found: Known) -> Columns | None:
    match node:
        case SourceNode() | TableSourceNode():
            return _read(node.value)
        case RepartitionSourceNode():
            return found[node.origin]
        case MergeNode():
            return found[node.inputs[0]]
        case JoinNode() | TableJoinNode() | ForeignKeyJoinNode():
            return _joined(node, node.table, found[node.input], found[node.table])
        case StreamJoinNode():
            return _joined(node, node.stream, found[node.input], found[node.other])
        case _:
            before = found[node.input]
            return _after(node, before) if before is not None else None


def _joined(
    node: JoinNode | StreamJoinNode | TableJoinNode | ForeignKeyJoinNode,
    name: str,
    stream: Columns | None,
    other: Columns | None,
) -> Columns | None:
    """The columns of the stream, or of the left table, and those that the join adds or replaces.

    `name` is what the join calls the other side.
    """
    if stream is None:
        return None
    seen = Columns((*stream, Column(name, None if other is None else struct_of(other))), stream.functions)
    added = Columns(tuple(Column(column, seen.type_of(text)) for column, text in node.select))
    return Columns((*(each for each in stream if added.get(each.name) is None), *added))


def _after(node: Node, before: Columns) -> Columns:
    if isinstance(node, ProcessNode):
        return parse_schema(node.value)[0] or before
    if isinstance(node, TransformNode) and node.select is not None:
        named = Columns(tuple(Column(name, before.type_of(text)) for name, text in node.select))
        kept = (each for each in before if node.keeps_columns and named.get(each.name) is None)
        return Columns((*kept, *named))
    if isinstance(node, FlatMapNode):
        return Columns((*before, Column(node.column)))
    if isinstance(node, AggregateNode):
        calls = ((each.column, AggregateCall(each.function, each.argument, each.parameter)) for each in node.aggregates)
        return Columns(tuple(Column(name, call.result_type(before)) for name, call in calls))
    return before


def _read(value: Format) -> Columns | None:
    return value_columns(
        FormatSpec.model_validate({"format": value.name, "schema": value.schema, "message": value.message})
    )
