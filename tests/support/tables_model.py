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
class TablesModel:
    """What the tables of a tree pass on, by sink: (key, number or None, time) in order."""

    tree: Tree
    sinks: dict[str, list[tuple[bytes, int | None, int]]] = field(default_factory=dict)
    _held: dict[tuple[str, bytes], Row] = field(default_factory=dict)
    _names: dict[int, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._name(self.tree)

    def feed(self, records: Iterable[Record]) -> None:
        for each in records:
            if each.key is not None:
                self._record(each, each.key)

    def _name(self, tree: Tree) -> None:
        for before in _inputs(tree):
            self._name(before)
        self._names[id(tree)] = f"out-{len(self._names)}"
        self.sinks[self._names[id(tree)]] = []

    def _record(self, record: Record, key: bytes) -> None:
        old = self._held.get((record.topic, key))
        number = loaded(record.value)
        new = None if number is None else (number, record.time)
        self._held[record.topic, key] = new
        self._push(self.tree, record, key, _number(new), _number(old))

    def _push(self, tree: Tree, record: Record, key: bytes, new: Any, old: Any) -> tuple[Any, Any, int] | None:
        """What the tree passes on of a change: new number, old number and time; None if nothing."""
        told = self._change(tree, record, key, new, old)
        if told is not None:
            self.sinks[self._names[id(tree)]].append((key, told[0], told[2]))
        return told

    def _change(self, tree: Tree, record: Record, key: bytes, new: Any, old: Any) -> tuple[Any, Any, int] | None:
        if "table" in tree:
            return (new, old, record.time) if tree["table"] == record.topic else None
        if "join" in tree:
            return self._joined(tree, record, key, new, old)
        (before,) = _inputs(tree)
        told = self._push(before, record, key, new, old)
        if told is None:
            return None
        if "double" in tree:
            return _doubled(told[0]), _doubled(told[1]), told[2]
        new, old = _kept(told[0]), _kept(told[1])
        return None if new is None and old is None else (new, old, told[2])

    def _joined(self, tree: Tree, record: Record, key: bytes, new: Any, old: Any) -> tuple[Any, Any, int] | None:
        for side, other in (("left", "right"), ("right", "left")):
            told = self._push(tree[side], record, key, new, old)
            if told is None:
                continue
            beside = self.row(tree[other], key)
            alone = tree["join"] == "outer" or (tree["join"] == "left" and side == "left")
            if beside is None and (not alone or (told[0] is None and told[1] is None)):
                return None
            found = [_both(tree["join"], *_sides(side, number, _number(beside))) for number in told[:2]]
            return found[0], found[1], told[2] if beside is None else max(told[2], beside[1])
        return None

    def row(self, tree: Tree, key: bytes) -> Row:
        """The table's row of a key, now."""
        if "table" in tree:
            return self._held.get((tree["table"], key))
        if "join" not in tree:
            row = self.row(_inputs(tree)[0], key)
            number = (_doubled if "double" in tree else _kept)(_number(row))
            return None if row is None or number is None else (number, row[1])
        left, right = self.row(tree["left"], key), self.row(tree["right"], key)
        number = _both(tree["join"], _number(left), _number(right))
        return None if number is None else (number, max(row[1] for row in (left, right) if row is not None))


def _inputs(tree: Tree) -> list[Tree]:
    return [tree[name] for name in ("filter", "double", "left", "right") if name in tree]


def _sides(side: str, number: Any, beside: Any) -> tuple[Any, Any]:
    return (number, beside) if side == "left" else (beside, number)


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
