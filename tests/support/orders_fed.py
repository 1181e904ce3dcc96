"""Orders that keep coming while something is done to brokers and instances, and whether each counted once."""

from __future__ import annotations

import json
import threading
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any

from clients import read
from instances import Instance
from orders import copies, expected_totals, orders, totals
from waiting import eventually

from streams_runtime.errors import BrokerNotAvailableException
from streams_runtime.kafka.admin.kafka_admin import Admin
from streams_runtime.kafka.producer.batch_producer import BatchProducer
from streams_runtime.kafka.types import TopicPartition

PATIENCE = 300.0  # seconds; processes start Spark, on machines that have other things to do
_APART = 0.1  # seconds
_AT_ONCE = 20
_LOOK = 0.2  # seconds between two looks at brokers that have enough to do


class Feed:
    """Writes orders, some of them every `apart` seconds, in `with`."""

    def __init__(self, bootstrap: str, topic: str, apart: float = _APART) -> None:
        self.count = 0
        """So many are in the topic for certain; those at work come on top."""
        self._topic, self._apart = topic, apart
        self._stopping, self._given_up = threading.Event(), threading.Event()
        self._producer = BatchProducer({"bootstrap.servers": bootstrap}, "feed", self._given_up.is_set)
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._failure: BaseException | None = None

    def __enter__(self) -> Feed:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopping.set()
        # Records that are on their way are there or not only when the brokers have answered.
        self._thread.join(PATIENCE)
        self._given_up.set()
        self._thread.join()
        self._producer.close()
        if self._failure is not None:
            raise self._failure

    def _run(self) -> None:
        try:
            while not self._stopping.wait(self._apart):
                pairs = orders(range(self.count, self.count + _AT_ONCE))
                keys = [key.encode() for key, _ in pairs]
                values = [json.dumps(value).encode() for _, value in pairs]
                self._producer.send(self._topic, keys, values, [1_700_000_000_000] * len(pairs))
                self._producer.flush()
                self.count += _AT_ONCE
        except BaseException as failure:
            self._failure = failure


def is_running(instance: Instance) -> bool:
    """Whether the client of a process that has not ended is RUNNING."""
    instance.check()
    described = instance.described()
    return described is not None and described["state"] == "RUNNING"


def committed(admin: Admin, n: str) -> int:
    """The sum of the offsets that the group has committed in the sources, once the brokers can tell."""
    found: dict[TopicPartition, int] = {}

    def answered() -> bool:
        with suppress(BrokerNotAvailableException):
            found.update(admin.committed_offsets(n, [TopicPartition(f"{n}-orders", number) for number in range(2)]))
            return True
        return False

    eventually(answered, "the brokers tell what is committed", PATIENCE, _LOOK)
    return sum(found.values())


def is_done(admin: Admin, n: str, instances: Sequence[Instance]) -> bool:
    """Whether the group has committed all that sources and repartition topics hold."""
    for instance in instances:
        instance.check()
    names = [f"{n}-orders", f"{n}-by-user-repartition"]
    with suppress(BrokerNotAvailableException):
        # Asked for the ends of a topic that is not there yet, librdkafka goes on believing that it is not.
        if len(admin.describe_topics(names, config=False)) < len(names):
            return False
        inputs = [TopicPartition(name, number) for name in names for number in range(2)]
        return admin.committed_offsets(n, inputs) == admin.end_offsets(inputs)
    return False


def holds(instances: Sequence[Instance], expected: Mapping[str, Any]) -> bool:
    """Whether the store, over all instances, has just that."""
    found = [instance.contents("totals") or {} for instance in instances]
    return {key: value for each in found for key, value in each.items()} == expected


def check_that_each_counted_once(admin: Admin, n: str, instances: Sequence[Instance], count: int) -> None:
    """Wait until all is processed, and compare both sinks, the store, and the changelog with what has to be there."""
    eventually(lambda: is_done(admin, n, instances), "all is processed in the end", PATIENCE, _LOOK)
    expected = expected_totals(range(count))
    eventually(lambda: holds(instances, expected), "the stores are right", PATIENCE, _LOOK)
    assert copies(admin.address, n) == Counter(range(count))
    assert totals(admin.address, n) == expected
    changelog = read(admin.address, f"{n}-totals-changelog", committed=True)
    assert {each.key().decode(): json.loads(each.value()) for each in changelog} == expected


def longest_stall(arrivals: Iterable[int], done: Iterable[tuple[int, int]]) -> tuple[int, int]:
    """For how long nothing came out although something waited (ms), and when that ended (ms since 1970).

    `arrivals` has the time at which each input came; `done` the time of each output, and how many inputs are in it.
    """
    waiting, outputs = sorted(arrivals), sorted(done)
    longest, at, finished, last = 0, 0, 0, outputs[0][0] if outputs else 0
    for moment, inputs in outputs:
        if finished < len(waiting) and moment - max(last, waiting[finished]) > longest:
            longest, at = moment - max(last, waiting[finished]), moment
        finished, last = finished + inputs, moment
    return longest, at


def stalls(bootstrap: str, n: str) -> dict[str, tuple[int, int]]:
    """The longest stall of each sink, where brokers put the time at which they append into records.

    A batch's output is appended only when what lies before it is committed, so gaps between commits show.
    """
    arrivals = [each.timestamp()[1] for each in read(bootstrap, f"{n}-orders")]
    copied = [(each.timestamp()[1], 1) for each in read(bootstrap, f"{n}-copies", committed=True)]
    counted: dict[str, int] = {}
    totalled: list[tuple[int, int]] = []
    for each in read(bootstrap, f"{n}-totals", committed=True):
        user, so_far = each.key().decode(), json.loads(each.value())["n"]
        totalled.append((each.timestamp()[1], so_far - counted.get(user, 0)))
        counted[user] = so_far
    return {"copies": longest_stall(arrivals, copied), "totals": longest_stall(arrivals, totalled)}
