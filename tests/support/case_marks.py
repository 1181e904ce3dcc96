"""Cases that share batches: what marks the records of each, and how their rows are told apart by it afterwards."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any

from pipeline_kit import Record

Row = tuple[bytes | None, Any, int]
"""Key, JSON value and time (ms)."""

DAY = 86_400_000
"""In ms; windows of a day's parts, and segments of stores, begin on every day at the same times."""
_NUMBERS = 10


@dataclass(frozen=True)
class Marks:
    """`put` marks a record of a case, `take` tells a row's case, and has the row as it is without the mark."""

    put: Callable[[int, Record], Record]
    take: Callable[[Row], tuple[int, Row]]


def mark(case: int) -> bytes:
    """What keys of the case begin with by BY_KEY."""
    return bytes([ord("A") + case])


def _by_key(case: int, record: Record) -> Record:
    return replace(record, key=record.key and mark(case) + record.key)


def _of_key(row: Row) -> tuple[int, Row]:
    key, value, time = row
    assert key, "a row without a key is of no case"
    return key[0] - mark(0)[0], (key[1:], value, time)


def _by_time(case: int, record: Record) -> Record:
    return replace(record, time=record.time + case * DAY)


def _of_time(row: Row) -> tuple[int, Row]:
    key, value, time = row
    return time // DAY, (key, value, time % DAY)


def _by_number(case: int, record: Record) -> Record:
    if record.value is None:
        return record
    numbers = {name: number + case * _NUMBERS for name, number in json.loads(record.value).items()}
    return replace(record, value=json.dumps(numbers).encode())


def _of_number(row: Row) -> tuple[int, Row]:
    key, value, time = row
    (case,) = {number // _NUMBERS for number in value.values() if number is not None}
    return case, (key, {name: number and number % _NUMBERS for name, number in value.items()}, time)


BY_KEY = Marks(_by_key, _of_key)
"""For rows that have keys, which begin as those of the records do."""
BY_TIME = Marks(_by_time, _of_time)
"""Each case is a day later than the one before; only the first has times from 0 on, where windows may begin before."""
BY_NUMBER = Marks(_by_number, _of_number)
"""For values that have nothing but numbers from 0 to 9, and are passed on with them."""


def separated(rows: Iterable[Row], marks: Marks, cases: int) -> list[list[Row]]:
    """Each case's rows in order, without the marks."""
    found: list[list[Row]] = [[] for _ in range(cases)]
    for row in rows:
        case, bare = marks.take(row)
        found[case].append(bare)
    return found
