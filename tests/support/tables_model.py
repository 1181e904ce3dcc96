"""Kafka Streams' tables in a few lines: each record is pushed from its source through filters, maps and joins."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from pipeline_kit import Record, loaded
from table_trees import Tree

Row = tuple[int, int] | None
"""Number and time of a table's row; None where it has none."""


@dataclass
class _Node:
    """A table; `inputs` and `takers` are numbers of tables, of takers with which of their inputs it is."""

    tree: Tree
    inputs: list[int]
    takers: list[tuple[int, int]] = field(default_factory=list)


@dataclass
class TablesModel:
    """What the tables of a tree pass on, by sink: (key, number or None, time) in order."""

    tree: Tree
    sinks: dict[str, list[tuple[bytes, int | None, int]]] = field(default_factory=dict)
    all: list[tuple[bytes, int | None, int]] = field(default_factory=list)
    """Those of all sinks, as one after the other is passed on."""
    _held: dict[tuple[str, bytes], Row] = field(default_factory=dict)
    _nodes: list[_Node] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._add(self.tree)

    def feed(self, records: Iterable[Record]) -> None:
        for each in records:
            if each.key is not None:
                self._record(each, each.key)

    def _add(self, tree: Tree) -> int:
        """Add a table in the order in which a user would call for it; its number."""
        if "made" in tree:
            return int(tree["made"])
        inputs = [self._add(tree[name]) for name in _inputs(tree)]
        number = len(self._nodes)
        self._nodes.append(_Node(tree, inputs))
        self.sinks[f"out-{number}"] = []
        if "swapped" in tree:
            inputs.reverse()
        for side, before in enumerate(inputs):
            self._nodes[before].takers.append((number, side))
        return number

    def _record(self, record: Record, key: bytes) -> None:
        old = self._held.get((record.topic, key))
        number = loaded(record.value)
        new = None if number is None else (number, record.time)
        self._held[record.topic, key] = new
        for source, node in enumerate(self._nodes):
            if node.tree.get("table") == record.topic:
                self._pass_on(source, key, _number(new), _number(old), record.time)

    def _pass_on(self, number: int, key: bytes, new: Any, old: Any, time: int) -> None:
        """A change of a table: to its sink, and to those that take it, one after the other."""
        self.sinks[f"out-{number}"].append((key, new, time))
        self.all.append((key, new, time))
        for taker, side in self._nodes[number].takers:
            self._take(taker, side, key, new, old, time)

    def _take(self, number: int, side: int, key: bytes, new: Any, old: Any, time: int) -> None:
        node = self._nodes[number]
        if "double" in node.tree:
            self._pass_on(number, key, _doubled(new), _doubled(old), time)
        elif "filter" in node.tree:
            new, old = _kept(new), _kept(old)
            if new is not None or old is not None:
                self._pass_on(number, key, new, old, time)
        else:
            kind = node.tree["join"]
            beside = self.row(node.inputs[1 - side], key)
            alone = kind == "outer" or (kind == "left" and side == 0)
            if beside is None and (not alone or (new is None and old is None)):
                return
            found = [_both(kind, *_sides(side, each, _number(beside))) for each in (new, old)]
            self._pass_on(number, key, found[0], found[1], time if beside is None else max(time, beside[1]))

    def row(self, number: int, key: bytes) -> Row:
        """A table's row of a key, now."""
        node = self._nodes[number]
        if "table" in node.tree:
            return self._held.get((node.tree["table"], key))
        rows = [self.row(each, key) for each in node.inputs]
        if "join" in node.tree:
            found = _both(node.tree["join"], *map(_number, rows))
        else:
            found = (_doubled if "double" in node.tree else _kept)(_number(rows[0]))
        return None if found is None else (found, max(row[1] for row in rows if row is not None))


def _inputs(tree: Tree) -> list[str]:
    """In the order in which they are made."""
    names = [name for name in ("filter", "double", "left", "right") if name in tree]
    return names[::-1] if "swapped" in tree else names


def _sides(side: int, number: Any, beside: Any) -> tuple[Any, Any]:
    return (number, beside) if side == 0 else (beside, number)


def _both(kind: str, left: Any, right: Any) -> int | None:
    if (left is None and kind != "outer") or (right is None and kind == "inner") or left is right is None:
        return None
    return int((left or 0) * 10 + (right or 0))


def _kept(number: Any) -> Any:
    return None if number is None or number % 3 == 0 else number


def _doubled(number: Any) -> Any:
    return None if number is None else number * 2


def _number(row: Row) -> int | None:
    return None if row is None else row[0]
