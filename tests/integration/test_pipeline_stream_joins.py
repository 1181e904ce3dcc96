"""Joins of two streams in batches: what comes before and behind them, types of every kind, what Spark refuses."""

from __future__ import annotations

import json
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import pytest
from pipeline_bench import Bench, open_tasks
from pipeline_kit import BY_SPARK, Pipeline, Record, mistakes_of, source, topology_of

from streams_runtime.errors import InvalidApplicationException

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.integration

ORDERS = source(schema="a BIGINT")
PAID = source(schema="sum BIGINT, way STRING") | {"name": "paid", "topic": "paid"}


def joined(select: dict[str, str], from_: str = "in", **more: Any) -> dict[str, Any]:
    return {"name": "both", "from": from_, "join": {"stream": "paid", "within": "10ms", "select": select, **more}}


def order(key: str | None, amount: int, time: int, headers: Any = None) -> Record:
    return Record(key and key.encode(), json.dumps({"a": amount}).encode(), offset=time, time=time, headers=headers)


def payment(key: str, amount: int, time: int, headers: Any = None) -> Record:
    value = json.dumps({"sum": amount, "way": "card"}).encode()
    return Record(key.encode(), value, "paid", offset=time, time=time, headers=headers)


def outputs(bench: Bench, topic: str) -> list[tuple[bytes | None, Any]]:
    return [(key, value and json.loads(value)) for to, _, key, value, _, _ in bench.producer.records if to == topic]


def test_what_a_join_adds_or_replaces_is_there_for_the_steps_behind_it(spark: SparkSession) -> None:
    steps = [
        joined({"way": "upper(paid.way)", "a": "a - paid.sum"}, type="left", grace="20ms"),
        {"name": "open", "from": "both", "where": "a > 0", "select": {"value": "way || a"}},
        {"name": "by-key", "from": "both", "aggregate": {"n": "count(way)", "last": "last(a)"}, "store": "totals"},
        {"name": "seen", "from": "both", "peek": {"metric": "results"}},
        {
            "name": "visits",
            "from": "both",
            "window": {"session": {"gap": "20ms"}, "retention": "1h"},
            "aggregate": {"n": "count(*)"},
            "store": "visits",
        },
        {
            "name": "spans",
            "from": "both",
            "window": {"tumbling": {"size": "10ms"}},
            "aggregate": {"n": "count(*)"},
            "store": "spans",
        },
    ]
    sinks = [
        {"from": "open", "topic": "open", "value": {"format": "string"}},
        {"from": "by-key", "topic": "totals"},
        {"from": "both", "topic": "all"},
    ]
    pipeline = Pipeline(spark, topology_of([ORDERS, PAID], steps, sinks))
    with ExitStack() as stack:
        bench = Bench(pipeline, open_tasks(stack, pipeline.topology))
        bench.store(bench.process(order("ada", 5, 1), order("bob", 7, 2), payment("ada", 2, 4, [("h", b"1")])))
        assert outputs(bench, "all") == [(b"ada", {"a": 3, "way": "CARD"})]
        assert [record[4:] for record in bench.producer.records if record[0] == "all"] == [(4, [("h", b"1")])]
        assert [record[3] for record in bench.producer.records if record[0] == "open"] == [b"CARD3"]
        bench.store(bench.process(payment("ada", 4, 5), payment("ada", 5, 6), order("cid", 1, 40)))
        assert outputs(bench, "all") == [
            (b"ada", {"a": 1, "way": "CARD"}),
            (b"ada", {"a": 0, "way": "CARD"}),
            (b"bob", {"a": None, "way": None}),
        ]
        assert dict(outputs(bench, "totals")) == {b"ada": {"n": 3, "last": 0}, b"bob": {"n": 0, "last": None}}
        bench.store(bench.process(payment("cid", 1, 41)))
        assert bench.counters.peeks == {("seen", "results"): (5, 5.0)}
        assert bench.counters.late_records == 0
        # The windows behind the join have come to 41 with its last result: a join of long ago is late in both.
        bench.store(bench.process(order("ada", 9, 6)))
        assert [value["a"] for _, value in outputs(bench, "all")] == [7, 5, 4]
        assert bench.counters.late_records == 3 + 3


def test_sides_may_be_made_of_each_others_source_and_of_several(spark: SparkSession) -> None:
    steps = [
        {"name": "large", "from": "in", "where": "a > 5"},
        {"name": "each", "from": "in", "flatMap": {"explode": "sequence(1, a)", "as": "x"}},
        {"name": "small", "from": "each", "where": "x < 3", "select": {"x": "x"}},
        {"name": "more", "from": "other", "select": {"x": "cast(b as bigint)"}},
        {"name": "these", "merge": ["small", "more"]},
        {"name": "both", "from": "large", "join": {"stream": "these", "within": "5ms", "select": {"x": "these.x"}}},
    ]
    other = source(schema="b INT") | {"name": "other", "topic": "other"}
    topology = topology_of([ORDERS, other], steps, [{"from": "both", "topic": "out"}])
    with ExitStack() as stack:
        bench = Bench(Pipeline(spark, topology), open_tasks(stack, topology))
        extra = Record(b"ada", b'{"b": 9}', "other", offset=3, time=3)
        bench.store(bench.process(order("ada", 6, 1), order("ada", 2, 4), extra))
        assert outputs(bench, "out") == [(b"ada", {"a": 6, "x": x}) for x in (1, 2, 9, 1, 2)]
        bench.store(bench.process(order("ada", 7, 6)))
        assert outputs(bench, "out") == [
            *((b"ada", {"a": 7, "x": x}) for x in (1, 2, 9, 1, 2)),
            *((b"ada", {"a": a, "x": x}) for x in (1, 2) for a in (6, 7)),
        ]


