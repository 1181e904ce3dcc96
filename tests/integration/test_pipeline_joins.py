"""Joins in batches: what comes behind them, tables of every format, and expressions that Spark refuses."""

from __future__ import annotations

import json
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import pytest
from pipeline_bench import Bench, open_tasks
from pipeline_kit import BY_SPARK, Pipeline, Record, mistakes_of, source, topology_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.integration

USERS = source(schema="tier STRING, score INT") | {"name": "users", "topic": "users", "table": {"store": "users"}}


def joined(select: dict[str, str], **more: Any) -> dict[str, Any]:
    return {"name": "both", "from": "in", "join": {"table": "users", "select": select, **more}}


def order(key: str | None, amount: int, time: int, headers: Any = None) -> Record:
    value = json.dumps({"a": amount}).encode()
    return Record(key.encode() if key else None, value, offset=time, time=time, headers=headers)


def user(key: str, tier: str | None, time: int) -> Record:
    value = None if tier is None else json.dumps({"tier": tier, "score": len(tier)}).encode()
    return Record(key.encode(), value, "users", offset=time, time=time)


def outputs(bench: Bench, topic: str) -> list[tuple[bytes | None, Any]]:
    return [(key, value and json.loads(value)) for to, _, key, value, _, _ in bench.producer.records if to == topic]


def test_what_a_join_adds_or_replaces_is_there_for_the_steps_behind_it(spark: SparkSession) -> None:
    steps = [
        joined({"tier": "upper(users.tier)", "a": "a * users.score"}, type="left"),
        {"name": "golden", "from": "both", "where": "tier = 'GOLD'", "select": {"value": "tier || a"}},
        {"name": "by-tier", "from": "both", "aggregate": {"n": "count(tier)", "total": "sum(a)"}, "store": "tiers"},
        {
            "name": "visits",
            "from": "both",
            "window": {"session": {"gap": "10ms"}, "retention": "1h"},
            "aggregate": {"n": "count(*)"},
            "store": "visits",
        },
    ]
    sinks = [
        {"from": "golden", "topic": "golden", "value": {"format": "string"}},
        {"from": "by-tier", "topic": "tiers"},
        {"from": "both", "topic": "all"},
    ]
    pipeline = Pipeline(spark, topology_of([source(schema="a BIGINT"), USERS], steps, sinks))
    with ExitStack() as stack:
        bench = Bench(pipeline, open_tasks(stack, pipeline.topology))
        bench.store(bench.process(user("ada", "gold", 1), user("bob", "tin", 2)))
        headers = [("h", b"1")]
        first = [order("ada", 2, 3, headers), order("bob", 1, 4), order("cid", 5, 5), order("ada", 1, 100)]
        bench.store(bench.process(*first))
        assert [record[3] for record in bench.producer.records if record[0] == "golden"] == [b"GOLD8", b"GOLD4"]
        assert dict(outputs(bench, "tiers")) == {
            b"ada": {"n": 2, "total": 12},
            b"bob": {"n": 1, "total": 3},
            b"cid": {"n": 0, "total": None},
        }
        rows = [record for record in bench.producer.records if record[0] == "all"]
        assert [json.loads(record[3]) for record in rows if record[3]] == [
            {"a": 8, "tier": "GOLD"},
            {"a": 3, "tier": "TIN"},
            {"a": None, "tier": None},
            {"a": 4, "tier": "GOLD"},
        ]
        assert [record[4] for record in rows] == [3, 4, 5, 100], "a record keeps its own time"
        assert [record[5] for record in rows] == [headers, None, None, None]
        # Too late by the stream time before the batch: sessions behind a join are cut anew, too.
        bench.store(bench.process(order("ada", 1, 80), order("ada", 1, 95)))
        assert bench.counters.late_records == 1


def test_the_record_of_a_table_comes_before_those_of_a_stream_at_its_time(spark: SparkSession) -> None:
    topology = topology_of(
        [source(schema="a BIGINT"), USERS], [joined({"tier": "users.tier"})], [{"from": "both", "topic": "out"}]
    )
    with ExitStack() as stack:
        bench = Bench(Pipeline(spark, topology), open_tasks(stack, topology))
        bench.process(order("ada", 1, 5), order("ada", 2, 7), user("ada", "tin", 5), user("ada", "gold", 8))
        assert outputs(bench, "out") == [(b"ada", {"a": 1, "tier": "tin"}), (b"ada", {"a": 2, "tier": "tin"})]


