"""A sink whose expression names each record's topic (`topicBy`): whole clients, under both guarantees."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from clients import client, make_topics, read, send, until_done, until_running
from topic_apps import delete
from waiting import eventually

from streams_runtime.client import StreamsClient
from streams_runtime.errors import ProducerException
from streams_runtime.kafka.admin.kafka_admin import Admin
from streams_runtime.kafka.broker.embedded_broker import EmbeddedBroker
from streams_runtime.kafka.producer.partitioner import partition_for
from streams_runtime.states import ClientState

pytestmark = [pytest.mark.integration, pytest.mark.usefixtures("spark")]

TOPOLOGY = """
sources:
  - name: given
    topic: {n}-given
    key: {{format: string}}
    value: {{format: json, schema: "id BIGINT, topic STRING, text STRING"}}
steps:
  - {{name: by-topic, from: given, keyBy: "coalesce(topic, 'none')"}}
  - {{name: per-topic, from: by-topic, aggregate: {{n: count(*)}}, store: per-topic}}
sinks:
  - {{from: given, topicBy: topic}}
"""
GUARANTEES = ["at_least_once", "exactly_once_v2"]


@pytest.fixture(scope="module")
def creating(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedBroker]:
    """A broker that makes topics for whoever asks for one, as Kafka's do unless they are told not to."""
    folder = tmp_path_factory.mktemp("creating") / "broker"
    with EmbeddedBroker(folder, config={"auto.create.topics.enable": "true"}) as running:
        yield running


def record(number: int, topic: str | None, text: str = "") -> tuple[str, dict[str, Any]]:
    return f"k{number}", {"id": number, "topic": topic, "text": text}


def ids(messages: list[Any]) -> list[int]:
    return sorted(json.loads(each.value())["id"] for each in messages)


def present(bootstrap: str, *names: str) -> set[str]:
    admin = Admin({"bootstrap.servers": bootstrap})
    try:
        return set(admin.partition_counts(names))
    finally:
        admin.close()


def remove(bootstrap: str, topic: str) -> None:
    admin = Admin({"bootstrap.servers": bootstrap})
    delete(admin, [topic])
    admin.close()


def sends_until(bootstrap: str, n: str, topic: str, numbers: Iterator[int], arrived: Callable[[], bool]) -> set[int]:
    """Sends one record after the other for the topic, until they arrive where they are to; the numbers of all."""
    sent: set[int] = set()

    def come() -> bool:
        number = next(numbers)
        sent.add(number)
        send(bootstrap, f"{n}-given", [record(number, topic)])
        return arrived()

    eventually(come, f"records for {topic} arrive", seconds=90, every=0.3)
    return sent


@pytest.mark.parametrize("guarantee", GUARANTEES)
def test_records_go_where_they_say_and_to_the_letters_where_that_is_nowhere(
    creating: EmbeddedBroker, namespace: str, tmp_path: Path, guarantee: str
) -> None:
    bootstrap, n = creating.bootstrap_servers, namespace
    committed = guarantee == "exactly_once_v2"
    make_topics(bootstrap, **{f"{n}-given": 2, f"{n}-one": 3, f"{n}-two": 1, f"{n}-letters": 1})
    own = (f"{n}-given", f"{n}-per-topic-changelog", f"{n}-by-topic-repartition", "__consumer_offsets")
    nowhere = (None, "", "a b", "x" * 250, *own, f"{n}-later")
    wanted = [*[f"{n}-one", f"{n}-two"] * 20, *nowhere]
    send(bootstrap, f"{n}-given", [record(number, topic) for number, topic in enumerate(wanted)])
    processing = {"guarantee": guarantee, "onProductionError": {"deadLetter": {"topic": f"{n}-letters"}}}
    numbers = iter(range(1000, 10_000))

    def written(topic: str) -> list[int]:
        return ids(read(bootstrap, f"{n}-{topic}", committed))

    with client(bootstrap, n, TOPOLOGY.format(n=n), tmp_path, processing=processing) as made:
        made.start()
        until_running(made)
        until_done(made, [f"{n}-given"])
        # The markers of a transaction come to some partitions later than to the group's offsets.
        eventually(lambda: written("letters") == [*range(40, 40 + len(nowhere))], "the letters are committed")
        eventually(lambda: (written("one"), written("two")) == ([*range(0, 40, 2)], [*range(1, 40, 2)]), "and the rest")
        one = read(bootstrap, f"{n}-one", committed)
        assert all(each.partition() == partition_for(each.key(), 3) for each in one)
        assert not present(bootstrap, f"{n}-later"), "the broker was given occasion to make it"
        # A topic that is made later is found.
        make_topics(bootstrap, **{f"{n}-later": 1})
        later = sends_until(bootstrap, n, f"{n}-later", numbers, lambda: bool(written("later")))
        # One that is deleted meanwhile is noticed, and not made again.
        remove(bootstrap, f"{n}-one")
        until_done(made, [f"{n}-given"])
        gone = sends_until(bootstrap, n, f"{n}-one", numbers, lambda: max(written("letters")) > max(later))
        until_done(made, [f"{n}-given"])
        assert made.state is ClientState.RUNNING
        assert not present(bootstrap, f"{n}-one")
        counters: Any = made.describe()["counters"]
    letters = read(bootstrap, f"{n}-letters", committed)
    refused = set(range(40, 40 + len(nowhere))) | gone | later - set(written("later"))
    assert set(ids(letters)) == refused
    if committed:
        assert len(letters) == len(refused)  # none twice
    assert counters["production_errors"] == counters["dead_letters"] >= len(refused)


