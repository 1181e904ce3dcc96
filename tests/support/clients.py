"""Whole clients in a test: make one from a few lines, feed its topics, read what it wrote."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import yaml
from confluent_kafka import Consumer, KafkaError, KafkaException
from confluent_kafka import TopicPartition as ConfluentTopicPartition
from waiting import DEADLINE, eventually

from streams_runtime.api import parse_application
from streams_runtime.client import StreamsClient
from streams_runtime.kafka.admin.kafka_admin import Admin
from streams_runtime.kafka.client.librdkafka import remind
from streams_runtime.kafka.producer.batch_producer import BatchProducer
from streams_runtime.kafka.types import TopicPartition, TopicSpec
from streams_runtime.restore.restore_listener import StandbyUpdateListener
from streams_runtime.settings import InstanceSettings, Peers, no_peers
from streams_runtime.states import ClientState

_SILENCE, _ATTEMPTS = 30.0, 4  # seconds without any message, and consumers
_AT_ONCE, _WAIT = 1000, 0.2  # messages of one call, and the seconds that it waits for them
_MARKS = (
    5.0  # seconds that a transaction's end has to be seen in a topic: brokers write it after they have confirmed it
)


def make_topics(bootstrap: str, config: Mapping[str, str] | None = None, /, **partitions: int) -> None:
    """Make topics, with properties where `config` has some; `_` in a name stands for `-`."""
    admin = Admin({"bootstrap.servers": bootstrap})
    names = {name.replace("_", "-"): count for name, count in partitions.items()}
    admin.create_topics([TopicSpec(name, count, config=config or {}) for name, count in names.items()])
    admin.close()


def delete_records(admin: Admin, before: Mapping[TopicPartition, int]) -> None:
    """Delete each partition's records before the offset given; returns when they are gone."""
    deletion = admin.delete_records(before)
    eventually(lambda: deletion.done, "the records are deleted")
    assert deletion.failure is None


def send(
    bootstrap: str,
    topic: str,
    records: Iterable[tuple[str | None, Any]],
    partition: int | None = None,
    times: Sequence[int] | None = None,
) -> None:
    """Write records; a value that is bytes goes as it is, None is a tombstone, anything else is JSON.

    `times` are in ms since 1970; None: all have one and the same.
    """
    pairs = list(records)
    producer = BatchProducer({"bootstrap.servers": bootstrap}, "test")
    keys = [None if key is None else key.encode() for key, _ in pairs]
    values = [it if it is None or isinstance(it, bytes) else json.dumps(it).encode() for _, it in pairs]
    producer.send(topic, keys, values, times or [1_700_000_000_000] * len(pairs), partition)
    producer.flush()
    producer.close()


def read(bootstrap: str, topic: str, committed: bool = False) -> list[Any]:
    """All messages that a topic holds now, or all that are committed, partition by partition.

    Those of a transaction whose commit was confirmed are among the committed ones.
    """
    return Follower(bootstrap, topic, committed).read_on()


class Follower:
    """Reads a topic's messages, each time those that have come since."""

    def __init__(self, bootstrap: str, topic: str, committed: bool) -> None:
        self._bootstrap, self._topic, self._committed = bootstrap, topic, committed
        self._positions: dict[int, int] = {}  # by partition

    def read_on(self) -> list[Any]:
        """What has come since the last call, partition by partition."""
        for _ in range(_ATTEMPTS):
            with suppress(_SilentError):
                # To a reader of committed messages the topic ends where an open transaction begins, or one whose end is
                # confirmed and not written yet.
                with _reader(self._bootstrap, committed=False) as consumer:
                    reaches = self._reaches(consumer)
                with _reader(self._bootstrap, self._committed) as consumer:
                    return self._read(consumer, reaches)
        raise AssertionError(f"{self._bootstrap} does not tell what {self._topic} holds")

    def _reaches(self, consumer: Consumer) -> dict[int, tuple[int, int]]:
        """Of each partition where it begins and ends."""
        # All ends before the first message: an answer waits for a fetch before it that has nothing to bring yet.
        numbers = consumer.list_topics(self._topic, timeout=60).topics[self._topic].partitions
        return {number: _watermarks(consumer, ConfluentTopicPartition(self._topic, number)) for number in numbers}

    def _read(self, consumer: Consumer, reaches: Mapping[int, tuple[int, int]]) -> list[Any]:
        found: dict[int, list[Any]] = {number: [] for number in reaches}
        positions = {number: max(low, self._positions.get(number, low)) for number, (low, _) in reaches.items()}
        ends = {number: high for number, (_, high) in reaches.items() if positions[number] < high}
        stops: dict[int, float] = {}  # since when a partition has nothing more before its end, by partition
        consumer.assign([ConfluentTopicPartition(self._topic, number, positions[number]) for number in ends])
        heard = time.monotonic()
        while ends:
            # Asked for more than there are, a consumer waits for the rest until the time is over.
            some = sum(end - positions[number] for number, end in ends.items()) > _AT_ONCE
            messages = consumer.consume(_AT_ONCE if some else 1, _WAIT)
            for message in messages:
                heard, number = time.monotonic(), message.partition()
                if number not in ends:
                    continue  # it came later
                positions[number] = message.offset()
                if message.error() is None:
                    found[number].append(message)
                    positions[number] += 1
                else:
                    assert message.error().code() == KafkaError._PARTITION_EOF
                if positions[number] >= ends[number]:
                    del ends[number]
                elif message.error() is not None:
                    stops[number] = heard
                else:
                    stops.pop(number, None)
            for number, since in stops.items():
                if time.monotonic() - since > _MARKS:
                    ends.pop(number, None)  # an open transaction
            if not messages:
                remind(consumer, self._bootstrap)
            if time.monotonic() - heard > _SILENCE:
                raise _SilentError
        self._positions = positions
        return [message for each in found.values() for message in each]


