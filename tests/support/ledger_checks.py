"""What lies in the topics of an application with a Ledger, beside what has to lie there."""

from __future__ import annotations

import json
from collections import Counter

from clients import read
from ledger_processor import Told, expected
from orders import totals


def told(bootstrap: str, n: str) -> dict[str, list[Told]]:
    """What each task has forwarded, in order, by what a reader of committed records sees."""
    found: dict[str, list[Told]] = {}
    for each in read(bootstrap, f"{n}-copies", committed=True):
        value = json.loads(each.value())
        found.setdefault(value["task"], []).append((value["kind"], value["at"], value["n"]))
    return found


def ticks(bootstrap: str, n: str) -> dict[str, int]:
    """How many ticks each task has told of: each once, and none left out."""
    found = {}
    for task, rows in told(bootstrap, n).items():
        numbers = [number for kind, _, number in rows if kind == "tick"]
        assert numbers == [*range(1, len(numbers) + 1)], f"{task}: {numbers}"
        found[task] = len(numbers)
    return found


def without_ticks(bootstrap: str, n: str) -> dict[str, list[Told]]:
    """What was forwarded of orders, in order, by task."""
    found = {task: [each for each in rows if each[0] != "tick"] for task, rows in told(bootstrap, n).items()}
    return {task: rows for task, rows in found.items() if rows}


def wanted(bootstrap: str, n: str) -> dict[str, list[Told]]:
    """What has to come of all that the source holds now, by task."""
    orders: dict[int, list[tuple[int, dict[str, object]]]] = {}
    for each in read(bootstrap, f"{n}-orders"):
        orders.setdefault(each.partition(), []).append((each.timestamp()[1], json.loads(each.value())))
    return {f"0_{partition}": expected(rows) for partition, rows in orders.items()}


def is_all_told(bootstrap: str, n: str) -> bool:
    """Whether there is as much as there has to be; or more."""
    so_far, whole = without_ticks(bootstrap, n), wanted(bootstrap, n)
    return all(len(so_far.get(task, [])) >= len(rows) for task, rows in whole.items())


def is_all_counted(bootstrap: str, n: str) -> bool:
    """Whether what lies behind the repartition topic has come to as much as was forwarded; raises where it is more."""
    whole = Counter(kind for rows in wanted(bootstrap, n).values() for kind, _, _ in rows)
    counted = totals(bootstrap, n)
    for kind, count in whole.items():
        found = counted.get(kind, {"n": 0})["n"]
        assert found <= count, f"{found} of {kind}, of which there are {count}"
    return all(counted.get(kind, {"n": 0})["n"] == count for kind, count in whole.items())
