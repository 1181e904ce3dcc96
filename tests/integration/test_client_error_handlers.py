"""A function of the user's decides on records that fail, of three kinds at once: whole clients and the test driver."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from clients import client, last_values, make_topics, read, run_until_done, send, until_done
from record_decisions import ASKED

from streams_runtime.errors import (
    DeserializationException,
    FailedProcessingException,
    ProducerException,
    StreamsException,
    UserCodeException,
)
from streams_runtime.states import ClientState
from streams_runtime.testing import TopologyTestDriver

pytestmark = [pytest.mark.integration, pytest.mark.usefixtures("spark")]

FIELDS = ("onDeserializationError", "onProcessingError", "onProductionError")


def topology(prefix: str) -> str:
    """Orders whose user is a number, counted by it and written to a topic that takes 5,000 bytes a record."""
    value = '{format: json, schema: "id BIGINT, user STRING, text STRING"}'
    return f"""
sources: [{{name: orders, topic: {prefix}-orders, key: {{format: string}}, value: {value}}}]
steps:
  - {{name: numbered, from: orders, select: {{id: id, user: cast(user as int) / (id - 37), text: text}}}}
  - {{name: by-user, from: numbered, keyBy: "cast(id % 3 as string)"}}
  - {{name: per-user, from: by-user, aggregate: {{n: count(*)}}, store: per-user}}
sinks: [{{from: numbered, topic: {prefix}-small}}]
"""


def records() -> list[tuple[str | None, Any]]:
    """By their ids: every 10th has a user that is no number, every 25th a text that is too large, 37 divides by zero,
    and 13 and 14 can't be read, of which only the first one looks like JSON.
    """
    found: list[tuple[str | None, Any]] = []
    for number in range(40):
        user = "seven" if number % 10 == 4 else "7"
        order = {"id": number, "user": user, "text": "x" * (9000 if number % 25 == 20 else 9)}
        if number == 20:
            order["text"] = "".join(f"{each * 7919 % 99991}" for each in range(3000))  # which compression leaves large
        found.append((f"k{number}", order))
    found[13], found[14] = ("k13", b'{"id": "thirteen"}'), ("k14", b"fourteen")
    return found


def handled(prefix: str, function: str) -> dict[str, Any]:
    return {
        field: {"python": f"record_decisions:{function}", "deadLetter": {"topic": f"{prefix}-letters"}}
        for field in FIELDS
    }


def make(bootstrap: str, n: str) -> None:
    make_topics(bootstrap, **{f"{n}-orders": 2, f"{n}-letters": 1})
    make_topics(bootstrap, {"max.message.bytes": "5000"}, **{f"{n}-small": 1})


@pytest.mark.parametrize("guarantee", ["at_least_once", "exactly_once_v2"])
def test_each_record_has_its_own_end(guarantee: str, broker: Any, namespace: str, tmp_path: Path) -> None:
    bootstrap, n = broker.bootstrap_servers, namespace
    make(bootstrap, n)
    send(bootstrap, f"{n}-orders", records())
    processing = {"guarantee": guarantee, **handled(n, "by_error")}
    with client(bootstrap, n, topology(n), tmp_path, processing=processing) as made:
        run_until_done(made, [f"{n}-orders"])
        until_done(made, [f"{n}-by-user-repartition"])
        assert made.state is ClientState.RUNNING
        counters: Any = made.describe()["counters"]
    committed = guarantee == "exactly_once_v2"
    no_numbers = {number for number in range(40) if number % 10 == 4} - {14}
    gone = {13, 14, 37} | no_numbers
    written = {json.loads(each.value())["id"] for each in read(bootstrap, f"{n}-small", committed)}
    assert written == set(range(40)) - gone - {20}
    counts = last_values(bootstrap, f"{n}-per-user-changelog", committed)
    assert sum(each["n"] for each in counts.values()) == 40 - len(gone)
    letters = {each.key().decode() for each in read(bootstrap, f"{n}-letters", committed)}
    assert letters == {"k13", "k20", *(f"k{number}" for number in no_numbers)}
    assert (counters["deserialization_errors"], counters["processing_errors"]) == (2, len(no_numbers) + 1)
    assert (counters["production_errors"], counters["dead_letters"]) == (1, 2 + len(no_numbers))


@pytest.mark.parametrize(
    ("function", "order", "error", "words"),
    [
        ("not_of_order_2", b'{"id": 2, "user": "7"', DeserializationException, "can't be read"),
        ("not_of_order_2", {"id": 2, "user": "seven", "text": ""}, FailedProcessingException, "CAST_INVALID_INPUT"),
        ("not_of_order_2", {"id": 2, "user": "7", "text": "large"}, ProducerException, "lets it fail"),
        ("raising", {"id": 1, "user": "seven", "text": ""}, UserCodeException, "could not decide on the record"),
    ],
)
def test_a_record_that_is_to_fail_ends_the_client_and_stays(
    function: str, order: Any, error: type[StreamsException], words: str, broker: Any, namespace: str, tmp_path: Path
) -> None:
    bootstrap, n = broker.bootstrap_servers, namespace
    make(bootstrap, n)
    if isinstance(order, dict) and order["text"] == "large":
        order = {**order, "text": records()[20][1]["text"]}
    processing = {"guarantee": "exactly_once_v2", **handled(n, function)}
    good, other = {"id": 4, "user": "7", "text": ""}, {"id": 3, "user": "eight", "text": ""}
    given = [("a", good), ("a", other), ("a", order)] if function == "not_of_order_2" else [("a", good), ("a", order)]
    send(bootstrap, f"{n}-orders", given)
    with client(bootstrap, n, topology(n), tmp_path, processing=processing) as made:
        made.start()
        assert made.wait_for(ClientState.ERROR, timeout=120)
        assert type(made.error) is error
        assert words in str(made.error)
    rest = {**processing, **dict.fromkeys(FIELDS, "continue")}
    with client(bootstrap, n, topology(n), tmp_path, processing=rest) as made:
        run_until_done(made, [f"{n}-orders"])
    assert [json.loads(each.value())["id"] for each in read(bootstrap, f"{n}-small", committed=True)] == [4]
    assert read(bootstrap, f"{n}-letters", committed=True) == []


def test_the_test_driver_asks_it_too() -> None:
    document = {
        "apiVersion": "streamsoperator.io/v1alpha1",
        "kind": "StreamsApplication",
        "metadata": {"name": "test"},
        "spec": {"processing": handled("t", "by_error"), "topology": yaml.safe_load(topology("t"))},
    }
    ASKED.clear()
    with TopologyTestDriver(document) as driver:
        for key, order in records():
            driver.input_topic("t-orders").pipe(key, order)
        letters: list[Any] = driver.output_topic("t-letters").read_all()
        assert len(driver.output_topic("t-small").read_all()) == 40 - 6
    assert {each.key for each in letters} == {b"k13", *(b"k%d" % each for each in range(4, 40, 10) if each != 14)}
