"""Which nodes of a sub-topology need a table's rows as they were before a change, and what they hang on."""

from __future__ import annotations

from dataclasses import dataclass

from streams_runtime.errors import TopologyException
from streams_runtime.topology.plan import SinkNode, SubTopology, TableSourceNode, TransformNode
from streams_runtime.topology.table_nodes import TableJoinNode

TableStep = TransformNode | TableJoinNode


@dataclass(frozen=True, slots=True)
class TablePart:
    """Table sources, the steps over them, and the sinks behind steps that need old rows as well as new ones.

    `steps` are in order, inputs first, and each takes its rows from sources and steps of the part. `kept` names those
    that need old rows, or come behind one that does: a `where` tells a row that leaves the table from one that was
    never in it, and a join puts a change beside what the other table holds.
    """

    sources: tuple[TableSourceNode, ...]
    steps: tuple[TableStep, ...]
    kept: frozenset[str]
    sinks: tuple[SinkNode, ...]


def table_parts(sub: SubTopology) -> tuple[TablePart, ...]:
    """The parts of a sub-topology; sources that no join brings together are in parts of their own.

    Sources of which nothing needs old rows are in none. Raises TopologyException for a join of a table that no source
    gives, or of one with itself.
    """
    groups: dict[str, set[str]] = {}  # by the name of a table of sources: the names that belong together
    behind: dict[str, frozenset[str]] = {}  # by the same: the sources that its rows come from
    kept: set[str] = set()
    for node in sub.nodes:
        if isinstance(node, TableSourceNode):
            groups[node.name], behind[node.name] = {node.name}, frozenset({node.name})
        elif isinstance(node, TableJoinNode):
            behind[node.name] = _sources_of_join(node, behind)
            groups[node.name] = groups[node.input] | groups[node.table] | {node.name}
            groups |= dict.fromkeys(groups[node.name], groups[node.name])
            kept.add(node.name)
        elif isinstance(node, TransformNode) and node.input in groups:
            behind[node.name] = behind[node.input]
            groups[node.name] = groups[node.input]
            groups[node.name].add(node.name)
            if node.where is not None or node.input in kept:
                kept.add(node.name)
    found = {id(group): group for group in groups.values()}
    return tuple(_part(sub, group, kept) for group in found.values() if group & kept)


def _sources_of_join(node: TableJoinNode, behind: dict[str, frozenset[str]]) -> frozenset[str]:
    for side in (node.input, node.table):
        if side not in behind:
            raise TopologyException(f"{node.path}: {side!r} is no table of a source; join tables that sources give")
    if both := behind[node.input] & behind[node.table]:
        raise TopologyException(f"{node.path}: both sides come from {', '.join(sorted(both))}; join different tables")
    return behind[node.input] | behind[node.table]


def _part(sub: SubTopology, group: set[str], kept: set[str]) -> TablePart:
    nodes = [node for node in sub.nodes if node.name in group]
    return TablePart(
        tuple(node for node in nodes if isinstance(node, TableSourceNode)),
        tuple(node for node in nodes if isinstance(node, TableStep)),
        frozenset(group & kept),
        tuple(node for node in sub.nodes if isinstance(node, SinkNode) and node.input in group & kept),
    )
