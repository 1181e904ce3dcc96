"""A sink whose expression names each record's topic (`topicBy`), in the test driver: behind every kind of step."""

from __future__ import annotations

import logging
from datetime import datetime, timedelta
from typing import Any

import pytest
from topology_drivers import Made

from streams_runtime.errors import ConfigException, InvalidApplicationException, ProducerException, TopologyException
from streams_runtime.query.wire.windowed_keys import Windowed
from streams_runtime.testing import TopologyTestDriver

pytestmark = [pytest.mark.integration, pytest.mark.usefixtures("spark")]

ORDERS = {
    "name": "orders",
    "topic": "orders",
    "key": {"format": "string"},
    "value": {"format": "json", "schema": "country STRING, amount INT"},
}
RATES = {
    "name": "rates",
    "topic": "rates",
    "key": {"format": "string"},
    "value": {"format": "json", "schema": "rate INT, country STRING"},
    "table": {"store": "rates"},
}
KNOWN = {"name": "known", "from": "rates", "where": "rate > 0"}
JOINED = {"name": "joined", "from": "orders", "join": {"table": "rates", "select": {"rate": "rates.rate"}}}
TOTALS = {"name": "totals", "from": "orders", "aggregate": {"n": "count(*)"}, "store": "totals"}
PER_MINUTE = {**TOTALS, "name": "per-minute", "store": "per-minute", "window": {"tumbling": {"size": "1m"}}}
BY_COUNTRY = {"name": "by-country", "from": "orders", "keyBy": "country"}


def application(*sinks: dict[str, Any], steps: Any = (), processing: Any = None) -> dict[str, Any]:
    topology = {"sources": [ORDERS, RATES], "steps": list(steps), "sinks": list(sinks)}
    return {
        "apiVersion": "streamsoperator.io/v1alpha1",
        "kind": "StreamsApplication",
        "metadata": {"name": "shop"},
        "spec": {"topology": topology, "processing": processing or {}},
    }


def pairs(driver: TopologyTestDriver, topic: str) -> list[Any]:
    return [(each.key, each.value) for each in driver.output_topic(topic).read_all()]


def test_records_go_where_their_columns_say_in_the_partition_that_their_key_says(made: Made) -> None:
    topic = "concat('orders-', lower(country), '-', _topic)"
    driver = made(
        application({"from": "orders", "topicBy": topic}), partitions={"orders": 1, "rates": 1, "orders-de-orders": 7}
    )
    orders = driver.input_topic("orders")
    given = [(f"k{number}", {"country": "DE" if number % 2 else "FR", "amount": number}) for number in range(20)]
    orders.pipe_all([(key, value, None, {"n": key.encode()}) for key, value in given])
    assert pairs(driver, "orders-fr-orders") == [each for each in given if each[1]["country"] == "FR"]
    german = driver.output_topic("orders-de-orders").read_all()
    assert [(each.key, each.value) for each in german] == [each for each in given if each[1]["country"] == "DE"] or {
        each.partition for each in german
    } != {0}
    copies = made(application({"from": "orders", "topic": "copies"}), partitions={"orders": 1, "rates": 1, "copies": 7})
    copies.input_topic("orders").pipe_all([each for each in given if each[1]["country"] == "DE"])
    places = {each.key: each.partition for each in copies.output_topic("copies").read_all()}
    assert {each.key: each.partition for each in german} == places
    assert all(each.headers == (("n", (each.key or "").encode()),) for each in german)


