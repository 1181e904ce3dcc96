"""Histories of a whole application in which requests, brokers and processes fail, and what has to be true behind each.

A history is made of a seed alone: records (some of them unreadable), faults in their midst, and then peace. Once all is
processed, sinks, stores and changelogs have to be what a loop over the records makes of them. One application lives
through many histories; what an earlier one broke a later one finds.
"""

from __future__ import annotations

import json
import random
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

from away import standing_still
from clients import make_topics, send
from confluent_kafka import Consumer, KafkaError
from confluent_kafka import TopicPartition as ConfluentTopicPartition
from instances import Instance, write_application
from kafka_proxy import Fault, KafkaProxy, Mode
from waiting import eventually

from streams_runtime.kafka.admin import Admin
from streams_runtime.kafka.broker import EmbeddedBroker
from streams_runtime.kafka.foreign import QuietLog
from streams_runtime.kafka.properties import client_properties
from streams_runtime.kafka.types import TopicPartition

NAME = "life"
USERS, KEYS = 7, 40
LONGEST = 240.0
"""Seconds that are only ever waited for in full by a history that fails; `longest_peace` is what it took."""
BAD = b'{"user": '

TRANSACTIONS = ("Produce", "AddPartitionsToTxn", "AddOffsetsToTxn", "TxnOffsetCommit", "EndTxn", "InitProducerId")
OTHERS = ("ConsumerGroupHeartbeat", "Fetch", "Metadata", "FindCoordinator", "OffsetCommit", "ListOffsets")
MODES = tuple(Mode)


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


@dataclass(frozen=True, slots=True)
class Step:
    """One thing that goes wrong, in words that a reader of a failed history understands."""

    what: str
    do: Callable[[], None]


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


class Reader:
    """Reads a topic's committed records, each once, from where its last look ended."""

    def __init__(self, address: str, topic: str, partitions: int) -> None:
        self.records: list[Any] = []
        config = {"bootstrap.servers": address, "group.id": "none", "enable.auto.commit": False}
        self._consumer = Consumer(
            {**config, "isolation.level": "read_committed", "enable.partition.eof": True}, logger=QuietLog()
        )
        self._topic, self._next = topic, dict.fromkeys(range(partitions), 0)
        self._consumer.assign([ConfluentTopicPartition(topic, number, 0) for number in self._next])
        self._consumer.poll(0.1)  # a partition takes seeks once it is assigned

    def look(self) -> list[Any]:
        """All records so far, once every partition was read to its end."""
        # What was told of ends meanwhile is old; behind a seek they are told of anew.
        for number, offset in self._next.items():
            self._consumer.seek(ConfluentTopicPartition(self._topic, number, offset))
        open_ends = set(self._next)
        deadline = time.monotonic() + LONGEST
        while open_ends:
            assert time.monotonic() < deadline, f"no end of {open_ends}"
            for message in self._consumer.consume(1000, 0.2):
                error = message.error()
                if error is None:
                    self.records.append(message)
                    self._next[message.partition()] = message.offset() + 1
                elif error.code() == KafkaError._PARTITION_EOF:
                    open_ends.discard(message.partition())
        return self.records

    def close(self) -> None:
        self._consumer.close()


