"""Expressions that give records their partitions (`partitionBy`): in the test driver, and in whole clients."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from clients import client, make_topics, read, run_until_done, send, until_done
from confluent_kafka.admin import AdminClient, NewPartitions
from topology_drivers import Made
from waiting import DEADLINE

from streams_runtime.errors import FailedProcessingException, InvalidApplicationException
from streams_runtime.kafka.producer.batch_producer import BatchProducer
from streams_runtime.kafka.producer.partitioner import partition_for
from streams_runtime.query.stores.key_value_handle import StoreQueryParameters
from streams_runtime.query.wire.problems import InvalidQueryException
from streams_runtime.testing import TopologyTestDriver

pytestmark = [pytest.mark.integration, pytest.mark.usefixtures("spark")]

ORDERS = {
    "name": "orders",
    "topic": "orders",
    "key": {"format": "string"},
    "value": {"format": "json", "schema": "region INT, n BIGINT"},
}
SPREAD = {"name": "spread", "from": "orders", "repartition": {"partitions": 5, "partitionBy": "region"}}
WHERE = {"name": "where", "from": "spread", "select": {"n": "n", "at": "_partition"}}
SUMS = {"name": "sums", "from": "spread", "aggregate": {"n": "sum(n)"}, "store": "sums"}
GIVEN = [(f"k{number % 7}", {"region": (None, 0, 3, 4)[number % 4], "n": number}) for number in range(40)]


def application(*steps: Any, sinks: Any, sources: Any = (ORDERS,), **processing: Any) -> dict[str, Any]:
    topology = {"sources": list(sources), "steps": list(steps), "sinks": list(sinks)}
    return {
        "apiVersion": "streamsoperator.io/v1alpha1",
        "kind": "StreamsApplication",
        "metadata": {"name": "shop"},
        "spec": {"topology": topology, "processing": processing},
    }


def placed(key: str, region: int | None, count: int) -> int:
    return partition_for(key.encode(), count) if region is None else region


def pipe(driver: TopologyTestDriver, records: Any, pieces: int = 1) -> None:
    topic, size = driver.input_topic("orders"), -(-len(records) // pieces)
    for first in range(0, len(records), size):
        with driver.batch():
            for number, (key, value) in enumerate(records[first : first + size], first):
                topic.pipe(key, value, 1_700_000_000_000 + number)


@pytest.mark.parametrize("pieces", [1, 4])
def test_records_are_in_the_partitions_that_the_expression_gives_and_else_in_their_keys(
    made: Made, pieces: int
) -> None:
    sinks = [
        {"from": "orders", "topic": "out", "partitionBy": "region + 1"},
        {"from": "where", "topic": "where"},
        {"from": "minutes", "topic": "minutes", "partitionBy": "if(n > 3, 6, null)"},
    ]
    minute = {**SUMS, "name": "per-minute", "from": "orders", "store": "minute", "window": {"tumbling": {"size": "1m"}}}
    driver = made(
        application(SPREAD, WHERE, minute, {"name": "minutes", "from": "per-minute", "toStream": {}}, sinks=sinks),
        partitions={"orders": 2, "out": 7, "where": 1, "minutes": 7},
    )
    pipe(driver, GIVEN, pieces)
    out = driver.output_topic("out").read_all()
    assert len(out) == len(GIVEN)
    by_number = {record.value["n"]: record for record in out}
    for key, value in GIVEN:
        region = None if value["region"] is None else value["region"] + 1
        assert by_number[value["n"]].partition == placed(key, region, 7)
    found = {record.value["n"]: record.value["at"] for record in driver.output_topic("where").read_all()}
    assert found == {value["n"]: placed(key, value["region"], 5) for key, value in GIVEN}
    for record in driver.output_topic("minutes").read_all():
        # Of a window the key in it decides.
        assert record.partition == placed(record.key.key, 6 if record.value["n"] > 3 else None, 7)


def test_a_store_behind_it_holds_what_each_partition_had_and_is_scanned(made: Made) -> None:
    driver = made(application(SPREAD, SUMS, sinks=[]))
    pipe(driver, GIVEN, 3)
    expected: dict[tuple[str, int], int] = {}
    for key, value in GIVEN:
        where = (key, placed(key, value["region"], 5))
        expected[where] = expected.get(where, 0) + value["n"]
    store = driver.store("sums")
    assert sorted((entry.key, entry.value["n"]) for entry in store.all()) == sorted(
        (key, total) for (key, _), total in expected.items()
    )
    with pytest.raises(InvalidQueryException, match="partitionBy gives"):
        store.get("k1")
    assert sorted(entry.value["n"] for entry in store.range("k1", "k1")) == sorted(
        total for (key, _), total in expected.items() if key == "k1"
    )
    one = made(application({**SPREAD, "repartition": {"partitions": 1, "partitionBy": "0"}}, SUMS, sinks=[]))
    pipe(one, GIVEN)
    assert one.store("sums").get("k1")["n"] == sum(value["n"] for key, value in GIVEN if key == "k1")


WRONG = [("a", {"region": 1, "n": 1}), ("b", {"region": 5, "n": 2}), ("c", {"region": -1, "n": 3})]


def test_a_partition_that_is_not_there_fails_with_topic_key_value_and_count(made: Made) -> None:
    driver = made(application(SPREAD, WHERE, sinks=[{"from": "where", "topic": "where"}]))
    said = r"steps\[0\]\.repartition\.partitionBy: region is 5 for the record of the key b'b', and the topic"
    with pytest.raises(FailedProcessingException, match=rf"{said} shop-spread-repartition has 5 partitions"):
        pipe(driver, WRONG)
    sink = made(application(sinks=[{"from": "orders", "topic": "out", "partitionBy": "region"}]))
    with pytest.raises(FailedProcessingException, match=r"sinks\[0\].* is 1 .* out has 1 partitions"):
        pipe(sink, WRONG)


@pytest.mark.parametrize("pieces", [1, 3])
def test_or_is_left_out_or_sent_to_the_letters(made: Made, pieces: int) -> None:
    sinks = [{"from": "where", "topic": "where"}, {"from": "orders", "topic": "out"}]
    given = [*GIVEN[:4], *WRONG, *GIVEN[4:8]]
    driver = made(application(SPREAD, WHERE, SUMS, sinks=sinks, onProcessingError={"deadLetter": {"topic": "letters"}}))
    pipe(driver, given, pieces)
    kept = [value["n"] for _, value in given if value["region"] in (None, 0, 1, 3, 4)]
    assert sorted(record.value["n"] for record in driver.output_topic("where").read_all()) == sorted(kept)
    assert sorted(record.value["n"] for record in driver.output_topic("out").read_all()) == sorted(kept)
    letters = driver.output_topic("letters").read_all()
    assert [record.key for record in letters] == [b"b", b"c"]
    why = dict(letters[1].headers)["__streams.errors.message"]
    assert b"region is -1 for the record of the key" in why


def test_streams_that_equal_expressions_place_are_joined(made: Made) -> None:
    refunds = {**ORDERS, "name": "refunds", "topic": "refunds"}
    other = {**SPREAD, "name": "others", "from": "refunds"}
    table = {"name": "kept", "from": "others", "toTable": {"store": "kept"}}
    join = {"name": "joined", "from": "spread", "join": {"table": "kept", "select": {"m": "kept.n"}}}
    steps, sinks = [SPREAD, other, table, join], [{"from": "joined", "topic": "joined"}]
    driver = made(application(*steps, sinks=sinks, sources=[ORDERS, refunds]))
    driver.input_topic("refunds").pipe("a", {"region": 3, "n": 7}, 1_700_000_000_000)
    driver.input_topic("refunds").pipe("b", {"region": 2, "n": 8}, 1_700_000_000_000)
    pipe(driver, [("a", {"region": 3, "n": 1}), ("a", {"region": 2, "n": 2}), ("b", {"region": 2, "n": 3})])
    found = [(record.key, record.value["n"], record.value["m"]) for record in driver.output_topic("joined").read_all()]
    assert sorted(found) == [("a", 1, 7), ("b", 3, 8)]  # of several partitions there is no order
    with pytest.raises(InvalidApplicationException, match="which they meet by key, by their keys"):
        made(
            application(
                SPREAD, {**other, "repartition": {"partitions": 5}}, table, join, sinks=sinks, sources=[ORDERS, refunds]
            )
        )


@pytest.mark.parametrize("text", ["cast(region as double)", "concat('1', region)", "missing"])
def test_what_gives_no_number_is_refused_at_its_field(made: Made, text: str) -> None:
    with pytest.raises(InvalidApplicationException) as raised:
        made(application(sinks=[{"from": "orders", "topic": "out", "partitionBy": text}]))
    assert [each.path for each in raised.value.mistakes] == ["spec.topology.sinks[0].partitionBy"]


def test_a_client_places_records_within_transactions_and_answers_by_partition(
    broker: Any, namespace: str, tmp_path: Path
) -> None:
    bootstrap, orders = broker.bootstrap_servers, f"{namespace}-orders"
    make_topics(bootstrap, **{orders: 2, f"{namespace}-out": 6})
    topology = f"""
