"""In which order the stages of a batch are worked off, so that each finds what it asks for."""

from __future__ import annotations

from streams_runtime.topology.dedupe import DedupeNode
from streams_runtime.topology.nodes import AggregateNode, JoinNode, streams_of
from streams_runtime.topology.order import needed_first
from streams_runtime.topology.plan import SubTopology
from streams_runtime.topology.stream_joins import StreamJoinNode
from streams_runtime.topology.table_nodes import ToTableNode
from streams_runtime.topology.table_parts import TablePart, table_parts

Begins = JoinNode | StreamJoinNode | DedupeNode
"""Nodes behind which a stage begins, beside the toStreams of table parts."""


def stage_order(sub: SubTopology) -> tuple[TablePart | str, ...]:
    """What follows on a batch's first stage: table parts, and names of nodes behind which a further stage begins.

    A part comes behind the stages that change its tables and before its toStreams; a join with a table behind the stage
    that changes that. Raises TopologyException: some would wait for each other.
    """
    parts = {part.name: part for part in table_parts(sub)}
    streams = {stream.name: name for name, part in parts.items() for stream in part.streams}
    begins = {node.name: node for node in sub.nodes if isinstance(node, Begins)}
    by_name = {node.name: node for node in sub.nodes}
    kept = {node.name for node in sub.nodes if isinstance(node, ToTableNode | AggregateNode)}

    def before(name: str) -> set[str]:
        """The stages that the records of a node come from, itself included; none for the first."""
        if name in streams or name in begins:
            return {_unit(name)}
        return {unit for each in streams_of(by_name[name]) for unit in before(each)}

    needs: dict[str, set[str]] = {}
    for name, part in parts.items():
        needs[name] = {unit for source in part.sources for unit in before(source.name)}
    needs |= {_unit(name): {part} for name, part in streams.items()}
    for name, node in begins.items():
        asked = {node.table} & kept if isinstance(node, JoinNode) else set()
        needs[_unit(name)] = {unit for each in (*streams_of(node), *asked) for unit in before(each)}
    return tuple(parts.get(unit) or unit.removeprefix(_STAGE) for unit in needed_first(needs))


_STAGE = "behind "


def _unit(name: str) -> str:
    # A node may be called as a part is, whose source it is not.
    return f"{_STAGE}{name}"