class _SilentError(Exception):
    """A consumer of a broker that stood still for long may wait for ever; a new one does not."""


@contextmanager
def _reader(bootstrap: str, committed: bool) -> Iterator[Consumer]:
    isolation = "read_committed" if committed else "read_uncommitted"
    config = {"bootstrap.servers": bootstrap, "group.id": "none", "enable.auto.commit": False}
    # That nothing more comes, behind the mark of a transaction's end, is said by a fetch that has waited.
    config["fetch.wait.max.ms"] = 20
    consumer = Consumer({**config, "isolation.level": isolation, "enable.partition.eof": True})
    try:
        yield consumer
    finally:
        consumer.close()


def _watermarks(consumer: Consumer, partition: ConfluentTopicPartition) -> tuple[int, int]:
    """First offset and end. A new consumer may not know yet who leads a partition, or have it wrong: asked again."""
    found: list[tuple[int, int]] = []
    refusals: list[KafkaException] = []

    def told() -> bool:
        try:
            found.append(consumer.get_watermark_offsets(partition, timeout=60))
        except KafkaException as error:
            refusals.append(error)
        return bool(found)

    eventually(told, lambda: f"the offsets of {partition}: {refusals[-1]}")
    return found[0]


def last_values(bootstrap: str, topic: str, committed: bool = False) -> dict[str, Any]:
    """The last JSON value of each key of a topic, or the last one that is committed."""
    return following_values(bootstrap, topic, committed)()


def following_values(bootstrap: str, topic: str, committed: bool = False) -> Callable[[], dict[str, Any]]:
    """As last_values, at each call: what is asked for often is read once."""
    follower, values = Follower(bootstrap, topic, committed), dict[str, Any]()

    def now() -> dict[str, Any]:
        for message in follower.read_on():
            values[message.key().decode()] = None if message.value() is None else json.loads(message.value())
        return dict(values)

    return now


@contextmanager
def client(
    bootstrap: str,
    name: str,
    topology: str,
    folder: Path,
    /,
    instance: str = "i-0",
    standby_listener: StandbyUpdateListener | None = None,
    peers: Peers = no_peers,
    tags: Mapping[str, str] | None = None,
    **spec: Any,
) -> Iterator[StreamsClient]:
    """A client of an application called `name`, not started; closed at the end, however that comes."""
    document: Mapping[str, Any] = {
        "apiVersion": "streamsoperator.io/v1alpha1",
        "kind": "StreamsApplication",
        "metadata": {"name": "test"},
        "spec": {"applicationId": name, **spec, "topology": yaml.safe_load(topology)},
    }
    settings = InstanceSettings(f"{name}-{instance}", bootstrap, folder, peers=peers, client_tags=tags or {})
    made = StreamsClient(parse_application(document), settings, standby_listener=standby_listener)
    try:
        yield made
    finally:
        made.close(60)
        assert made.wait_for_end(60)


def until_running(made: StreamsClient, timeout: float = DEADLINE) -> None:
    """Wait until the client is RUNNING and has Spark, which it is RUNNING before."""
    assert made.wait_for(ClientState.RUNNING, timeout=timeout), made.error
    eventually(lambda: made.spark_ready or made.error is not None, "Spark is there", timeout)


def run_until_done(made: StreamsClient, topics: Sequence[str]) -> None:
    """Start the client and wait until it has committed all that these topics hold."""
    made.start()
    until_running(made)
    until_done(made, topics)


def until_done(made: StreamsClient, topics: Sequence[str], *others: StreamsClient) -> None:
    """Wait until the client, or it and `others` together, has committed, and stored, all that these topics hold now."""
    # The ends are asked for here: those of describe() may be a second old, from before a topic was written to.
    counts, clients = made.context.partition_counts, (made, *others)
    ends = made.context.admin.end_offsets(
        [TopicPartition(topic, at) for topic in topics for at in range(counts[topic])]
    )

    def left() -> list[str]:
        for each in clients:
            assert each.state is not ClientState.ERROR, each.error
        threads = [thread for each in clients for thread in each.threads]
        positions = {each: at for thread in threads for each, at in thread.positions.items()}
        return [f"{it}: {positions.get(it)} of {end}" for it, end in ends.items() if positions.get(it, -1) < end]

    states = lambda: ", ".join(each.state.name for each in clients)  # noqa: E731
    eventually(lambda: not left(), lambda: f"nothing left to process; {states()}; {', '.join(left())}", DEADLINE)
