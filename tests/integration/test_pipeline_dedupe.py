"""Dedupes in batches: what comes before and behind them, ids of every kind, what Spark refuses."""

from __future__ import annotations

import json
from contextlib import ExitStack
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
from pipeline_bench import Bench, open_tasks
from pipeline_kit import Pipeline, Record, source, topology_of
from shared_cases import batches
from topology_drivers import ORDERS, Made, document

from streams_runtime.errors import InvalidApplicationException, UnknownStateStoreException
from streams_runtime.testing import START

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.integration

SECOND = timedelta(seconds=1)
SCHEMA = "a BIGINT, id STRING, items ARRAY<STRING>"


def once(from_: str = "in", name: str = "once", **dedupe: Any) -> dict[str, Any]:
    return {"name": name, "from": from_, "dedupe": {"within": "10ms", **dedupe}}


def record(key: str | None, time: int, headers: Any = None, **value: Any) -> Record:
    data = json.dumps(value).encode() if value else None
    return Record(key and key.encode(), data, offset=time, time=time, headers=headers)


def outputs(bench: Bench, topic: str) -> list[tuple[bytes | None, Any]]:
    return [(key, value and json.loads(value)) for to, _, key, value, _, _ in bench.producer.records if to == topic]


@pytest.mark.parametrize("cuts", [[], [1], [2, 4], [1, 2, 3, 4, 5, 6]], ids=str)
def test_what_goes_on_is_the_record_as_it_came_for_every_step_behind(spark: SparkSession, cuts: list[int]) -> None:
    steps = [
        {"name": "large", "from": "in", "where": "a is null or a > 0", "select": {"a": "a", "id": "id"}},
        once("large", by="id"),
        {"name": "seen", "from": "once", "peek": {"metric": "firsts"}},
        {"name": "placed", "from": "once", "select": {"where": "concat(_topic, _partition, '@', _offset)"}},
        {"name": "totals", "from": "once", "aggregate": {"total": "sum(a)", "last": "last(a)"}, "store": "totals"},
        {
            "name": "visits",
            "from": "once",
            "window": {"session": {"gap": "20ms"}},
            "aggregate": {"n": "count(*)"},
            "store": "visits",
        },
        {"name": "by-id", "from": "once", "keyBy": "id"},
        {"name": "counts", "from": "by-id", "aggregate": {"n": "count(*)"}, "store": "counts"},
        once("once", name="twice"),
    ]
    sinks = [{"from": name, "topic": name} for name in ("once", "placed", "totals", "twice")]
    topology = topology_of([source(schema=SCHEMA)], steps, sinks)
    given = [
        record("ada", 1, [("h", b"1")], a=5, id="x"),
        record("ada", 2, a=0, id="y"),
        record("bob", 3, a=6, id="x"),
        record("ada", 4, a=7, id="y"),
        record(None, 5, a=8, id="z"),
        record("ada", 7),
        record("ada", 12, a=9, id="x"),
    ]
    found: dict[str, list[Any]] = {"once": [], "placed": [], "twice": []}
    with ExitStack() as stack:
        pipeline = Pipeline(spark, topology)
        assert pipeline.compiler.needs_headers(topology.subtopologies[0]), "they go on to the topics behind it"
        bench = Bench(pipeline, open_tasks(stack, topology))
        totals: dict[bytes | None, Any] = {}
        repartitioned = []
        for first, end in batches(len(given), cuts):
            bench.store(bench.process(*given[first:end]))
            for topic in found:
                found[topic] += outputs(bench, topic)
            totals |= dict(outputs(bench, "totals"))
            repartitioned += [each[2] for each in bench.producer.records if each[0] == "app-by-id-repartition"]
            if first == 0:
                assert next(each[4:] for each in bench.producer.records if each[0] == "once") == (1, [("h", b"1")])
        assert bench.counters.peeks == {("seen", "firsts"): (5, 5.0)}
        # Of `twice` the keys are the ids: 4 and 7 are duplicates of the first; of `totals` a key or a value is missing.
        assert bench.counters.records_dropped == 1 + 2 + 2 + 1 + 1
    assert found["once"] == [
        (b"ada", {"a": 5, "id": "x"}),
        (b"ada", {"a": 7, "id": "y"}),
        (None, {"a": 8, "id": "z"}),
        (b"ada", None),
        (b"ada", {"a": 9, "id": "x"}),
    ]
    assert [value and value["where"] for _, value in found["placed"]] == ["in0@1", "in0@4", "in0@5", None, "in0@12"]
    assert [value["a"] for _, value in found["twice"]] == [5, 8, 9]
    assert totals == {b"ada": {"total": 21, "last": 9}}
    assert repartitioned == [b"x", b"y", b"z", b"x"]


def test_elements_of_a_record_take_their_turns_and_merged_streams_are_one(spark: SparkSession) -> None:
    other = source(schema=SCHEMA) | {"name": "other", "topic": "other"}
    steps = [
        {"name": "all", "merge": ["in", "other"]},
        {"name": "each", "from": "all", "flatMap": {"explode": "items", "as": "item"}},
        once("each", by="item"),
        {"name": "short", "from": "once", "select": {"item": "item", "a": "a"}},
    ]
    topology = topology_of([source(schema=SCHEMA), other], steps, [{"from": "short", "topic": "out"}])
    with ExitStack() as stack:
        bench = Bench(Pipeline(spark, topology), open_tasks(stack, topology))
        more = Record(b"k", b'{"a": 2, "items": ["z", "y"]}', "other", offset=0, time=2)
        bench.store(bench.process(record("k", 1, a=1, items=["x", "y", "x"]), more, record("k", 3, a=3, items=["z"])))
        found = sorted((value["a"], value["item"]) for _, value in outputs(bench, "out"))
        assert found == [(1, "x"), (1, "y"), (2, "z")]


