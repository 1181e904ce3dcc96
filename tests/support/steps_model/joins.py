"""Joins: of a stream with a table, of two streams, of two tables by key and by a foreign key."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

from joins_model import JoinModel

from steps_model.expressions import evaluate
from steps_model.items import Change, Item, Row, Value, Window, environment
from steps_model.steps import Output, Spec
from streams_runtime.topology.nodes.stream_join_node import Side

TableRow = tuple[dict[str, Any], int] | None
Lookup = Callable[[Any, Window | None], TableRow]


def joined(spec: Spec, left: Value, right: Value, key: Any, time: int | None) -> dict[str, Any]:
    """The left row with the columns that the join adds."""
    join = spec["join"]
    other = join.get("table") or join["stream"]
    env = environment(left, key, time, **{other: right})
    return {**(left or {}), **{name: evaluate(text, env) for name, text in join["select"].items()}}


class WithTable:
    """A stream with a table, by its key, or with a global one by an expression."""

    def __init__(self, spec: Spec, table: Callable[[Any, int], tuple[dict[str, Any], int] | None]) -> None:
        """`table`: its row of a key, for a record of this time."""
        self._spec, self._table = spec, table

    def take(self, item: Item, source: str) -> Iterator[Output]:
        if not isinstance(item, Row):
            return  # the table's change is in the table
        by, kind = self._spec["join"].get("key"), self._spec["join"].get("type", "inner")
        key = item.key if by is None else evaluate(by, item.env)
        if item.value is None or (kind == "inner" and key is None):
            return
        found = None if key is None else self._table(key, item.time)
        if found is None and kind == "inner":
            return
        value = joined(self._spec, item.value, found and found[0], item.key, item.time)
        yield self._spec["name"], Row(item.key, value, item.time, item.headers, item.window, item.turn)

    def row(self, key: Any) -> None:
        raise AssertionError("a stream is no table")


class OfStreams:
    """Two streams. Columns of the left side that it lacks are null."""

    def __init__(self, spec: Spec, before: int, after: int, grace: int, columns: tuple[str, ...]) -> None:
        self._spec, self._columns = spec, columns
        node = SimpleNamespace(kind=spec["join"].get("type", "inner"), before=before, after=after, grace=grace)
        self._model: Any = JoinModel(node)  # type: ignore[arg-type]

    def take(self, item: Item, source: str) -> Iterator[Output]:
        assert isinstance(item, Row)
        sides = [Side.LEFT] * (source == self._spec["from"]) + [Side.RIGHT] * (source == self._spec["join"]["stream"])
        for side in sides:
            known = len(self._model.results)
            self._model.process(side, item.key, item.time, item.value)
            waited = len(self._model.results) - known
            for key, time, left, right in self._model.results[known : known + waited]:
                mine = (left if side is Side.LEFT else right) is item.value and key == item.key
                columns = dict.fromkeys(self._columns) if left is None else left
                value = joined(self._spec, columns, right, key, time)
                yield self._spec["name"], Row(key, value, time, item.headers if mine else (), turn=item.turn)

    def row(self, key: Any) -> None:
        raise AssertionError("a stream is no table")


class OfTables:
    """Two tables by key (KTableKTableJoin and its kind)."""

    def __init__(self, spec: Spec, left: Lookup, right: Lookup, columns: tuple[str, ...]) -> None:
        self._spec, self._sides, self._columns = spec, (left, right), columns
        self._kind = spec["join"].get("type", "inner")

    def take(self, item: Item, source: str) -> Iterator[Output]:
        assert isinstance(item, Change)
        left = source == self._spec["from"]
        beside = self._sides[1 if left else 0](item.key, item.window)
        alone = self._kind == "outer" or (self._kind == "left" and left)
        if beside is None and (not alone or (item.new is None and item.old is None)):
            return
        found = [
            self._both(*((row, beside and beside[0]) if left else (beside and beside[0], row)), key=item.key)
            for row in (item.new, item.old)
        ]
        time = item.time if beside is None else max(item.time, beside[1])
        yield self._spec["name"], Change(item.key, found[0], found[1], time, item.headers, item.window, item.turn)

    def row(self, key: Any, window: Window | None = None) -> TableRow:
        left, right = (each(key, window) for each in self._sides)
        value = self._both(left and left[0], right and right[0], key)
        return None if value is None else (value, max(each[1] for each in (left, right) if each is not None))

    def _both(self, left: Value, right: Value, key: Any) -> Value:
        if (left is None and self._kind != "outer") or (right is None and self._kind == "inner"):
            return None
        if left is None and right is None:
            return None
        return joined(self._spec, dict.fromkeys(self._columns) if left is None else left, right, key, None)


class ByForeignKey:
    """Two tables by a key that the left row names: what both come to, at once; how many changes there are is open."""

    def __init__(self, spec: Spec) -> None:
        self._spec = spec
        self._left: dict[Any, tuple[dict[str, Any], int, int]] = {}
        self._right: dict[Any, dict[str, Any]] = {}
        self.rows: dict[Any, tuple[dict[str, Any], int]] = {}

    def left(self, change: Change, partition: int) -> Iterator[tuple[int, Change]]:
        """What a change of the left table changes, with the partition."""
        if change.new is None:
            self._left.pop(change.key, None)
        else:
            self._left[change.key] = (change.new, change.time, partition)
        yield from self._result(change.key, partition, change.time)

    def right(self, change: Change) -> Iterator[tuple[int, Change]]:
        """The same of a change of the right one."""
        if change.new is None:
            self._right.pop(change.key, None)
        else:
            self._right[change.key] = change.new
        for key, (value, time, partition) in list(self._left.items()):
            if self._named(value, key, time) == change.key:
                yield from self._result(key, partition, change.time)

    def _named(self, value: dict[str, Any], key: Any, time: int) -> Any:
        return evaluate(self._spec["join"]["key"], environment(value, key, time))

    def _result(self, key: Any, partition: int, time: int) -> Iterator[tuple[int, Change]]:
        old, new = self.rows.pop(key, None), None
        if key in self._left:
            value, at, _ = self._left[key]
            named = self._named(value, key, at)
            other = None if named is None else self._right.get(named)
            if other is not None or self._spec["join"].get("type", "inner") == "left":
                new = joined(self._spec, value, other, key, at)
                self.rows[key] = (new, time)
        if new is not None or old is not None:
            yield partition, Change(key, new, old and old[0], time)
