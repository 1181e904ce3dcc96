"""Steps over one record, or one change, at a time, and those that keep rows by key."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any, Protocol

from dedupe_model import DedupeModel
from suppress_model import SuppressModel

from steps_model.expressions import evaluate, holds, selected
from steps_model.folds import Fold, fold_of
from steps_model.formats import write_key
from steps_model.items import Change, Item, Row, Value, environment

Output = tuple[str, Item]
"""Which of the step's outputs (a split has several), and what it passes on."""
Spec = Mapping[str, Any]


class Step(Protocol):
    """One step of one task. What it has kept is its own; tables can be asked for a key's row."""

    def take(self, item: Item, source: str) -> Iterable[Output]:
        """What it passes on of a record or a change that the source, or step, `source` gives."""

    def row(self, key: Any) -> tuple[dict[str, Any], int] | None:
        """The row and its time that the step's table has for a key."""


class Stateless:
    """where, select, flatMap, split, peek, headers, keyBy, merge and toStream, and where and select of tables."""

    def __init__(self, spec: Spec, before: Any, knows_old_rows: bool) -> None:
        """`before` gives the table's rows, where the step's input is one; `knows_old_rows`: what they were, too."""
        self._spec, self._name, self._before, self._knows_old_rows = spec, spec["name"], before, knows_old_rows

    def take(self, item: Item, source: str) -> Iterator[Output]:
        if isinstance(item, Change):
            yield from ((self._name, each) for each in self._of_table(item))
        elif "flatMap" in self._spec:
            yield from ((self._name, each) for each in self._elements(item))
        elif "split" in self._spec:
            yield from self._branch(item)
        elif "where" not in self._spec or holds(self._spec["where"], item.env):
            yield self._name, self._other(item)

    def row(self, key: Any, window: Any = None) -> tuple[dict[str, Any], int] | None:
        found = self._before(key, window)
        if found is None:
            return None
        value = self._selected(found[0], key, found[1], window)
        return None if value is None else (value, found[1])

    def _of_table(self, change: Change) -> Iterator[Item]:
        if "toStream" in self._spec:
            yield change.as_row()
            return
        new, old = (self._selected(each, change.key, change.time, change.window) for each in (change.new, change.old))
        if "where" in self._spec and new is None and old is None and self._knows_old_rows:
            return
        yield change.mapped(new, old)

    def _selected(self, value: Value, key: Any, time: int, window: Any) -> Value:
        env = environment(value, key, time, window)
        if value is None or ("where" in self._spec and not holds(self._spec["where"], env)):
            return None
        select = self._spec.get("select")
        return value if select is None else selected(select, env, value)

    def _other(self, row: Row) -> Row:
        if "select" in self._spec and row.value is not None:
            return replace(row, value=selected(self._spec["select"], row.env, row.value))
        if "keyBy" in self._spec:
            return replace(row, key=evaluate(self._spec["keyBy"], row.env), window=None)
        if "headers" in self._spec:
            made = {name: evaluate(text, row.env) for name, text in self._spec["headers"].items()}
            kept = tuple(each for each in row.headers if each[0] not in made)
            new = tuple((name, str(text).encode()) for name, text in made.items() if text is not None)
            return replace(row, headers=kept + new)
        return row

    def _elements(self, row: Row) -> Iterator[Row]:
        elements = None if row.value is None else evaluate(self._spec["flatMap"]["explode"], row.env)
        for each in elements or ():
            yield replace(row, value={**(row.value or {}), self._spec["flatMap"]["as"]: each})

    def _branch(self, row: Row) -> Iterator[Output]:
        taken = [each["name"] for each in self._spec["split"] if holds(each["where"], row.env)]
        name = taken[0] if taken else self._spec.get("default")
        if name is not None:
            yield f"{self._name}.{name}", row


class Dedupe:
    """The first of the records with one id."""

    def __init__(self, spec: Spec, within: int) -> None:
        self._name, self._by, self._model = spec["name"], spec["dedupe"].get("by"), DedupeModel(within)

    def take(self, item: Item, source: str) -> Iterator[Output]:
        assert isinstance(item, Row)
        by = item.key if self._by is None else evaluate(self._by, item.env)
        if self._model.passes(by, item.time):
            yield self._name, item

    def row(self, key: Any) -> None:
        raise AssertionError("a dedupe is no table")


