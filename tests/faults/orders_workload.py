"""Orders that are copied and added up: one topology, and what a loop over its records makes of them."""

from __future__ import annotations

import json
import random
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from clients import make_topics, send
from instances import Instance, write_application
from reader import LONGEST, Reader
from waiting import eventually
from workload import NAME, History

USERS, KEYS = 7, 40
BAD = b'{"user": '


def topology(name: str) -> str:
    """Copies orders to NAME-copies and re-keys them; adds up in the store `totals`, to NAME-totals."""
    row = 'key: {format: string}, value: {format: json, schema: "user STRING, amount BIGINT, id BIGINT"}'
    return f"""
sources:
  - {{name: orders, topic: {name}-orders, {row}}}
steps:
  - {{name: by-user, from: orders, keyBy: user}}
  - {{name: totals, from: by-user, aggregate: {{total: sum(amount), n: count(*)}}, store: totals}}
sinks:
  - {{from: orders, topic: {name}-copies}}
  - {{from: totals, topic: {name}-totals}}
"""


@dataclass
class Expected:
    """What a loop over the records comes to."""

    ids: list[int] = field(default_factory=list)
    bad: int = 0
    totals: dict[str, dict[str, int]] = field(default_factory=dict)

    def take(self, order: dict[str, Any]) -> None:
        """One more readable record."""
        self.ids.append(order["id"])
        total = self.totals.setdefault(order["user"], {"total": 0, "n": 0})
        total["total"] += order["amount"]
        total["n"] += 1


class Orders:
    """The workload. Everything is foretold under exactly once; at least once may do a batch again."""

    title = "orders"

    def __init__(self, seed: int, once: bool, partitions: int) -> None:
        self.once, self.partitions = once, partitions
        self.expected = Expected()
        self.sent = 0

    def __str__(self) -> str:
        return topology(NAME)

    def write(self, file: Path) -> None:
        processing = {
            "guarantee": "exactly_once_v2" if self.once else "at_least_once",
            "onDeserializationError": {"deadLetter": {"topic": f"{NAME}-dead"}},
        }
        write_application(file, NAME, topology(NAME), processing=processing)

    @contextmanager
    def open(self, address: str) -> Iterator[None]:
        self.address = address
        sinks = {f"{NAME}-{each}": self.partitions for each in ("orders", "copies", "totals", "dead")}
        make_topics(address, **sinks)
        names = [*(each for each in sinks if "orders" not in each), f"{NAME}-totals-changelog"]
        self.readers = {topic: Reader(address, topic, self.partitions) for topic in names}
        try:
            yield
        finally:
            for reader in self.readers.values():
                reader.close()

    @property
    def inputs(self) -> Mapping[str, int]:
        return dict.fromkeys((f"{NAME}-orders", f"{NAME}-by-user-repartition"), self.partitions)

    def is_ready(self, instances: Sequence[Instance]) -> bool:
        return True

    def live(self, history: History) -> None:
        dice, records = history.dice, history.records
        self.send(dice, records // 3)
        for step in history.steps:
            step.do()
            self.send(dice, records // 3)
        history.wait_for_peace()
        self.check(history.instances)

    def send(self, dice: random.Random, count: int) -> None:
        """Write orders straight to the broker, in sequence, some of them unreadable."""
        rows: list[tuple[str, Any]] = []
        for _ in range(count):
            key = f"k{dice.randrange(KEYS)}"
            if dice.random() < 0.05:
                rows.append((key, BAD))
                self.expected.bad += 1
                continue
            order = {"user": f"u{dice.randrange(USERS)}", "amount": dice.randint(1, 9), "id": self.sent}
            rows.append((key, order))
            self.expected.take(order)
            self.sent += 1
        send(self.address, f"{NAME}-orders", rows)

    def check(self, instances: Sequence[Instance]) -> None:
        """Sinks, store and changelog are what a loop over the records makes of them."""
        expected, once = self.expected, self.once
        copies = [(each.key(), int(json.loads(each.value())["id"])) for each in self.readers[f"{NAME}-copies"].look()]
        counts = Counter(number for _, number in copies)
        lost = sorted(set(expected.ids) - counts.keys())
        assert not lost, f"lost: {lost[:10]}"
        letters = self.readers[f"{NAME}-dead"].look()
        dead = len(letters)
        assert dead >= expected.bad, f"{expected.bad - dead} unreadable records are in no dead letter"
        store = self._store(instances)
        changelog: dict[str, Any] = {}
        for each in self.readers[f"{NAME}-totals-changelog"].look():
            changelog[each.key().decode()] = json.loads(each.value())
        totals = {user: {"total": it["total"], "n": it["n"]} for user, it in store.items()}
        assert changelog.keys() == totals.keys()
        sink: dict[str, list[dict[str, int]]] = defaultdict(list)
        for each in self.readers[f"{NAME}-totals"].look():
            sink[each.key().decode()].append(json.loads(each.value()))
        for user, right in expected.totals.items():
            assert totals[user]["n"] >= right["n"], f"{user}: {totals[user]} instead of {right}"
            assert sink[user][-1] == totals[user], f"{user}: the sink has {sink[user][-1]}, the store {totals[user]}"
        if not once:
            return
        doubled = sorted(number for number, times in counts.items() if times > 1)
        assert not doubled, f"doubled: {doubled[:10]}"
        assert counts.keys() == set(expected.ids), "records that nobody sent"
        assert dead == expected.bad, f"{dead - expected.bad} dead letters too many"
        assert totals == expected.totals, f"{totals} instead of {expected.totals}"
        for values in sink.values():
            numbers = [value["n"] for value in values]
            assert numbers == sorted(set(numbers)), f"out of order, or twice: {numbers[-20:]}"
        by_key: dict[bytes, list[int]] = defaultdict(list)
        for key, number in copies:
            by_key[key].append(number)
        for key, numbers in by_key.items():
            assert numbers == sorted(numbers), f"{key!r} out of order: {numbers[-20:]}"

    def _store(self, instances: Sequence[Instance]) -> dict[str, Any]:
        found: dict[str, Any] = {}

        def read() -> bool:
            parts = [each.contents("totals") for each in instances]
            if any(part is None for part in parts):
                return False
            found.clear()
            for part in parts:
                found.update(part or {})
            return len(found) >= len(self.expected.totals)

        eventually(read, "the stores answer", LONGEST)
        return found
