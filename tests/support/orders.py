"""An application that copies and adds up orders, and what has to come of it when every order counts once."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from clients import make_topics, read

USERS = 7


def topology(n: str, more: str = "") -> str:
    """With `more` sources (lines of YAML).

    Sub-topology 0 copies to NAME-copies and re-keys; sub-topology 1 adds up in store `totals`, to NAME-totals.
    """
    row = 'key: {format: string}, value: {format: json, schema: "user STRING, amount BIGINT, id BIGINT"}'
    return f"""
sources:
  - {{name: orders, topic: {n}-orders, {row}}}
{more}
steps:
  - {{name: copied, from: orders, where: "amount > 0"}}
  - {{name: by-user, from: copied, keyBy: user}}
  - {{name: totals, from: by-user, aggregate: {{total: sum(amount), n: count(*)}}, store: totals}}
sinks:
  - {{from: copied, topic: {n}-copies}}
  - {{from: totals, topic: {n}-totals}}
"""


def make_order_topics(bootstrap: str, n: str, partitions: int = 2, config: Mapping[str, str] | None = None) -> None:
    """The sources and sinks of `topology`, with topic properties where `config` has some."""
    make_topics(bootstrap, config, **{f"{n}-orders": partitions, f"{n}-copies": 1, f"{n}-totals": partitions})


def orders(numbers: Iterable[int]) -> list[tuple[str, dict[str, Any]]]:
    """Key and value of these orders; each number is one order."""
    return [(f"k{i}", {"user": f"u{i % USERS}", "amount": 1 + i % 3, "id": i}) for i in numbers]


def expected_totals(numbers: Iterable[int]) -> dict[str, dict[str, int]]:
    """What store and sink hold in the end."""
    found: dict[str, dict[str, int]] = {}
    for _, order in orders(numbers):
        total = found.setdefault(order["user"], {"total": 0, "n": 0})
        total["total"] += order["amount"]
        total["n"] += 1
    return found


def copies(bootstrap: str, n: str) -> Counter[int]:
    """How often each order is in the first sink, by what a reader of committed records sees."""
    return Counter(int(json.loads(message.value())["id"]) for message in read(bootstrap, f"{n}-copies", committed=True))


def totals(bootstrap: str, n: str) -> dict[str, dict[str, int]]:
    """The second sink's last value of each user, by what a reader of committed records sees.

    Each value has to follow from the one before it: a batch that came twice would repeat a count.
    """
    last: dict[str, dict[str, int]] = {}
    for message in read(bootstrap, f"{n}-totals", committed=True):
        key, value = message.key().decode(), json.loads(message.value())
        assert value["n"] > last.get(key, {"n": 0})["n"], f"{key}: {value} after {last[key]}"
        last[key] = value
    return last
