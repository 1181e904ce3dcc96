"""Where the records of a sub-topology keep their places behind its stages, and the order of the ways they go.

Kafka Streams works off one record with all that comes of it before it takes the next, and hands what a node gives to
the nodes behind it one after the other. So what comes of one record on two ways that meet again has an order: that of
the nodes at which the ways part.
"""

from __future__ import annotations

from collections.abc import Iterator

from streams_runtime.api.sql.aggregate_calls import ADDED
from streams_runtime.topology.nodes.aggregate_node import AggregateNode
from streams_runtime.topology.nodes.all_nodes import Node
from streams_runtime.topology.nodes.dedupe_node import DedupeNode
from streams_runtime.topology.nodes.join_node import JoinNode
from streams_runtime.topology.nodes.process_node import OutputNode, ProcessNode
from streams_runtime.topology.nodes.source_and_sink_nodes import RepartitionSourceNode, SinkNode, SourceNode
from streams_runtime.topology.nodes.step_nodes import KeyByNode, MergeNode, TransformNode
from streams_runtime.topology.nodes.stream_join_node import StreamJoinNode
from streams_runtime.topology.nodes.stream_nodes import FlatMapNode, SplitNode, StreamNode
from streams_runtime.topology.nodes.table_nodes import ToTableNode
from streams_runtime.topology.plan import SubTopology
from streams_runtime.topology.stage_order import merges_stages, stages_of
from streams_runtime.topology.table_parts import per_update_aggregates

Forks = dict[tuple[str, str], int]
"""Of a node and one that takes its records: which of those that do, counted from 0."""

_OF_ANY_ORDER = (
    SourceNode | RepartitionSourceNode | TransformNode | KeyByNode | StreamNode | OutputNode | MergeNode | SinkNode
)


def orders_by_time(sub: SubTopology) -> bool:
    """Whether rows need to have the turns of their records from the source on.

    They do where several topics are read and something keeps state, or writes to a repartition topic. A join of streams
    finds the order of its records by itself where it gets all of them, and nothing behind it asks for places.
    """
    orders = [node for node in sub.nodes if not isinstance(node, _OF_ANY_ORDER)]
    if sub.reads_one_topic or not orders:
        return False
    takes_all = all(isinstance(node, StreamJoinNode) for node in orders) and not any(map(_leaves_out, sub.nodes))
    return not takes_all or keeps_order(sub)


def keeps_order(sub: SubTopology) -> bool:
    """Whether a node behind a stage asks for the places of records that its rows came of.

    So does one whose inputs come in several stages; what brings a stream and a table's changes, or two streams, into
    one order; a join whose right side may have a record before its left side has the same one; and a table, a dedupe
    or a process step of what a join of streams gives, whose results have no place in a topic. So does a merge to which
    pieces of one record come on several ways: elements of a flatMap, or what a merge before it has brought together.
    """
    if merges_stages(sub) or _merges_pieces(sub):
        return True
    stages = stages_of(sub)
    per_update = per_update_aggregates(sub)
    for node in sub.nodes:
        asks = isinstance(node, ToTableNode | DedupeNode | ProcessNode) or (
            isinstance(node, JoinNode) and node.on is None
        )
        asks = asks or (isinstance(node, AggregateNode) and (node.name in per_update or _adds(node)))
        if asks and _behind_streams_that_join(sub, node.name):
            return True
        if isinstance(node, StreamJoinNode) and (stages[node.input] is not None or _right_first(sub, node)):
            return True
    return False


def forks(sub: SubTopology) -> Forks:
    """Where ways part that meet again, in a merge or in a join of streams.

    A record of a split takes one way only.
    """
    meeting = {node.name: _meetings(sub, node.name) for node in sub.nodes}
    found: Forks = {}
    for name, takers in _parting(sub):
        for index, taker in enumerate(takers):
            if any(meeting[taker] & meeting[other] for other in takers if other != taker):
                found[name, taker] = index
    return found


