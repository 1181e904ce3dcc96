"""Steps over tables in batches: formats, times, headers, expressions, and what Spark refuses of them."""

from __future__ import annotations

import json
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import pytest
from pipeline_bench import Bench, open_tasks
from pipeline_kit import BY_SPARK, Pipeline, Record, mistakes_of, source, topology_of, values

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.integration

Sent = tuple[bytes | None, Any, int, Any]


def table(name: str, schema: str | None = None, value: str = "json", **more: Any) -> dict[str, Any]:
    return source(value, schema, **more) | {"name": name, "topic": name, "table": {"store": name}}


USERS, PLANS = table("users", "name STRING, plan INT"), table("plans", "price INT, since BIGINT")


def joined(select: dict[str, str], kind: str = "inner", other: str = "plans", **more: Any) -> dict[str, Any]:
    return {"name": "both", "from": "users", "join": {"table": other, "type": kind, "select": select}} | more


def user(key: str, time: int, value: Any, **more: Any) -> Record:
    return record("users", key, time, value, **more)


def record(topic: str, key: str, time: int, value: Any, **more: Any) -> Record:
    data = value if value is None or isinstance(value, bytes) else json.dumps(value).encode()
    return Record(key.encode(), data, topic, offset=time, time=time, **more)


def sent(bench: Bench, topic: str = "out") -> list[Sent]:
    """Key, value (of JSON as what it says), time and headers of what a batch has written, in order."""
    rows = [row for row in bench.producer.records if row[0] == topic]
    return [(key, value and json.loads(value), time, headers) for _, _, key, value, time, headers in rows]


def run(spark: SparkSession, topology: Any, *batches: list[Record], topic: str = "out") -> list[Sent]:
    """What a topic gets, batch after batch."""
    found = []
    with ExitStack() as stack:
        bench = Bench(Pipeline(spark, topology), open_tasks(stack, topology))
        for records in batches:
            bench.store(bench.process(*records))
            found += sent(bench, topic)
    return found


def test_a_where_of_a_table_deletes_rows_that_no_longer_fit_and_is_silent_about_others(spark: SparkSession) -> None:
    steps = [
        {"name": "gold", "from": "in", "where": "tier = 'gold'", "select": {"n": "name"}},
        {"name": "names", "from": "in", "select": {"n": "name"}},
    ]
    declared = source(schema="name STRING, tier STRING", table={"store": "users"})
    sinks = [{"from": name, "topic": topic} for name, topic in (("gold", "out"), ("names", "names"), ("in", "all"))]
    topology = topology_of([declared], steps, sinks)
    gold, tin = {"name": "a", "tier": "gold"}, {"name": "a", "tier": "tin"}
    first = [
        record("in", key, at, value)
        for at, (key, value) in enumerate([("1", gold), ("2", tin), ("3", {}), ("4", None)])
    ]
    second = [record("in", key, 9, value) for key, value in (("1", tin), ("2", gold), ("3", b"null"), ("4", None))]
    written = run(spark, topology, first, second)
    assert [row[:3] for row in written] == [(b"1", {"n": "a"}, 0), (b"1", None, 9), (b"2", {"n": "a"}, 9)]
    result = Pipeline(spark, topology).run(*first)
    assert [key for key, value in values(result, "all") if value is None] == [b"4"]
    assert values(result, "names") == [(b"1", {"n": "a"}), (b"2", {"n": "a"}), (b"3", {"n": None}), (b"4", None)]


def test_a_joins_expressions_see_both_rows_and_a_change_of_either_carries_its_own_headers(spark: SparkSession) -> None:
    select = {"Plan": "plan * 10", "price": "plans.price", "all": "plans", "who": "_key", "at": "_timestamp"}
    topology = topology_of([USERS, PLANS], [joined(select, "left")], [{"from": "both", "topic": "out"}])
    headers = [("h", b"1")]
    written = run(
        spark,
        topology,
        [user("ada", 1000, {"name": "Ada", "plan": 1}, headers=headers)],
        [record("plans", "ada", 3000, {"price": 5, "since": 7}), user("ada", 4000, None, headers=headers)],
    )
    row = {"name": "Ada", "Plan": 10, "who": "ada"}
    assert written == [
        (b"ada", {**row, "price": None, "all": None, "at": "1970-01-01T00:00:01.000000Z"}, 1000, headers),
        (
            b"ada",
            {**row, "price": 5, "all": {"price": 5, "since": 7}, "at": "1970-01-01T00:00:03.000000Z"},
            3000,
            None,
        ),
        (b"ada", None, 4000, headers),
    ]