def test_a_side_of_elements_is_joined_where_what_follows_adds_them_in_order(spark: SparkSession) -> None:
    steps = [
        {"name": "each", "from": "in", "flatMap": {"explode": "array(a, a + 1)", "as": "x"}},
        {"name": "both", "from": "each", "join": {"stream": "paid", "within": "5ms", "select": {"x": "x * paid.sum"}}},
        {"name": "means", "from": "both", "aggregate": {"mean": "avg(x)", "n": "count(*)"}, "store": "means"},
    ]
    topology = topology_of([ORDERS, PAID], steps, [{"from": "means", "topic": "out"}])
    with ExitStack() as stack:
        bench = Bench(Pipeline(spark, topology), open_tasks(stack, topology))
        bench.store(bench.process(order("ada", 1, 1), payment("ada", 3, 2)))
        assert outputs(bench, "out") == [(b"ada", {"mean": 4.5, "n": 2})]


@pytest.mark.parametrize(
    ("key", "data"), [("long", (7).to_bytes(8, "big")), ("bytes", b"\x00\xff"), ("double", b"\x40" + bytes(7))]
)
def test_keys_of_every_format_and_values_of_one_column(spark: SparkSession, key: str, data: bytes) -> None:
    sources = [source("string", key=key), source("bytes", key=key) | {"name": "other", "topic": "other"}]
    join = {"stream": "other", "type": "outer", "within": "5ms", "select": {"theirs": "other.value"}}
    steps = [{"name": "both", "from": "in", "join": join}]
    topology = topology_of(sources, steps, [{"from": "both", "topic": "out"}])
    with ExitStack() as stack:
        bench = Bench(Pipeline(spark, topology), open_tasks(stack, topology))
        bench.store(bench.process(Record(data, "ä".encode(), offset=0, time=1)))
        bench.store(bench.process(Record(data, b"\xfe", "other", offset=0, time=2)))
        bench.store(bench.process(Record(data, b"x", "other", offset=1, time=20)))
        bench.store(bench.process(Record(data, b"y", offset=1, time=90)))
        assert outputs(bench, "out") == [(data, {"value": None, "theirs": "eA=="})]
    with ExitStack() as stack:
        bench = Bench(Pipeline(spark, topology), open_tasks(stack, topology))
        bench.store(bench.process(Record(data, "ä".encode(), offset=0, time=1)))
        bench.store(bench.process(Record(data, b"\xfe", "other", offset=0, time=2)))
        assert outputs(bench, "out") == [(data, {"value": "ä", "theirs": "/g=="})]


def test_columns_of_every_type_lie_in_the_stores_without_a_loss(spark: SparkSession) -> None:
    schema = (
        "t TIMESTAMP, d DECIMAL(20, 4), day DATE, l ARRAY<STRUCT<x: INT>>, m MAP<STRING, DOUBLE>, s STRING, b BOOLEAN"
    )
    value = {
        "t": "2024-02-29T12:00:00.123456Z",
        "d": 1234567890123456.7891,
        "day": "2024-02-29",
        "l": [{"x": 1}, {"x": None}],
        "m": {"k": 0.1},
        "s": 'a"\n☃',
        "b": True,
    }
    text = json.dumps(value).replace("1234567890123456.8", "1234567890123456.7891").encode()
    other = source(schema=schema) | {"name": "other", "topic": "other"}
    same = " and ".join(f"{name} = other.{name}" for name in ("t", "d", "day", "l", "s", "b"))
    select = {"same": f"{same} and m['k'] = other.m['k']", "micros": "unix_micros(t)"}
    join = {"stream": "other", "within": "5ms", "select": select}
    steps = [
        {"name": "both", "from": "in", "join": join},
        {
            "name": "out",
            "from": "both",
            "select": {"same": "same", "micros": "micros", "d": "cast(d as string)", "l": "l", "s": "s"},
        },
    ]
    topology = topology_of([source(schema=schema), other], steps, [{"from": "out", "topic": "out"}])
    with ExitStack() as stack:
        bench = Bench(Pipeline(spark, topology), open_tasks(stack, topology))
        bench.store(bench.process(Record(b"k", text, offset=0, time=1)))
        bench.store(bench.process(Record(b"k", text, "other", offset=0, time=2)))
        ((_, found),) = outputs(bench, "out")
        assert found == {
            "same": True,
            "micros": 1_709_208_000_123_456,
            "d": "1234567890123456.7891",
            "l": value["l"],
            "s": value["s"],
        }


def test_a_column_that_spark_refuses_is_a_mistake_at_its_field(spark: SparkSession) -> None:
    step = joined({"x": "paid.way + array(1)", "y": "nonsense(paid.sum)"})
    topology = topology_of([ORDERS, PAID], [step], [{"from": "both", "topic": "out"}], **BY_SPARK)
    path = "spec.topology.steps[0].join.select"
    assert list(mistakes_of(spark, topology)) == [f"{path}.x", f"{path}.y"]


def test_keys_of_two_types_are_a_mistake_where_only_spark_can_tell(spark: SparkSession) -> None:
    steps = [{"name": "k", "from": "in", "keyBy": "abs(a)"}, joined({"x": "paid.sum"}, from_="k")]
    topology = topology_of([ORDERS, PAID], steps, [{"from": "both", "topic": "out"}], **BY_SPARK)
    with pytest.raises(InvalidApplicationException, match=r"join\.stream.*long, those of paid string"):
        Pipeline(spark, topology)
