"""Whether a scan will take over a whole topology, as far as that shows before there is a Spark that analyses it.

It decides only how Spark's JVM compiles: a JVM that handles plans and no rows starts in half the processor time when it
does not optimise what it compiles.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from streams_runtime.pipeline.pushdown.partial import KEYS
from streams_runtime.topology.nodes import AggregateNode, Node, SinkNode, SourceNode, TransformNode
from streams_runtime.topology.plan import Topology
from streams_runtime.topology.windows import TimeWindows

_FUNCTIONS = frozenset({"count", "sum", "min", "max", "avg"})
_CALL = re.compile(r"([a-z_]\w*)\s*\(", re.IGNORECASE)
_BEFORE_BRACKETS = frozenset({"and", "or", "not", "in", "coalesce"})
_SIMPLE = re.compile(r"(?:'[^'\\]*'|[\w\s.,()<>=!])*")


def is_foreseen(topology: Topology) -> bool:
    """Whether every part of it is one source of JSON, `where`s and `select`s, one aggregate by key or tumbling windows,
    and sinks.
    """
    return all(_is_simple(sub.nodes) for sub in topology.every_subtopology)


def _is_simple(nodes: Sequence[Node]) -> bool:
    aggregates = {node.name for node in nodes if isinstance(node, AggregateNode)}
    sources = [node for node in nodes if isinstance(node, SourceNode)]
    return len(aggregates) == len(sources) == 1 and all(_fits(node, aggregates) for node in nodes)


def _fits(node: Node, aggregates: set[str]) -> bool:
    match node:
        case SourceNode():
            return node.value.name == "json" and node.key.name in KEYS and node.timestamp is None
        case TransformNode():
            told = [node.where or "", *(expression for _, expression in node.select or ())]
            return node.input not in aggregates and all(map(_is_plain, told))
        case AggregateNode() if _is_by_key(node):
            return all(each.function in _FUNCTIONS and _is_plain(each.argument or "") for each in node.aggregates)
        case SinkNode():
            return node.input in aggregates
        case _:
            return False


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
