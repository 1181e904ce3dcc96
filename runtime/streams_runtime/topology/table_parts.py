"""Which nodes of a sub-topology need a table's rows as they were before a change, and what they hang on."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field

from streams_runtime.errors import TopologyException
from streams_runtime.topology.nodes.aggregate_node import AggregateNode
from streams_runtime.topology.nodes.foreign_key_nodes import ForeignKeyJoinNode, ResponseNode, SubscribeNode
from streams_runtime.topology.nodes.join_node import JoinNode
from streams_runtime.topology.nodes.regroup_node import RegroupNode
from streams_runtime.topology.nodes.source_and_sink_nodes import SinkNode, SourceNode, TableSourceNode
from streams_runtime.topology.nodes.step_nodes import TransformNode
from streams_runtime.topology.nodes.table_nodes import TableJoinNode, ToStreamNode, ToTableNode
from streams_runtime.topology.nodes.window_kinds import Windows, bounds_differ
from streams_runtime.topology.plan import SubTopology
from streams_runtime.topology.table_copies import TableCopies, copies_of

TableRoot = TableSourceNode | ToTableNode | AggregateNode | ForeignKeyJoinNode
"""What keeps a table's rows in a store."""
TableStep = TransformNode | TableJoinNode


@dataclass(frozen=True, slots=True)
class TablePart:
    """Tables that stores keep, the steps over them, and what is behind steps that need old rows as well as new ones.

    `steps` are in order, inputs first, and each takes its rows from sources and steps of the part. `kept` names those
    that need old rows, or come behind one that does: a `where` tells a row that leaves the table from one that was
    never in it, and a join puts a change beside what the other table holds. So do tables whose changes have to be put
    in order first, or that are worked out change by change, and those of joins by a foreign key. `copies` are those
    of all sources and steps.
    """

    sources: tuple[TableRoot, ...]
    steps: tuple[TableStep, ...]
    kept: frozenset[str]
    sinks: tuple[SinkNode, ...]
    streams: tuple[ToStreamNode, ...]
    regroups: tuple[RegroupNode, ...]
    copies: TableCopies = field(compare=False)

    @property
    def leads_on(self) -> bool:
        """Whether there is anything behind it that its changes are worked out for."""
        return bool(self.sinks or self.streams or self.regroups)

    @property
    def is_windowed(self) -> bool:
        """Whether its rows are windows; then those of all its sources are."""
        return any(isinstance(each, AggregateNode) and each.windows is not None for each in self.sources)

    @property
    def name(self) -> str:
        """The part's, by its first source."""
        return self.sources[0].name


def table_parts(sub: SubTopology) -> tuple[TablePart, ...]:
    """The parts of a sub-topology; sources that no join brings together are in parts of their own.

    Sources of which nothing needs old rows are in none. Those whose rows are grouped by another key are in one, without
    being `kept` for that: what else is behind them needs no old rows. Raises TopologyException for a join, or groups,
    of a table that no store keeps, a join of windows that are others, or groups of rows that meet themselves.
    """
    per_update = per_update_aggregates(sub)
    groups: dict[str, set[str]] = {}  # by the name of a table of sources: the names that belong together
    kept: set[str] = set()
    for node in sub.nodes:
        if isinstance(node, TableSourceNode | ToTableNode | ForeignKeyJoinNode) or node.name in per_update:
            groups[node.name] = {node.name}
            several = isinstance(node, ToTableNode) and _are_of_several_topics(sub, node.name)
            if several or isinstance(node, AggregateNode | ForeignKeyJoinNode):
                kept.add(node.name)
        elif isinstance(node, TableJoinNode):
            _check_sides(sub, node, groups)
            groups[node.name] = groups[node.input] | groups[node.table] | {node.name}
            groups |= dict.fromkeys(groups[node.name], groups[node.name])
            kept.add(node.name)
        elif isinstance(node, TransformNode) and node.input in groups:
            groups[node.name] = groups[node.input]
            groups[node.name].add(node.name)
            if node.where is not None or node.input in kept:
                kept.add(node.name)
        elif isinstance(node, RegroupNode) and (node.input not in groups or windows_of(sub, node.input) is not None):
            raise TopologyException(
                f"{node.path}: {node.input!r} is no table that a store keeps by key; group such tables"
            )
    found = {id(group): group for group in groups.values()}
    regrouped = {node.input for node in sub.nodes if isinstance(node, RegroupNode)}
    parts = tuple(_part(sub, group, kept) for group in found.values() if group & (kept | regrouped))
    for part in parts:
        for node in part.regroups:
            _check_paths(part, node.input, node.path)
    return parts