def test_the_time_of_a_row_is_what_its_source_declares_also_when_the_store_tells_it(spark: SparkSession) -> None:
    plans = PLANS | {"timestamp": "since"}
    topology = topology_of([USERS, plans], [joined({"price": "plans.price"})], [{"from": "both", "topic": "out"}])
    plan = record("plans", "ada", 1, {"price": 5, "since": 7000})
    written = run(spark, topology, [plan], [user("ada", 2, {"name": "Ada"})], [record("plans", "ada", 3, None)])
    assert [(value and value["price"], time) for _, value, time, _ in written] == [(5, 7000), (None, 3)]


def test_tables_of_one_value_and_keys_of_numbers_are_joined_and_written_as_such(spark: SparkSession) -> None:
    sources = [table("users", value="long", key="long"), table("user-plans", value="string", key="long")]
    step = joined({"value": "concat(`user-plans`.value, ':', value)"}, "outer", "user-plans")
    sinks = [{"from": "both", "topic": "out", "key": {"format": "long"}, "value": {"format": "string"}}]
    topology = topology_of(sources, [step | {"from": "users"}], sinks)
    key = (-5).to_bytes(8, "big", signed=True)
    records = [
        Record(key, (7).to_bytes(8, "big"), "users", offset=0, time=1),
        Record(key, b"gold", "user-plans", offset=0, time=2),
    ]
    with ExitStack() as stack:
        bench = Bench(Pipeline(spark, topology), open_tasks(stack, topology))
        bench.process(*records)
        # concat of null is null, and a null string is a value that nobody has.
        assert [row[2:5] for row in bench.producer.records] == [(key, None, 1), (key, b"gold:7", 2)]


def test_rows_that_a_where_rejects_are_not_asked_further(spark: SparkSession) -> None:
    steps = [{"name": "share", "from": "users", "where": "plan != 0", "select": {"part": "10 / plan"}}]
    topology = topology_of([USERS], steps, [{"from": "share", "topic": "out"}])
    written = run(
        spark, topology, [user("ada", 1, {"plan": 0}), user("ada", 2, {"plan": 4}), user("ada", 3, {"plan": 0})]
    )
    assert [value for _, value, _, _ in written] == [{"part": 2.5}, None]


def test_rows_without_a_key_are_dropped_by_every_table_and_counted_once(spark: SparkSession) -> None:
    steps = [joined({"price": "plans.price"}), {"name": "s", "from": "users", "select": {"n": "name"}}]
    sinks = [{"from": name, "topic": f"out-{name}"} for name in ("users", "both", "s")]
    topology = topology_of([USERS, PLANS], steps, sinks)
    with ExitStack() as stack:
        bench = Bench(Pipeline(spark, topology), open_tasks(stack, topology))
        bench.process(Record(None, b'{"name": "x"}', "users", time=1), Record(None, None, "plans", time=1))
        assert (bench.producer.records, bench.counters.records_dropped) == ([], 2)


def test_a_stream_is_joined_with_a_table_that_others_filter_and_join(spark: SparkSession) -> None:
    steps = [
        joined({"price": "plans.price"}),
        {"name": "paid", "from": "in", "join": {"table": "plans", "select": {"price": "plans.price"}}},
    ]
    sinks = [{"from": "both", "topic": "out"}, {"from": "paid", "topic": "paid"}]
    topology = topology_of([source(schema="a INT"), USERS, PLANS], steps, sinks)
    records = [record("plans", "k", 1, {"price": 3}), record("in", "k", 2, {"a": 1}), user("k", 3, {"name": "K"})]
    assert run(spark, topology, records, topic="paid") == [(b"k", {"a": 1, "price": 3}, 2, None)]
    assert [value["price"] for _, value, _, _ in run(spark, topology, records)] == [3]


def test_a_column_that_spark_refuses_is_a_mistake_at_its_field(spark: SparkSession) -> None:
    step = joined({"x": "plans.price + array(1)", "y": "nonsense(plans.price)"})
    topology = topology_of([USERS, PLANS], [step], [{"from": "both", "topic": "out"}], **BY_SPARK)
    path = "spec.topology.steps[0].join.select"
    assert list(mistakes_of(spark, topology)) == [f"{path}.x", f"{path}.y"]


def test_the_first_batch_of_a_topology_with_table_steps_is_warmed_up_without_output(spark: SparkSession) -> None:
    topology = topology_of([USERS, PLANS], [joined({"p": "plans.price"})], [{"from": "both", "topic": "out"}])
    Pipeline(spark, topology).runners[0].warm_up()
