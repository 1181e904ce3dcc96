"""Histories of a whole application in which requests, brokers and processes fail, and what has to be true behind each.

A history is made of a seed alone: records (some of them unreadable), faults in their midst, and then peace. Once all is
processed, sinks, stores and changelogs have to be what a loop over the records makes of them. One application lives
through many histories; what an earlier one broke a later one finds. The application is one that copies and adds up
orders (`orders_workload`), or one of a topology that the life's seed makes (`generated_workload`).
"""

from __future__ import annotations

import os
import random
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from away import standing_still
from generated_workload import GeneratedTopology
from instances import Instance
from kafka_proxy import Fault, KafkaProxy, Mode
from orders_workload import Orders
from reader import LONGEST
from waiting import eventually
from workload import NAME, History, Step, Workload

from streams_runtime.kafka.admin.kafka_admin import Admin
from streams_runtime.kafka.broker.embedded_broker import EmbeddedBroker
from streams_runtime.kafka.client.client_properties import client_properties
from streams_runtime.kafka.types import TopicPartition

TRANSACTIONS = ("Produce", "AddPartitionsToTxn", "AddOffsetsToTxn", "TxnOffsetCommit", "EndTxn", "InitProducerId")
OTHERS = ("ConsumerGroupHeartbeat", "Fetch", "Metadata", "FindCoordinator", "OffsetCommit", "ListOffsets")
MODES = tuple(Mode)
SUPPORT = Path(__file__).resolve().parents[1] / "support"


@dataclass(frozen=True)
class Peace:
    """Seconds from the last fault until all instances are RUNNING, and until all records are processed too."""

    running: float = 0.0
    processed: float = 0.0

    def __str__(self) -> str:
        return f"after the last fault RUNNING in {self.running:.1f} s, all processed in {self.processed:.1f} s"

    def or_longer(self, other: Peace) -> Peace:
        """The longer time of either."""
        return Peace(max(self.running, other.running), max(self.processed, other.processed))


class Life:
    """An application with its brokers and instances."""

    def __init__(self, folder: Path, seed: int, once: bool = True, instances: int = 1, generated: bool = False) -> None:
        """`seed` makes the partition count and, if it is to be `generated`, the topology."""
        self.seed, self.once, self.generated = seed, once, generated
        self.partitions = random.Random(seed).randint(2, 4)
        made = GeneratedTopology if generated else Orders
        self.workload: Workload = made(seed, once, self.partitions)
        self.peace = Peace()
        """Of the last history. `LONGEST` is only ever waited for in full by one that fails."""
        self._folder, self._resources, self._count = folder, ExitStack(), instances

    def __str__(self) -> str:
        guarantee = "exactly once" if self.once else "at least once"
        return f"a life of {self._count} instances, {self.partitions} partitions, {guarantee}: {self.workload.title}"

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
            made.enter_context(self.workload.open(self.address))
            self.instances = [made.enter_context(self._instance(number)) for number in range(self._count)]
            self._resources = made.pop_all()
        self.wait_for_peace()
        return self

    def __exit__(self, *_: object) -> None:
        self._resources.close()

    @contextmanager
    def _instance(self, number: int) -> Iterator[Instance]:
        file = self._folder / "app.yaml"
        self.workload.write(file)
        environment = {"PYTHONPATH": os.pathsep.join((str(SUPPORT), *sys.path))}  # classes that aggregate are helpers
        if self.generated:  # what repartition topics hold stays there to be checked
            environment["STREAMSAPP_TEST_NO_PURGE"] = "1"
        made = Instance(file, self.address, f"{NAME}-{number}", self._folder, environment=environment)
        made.start()
        try:
            yield made
        finally:
            made.stop()

    def live(self, seed: int, records: int = 60) -> list[str]:
        """One history; returns what went wrong in it. Raises AssertionError, with the history, where a claim fails."""
        self.peace = Peace()
        dice = random.Random(seed)
        steps = self._steps(dice)
        history = History(seed - self.seed, dice, records, steps, self.instances, self.wait_for_peace)
        try:
            self.workload.live(history)
        except AssertionError as failure:
            done = "; ".join(step.what for step in steps)
            about = f"seed {seed}, {self.partitions} partitions: {done}. {failure}"
            raise AssertionError(f"{about}\n{self.workload}") from failure
        return [step.what for step in steps]

    def _steps(self, dice: random.Random) -> list[Step]:
        kinds: list[Callable[[random.Random], Step]] = [self._requests, self._requests, self._requests]
        kinds += [self._broker_stands_still, self._instance_is_killed, self._instance_stands_still]
        kinds += [self._instance_loses_its_state] * self.generated
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

    def _instance_loses_its_state(self, dice: random.Random) -> Step:
        instance = dice.choice(self.instances)

        def lose() -> None:
            instance.kill()
            instance.lose_state()
            instance.start()

        return Step(f"{instance.name} is killed and loses its state folder", lose)

    def _instance_stands_still(self, dice: random.Random) -> Step:
        instance, seconds = dice.choice(self.instances), dice.uniform(0.5, 9.0)
        return Step(f"{instance.name} stands still for {seconds:.1f} s", lambda: instance.freeze(seconds))

    def wait_for_peace(self) -> None:
        """No more faults: all instances RUNNING, and everything committed."""
        began = time.monotonic()
        eventually(self._all_run, "RUNNING", LONGEST)
        running = time.monotonic() - began
        eventually(self._is_at_peace, "RUNNING with all records processed", LONGEST)
        self.proxy.faults = []
        self.peace = self.peace.or_longer(Peace(running, time.monotonic() - began))

    def _all_run(self) -> bool:
        for each in self.instances:
            each.check()
        # Faults that nobody has met by now, with nothing to do, would wait for the next history.
        self.proxy.faults = []
        states = [each.described() or {} for each in self.instances]
        return [state.get("state") for state in states] == ["RUNNING"] * len(states)

    def _is_at_peace(self) -> bool:
        if not self._all_run():
            return False
        inputs = [
            TopicPartition(topic, number) for topic, count in self.workload.inputs.items() for number in range(count)
        ]
        # Offsets come before ends: what came of all that the former cover lies within the latter.
        committed = self.admin.committed_offsets(NAME, inputs)
        ends = self.admin.end_offsets(inputs)
        return all(committed.get(each, 0) >= end for each, end in ends.items()) and self.workload.is_ready(
            self.instances
        )
