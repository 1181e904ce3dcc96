"""Records of a topic beside those that a model has, key by key. Each check raises AssertionError with what differs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from steps_model.compare import alike

Shown = tuple[Any, int, Any]
"""Value, time and headers of a record."""
Wanted = Mapping[bytes | None, Sequence[tuple[int, Shown]]]
"""By key: the records that the model has, in their order, each with the task that writes it."""
Have = Mapping[bytes | None, Sequence[Shown]]


def interleaved(where: str, wanted: Wanted, have: Have, whole: bool = True) -> None:
    """Each record is there once, those of one task in their order. Not `whole`: some may be missing.

    Records without a key go to any partition, so they have no order.
    """
    for key in {**wanted, **have}:
        left, tasks = list(wanted.get(key, ())), dict.fromkeys(task for task, _ in wanted.get(key, ()))
        found = have.get(key, ())
        for shown in found:
            at = next((at for at, (_, each) in enumerate(left) if alike(each, shown)), None)
            assert at is not None, _differ(where, key, wanted, found, f"{shown} once too often, or never sent")
            del left[at]
        assert not whole or not left, _differ(where, key, wanted, found, f"lost {[each for _, each in left][:3]}")
        for task in tasks if key is not None else ():
            mine = [each for other, each in wanted[key] if other == task]
            one, other = (mine, list(found)) if whole else (list(found), mine)
            if len(tasks) == 1 or whole:
                assert _within(one, other), _differ(where, key, wanted, found, "out of order")


def last_rows(where: str, wanted: Wanted, have: Have, times: bool, deletions: bool = True) -> None:
    """The last record of each key is there; without `times` its value. A key that ends deleted may lack that."""
    for key in {**wanted, **have}:
        rows, found = [each for _, each in wanted.get(key, ())], have.get(key, ())
        last = rows[-1] if rows else None
        if last is None or last[0] is None:
            gone = not found or found[-1][0] is None
            assert gone or not deletions, _differ(where, key, wanted, found, "not deleted")
            continue
        assert found, _differ(where, key, wanted, found, "nothing")
        parts = 2 if times else 1
        assert alike(last[:parts], found[-1][:parts]), _differ(where, key, wanted, found, f"ends with {found[-1]}")


def at_least_once(where: str, wanted: Wanted, have: Have) -> None:
    """Each record is there, and no other one; some may be there twice."""
    for key in {**wanted, **have}:
        rows, left = [each for _, each in wanted.get(key, ())], list(have.get(key, ()))
        found = list(left)
        for row in rows:
            at = next((at for at, each in enumerate(left) if alike(row, each)), None)
            assert at is not None, _differ(where, key, wanted, found, f"lost {row}")
            del left[at]
        for each in left:
            assert any(alike(row, each) for row in rows), _differ(where, key, wanted, found, f"{each} was never sent")


def _within(one: Sequence[Shown], other: Sequence[Shown]) -> bool:
    """Whether the first are among the others, in this order."""
    rest = iter(other)
    return all(any(alike(each, found) for found in rest) for each in one)


def _differ(where: str, key: bytes | None, wanted: Wanted, found: Sequence[Shown], what: str) -> str:
    rows = "\n    ".join(f"task {task}: {shown}" for task, shown in wanted.get(key, ()))
    have = "\n    ".join(map(str, found))
    return f"{where}, key {key!r}: {what}\n  expected\n    {rows}\n  found\n    {have}"
