"""Records that a sink's topic refuses, under `onProductionError`: whole clients, under both guarantees."""

from __future__ import annotations

import json
import random
import time
from pathlib import Path
from typing import Any

import pytest
from clients import client, last_values, make_topics, read, send, until_done, until_running
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, ResourceType

from streams_runtime.batch.stage import Emission
from streams_runtime.errors import ProducerException
from streams_runtime.kafka.producer.batch_producer import BatchProducer
from streams_runtime.kafka.producer.topic_limits import TopicLimits, record_bytes
from streams_runtime.processing.failures.refused_records import Sending, refusals
from streams_runtime.states import ClientState

pytestmark = [pytest.mark.integration]

HOUR = 3_600_000
TOPOLOGY = """
sources:
  - name: given
    topic: {n}-given
    key: {{format: string}}
    value: {{format: json, schema: "id BIGINT, text STRING"}}
steps:
  - {{name: by-rest, from: given, keyBy: "cast(id % 5 as string)"}}
  - {{name: per-key, from: by-rest, aggregate: {{n: count(*)}}, store: per-key}}
sinks:
  - {{from: given, topic: {n}-small}}
  - {{from: given, topic: {n}-compact}}
"""


def text_of(size: int, seed: int = 0) -> str:
    """Letters that compression leaves three quarters of."""
    return "".join(random.Random(seed).choices("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ", k=size))


def records(first: int, end: int) -> list[tuple[str | None, dict[str, Any]]]:
    """Some have no key, some are too large for 20,000 bytes, and some only before they are compressed.

    All others are small, but too much together for one request.
    """
    found: list[tuple[str | None, dict[str, Any]]] = []
    for each in range(first, end):
        text = text_of(60_000) if each % 50 == 3 else "x" * 60_000 if each % 50 == 4 else text_of(400, each)
        found.append((None if each % 20 == 7 else f"k{each}", {"id": each, "text": text}))
    return found


def too_large(first: int, end: int) -> set[int]:
    return {each for each in range(first, end) if each % 50 == 3}


def without_key(first: int, end: int) -> set[int]:
    return {each for each in range(first, end) if each % 20 == 7}


def ids(messages: list[Any]) -> list[int]:
    return sorted(json.loads(each.value())["id"] for each in messages)


def alter(bootstrap: str, topic: str, name: str, value: str) -> None:
    entry = ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=[entry])
    admin = AdminClient({"bootstrap.servers": bootstrap})
    for done in admin.incremental_alter_configs([resource]).values():
        done.result(30)


def topics(bootstrap: str, n: str) -> None:
    make_topics(bootstrap, **{f"{n}-given": 1})
    make_topics(bootstrap, {"max.message.bytes": "20000"}, **{f"{n}-small": 1})
    make_topics(bootstrap, {"cleanup.policy": "compact"}, **{f"{n}-compact": 1})
    make_topics(bootstrap, {"max.message.bytes": "100000"}, **{f"{n}-letters": 1})


