"""An application whose instances are in one process and know of each other, for tests of tasks that move."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from clients import client, last_values, make_topics, send
from waiting import eventually

from streams_runtime.client import StreamsClient
from streams_runtime.kafka.types import TopicPartition
from streams_runtime.states import ClientState

KEYS = 5_000  # in each partition


def totals(prefix: str) -> str:
    return f"""
sources:
  - {{name: orders, topic: {prefix}-orders, key: {{format: string}}, value: {{format: json, schema: "amount BIGINT"}}}}
steps: [{{name: totals, from: orders, aggregate: {{n: count(*)}}, store: totals}}]
sinks: [{{from: totals, topic: {prefix}-totals, value: {{format: json}}}}]
"""


class Application:
    """Instances of one application in this process, which know of each other where they answer."""

    def __init__(self, bootstrap: str, name: str, folder: Path, partitions: int, **processing: Any) -> None:
        self.bootstrap, self.name, self.folder, self.partitions = bootstrap, name, folder, partitions
        self.orders = f"{name}-orders"
        self.spec: dict[str, Any] = {"processing": {"acceptableRecoveryLag": 100, **processing}}
        self.made: dict[str, StreamsClient] = {}
        self.elsewhere: dict[str, str] = {}  # URLs of instances that are not of this process
        self.written = 0
        make_topics(bootstrap, **{self.orders: partitions, f"{name}-totals": 1})

    @contextmanager
    def instance(self, ordinal: int) -> Iterator[StreamsClient]:
        topology, folder = totals(self.name), self.folder / str(ordinal)
        name = f"i-{ordinal}"
        with client(self.bootstrap, self.name, topology, folder, name, peers=self._url_of, **self.spec) as made:
            self.made[made.instance] = made
            made.start()
            yield made

    def write(self, keys: int) -> None:
        """One more record of each of the first keys of each partition."""
        for number in range(self.partitions):
            send(self.bootstrap, self.orders, [(f"{number}-{k}", {"amount": 1}) for k in range(keys)], number)
        self.written += 1

    @contextmanager
    def busy(self) -> Iterator[Callable[[], int]]:
        """A record of a key of its own for each partition all the time; gives how often."""
        stop, rounds = threading.Event(), [0]

        def go_on() -> None:
            while not stop.wait(0.02):
                for number in range(self.partitions):
                    send(self.bootstrap, self.orders, [(f"busy-{number}", {"amount": 1})], number)
                rounds[0] += 1

        thread = threading.Thread(target=go_on, daemon=True)
        thread.start()
        try:
            yield lambda: rounds[0]
        finally:
            stop.set()
            thread.join()

    def counts(self) -> dict[str, int]:
        committed = self.spec["processing"].get("guarantee") == "exactly_once_v2"
        found: Mapping[str, Any] = last_values(self.bootstrap, f"{self.name}-totals", committed)
        return {key: value["n"] for key, value in found.items()}

    def done(self) -> bool:
        alive = [each for each in self.made.values() if running(each)]
        inputs = [TopicPartition(self.orders, number) for number in range(self.partitions)]
        ends = alive[0].context.admin.end_offsets(inputs) if alive else {}
        return bool(ends) and {each: at for made in alive for each, at in positions(made).items()} == ends

    def _url_of(self, instance: str) -> str | None:
        made = self.made.get(instance)
        return made.url or None if made is not None else self.elsewhere.get(instance)


def active(made: StreamsClient) -> list[int]:
    return sorted(task.partition for thread in made.threads for task in thread.tasks.tasks)


def running(made: StreamsClient) -> bool:
    assert made.state is not ClientState.ERROR, made.error
    return made.state is ClientState.RUNNING and made.spark_ready


@contextmanager
def never_ready(made: StreamsClient) -> Iterator[None]:
    """Warm-ups don't end by themselves: no instance says that it could process records at once."""
    with pytest.MonkeyPatch.context() as patched:
        warm_up: Any = type(made.context.warm_up)
        patched.setattr(warm_up, "_is_ready", property(lambda _: False))
        yield


def seen_to_warm_up(made: StreamsClient) -> object:
    """What it says of its warm-up, as soon as it says something."""
    said: list[object] = []
    eventually(lambda: said.append(made.describe()["warm_up"]) or said[-1] is not None or active(made))
    assert said[-1] is not None, "it took tasks before they were warm"
    return said[-1]


def positions(made: StreamsClient) -> dict[TopicPartition, int]:
    return {each: at for thread in made.threads for each, at in thread.positions.items()}


def restored(made: StreamsClient) -> int:
    return made.context.progress.restored_total


def restored_of(made: StreamsClient, partitions: Collection[int]) -> int:
    return sum(row["restored"] for row in made.context.progress.snapshot() if row["partition"] in partitions)


def warm_partitions(made: StreamsClient) -> list[int]:
    """Of its standbys that have all."""
    rows: Any = made.describe()["standbys"]
    return [int(row["id"].partition("_")[2]) for row in rows if row["lag"] == 0]