@pytest.mark.parametrize("guarantee", GUARANTEES)
def test_fail_names_sink_record_and_topic_and_nothing_is_lost_once_the_topic_is_there(
    creating: EmbeddedBroker, namespace: str, tmp_path: Path, guarantee: str
) -> None:
    bootstrap, n = creating.bootstrap_servers, namespace
    committed = guarantee == "exactly_once_v2"
    make_topics(bootstrap, **{f"{n}-given": 1, f"{n}-one": 1})
    send(bootstrap, f"{n}-given", [record(0, f"{n}-one"), record(1, f"{n}-two"), record(2, f"{n}-one")])

    def running(folder: str) -> Any:
        processing = {"guarantee": guarantee}
        return client(bootstrap, n, TOPOLOGY.format(n=n), tmp_path / folder, processing=processing)

    with running("0") as made:
        made.start()
        assert made.wait_for(ClientState.ERROR, timeout=120)
        assert isinstance(made.error, ProducerException), made.error
        assert "sink-of-given (spec.topology.sinks[0]) can't write the record of the key b'k1', of the record" in str(
            made.error
        )
        assert f"{n}-given-0@1" in str(made.error)
        assert f"{n}-two" in str(made.error)
    assert not present(bootstrap, f"{n}-two")
    make_topics(bootstrap, **{f"{n}-two": 1})
    with running("1") as made:
        made.start()
        until_running(made)
        until_done(made, [f"{n}-given"])
        # Deleted while it runs: the next record for it ends the client, with the same words.
        remove(bootstrap, f"{n}-one")
        send(bootstrap, f"{n}-given", [record(3, f"{n}-one")])
        assert made.wait_for(ClientState.ERROR, timeout=120)
        assert f"topicBy gives {n}-one for it, and the brokers have no such topic" in str(made.error)
    assert set(ids(read(bootstrap, f"{n}-two", committed))) == {1}


def test_requests_are_small_enough_for_a_topic_that_only_a_record_names(
    creating: EmbeddedBroker, namespace: str, tmp_path: Path
) -> None:
    bootstrap, n = creating.bootstrap_servers, namespace
    make_topics(bootstrap, **{f"{n}-given": 1})
    make_topics(bootstrap, {"max.message.bytes": "20000"}, **{f"{n}-small": 1})
    letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
    texts = ["".join(random.Random(seed).choices(letters, k=500)) for seed in range(300)]
    send(bootstrap, f"{n}-given", [record(number, f"{n}-small", text) for number, text in enumerate(texts)])
    with client(bootstrap, n, TOPOLOGY.format(n=n), tmp_path, processing={"guarantee": "exactly_once_v2"}) as made:
        made.start()
        until_running(made)
        until_done(made, [f"{n}-given"])
        check_running(made)
    assert ids(read(bootstrap, f"{n}-small", True)) == [*range(300)]


def check_running(made: StreamsClient) -> None:
    assert made.state is ClientState.RUNNING, made.error
