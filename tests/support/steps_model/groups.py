"""A table's rows by groups that they leave when they change: each time worked out anew of the rows that are there."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Any

from steps_model.expressions import evaluate
from steps_model.folds import fold_of
from steps_model.items import Change, Item, Row, Value, environment
from steps_model.steps import Output, Spec, added, shown


def regrouped(group: str, item: Item) -> Iterator[Row]:
    """What the groups are told of a change: under each the row that leaves it (`old`), and the one that comes."""
    assert isinstance(item, Change)
    old, new = (_group(group, item.key, each) for each in (item.old, item.new))
    rows = [None if each is None else Row(item.key, each, item.time) for each in (item.old, item.new)]
    if old is not None and old == new:
        yield Row(old, {"old": rows[0], "new": rows[1]}, item.time, item.headers)
        return
    if old is not None:
        yield Row(old, {"old": rows[0], "new": None}, item.time, item.headers)
    if new is not None:
        yield Row(new, {"old": None, "new": rows[1]}, item.time, item.headers)


class Grouped:
    """The rows of each group, by their keys."""

    def __init__(self, spec: Spec) -> None:
        self._name = spec["name"]
        self._folds = {name: fold_of(text) for name, text in spec["aggregate"].items()}
        self._rows: defaultdict[Any, dict[Any, Row]] = defaultdict(dict)
        self.rows: dict[Any, tuple[dict[str, Any], int]] = {}

    def take(self, item: Item, source: str) -> Iterator[Output]:
        assert isinstance(item, Row)
        assert item.value is not None
        there, old = self._rows[item.key], self.rows.get(item.key)
        if item.value["old"] is not None:
            left = there.pop(item.value["old"].key)
            assert left.value == item.value["old"].value
        if item.value["new"] is not None:
            there[item.value["new"].key] = item.value["new"]
        state = {name: fold.zero for name, fold in self._folds.items()}
        for row in there.values():
            state = added(self._folds, state, row)
        time = max(item.time, old[1] if old else item.time)
        self.rows[item.key] = (shown(self._folds, state), time)
        change = Change(item.key, self.rows[item.key][0], old and old[0], time, item.headers, turn=item.turn)
        yield self._name, change

    def row(self, key: Any) -> tuple[dict[str, Any], int] | None:
        return self.rows.get(key)


def _group(group: str, key: Any, row: Value) -> Any:
    return None if row is None else evaluate(group, environment(row, key, None))
