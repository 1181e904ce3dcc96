"""The nodes of the plan that only streams have."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class FlatMapNode:
    """A record of each element of the array `explode`, which the column `column` holds beside the other ones."""

    name: str
    input: str
    explode: str
    column: str
    path: str


@dataclass(frozen=True, slots=True)
class SplitNode:
    """Finds for each record the first of `conditions` that is true; its consumers are the branches."""

    name: str
    input: str
    conditions: tuple[str, ...]
    path: str


@dataclass(frozen=True, slots=True)
class BranchNode:
    """The records of the split `input` for which `condition` is the first that is true; None: for which none is."""

    name: str
    input: str
    number: int
    condition: str | None


@dataclass(frozen=True, slots=True)
class PeekNode:
    """Passes its records on, logs the texts `log` of some and adds up `value` of all. Absent: None.

    `level` is debug or info, `at_most` how many lines a second are logged. `metric` is the name of the sum; without a
    `value` each record adds 1.
    """

    name: str
    input: str
    log: str | None
    level: str
    at_most: int
    metric: str | None
    value: str | None
    path: str


@dataclass(frozen=True, slots=True)
class HeadersNode:
    """Gives each record the headers `headers`, (name, expression), in place of those that it has of these names."""

    name: str
    input: str
    headers: tuple[tuple[str, str], ...]
    path: str


StreamNode = FlatMapNode | SplitNode | BranchNode | PeekNode | HeadersNode


def what_it_does(node: StreamNode) -> str:
    """The node in the user's own expressions."""
    match node:
        case FlatMapNode():
            return f"flatMap {node.explode} as {node.column}"
        case SplitNode():
            return "split, the first that is true"
        case BranchNode():
            return "the rest" if node.condition is None else f"where {node.condition}"
        case HeadersNode():
            return f"headers {', '.join(name for name, _ in node.headers)}"
        case PeekNode():
            log = [] if node.log is None else [f"log {node.log}"]
            return "; ".join([*log, *([] if node.metric is None else [f"count {node.metric}"])])
