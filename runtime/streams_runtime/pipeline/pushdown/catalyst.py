"""Spark's analysed plans and expressions, as trees in Python."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import orjson
from pyspark.sql import DataFrame


@dataclass(frozen=True, slots=True)
class Tree:
    """A plan or an expression: the name of its class, its own fields and its children."""

    kind: str
    fields: Mapping[str, Any]
    children: tuple[Tree, ...]


def analysed(frame: DataFrame) -> Tree:
    """The plan that Spark's analysis has made: names are resolved, types are known, casts are written out."""
    return tree_of(orjson.loads(frame._jdf.queryExecution().analyzed().toJSON()))


def tree_of(nodes: list[dict[str, Any]]) -> Tree:
    """A tree of what TreeNode.toJSON writes: its nodes, each before its children."""
    return _next(iter(nodes))


def _next(nodes: Iterator[dict[str, Any]]) -> Tree:
    node = next(nodes)
    children = tuple(_next(nodes) for _ in range(node["num-children"]))
    return Tree(node["class"].rpartition(".")[2], node, children)