class Suppress:
    """Of the changes of one key, or one window, within a time the last one, as a record."""

    def __init__(self, spec: Spec, within: int, sessions: bool) -> None:
        """`sessions`: the changes are those of sessions, whose keys have their ends before their beginnings."""
        self._name, self._sessions = spec["name"], sessions
        bounds = spec["toStream"]["suppress"].get("buffer", {})
        self._model = SuppressModel[Row](within, bounds.get("records"))

    def take(self, item: Item, source: str) -> Iterator[Output]:
        assert isinstance(item, Change)
        times = item.window or ()
        key = (write_key(item.key) or b"") + b"".join(
            struct.pack(">q", time) for time in (times[::-1] if self._sessions else times[:1])
        )
        for _, row in self._model.process(key, item.time, item.as_row()):
            yield self._name, replace(row, turn=item.turn)

    def row(self, key: Any) -> None:
        raise AssertionError("a stream of changes is no table")


class Kept:
    """Rows by key: a table's source, or a toTable."""

    def __init__(self, name: str) -> None:
        self._name = name
        self.rows: dict[Any, tuple[dict[str, Any], int]] = {}

    def take(self, item: Item, source: str) -> Iterator[Output]:
        assert isinstance(item, Row)
        if item.key is None:
            return
        old = self.rows.pop(item.key, None)
        if item.value is not None:
            self.rows[item.key] = (item.value, item.time)
        yield (
            self._name,
            Change(item.key, item.value, old and old[0], item.time, item.headers, turn=item.turn),
        )

    def row(self, key: Any) -> tuple[dict[str, Any], int] | None:
        return self.rows.get(key)


class History(Kept):
    """A table with a history: every version of every key."""

    def __init__(self, name: str, retention: int) -> None:
        super().__init__(name)
        self._retention = retention
        self._now = -1
        self._versions: dict[Any, dict[int, dict[str, Any] | None]] = {}

    def take(self, item: Item, source: str) -> Iterator[Output]:
        assert isinstance(item, Row)
        if item.key is not None and item.time >= self._now - self._retention:
            self._now = max(self._now, item.time)
            versions = self._versions.setdefault(item.key, {})
            versions[item.time] = item.value
            last = max(versions)
            self.rows.pop(item.key, None)
            if (value := versions[last]) is not None:
                self.rows[item.key] = (value, last)
        yield from ()  # nothing but joins and queries follows

    def row_at(self, key: Any, time: int) -> tuple[dict[str, Any], int] | None:
        """What was valid then, as far as the history reaches back."""
        versions = self._versions.get(key, {})
        since = max((each for each in versions if each <= time), default=None)
        if since is None or (value := versions[since]) is None:
            return None
        return (value, since) if since == max(versions) or time >= self._now - self._retention else None


class Aggregate:
    """An aggregate by key: every change of it."""

    def __init__(self, spec: Spec) -> None:
        self._name = spec["name"]
        self.folds = {name: fold_of(text) for name, text in spec["aggregate"].items()}
        self._states: dict[Any, dict[str, Any]] = {}
        self.rows: dict[Any, tuple[dict[str, Any], int]] = {}

    def take(self, item: Item, source: str) -> Iterator[Output]:
        assert isinstance(item, Row)
        if item.key is None or item.value is None:
            return
        old = self.rows.get(item.key)
        state = added(self.folds, self._states.get(item.key), item)
        self._states[item.key] = state
        time = max(item.time, old[1] if old else item.time)
        self.rows[item.key] = (shown(self.folds, state), time)
        yield (
            self._name,
            Change(item.key, self.rows[item.key][0], old and old[0], time, item.headers, turn=item.turn),
        )

    def row(self, key: Any) -> tuple[dict[str, Any], int] | None:
        return self.rows.get(key)


def added(folds: Mapping[str, Fold], state: Mapping[str, Any] | None, row: Row) -> dict[str, Any]:
    """The states of all aggregates with one record more."""
    return {name: fold.add(fold.zero if state is None else state[name], row) for name, fold in folds.items()}


def shown(folds: Mapping[str, Fold], state: Mapping[str, Any]) -> dict[str, Any]:
    """The columns."""
    return {name: fold.result(state[name]) for name, fold in folds.items()}