def test_results_of_a_join_of_streams_take_the_turns_of_the_records_that_brought_them_about(
    spark: SparkSession,
) -> None:
    other = source(schema="b BIGINT") | {"name": "other", "topic": "other"}
    join = {"stream": "other", "within": "5ms", "type": "left", "select": {"b": "other.b"}}
    steps = [
        {"name": "both", "from": "in", "join": join},
        once("both"),
        {"name": "each", "from": "both", "flatMap": {"explode": "array(id, id, 'w')", "as": "item"}},
        once("each", name="items", by="item"),
        {"name": "short", "from": "items", "select": {"item": "item", "b": "b"}},
    ]
    sinks = [{"from": "once", "topic": "once"}, {"from": "short", "topic": "items"}]
    topology = topology_of([source(schema=SCHEMA), other], steps, sinks)
    pipeline = Pipeline(spark, topology)
    given = [
        record("ada", 1, a=1, id="x"),
        Record(b"ada", b'{"b": 1}', "other", offset=0, time=2),
        record("bob", 3, a=2, id="y"),
        record("ada", 4, a=3, id="x"),
        Record(b"bob", b'{"b": 2}', "other", offset=1, time=5),
        Record(b"bob", b'{"b": 3}', "other", offset=2, time=6),
        record("cyd", 7, a=4, id="z"),
        record("ada", 20, a=5, id="x"),
        Record(b"ada", b'{"b": 4}', "other", offset=3, time=20),
    ]
    for cuts in [[], [4], list(range(1, len(given)))]:
        found: dict[str, list[Any]] = {"once": [], "items": []}
        with ExitStack() as stack:
            bench = Bench(pipeline, open_tasks(stack, topology))
            for first, end in batches(len(given), cuts):
                bench.store(bench.process(*given[first:end]))
                for topic in found:
                    found[topic] += outputs(bench, topic)
        assert [(key, value["a"], value["b"]) for key, value in found["once"]] == [
            (b"ada", 1, 1),
            (b"bob", 2, 2),
            (b"cyd", 4, None),
            (b"ada", 5, 4),
        ]
        items = [(value["item"], value["b"]) for _, value in found["items"]]
        assert items == [("x", 1), ("w", 1), ("y", 2), ("z", None), ("x", 4), ("w", 4)]


@pytest.mark.parametrize(
    ("key", "data"),
    [
        ("long", (7).to_bytes(8, "big")),
        ("int", (-7).to_bytes(4, "big", signed=True)),
        ("bytes", b"\x00\xff"),
        ("double", b"\x40" + bytes(7)),
        ("string", b""),
    ],
)
def test_keys_of_every_format_are_ids(spark: SparkSession, key: str, data: bytes) -> None:
    topology = topology_of([source("string", key=key)], [once()], [{"from": "once", "topic": "out"}])
    with ExitStack() as stack:
        bench = Bench(Pipeline(spark, topology), open_tasks(stack, topology))
        bench.store(bench.process(Record(data, "ä".encode(), offset=0, time=1)))
        assert outputs(bench, "out") == [(data, {"value": "ä"})]
        written = [each for each in bench.producer.records if each[0] == "app-once-dedupe-store-changelog"]
        assert [(each[2], each[3]) for each in written] == [
            (data + (1).to_bytes(8, "big") + bytes(4), bytes(7) + b"\1")
        ]
        bench.store(bench.process(Record(data, b"x", offset=1, time=11), Record(data, b"y", offset=2, time=12)))
        assert outputs(bench, "out") == [(data, {"value": "y"})]


def test_an_id_that_spark_refuses_is_a_mistake_at_its_field(spark: SparkSession) -> None:
    steps = [once(by="nonsense(a)"), once(name="more", by="sequence(1, 2)")]
    topology = topology_of([source(schema=SCHEMA)], steps)
    with pytest.raises(InvalidApplicationException) as refused:
        Pipeline(spark, topology)
    assert [mistake.path for mistake in refused.value.mistakes] == [
        "spec.topology.steps[0].dedupe.by",
        "spec.topology.steps[1].dedupe.by",
    ]


@pytest.mark.usefixtures("spark")
def test_orders_that_are_sent_again_reach_the_sink_once_behind_a_repartition(made: Made) -> None:
    steps = [
        {"name": "by-user", "from": "orders", "keyBy": "user"},
        {"name": "once", "from": "by-user", "dedupe": {"within": "10s"}},
        {"name": "short", "from": "once", "select": {"amount": "amount"}},
    ]
    driver = made(document([ORDERS], steps, {"out": "short"}), partitions=3)
    orders, out = driver.input_topic("orders"), driver.output_topic("out")
    orders.pipe("1", {"user": "ada", "amount": 1})
    orders.pipe("2", {"user": "ada", "amount": 2}, timestamp=START + 10 * SECOND)
    orders.pipe_all(
        [("3", {"user": "ada", "amount": 3}, START + 11 * SECOND), ("4", {"amount": 4}), ("5", {"amount": 5})]
    )
    assert sorted((each.key, each.value["amount"]) for each in out.read_all() if each.key) == [("ada", 1), ("ada", 3)]
    assert driver.counters.records_dropped == 1
    with pytest.raises(UnknownStateStoreException):
        driver.store("once-dedupe-store")