@pytest.mark.usefixtures("spark")
@pytest.mark.parametrize("guarantee", ["at_least_once", "exactly_once_v2"])
def test_what_topics_refuse_goes_to_the_letters_and_all_else_to_the_sinks(
    broker: Any, namespace: str, tmp_path: Path, guarantee: str
) -> None:
    bootstrap, n = broker.bootstrap_servers, namespace
    topics(bootstrap, n)
    processing = {"guarantee": guarantee, "onProductionError": {"deadLetter": {"topic": f"{n}-letters"}}}
    send(bootstrap, f"{n}-given", records(0, 150))
    with client(bootstrap, n, TOPOLOGY.format(n=n), tmp_path, processing=processing) as made:
        made.start()
        until_running(made)
        until_done(made, [f"{n}-given"])
        # The topic takes less while the client runs: the brokers' refusal is met, and the batch done once more.
        alter(bootstrap, f"{n}-small", "max.message.bytes", "5000")
        later = [(f"k{each}", {"id": each, "text": text_of(10_000 if each == 160 else 10)}) for each in range(150, 170)]
        send(bootstrap, f"{n}-given", later)
        until_done(made, [f"{n}-given"])
        until_done(made, [f"{n}-by-rest-repartition"])
        assert made.state is ClientState.RUNNING
        counters: Any = made.describe()["counters"]
    committed = guarantee == "exactly_once_v2"
    counts = last_values(bootstrap, f"{n}-per-key-changelog", committed)
    count = sum(each["n"] for each in counts.values())  # stores have what sinks do not
    small, compact = too_large(0, 150) | {160}, without_key(0, 150)
    written = [ids(read(bootstrap, f"{n}-{sink}", committed)) for sink in ("small", "compact")]
    letters = read(bootstrap, f"{n}-letters", committed)
    refused = [
        ids([each for each in letters if dict(each.headers())["__streams.errors.topic"] == f"{n}-{sink}".encode()])
        for sink in ("small", "compact")
    ]
    if committed:
        assert count == 170
        assert written == [sorted(set(range(170)) - left) for left in (small, compact)]
        assert refused == [sorted(small), sorted(compact)]
    else:
        assert count >= 170  # what was sent of the batch that brokers refused is sent again
        assert [set(each) for each in written] == [set(range(170)) - left for left in (small, compact)]
        assert [set(each) for each in refused] == [small, compact]
    assert counters["dead_letters"] == counters["production_errors"] >= len(small) + len(compact)


@pytest.mark.usefixtures("spark")
def test_fail_ends_the_client_with_the_brokers_word(broker: Any, namespace: str, tmp_path: Path) -> None:
    bootstrap, n = broker.bootstrap_servers, namespace
    topics(bootstrap, n)
    send(bootstrap, f"{n}-given", [("a", {"id": 1, "text": "small"}), ("b", {"id": 3, "text": text_of(60_000)})])
    with client(bootstrap, n, TOPOLOGY.format(n=n), tmp_path) as made:
        made.start()
        assert made.wait_for(ClientState.ERROR, timeout=120)
        assert isinstance(made.error, ProducerException)
        assert f"{n}-small-0: " in str(made.error)
        assert "onProductionError" in str(made.error)


def test_what_is_judged_before_is_what_brokers_say(broker: Any, namespace: str) -> None:
    """At the limits, byte by byte, and ms by ms where the clocks allow it."""
    bootstrap, topic = broker.bootstrap_servers, f"{namespace}-t"
    config = {"max.message.bytes": "1000", "cleanup.policy": "compact", "message.timestamp.after.max.ms": str(HOUR)}
    make_topics(bootstrap, config, **{topic: 1})
    limits = TopicLimits.of(config)
    now = int(time.time() * 1000)
    headers: Any = [("a", b"x" * 100), ("b", None)]
    room, less = (1000 - record_bytes(b"k" * 10, b"v" * 700, own) for own in (None, headers))
    given: list[tuple[bytes | None, bytes | None, int, Any]] = [
        *((b"k" * 10, b"v" * (700 + room + more), now, None) for more in (-1, 0, 1)),
        *((b"k" * 10, b"v" * (700 + less + more), now, headers) for more in (-1, 0, 1)),
        (None, b"v", now, None),
        (b"k", None, now, None),
        (b"k", b"v", now + 2 * HOUR, None),
        (b"k", b"v", now + HOUR // 2, None),
    ]
    said, judged = [], []
    for key, value, at, own in given:
        emission = Emission(topic, False, [key], [value], [at], None if own is None else [own])
        judged.append(bool(refusals(emission, limits, Sending(1_000_000, "none"), now)))
        producer = BatchProducer({"bootstrap.servers": bootstrap, "compression.type": "none"}, "test")
        try:
            producer.send(topic, [key], [value], [at], headers=None if own is None else [own])
            producer.flush()
            said.append(False)
        except ProducerException as failure:
            said.append(failure.refusing_topic == topic)
        finally:
            producer.close()
    assert judged == said
    assert said == [False, False, True, False, False, True, True, False, True, False]