@pytest.mark.parametrize("pieces", [1, 3, 11])
def test_where_batches_end_changes_nothing_behind_joins_tables_and_repartitions(made: Made, pieces: int) -> None:
    sinks = [
        {"from": "joined", "topicBy": "concat('rate-', rate)"},
        {"from": "by-country", "topicBy": "concat('by-', _key)"},
        {"from": "known", "topicBy": "concat('known-', coalesce(country, 'gone'))"},
    ]
    driver = made(application(*sinks, steps=[JOINED, BY_COUNTRY, KNOWN]))
    orders, rates = driver.input_topic("orders"), driver.input_topic("rates")
    given = [
        (rates, "a", {"rate": 1, "country": "de"}),
        (orders, "a", {"country": "de", "amount": 1}),
        (rates, "a", {"rate": 2, "country": "fr"}),
        (orders, "a", {"country": "fr", "amount": 2}),
        (rates, "b", {"rate": 0, "country": "de"}),
        (rates, "a", {"rate": -1, "country": "fr"}),
        (rates, "c", {"rate": 3, "country": "it"}),
        (rates, "c", None),
        (orders, "c", {"country": "it", "amount": 3}),
    ]
    size = -(-len(given) // pieces)
    for first in range(0, len(given), size):
        with driver.batch():
            for number, (topic, key, value) in enumerate(given[first : first + size], first):
                topic.pipe(key, value, 1_700_000_000_000 + number)
    assert pairs(driver, "by-de") == [("de", {"country": "de", "amount": 1})]
    assert pairs(driver, "by-it") == [("it", {"country": "it", "amount": 3})]
    assert pairs(driver, "known-de") == [("a", {"rate": 1, "country": "de"})]
    assert pairs(driver, "known-fr") == [("a", {"rate": 2, "country": "fr"})]
    assert pairs(driver, "known-it") == [("c", {"rate": 3, "country": "it"})]
    # A row that leaves the table has no columns, so the expression sees nulls.
    assert pairs(driver, "known-gone") == [("a", None), ("c", None)]
    joined = [(topic, *each) for topic in ("rate-1", "rate-2") for each in pairs(driver, topic)]
    assert [(topic, key, value["amount"]) for topic, key, value in joined] == [("rate-1", "a", 1), ("rate-2", "a", 2)]


def test_totals_and_windows_go_by_what_they_are(made: Made) -> None:
    sinks = [
        {"from": "totals", "topicBy": "if(n > 1, 'many', 'one')", "topics": ["one", "many"]},
        {
            "from": "per-minute",
            "topicBy": "concat('minute-', minute(_window_start))",
            "topics": ["minute-5", "minute-7"],
        },
    ]
    driver = made(application(*sinks, steps=[TOTALS, PER_MINUTE]), partitions={"orders": 1, "rates": 1, "minute-7": 5})
    orders = driver.input_topic("orders")
    for key, minute in (("a", 5), ("a", 7), ("b", 7)):
        time = datetime.fromisoformat("2026-01-01T00:00:10+00:00") + timedelta(minutes=minute)
        orders.pipe(key, {"country": "de", "amount": 1}, time)
    assert pairs(driver, "one") == [("a", {"n": 1}), ("b", {"n": 1})]
    assert pairs(driver, "many") == [("a", {"n": 2})]
    windows = {minute: driver.output_topic(f"minute-{minute}").read_all() for minute in (5, 7)}
    keys = {minute: [each.key for each in some] for minute, some in windows.items()}
    assert all(isinstance(key, Windowed) for each in keys.values() for key in each)
    assert {minute: [key.key for key in each] for minute, each in keys.items()} == {5: ["a"], 7: ["a", "b"]}


def test_a_record_that_names_no_topic_is_the_policys_affair(made: Made, caplog: pytest.LogCaptureFixture) -> None:
    sink = {"from": "orders", "topicBy": "country", "topics": ["de", "fr"]}
    letters = {"onProductionError": {"deadLetter": {"topic": "letters"}}}
    given = [("a", {"country": "de", "amount": 1}), ("b", {"country": "it", "amount": 2}), ("c", None)]
    driver = made(application(sink, processing=letters))
    with caplog.at_level(logging.WARNING, logger="streams_runtime.tasks"):
        driver.input_topic("orders").pipe_all(given)
    assert pairs(driver, "de") == given[:1]
    refused = driver.output_topic("letters").read_all()
    assert [each.key for each in refused] == [b"b", b"c"]
    assert dict(refused[0].headers)["__streams.errors.topic"] == b"it"
    assert b"not among the sink's topics" in dict(refused[0].headers)["__streams.errors.message"]
    assert (driver.counters.production_errors, driver.counters.dead_letters) == (2, 2)
    assert "orders-0@1" in caplog.text

    failing = made(application(sink))
    with pytest.raises(ProducerException, match=r"sink-of-orders .* of the record orders-0@1: topicBy gives it for it"):
        failing.input_topic("orders").pipe_all(given)
    assert pairs(failing, "de") == []


def test_an_expression_that_fails_over_a_record_is_a_processing_error(made: Made) -> None:
    sink = {"from": "orders", "topicBy": "concat('o-', 10 div amount)"}
    driver = made(application(sink, processing={"onProcessingError": "continue"}))
    driver.input_topic("orders").pipe_all(
        [(key, {"country": "de", "amount": n}) for key, n in zip("abc", (5, 0, 10), strict=True)]
    )
    assert pairs(driver, "o-2") == [("a", {"country": "de", "amount": 5})]
    assert pairs(driver, "o-1") == [("c", {"country": "de", "amount": 10})]
    assert (driver.counters.processing_errors, driver.counters.production_errors) == (1, 0)


def test_measurements_are_by_declared_topics(made: Made) -> None:
    sinks = [
        {"from": "orders", "topicBy": "concat('any-', amount)"},
        {"from": "orders", "topicBy": "concat('some-', amount)", "topics": ["some-1"]},
    ]
    driver = made(application(*sinks, processing={"onProductionError": "continue"}))
    driver.input_topic("orders").pipe_all([("a", {"country": "de", "amount": n}) for n in range(30)])
    recorder = driver.counters.recorder
    assert recorder.produced == {"*": 30, "some-1": 1}
    assert dict(recorder.dropped_records(recorder.clock())) == {("sink-of-orders-2", "refused"): 29}


def test_a_topic_that_nothing_writes_is_refused_by_name_and_formats_that_differ_too(made: Made) -> None:
    listed = made(application({"from": "orders", "topicBy": "country", "topics": ["de"]}))
    with pytest.raises(TopologyException, match="no sink writes the topic 'fr'"):
        listed.output_topic("fr")
    anything = made(application({"from": "orders", "topicBy": "country"}))
    with pytest.raises(TopologyException, match="no sink writes the topic 'rates'"):
        anything.output_topic("rates")
    mixed = [{"from": "orders", "topicBy": "country"}, {"from": "n", "topic": "de", "value": {"format": "int"}}]
    two = made(application(*mixed, steps=[{"name": "n", "from": "orders", "select": {"value": "amount"}}]))
    with pytest.raises(ConfigException, match="different formats to de"):
        two.output_topic("de")


@pytest.mark.parametrize("text", ["array('a')", "struct(country)", "null", "no_such_function(country)"])
def test_what_is_no_name_is_refused_at_its_field(made: Made, text: str) -> None:
    with pytest.raises(InvalidApplicationException) as raised:
        made(application({"from": "orders", "topicBy": text}))
    assert [each.path for each in raised.value.mistakes] == ["spec.topology.sinks[0].topicBy"]