def part_of(sub: SubTopology, name: str, path: str) -> TablePart:
    """The part that ends with the table `name`: what its rows are worked out of, and no more.

    Raises TopologyException, with `path`, where it comes of a table that no store keeps by key.
    """
    by_name = {node.name: node for node in sub.nodes}
    wanted: set[str] = set()
    waiting = [name]
    while waiting:
        node = by_name.get(waiting.pop())
        if isinstance(node, TableStep):
            waiting += node.streams
        elif not isinstance(node, TableRoot) or (isinstance(node, AggregateNode) and node.windows is not None):
            raise TopologyException(f"{path}: {name!r} is no table that a store keeps by key; join such tables")
        wanted.add(node.name)
    part = _part(sub, wanted, set())
    _check_paths(part, name, path)
    return part


def windows_of(sub: SubTopology, name: str) -> Windows | None:
    """The windows that the keys of a table's rows, or of its changes, are; None: they are records' keys."""
    by_name = {node.name: node for node in sub.nodes}
    node = by_name[name]
    while not isinstance(node, TableRoot):
        node = by_name[node.inputs[0]]  # both sides of a join have keys of one kind
    return node.windows if isinstance(node, AggregateNode) else None


def per_update_aggregates(sub: SubTopology) -> frozenset[str]:
    """Names of the aggregates of which every change counts: for a toStream, for groups, or for a join of or with their
    table.

    Those by windows that are passed on once they have closed are not among them.
    """
    return frozenset(
        node.name
        for node in sub.nodes
        if isinstance(node, AggregateNode)
        and not (node.windows is not None and node.windows.only_final)
        and _is_asked(sub, node.name)
    )


def _is_asked(sub: SubTopology, name: str) -> bool:
    for node in sub.consumers_of(name):
        if isinstance(
            node,
            ToStreamNode | RegroupNode | TableJoinNode | JoinNode | SubscribeNode | ResponseNode | ForeignKeyJoinNode,
        ):
            return True  # a join of a stream has no table but what it asks
        if isinstance(node, TransformNode) and _is_asked(sub, node.name):
            return True
    return False


def _are_of_several_topics(sub: SubTopology, name: str) -> bool:
    """Whether the records of a node come from more than one topic."""
    by_name = {node.name: node for node in sub.nodes}
    found, seen, waiting = set(), set(), [name]
    while waiting:
        here = waiting.pop()
        if here not in seen:
            seen.add(here)
            waiting += by_name[here].streams
            if not by_name[here].inputs:
                found.add(here)
    return len(found) > 1 or any(
        isinstance(source := by_name[each], SourceNode) and source.by_pattern for each in found
    )


def _check_sides(sub: SubTopology, node: TableJoinNode, groups: Collection[str]) -> None:
    for side in (node.input, node.table):
        if side not in groups:
            raise TopologyException(f"{node.path}: {side!r} is no table that a store keeps by key; join such tables")
    left, right = (windows_of(sub, side) for side in (node.input, node.table))
    if bounds_differ(left, right):
        shown = " and ".join("records" if each is None else each.summary for each in (left, right))
        raise TopologyException(f"{node.path}: the sides are {shown}; join windows of equal bounds")


def _check_paths(part: TablePart, name: str, path: str) -> None:
    """Who takes out what went in has to be told of a change by one change; raises TopologyException."""
    whose = [part.copies.sources[copy].node.name for copy in part.copies.paths[name]]
    for twice in sorted({each for each in whose if whose.count(each) > 1}):
        raise TopologyException(
            f"{path}: rows of {twice} meet themselves in {name!r}, which passes on what it never had as old rows; put a"
            " toStream and a toTable in between"
        )


def _part(sub: SubTopology, group: set[str], kept: set[str]) -> TablePart:
    nodes = [node for node in sub.nodes if node.name in group]
    sources = tuple(node for node in nodes if isinstance(node, TableRoot))
    steps = tuple(node for node in nodes if isinstance(node, TableStep))
    return TablePart(
        sources,
        steps,
        frozenset(group & kept),
        tuple(node for node in sub.nodes if isinstance(node, SinkNode) and node.input in group & kept),
        tuple(node for node in sub.nodes if isinstance(node, ToStreamNode) and node.input in group & kept),
        tuple(node for node in sub.nodes if isinstance(node, RegroupNode) and node.input in group),
        copies_of(sources, steps, {node.name: number for number, node in enumerate(sub.nodes)}),
    )