def fork_path_between(sub: SubTopology, source: str, name: str) -> tuple[int, ...] | None:
    """The numbers of the ways at the forks from one node to another; None: the second has no records of the first."""
    if source == name:
        return ()
    numbers = forks(sub)
    for node in sub.nodes:
        if node.name == name:
            for each in node.streams:
                before = fork_path_between(sub, source, each)
                if before is not None:
                    return (*before, numbers[each, name]) if (each, name) in numbers else before
    return None


def in_fork_order(sub: SubTopology, merge: MergeNode) -> tuple[str, ...]:
    """The inputs of a merge, those that one record comes to in the order in which it does."""
    numbers, by_name = forks(sub), {node.name: node for node in sub.nodes}

    def path(name: str, taker: str) -> tuple[int, ...]:
        own = (numbers[name, taker],) if (name, taker) in numbers else ()
        return (*(path(by_name[name].streams[0], name) if by_name[name].streams else ()), *own)

    return tuple(sorted(merge.merged, key=lambda name: path(name, merge.name)))


def _leaves_out(node: Node) -> bool:
    """Whether a step may give no row of a record that it takes."""
    return isinstance(node, FlatMapNode | SplitNode | ProcessNode) or (
        isinstance(node, TransformNode) and node.where is not None
    )


def _parting(sub: SubTopology) -> Iterator[tuple[str, list[str]]]:
    """Each node whose records all go on to all that take them, with these in their order."""
    for node in sub.nodes:
        if not isinstance(node, SplitNode):
            yield node.name, [each.name for each in sub.nodes if node.name in each.streams]


def _merges_pieces(sub: SubTopology) -> bool:
    again = {node.name for node in sub.nodes if isinstance(node, MergeNode) and _comes_again(sub, node)}
    in_pieces = again | {node.name for node in sub.nodes if isinstance(node, FlatMapNode)}
    return any((_before(sub, name) - {name}) & in_pieces for name in again)


def _comes_again(sub: SubTopology, merge: MergeNode) -> bool:
    """Whether what one record has become comes to a merge on several ways."""
    seen: set[str] = set()
    for name in merge.merged:
        before = _before(sub, name)
        if before & seen:
            return True
        seen |= before
    return False


def _right_first(sub: SubTopology, join: StreamJoinNode) -> bool:
    """Whether a record that comes to both sides of a join may come to the right one first."""
    left, right = (_before(sub, name) for name in (join.input, join.other))
    for name, takers in _parting(sub):
        lefts = [at for at, taker in enumerate(takers) if taker in left or (taker, name) == (join.name, join.input)]
        rights = [at for at, taker in enumerate(takers) if taker in right or (taker, name) == (join.name, join.other)]
        if lefts and rights and min(rights) < max(lefts):
            return True
    return False


def _before(sub: SubTopology, name: str) -> frozenset[str]:
    """The nodes whose records reach a node, itself included."""
    by_name = {node.name: node for node in sub.nodes}
    return frozenset({name}).union(*(_before(sub, each) for each in by_name[name].streams))


def _meetings(sub: SubTopology, name: str) -> frozenset[str]:
    """The merges and joins of streams that the records of a node reach, itself included."""
    found, seen, waiting = set(), set(), [name]
    by_name = {node.name: node for node in sub.nodes}
    while waiting:
        here = waiting.pop()
        if here in seen:
            continue
        seen.add(here)
        if isinstance(by_name[here], MergeNode | StreamJoinNode):
            found.add(here)
        waiting += [node.name for node in sub.nodes if here in node.streams]
    return frozenset(found)


def _adds(node: AggregateNode) -> bool:
    return any(each.function in ADDED for each in node.aggregates)


def _behind_streams_that_join(sub: SubTopology, name: str) -> bool:
    """Whether records of the node come from a join of streams."""
    by_name = {node.name: node for node in sub.nodes}
    return any(
        isinstance(by_name[each], StreamJoinNode) or _behind_streams_that_join(sub, each)
        for each in by_name[name].streams
    )
