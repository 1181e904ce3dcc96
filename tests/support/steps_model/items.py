"""Records, changes of tables, and what sinks are given."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

Value = dict[str, Any] | None
"""Columns by name; None is a record, or a row, without a value."""
Window = tuple[int, int]
"""Start and end (ms)."""
Headers = tuple[tuple[str, bytes | None], ...]


@dataclass(frozen=True, slots=True)
class Given:
    """A record of a source's topic, as bytes. Time in ms."""

    topic: str
    key: bytes | None
    value: bytes | None
    time: int
    headers: Headers = ()
    partition: int | None = None
    """None: the key decides."""


@dataclass(frozen=True, slots=True)
class Row:
    """A record of a stream. `turn` numbers the records of a task in their order; elements and changes share one."""

    key: Any
    value: Value
    time: int
    headers: Headers = ()
    window: Window | None = None
    turn: int = 0

    @property
    def env(self) -> dict[str, Any]:
        """What expressions see."""
        return environment(self.value, self.key, self.time, self.window)


@dataclass(frozen=True, slots=True)
class Change:
    """A change of a table: its key's new row and the one before."""

    key: Any
    new: Value
    old: Value
    time: int
    headers: Headers = ()
    window: Window | None = None
    turn: int = 0

    def mapped(self, new: Value, old: Value) -> Change:
        """The same change of other rows."""
        return replace(self, new=new, old=old)

    def as_row(self) -> Row:
        """The record that a toStream makes of it."""
        return Row(self.key, self.new, self.time, self.headers, self.window, self.turn)


Item = Row | Change


@dataclass(frozen=True, slots=True)
class Written:
    """A record of a sink."""

    key: Any
    value: Value
    time: int
    headers: Headers = ()
    window: Window | None = None
    partition: int = 0


def environment(value: Value, key: Any, time: int | None, window: Window | None = None, **others: Value) -> Any:
    """Columns, metadata and, by its name, the other side of a join."""
    bounds = {} if window is None else {"_window_start": window[0], "_window_end": window[1]}
    return {**(value or {}), "_key": key, "_timestamp": time, **bounds, **others}
