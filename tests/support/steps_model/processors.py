"""Process steps: what each class of composed_processors does to one record after the other, and when time comes.

A task calls what is due behind the record that lets its stream time come, and stream time is the largest time of all
that the task has read, whatever reaches the step.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from steps_model.items import Item, Row, Value
from steps_model.steps import Output, Spec

Forwarded = tuple[str | None, Row]
"""To which output (None: to all), and what."""
Stored = dict[Any, dict[str, Any]]
_BAD = (4, 9, -1)


class FailedError(Exception):
    """The processor fails over a record."""


@dataclass
class Behaviour:
    """What a class does; `kept` are the rows of its store by key, and by key and times."""

    kept: Stored = field(default_factory=dict)
    latest: int = -1
    """The largest start, or end, that was ever put in the store."""

    def process(self, row: Row, now: int) -> Iterator[Forwarded]:
        """What it forwards of a record; `now` is stream time with it."""
        raise NotImplementedError

    @property
    def schedules(self) -> list[tuple[int, Callable[[int], Iterator[Forwarded]]]]:
        """Interval (ms) and what is called, in the order of init."""
        return []

    def cancelled(self) -> frozenset[int]:
        """Which of them are called no more."""
        return frozenset()

    def shown(self) -> Stored:
        """What the store holds."""
        return self.kept

    def next(self, name: str, by: int = 1) -> int:
        """A number that is kept, and counted on."""
        number: int = self.kept.get(name, {"n": 0})["n"] + by
        self.kept[name] = {"n": number}
        return number


class Counting(Behaviour):
    def process(self, row: Row, now: int) -> Iterator[Forwarded]:
        if row.value is None:
            self.kept.pop(_text(row.key), None)
            yield None, replace(row, headers=(("gone", None),))
        elif row.key is None:
            yield None, _with(row, row.value["v"])
        else:
            late = (now - row.time) // 100
            yield None, _with(row, (row.value["v"] or 0) + 10 * self.next(_text(row.key)) + late % 7)


class Windowing(Behaviour):
    def process(self, row: Row, now: int) -> Iterator[Forwarded]:
        name, start = _text(row.key), row.time - row.time % 2000
        known = self.shown()
        self.latest = max(self.latest, start)
        where = (name, (start, start + 2000))
        if row.value is None:
            self.kept.pop(where, None)
        else:
            self.kept[where] = {"n": known.get(where, {"n": 0})["n"] + 1}
        recent = sum(
            value["n"] for (own, (at, _)), value in self.shown().items() if own == name and start - 4000 <= at <= start
        )
        made = _with(row, recent) if row.value is not None else replace(row, value={"v": recent, "g": None})
        yield None, replace(made, headers=(*row.headers, ("recent", str(recent).encode())))

    def shown(self) -> Stored:
        return {where: value for where, value in self.kept.items() if where[1][0] > self.latest - 6000}


class Visiting(Behaviour):
    def process(self, row: Row, now: int) -> Iterator[Forwarded]:
        name = _text(row.key)
        mine = [where for where in self.shown() if where[0] == name]
        if row.value is None:
            for where in mine:
                del self.kept[where]
            return
        start, end, number = row.time, row.time, 1
        for where in mine:
            if where[1][1] >= row.time - 1500 and where[1][0] <= row.time + 1500:
                start, end = min(start, where[1][0]), max(end, where[1][1])
                number += self.kept.pop(where)["n"]
        self.kept[name, (start, end)] = {"n": number}
        self.latest = max(self.latest, end)
        yield None, replace(_with(row, number + (end - start) // 100), time=end)

    def shown(self) -> Stored:
        return {where: value for where, value in self.kept.items() if where[1][1] > self.latest - 4000}


class Sweeping(Behaviour):
    @property
    def schedules(self) -> list[tuple[int, Callable[[int], Iterator[Forwarded]]]]:
        return [(4000, self.sweep)]

    def process(self, row: Row, now: int) -> Iterator[Forwarded]:
        name = _text(row.key)
        if row.value is None:
            if self.kept.pop(name, None) is not None:
                yield None, replace(row, key=name)
            return
        number = self.kept.get(name, {"n": 0})["n"] + 1
        self.kept[name] = {"n": number, "g": row.value["g"], "at": row.time}
        if number % 2 == 0:
            yield None, replace(_with(row, row.value["v"]), key=None if row.key is None else name)

    def sweep(self, time: int) -> Iterator[Forwarded]:
        found = sorted(self.kept.items(), key=lambda each: each[0].encode(), reverse=True)
        self.kept.clear()
        for name, row in found:
            yield None, Row(name, {"v": row["n"], "g": row["g"]}, row["at"] if row["n"] % 3 == 1 else time)


class Resetting(Behaviour):
    @property
    def schedules(self) -> list[tuple[int, Callable[[int], Iterator[Forwarded]]]]:
        return [(3000, self.reset), (7000, self.jump)]

    def cancelled(self) -> frozenset[int]:
        return frozenset({0} if self.kept.get("resets") == {"n": 4} else ())

    def process(self, row: Row, now: int) -> Iterator[Forwarded]:
        number = self.next("n")
        yield None, row if row.value is None else _with(row, (row.value["v"] or 0) + number)

    def reset(self, time: int) -> Iterator[Forwarded]:
        self.kept["n"] = {"n": time // 100 % 5}
        self.next("resets")
        yield from ()

    def jump(self, time: int) -> Iterator[Forwarded]:
        self.next("n", 100)
        yield from ()


class Rekeying(Behaviour):
    def process(self, row: Row, now: int) -> Iterator[Forwarded]:
        if row.value is None:
            yield None, replace(row, key=row.time // 1000 % 4)
            return
        v = row.value["v"]
        yield None, replace(_with(row, v), key=None if v is None else v % 4)
        if v is not None and v > 3:
            yield None, replace(_with(row, -v), key=0, time=row.time - 1200, headers=())


class Sorting(Behaviour):
    def process(self, row: Row, now: int) -> Iterator[Forwarded]:
        v = None if row.value is None else row.value["v"]
        made = row if row.value is None else _with(row, v)
        yield None if v is None else ("even", "odd")[v % 2], self.keyed(made)

    def keyed(self, row: Row) -> Row:
        return row


class SortingKeys(Sorting):
    def keyed(self, row: Row) -> Row:
        return replace(row, key=f"k{row.time % 3}")


class Columns(Behaviour):
    def process(self, row: Row, now: int) -> Iterator[Forwarded]:
        v = None if row.value is None else row.value["v"]
        if row.value is None:
            yield None, row
        elif v is None:
            yield None, _with(row, None)
        elif v >= -5:
            made = _with(row, 2 * v + (now - row.time) // 100)
            if v % 2:
                yield None, replace(made, time=row.time + 1500)
            yield None, made


class Batching(Behaviour):
    @property
    def schedules(self) -> list[tuple[int, Callable[[int], Iterator[Forwarded]]]]:
        return [(4000, self.sweep)]

    def process(self, row: Row, now: int) -> Iterator[Forwarded]:
        if row.value is not None:
            name = _text(row.key)
            number, whole = self.next(name), self.next("sum", row.value["v"] or 0)
            yield None, replace(_with(row, 100 * number + whole % 100), key=name)

    def sweep(self, time: int) -> Iterator[Forwarded]:
        if (whole := self.kept.pop("sum", None)) is not None:
            yield None, Row("sum", {"v": whole["n"], "g": None}, time)


def _failing(behaviour: type[Behaviour]) -> type[Behaviour]:
    class Failing(behaviour):  # type: ignore[misc,valid-type]
        def process(self, row: Row, now: int) -> Iterator[Forwarded]:
            yield from super().process(row, now)
            if row.value is not None and row.value["v"] in _BAD:
                raise FailedError

    return Failing


_CLASSES = (*(Counting, Windowing, Visiting, Sweeping, Resetting, Rekeying, Sorting, SortingKeys, Columns, Batching),)
BEHAVIOURS: Mapping[str, type[Behaviour]] = {
    **{each.__name__: each for each in _CLASSES},
    "Picky": _failing(Counting),
    "PickyColumns": _failing(Columns),
}


class Process:
    """The process step of one task."""

    def __init__(self, spec: Spec) -> None:
        process = spec["process"]
        named = {each: f"{spec['name']}.{each}" for each in process.get("outputs", ())}
        self._to: Mapping[str | None, list[str]] = {
            None: list(named.values()) or [spec["name"]],
            **{each: [name] for each, name in named.items()},
        }
        self._does = BEHAVIOURS[process["python"].partition(":")[2].partition("_")[0]]()
        self._due = dict.fromkeys(range(len(self._does.schedules)), 0)
        self.stream_time = -1

    def come(self, time: int) -> None:
        """The task has read a record of this time."""
        self.stream_time = max(self.stream_time, time)

    def take(self, item: Item, source: str) -> Iterator[Output]:
        assert isinstance(item, Row)
        for to, row in self._does.process(item, self.stream_time):
            yield from ((output, replace(row, turn=item.turn)) for output in self._to[to])

    def due(self) -> Iterator[tuple[int, int]]:
        """When what is due was to be called, and its number."""
        for number, time in self._due.items():
            if time <= self.stream_time and number not in self._does.cancelled():
                yield time, number

    def punctuate(self, number: int, turn: int) -> Iterator[Output]:
        """Call what is due, once for all the times that were passed over."""
        every, call = self._does.schedules[number]
        self._due[number] = (self.stream_time // every + 1) * every
        for to, row in call(self.stream_time):
            yield from ((output, replace(row, turn=turn)) for output in self._to[to])

    def rows(self) -> dict[Any, tuple[dict[str, Any], int]]:
        """What the store holds; its rows have no times."""
        return {where: (value, 0) for where, value in self._does.shown().items()}

    def row(self, key: Any) -> None:
        raise AssertionError("what a processor forwards is no table")


def _text(key: Any) -> str:
    return key.hex() if isinstance(key, bytes) else str(key)


def _with(row: Row, v: int | None) -> Row:
    """The record with this number, and no columns but both."""
    value: Value = {"v": v, "g": row.value and row.value["g"]}
    return replace(row, value=value)
