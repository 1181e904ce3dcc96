"""In which order the stages of a batch are worked off, so that each finds what it asks for."""

from __future__ import annotations

from streams_runtime.topology.declared.foreign_key_step import ForeignKeySide, foreign_key_sides
from streams_runtime.topology.node_order import needed_first
from streams_runtime.topology.nodes.aggregate_node import AggregateNode
from streams_runtime.topology.nodes.dedupe_node import DedupeNode
from streams_runtime.topology.nodes.foreign_key_nodes import ForeignKeyJoinNode
from streams_runtime.topology.nodes.join_node import JoinNode
from streams_runtime.topology.nodes.process_node import ProcessNode
from streams_runtime.topology.nodes.step_nodes import MergeNode
from streams_runtime.topology.nodes.stream_join_node import StreamJoinNode
from streams_runtime.topology.nodes.suppress_node import SuppressNode
from streams_runtime.topology.nodes.table_nodes import ToTableNode
from streams_runtime.topology.plan import SubTopology
from streams_runtime.topology.table_parts import TablePart, table_parts

Begins = JoinNode | StreamJoinNode | DedupeNode | SuppressNode | ForeignKeyJoinNode | ProcessNode
"""Nodes behind which a stage begins, beside the toStreams of table parts and merges of several stages."""


def stage_order(sub: SubTopology) -> tuple[TablePart | ForeignKeySide | str, ...]:
    """What follows on a batch's first stage, in order.

    Table parts, sides of joins by a foreign key, and names of nodes behind which a further stage begins. A part comes
    behind the stages that change its tables and before its toStreams, and a side behind the former too; a join with a
    table behind the stage that changes that; a merge of several stages behind all of them. Raises TopologyException:
    some would wait for each other, or a join by a foreign key has no tables to join.
    """
    parts = {part.name: part for part in table_parts(sub)}
    sides = {_unit(side.node.name): side for side in foreign_key_sides(sub)}
    streams = {stream.name: name for name, part in parts.items() for stream in part.streams}
    kept = {node.name for node in sub.nodes if isinstance(node, ToTableNode | AggregateNode | ForeignKeyJoinNode)}
    stages = stages_of(sub)

    def before(name: str) -> set[str]:
        """The stage that the records of a node come from, itself included; none for the first."""
        stage = stages[name]
        return set() if stage is None else {_unit(stage)}

    needs: dict[str, set[str]] = {}
    behind_tables = parts | {unit: side.table for unit, side in sides.items()}
    for unit, part in behind_tables.items():
        needs[unit] = {each for source in part.sources for each in before(source.name)}
    needs |= {_unit(name): {part} for name, part in streams.items()}
    for node in sub.nodes:
        if stages[node.name] == node.name and node.name not in streams and _unit(node.name) not in sides:
            asked = {node.table} & kept if isinstance(node, JoinNode) else set()
            needs[_unit(node.name)] = {unit for each in (*node.streams, *asked) for unit in before(each)}
    return tuple(parts.get(unit) or sides.get(unit) or unit.removeprefix(_STAGE) for unit in needed_first(needs))


def stages_of(sub: SubTopology) -> dict[str, str | None]:
    """For each node the one behind which the stage begins that its records come in; None: the batch's first stage."""
    streams = {stream.name for part in table_parts(sub) for stream in part.streams}
    found: dict[str, str | None] = {}
    for node in sub.nodes:
        before = [found[name] for name in node.streams]
        begins = node.name in streams or isinstance(node, Begins)
        if begins or (isinstance(node, MergeNode) and len(set(before)) > 1):
            found[node.name] = node.name
        else:
            found[node.name] = before[0] if before else None
    return found


def merges_stages(sub: SubTopology) -> frozenset[str]:
    """Names of the merges, and joins of streams, whose inputs come in several stages."""
    stages = stages_of(sub)
    return frozenset(
        node.name
        for node in sub.nodes
        if isinstance(node, MergeNode | StreamJoinNode) and len({stages[name] for name in node.streams}) > 1
    )


_STAGE = "behind "


def _unit(name: str) -> str:
    # A node may be called as a part is, whose source it is not.
    return f"{_STAGE}{name}"