def test_a_tables_record_without_a_key_is_no_match_but_takes_its_turn(spark: SparkSession) -> None:
    topology = topology_of(
        [source(schema="a BIGINT"), USERS],
        [joined({"tier": "users.tier"}, type="left")],
        [{"from": "both", "topic": "out"}],
    )
    nobody = Record(None, b'{"tier": "none"}', "users", offset=0, time=6)
    late = Record(b"ada", b'{"tier": "tin"}', "users", offset=1, time=1)
    with ExitStack() as stack:
        bench = Bench(Pipeline(spark, topology), open_tasks(stack, topology))
        # Behind the record of 6, that of 1 has its turn at 6.
        bench.process(order("ada", 1, 5), nobody, late, order(None, 2, 8), order("ada", 3, 9))
        assert outputs(bench, "out") == [
            (b"ada", {"a": 1, "tier": None}),
            (None, {"a": 2, "tier": None}),
            (b"ada", {"a": 3, "tier": "tin"}),
        ]


@pytest.mark.parametrize(("kind", "held", "shown"), [("long", (7).to_bytes(8, "big"), 7), ("string", b"x", "x")])
def test_a_table_of_one_value_is_a_column_called_value(spark: SparkSession, kind: str, held: bytes, shown: Any) -> None:
    table = source(kind) | {"name": "users", "topic": "users", "table": {"store": "users"}}
    step = joined({"v": "users.value"}, type="left")
    topology = topology_of([source(schema="a BIGINT"), table], [step], [{"from": "both", "topic": "out"}])
    with ExitStack() as stack:
        bench = Bench(Pipeline(spark, topology), open_tasks(stack, topology))
        bench.store(bench.process(Record(b"ada", held, "users", offset=0, time=1)))
        bench.process(order("ada", 1, 2), order("bob", 1, 3))
        assert outputs(bench, "out") == [(b"ada", {"a": 1, "v": shown}), (b"bob", {"a": 1, "v": None})]


def test_a_peek_sees_what_comes_behind_a_join_and_before_it(spark: SparkSession) -> None:
    steps = [
        {"name": "before", "from": "in", "peek": {"metric": "before"}},
        joined({"tier": "users.tier"}) | {"from": "before"},
        {"name": "behind", "from": "both", "peek": {"metric": "behind", "value": "a"}},
    ]
    topology = topology_of([source(schema="a BIGINT"), USERS], steps, [{"from": "behind", "topic": "out"}])
    with ExitStack() as stack:
        bench = Bench(Pipeline(spark, topology), open_tasks(stack, topology))
        bench.process(user("ada", "gold", 1), order("ada", 5, 2), order("bob", 7, 3))
        assert bench.counters.peeks == {("before", "before"): (2, 2.0), ("behind", "behind"): (1, 5.0)}


def test_two_joins_follow_each_other(spark: SparkSession) -> None:
    plans = source(schema="price INT") | {"name": "plans", "topic": "plans", "table": {"store": "plans"}}
    steps = [
        joined({"tier": "users.tier"}),
        {"name": "priced", "from": "both", "join": {"table": "plans", "select": {"price": "plans.price"}}},
    ]
    topology = topology_of([source(schema="a BIGINT"), USERS, plans], steps, [{"from": "priced", "topic": "out"}])
    with ExitStack() as stack:
        bench = Bench(Pipeline(spark, topology), open_tasks(stack, topology))
        bench.process(user("ada", "gold", 1), Record(b"ada", b'{"price": 9}', "plans", time=2), order("ada", 1, 3))
        assert outputs(bench, "out") == [(b"ada", {"a": 1, "tier": "gold", "price": 9})]


def test_a_column_that_spark_refuses_is_a_mistake_at_its_field(spark: SparkSession) -> None:
    step = joined({"x": "users.tier + array(1)", "y": "nonsense(users.score)"})
    topology = topology_of([source(schema="a BIGINT"), USERS], [step], [{"from": "both", "topic": "out"}], **BY_SPARK)
    path = "spec.topology.steps[0].join.select"
    assert list(mistakes_of(spark, topology)) == [f"{path}.x", f"{path}.y"]
