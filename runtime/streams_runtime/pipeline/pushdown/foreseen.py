"""Whether a scan will take over a whole topology, as far as that shows before there is a Spark that analyses it.

It decides only how Spark's JVM compiles: a JVM that handles plans and no rows starts in half the processor time when it
does not optimise what it compiles.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

from streams_runtime.api.steps.format_names import REGISTERED
from streams_runtime.pipeline.pushdown.scanned_records import KEYS
from streams_runtime.topology.nodes.aggregate_node import Aggregate, AggregateNode
from streams_runtime.topology.nodes.all_nodes import Node
from streams_runtime.topology.nodes.join_node import JoinNode
from streams_runtime.topology.nodes.source_and_sink_nodes import SinkNode, SourceNode, TableSourceNode
from streams_runtime.topology.nodes.step_nodes import TransformNode
from streams_runtime.topology.nodes.window_kinds import TimeWindows
from streams_runtime.topology.plan import Topology

_FUNCTIONS = frozenset({"count", "sum", "min", "max", "avg"})
_CALL = re.compile(r"([a-z_]\w*)\s*\(", re.IGNORECASE)
_BEFORE_BRACKETS = frozenset({"and", "or", "not", "in", "coalesce"})
_SIMPLE = re.compile(r"(?:'[^'\\]*'|[\w\s.,()<>=!])*")


def is_foreseen(topology: Topology) -> bool:
    """Whether every part of it is sources of JSON, `where`s and `select`s, and either one aggregate by key or tumbling
    windows with sinks, or one join with a table, behind which come `where`s, `select`s and sinks.
    """
    return all(_is_added_up(sub.nodes) or _is_joined(sub.nodes) for sub in topology.every_subtopology)


def is_added_up(topology: Topology) -> bool:
    """Whether a scan hands on partial aggregates and nothing else, as far as that is foreseen."""
    return all(_is_added_up(sub.nodes) for sub in topology.every_subtopology)


def _is_added_up(nodes: Sequence[Node]) -> bool:
    aggregates = {node.name for node in nodes if isinstance(node, AggregateNode)}
    sources = [node for node in nodes if isinstance(node, SourceNode)]
    return len(aggregates) == len(sources) == 1 and all(_fits_before(node, aggregates) for node in nodes)


def _fits_before(node: Node, aggregates: set[str]) -> bool:
    match node:
        case SourceNode():
            return _is_read(node)
        case TransformNode():
            return node.input not in aggregates and _is_plain_step(node)
        case AggregateNode() if _is_by_key(node):
            return all(_is_taken_over(each) for each in node.aggregates)
        case SinkNode():
            return node.input in aggregates and node.is_direct
        case _:
            return False


def _is_taken_over(aggregate: Aggregate) -> bool:
    return aggregate.function in _FUNCTIONS and aggregate.condition is None and _is_plain(aggregate.argument or "")


def _is_joined(nodes: Sequence[Node]) -> bool:
    kinds = Counter(type(node) for node in nodes)
    if not kinds[SourceNode] == kinds[TableSourceNode] == kinds[JoinNode] == 1:
        return False
    tables = {node.name for node in nodes if isinstance(node, TableSourceNode)}
    behind: set[str] = set()
    for node in nodes:  # inputs come before what takes them
        if isinstance(node, JoinNode) or not behind.isdisjoint(node.inputs):
            behind.add(node.name)
    return all(_fits_around(node, tables, behind) for node in nodes)


def _fits_around(node: Node, tables: set[str], behind: set[str]) -> bool:
    match node:
        case SourceNode() | TableSourceNode():
            return _is_read(node)
        case TransformNode():
            return node.input not in tables and _is_plain_step(node)
        case JoinNode(on=None):
            return node.input not in behind and all(_is_plain(expression) for _, expression in node.select)
        case SinkNode():
            plain = node.value is None or node.value.name not in REGISTERED
            return node.input in behind and node.is_direct and plain
        case _:
            return False


def _is_read(node: SourceNode | TableSourceNode) -> bool:
    return node.value.name == "json" and node.key.name in KEYS and node.timestamp is None and not node.by_pattern


def _is_plain_step(node: TransformNode) -> bool:
    return all(map(_is_plain, [node.where or "", *(expression for _, expression in node.select or ())]))


def _is_by_key(node: AggregateNode) -> bool:
    """Whether a record falls into one row, which its key and its time say. Records that are too late, where they go to
    a topic, are Spark's.
    """
    match node.windows:
        case None:
            return True
        case TimeWindows(size=size, advance=advance):
            return size == advance and node.late_topic is None
        case _:
            return False


def _is_plain(expression: str) -> bool:
    """Whether it has only names, constants, comparisons and what connects these."""
    called = {name.lower() for name in _CALL.findall(expression)}
    return _SIMPLE.fullmatch(expression) is not None and called <= _BEFORE_BRACKETS