class Life:
    """An application with its brokers and instances."""

    def __init__(self, folder: Path, seed: int, once: bool = True, instances: int = 1) -> None:
        self.dice = random.Random(seed)
        self.once = once
        self.partitions = self.dice.randint(2, 4)
        self.expected = Expected()
        self.sent = 0
        self.longest_peace = 0.0
        self._folder, self._resources, self._count = folder, ExitStack(), instances

    def __enter__(self) -> Self:
        with ExitStack() as made:
            self.proxy = made.enter_context(KafkaProxy())
            config = {"group.consumer.session.timeout.ms": "6000"}
            self.broker = made.enter_context(
                EmbeddedBroker(self._folder / "broker", config=config, advertised_port=self.proxy.port)
            )
            self.proxy.upstream_port = self.broker.port
            self.address = f"127.0.0.1:{self.proxy.port}"
            self.admin = Admin(client_properties(self.address, {}, exactly_once=True))
            made.callback(self.admin.close)
            sinks = {f"{NAME}-{each}": self.partitions for each in ("orders", "copies", "totals", "dead")}
            make_topics(self.address, **sinks)
            changelog = f"{NAME}-totals-changelog"
            self.readers = {
                topic: Reader(self.address, topic, self.partitions)
                for topic in (*sinks, changelog)
                if "orders" not in topic
            }
            for reader in self.readers.values():
                made.callback(reader.close)
            self.instances = [made.enter_context(self._instance(number)) for number in range(self._count)]
            self._resources = made.pop_all()
        self.wait_for_peace()
        self.longest_peace = 0.0  # the start is none of it
        return self

    def __exit__(self, *_: object) -> None:
        self._resources.close()

    @contextmanager
    def _instance(self, number: int) -> Iterator[Instance]:
        file = self._folder / "app.yaml"
        processing = {
            "guarantee": "exactly_once_v2" if self.once else "at_least_once",
            "onDeserializationError": {"deadLetter": {"topic": f"{NAME}-dead"}},
        }
        write_application(file, NAME, topology(NAME), processing=processing)
        made = Instance(file, self.address, f"{NAME}-{number}", self._folder)
        made.start()
        try:
            yield made
        finally:
            made.stop()

    def live(self, seed: int, records: int = 60) -> list[str]:
        """One history; returns what went wrong in it. Raises AssertionError, with the history, where a claim fails."""
        dice = random.Random(seed)
        steps = self._steps(dice)
        try:
            self.send(dice, records // 3)
            for step in steps:
                step.do()
                self.send(dice, records // 3)
            self.wait_for_peace()
            self.check()
        except AssertionError as failure:
            done = "; ".join(step.what for step in steps)
            raise AssertionError(f"seed {seed}, {self.partitions} partitions: {done}. {failure}") from failure
        return [step.what for step in steps]

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

    def _steps(self, dice: random.Random) -> list[Step]:
        kinds: list[Callable[[random.Random], Step]] = [self._requests, self._requests, self._requests]
        kinds += [self._broker_stands_still, self._instance_is_killed, self._instance_stands_still]
        return [dice.choice(kinds)(dice) for _ in range(dice.randint(1, 2))]

    def _requests(self, dice: random.Random) -> Step:
        faults = []
        for _ in range(dice.randint(1, 3)):
            api = dice.choice(TRANSACTIONS if self.once and dice.random() < 0.7 else OTHERS)
            mode = dice.choice(MODES)
            after = dice.choice((None, "Produce", api))
            longest = dice.uniform(0.1, 2.0)
            limit = dice.randint(1, 3)
            faults.append(Fault(api, mode, NAME, limit=limit, chance=0.5, after=after, delay=(0.05, longest)))
        what = ", ".join(f"{each.limit} x {each.api} {each.mode.name} (then {each.after})" for each in faults)

        def begin() -> None:
            self.proxy.faults = faults

        return Step(what, begin)

    def _broker_stands_still(self, dice: random.Random) -> Step:
        seconds = dice.uniform(0.2, 8.0)

        def stand() -> None:
            with standing_still(self.broker):
                time.sleep(seconds)

        return Step(f"the broker stands still for {seconds:.1f} s", stand)

    def _instance_is_killed(self, dice: random.Random) -> Step:
        instance = dice.choice(self.instances)

        def kill() -> None:
            instance.kill()
            instance.start()

        return Step(f"{instance.name} is killed", kill)

    def _instance_stands_still(self, dice: random.Random) -> Step:
        instance, seconds = dice.choice(self.instances), dice.uniform(0.5, 9.0)
        return Step(f"{instance.name} stands still for {seconds:.1f} s", lambda: instance.freeze(seconds))

    def wait_for_peace(self) -> None:
        """No more faults: all instances RUNNING, and everything committed."""
        began = time.monotonic()
        eventually(self._is_at_peace, "RUNNING with all records processed", LONGEST)
        self.proxy.faults = []
        self.longest_peace = max(self.longest_peace, time.monotonic() - began)

    def _is_at_peace(self) -> bool:
        for each in self.instances:
            each.check()
        # Faults that nobody has met by now, with nothing to do, would wait for the next history.
        self.proxy.faults = []
        states = [each.described() or {} for each in self.instances]
        if [state.get("state") for state in states] != ["RUNNING"] * len(states):
            return False
        topics = (f"{NAME}-orders", f"{NAME}-by-user-repartition")
        inputs = [TopicPartition(topic, number) for topic in topics for number in range(self.partitions)]
        ends = self.admin.end_offsets(inputs, read_committed=True)
        committed = self.admin.committed_offsets(NAME, inputs)
        return all(committed.get(each, 0) >= end for each, end in ends.items())

    def check(self) -> None:
        """Sinks, store and changelog are what a loop over the records makes of them."""
        expected, once = self.expected, self.once
        copies = [(each.key(), int(json.loads(each.value())["id"])) for each in self.readers[f"{NAME}-copies"].look()]
        counts = Counter(number for _, number in copies)
        lost = sorted(set(expected.ids) - counts.keys())
        assert not lost, f"lost: {lost[:10]}"
        letters = self.readers[f"{NAME}-dead"].look()
        dead = len(letters)
        assert dead >= expected.bad, f"{expected.bad - dead} unreadable records are in no dead letter"
        store = self._store()
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

    def _store(self) -> dict[str, Any]:
        found: dict[str, Any] = {}

        def read() -> bool:
            parts = [each.contents("totals") for each in self.instances]
            if any(part is None for part in parts):
                return False
            found.clear()
            for part in parts:
                found.update(part or {})
            return len(found) >= len(self.expected.totals)

        eventually(read, "the stores answer", LONGEST)
        return found