sources:
  - {{name: orders, topic: {orders}, key: {{format: string}}, value: {{format: json, schema: "region INT, n BIGINT"}}}}
steps:
  - {{name: spread, from: orders, repartition: {{partitions: 5, partitionBy: region}}}}
  - {{name: sums, from: spread, aggregate: {{n: sum(n)}}, store: sums}}
sinks: [{{from: orders, topic: {namespace}-out, partitionBy: "region + 1"}}]
"""
    send(bootstrap, orders, GIVEN)
    settings = {"processing": {"guarantee": "exactly_once_v2"}}
    between = f"{namespace}-spread-repartition"
    with client(bootstrap, namespace, topology, tmp_path, **settings) as running:
        run_until_done(running, [orders])
        until_done(running, [between])
        expected: dict[int, dict[str, int]] = {}
        for key, value in GIVEN:
            totals = expected.setdefault(placed(key, value["region"], 5), {})
            totals[key] = totals.get(key, 0) + value["n"]
        for partition, totals in expected.items():
            store = running.store(StoreQueryParameters("sums", "key-value", partition))
            assert {entry.key: entry.value["n"] for entry in store.all()} == totals
            assert {key: store.get(key)["n"] for key in totals} == totals
        with pytest.raises(InvalidQueryException, match="from the key to itself"):
            running.store(StoreQueryParameters("sums", "key-value")).get("k1")
    found = {json.loads(each.value())["n"]: each.partition() for each in read(bootstrap, f"{namespace}-out", True)}
    assert found == {
        value["n"]: placed(key, None if value["region"] is None else value["region"] + 1, 6) for key, value in GIVEN
    }


def test_partitions_that_a_topic_has_got_meanwhile_are_known_once_they_are_asked_for(
    broker: Any, namespace: str
) -> None:
    make_topics(broker.bootstrap_servers, **{namespace: 2})
    producer = BatchProducer({"bootstrap.servers": broker.bootstrap_servers}, "test")
    assert producer.partition_count(namespace) == 2
    admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
    admin.create_partitions([NewPartitions(namespace, 4)])[namespace].result(DEADLINE)
    assert producer.partition_count(namespace, 1) == 2
    assert producer.partition_count(namespace, 3) == 4
    producer.send(namespace, [b"a", b"b"], [b"1", b"2"], [1, 1], chosen_partitions=[3, None])
    producer.flush()
    producer.close()
    found = {each.key(): each.partition() for each in read(broker.bootstrap_servers, namespace)}
    assert found == {b"a": 3, b"b": partition_for(b"b", 4)}
