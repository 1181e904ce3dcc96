"""What shows, before Spark is there, of what a scan will take over."""

from __future__ import annotations

from typing import Any

import pytest
from pipeline_kit import source, topology_of

from streams_runtime.pipeline.pushdown.foreseen import is_added_up, is_foreseen

SOURCE = source(schema="a BIGINT, s STRING")
TOTALS = {"name": "t", "from": "in", "aggregate": {"n": "count(*)", "a": "sum(a)"}, "store": "t"}
WHERE = {"name": "w", "from": "in", "where": "a >= 0 and not (s in ('x', 'y') or s is null)"}
OUT = [{"from": "t", "topic": "out"}]


def test_filters_and_plain_aggregates_are_foreseen() -> None:
    topology = topology_of([SOURCE], [WHERE, TOTALS | {"from": "w"}], OUT)
    assert is_foreseen(topology)
    assert is_added_up(topology)


@pytest.mark.parametrize("call", ["sum(a) FILTER (WHERE a > 1)", "max_by(a, a)", "count_if(a > 1)"])
def test_aggregates_that_a_scan_leaves_to_spark_are_not(call: str) -> None:
    assert not is_foreseen(topology_of([SOURCE], [TOTALS | {"aggregate": {"n": call}}], OUT))


def test_tumbling_windows_are_foreseen() -> None:
    window = {"window": {"tumbling": {"size": "1m", "grace": "1s"}}}
    assert is_foreseen(topology_of([SOURCE], [WHERE, TOTALS | window | {"from": "w"}], OUT))


TABLE = source(schema="tier INT") | {"name": "users", "topic": "users", "table": {"store": "users"}}
JOIN = {"name": "j", "from": "w", "join": {"table": "users", "select": {"tier": "users.tier"}}}
BEHIND = {"name": "b", "from": "j", "where": "tier > 1", "select": {"tier": "tier"}}
JOINED = [{"from": "b", "topic": "out"}]


@pytest.mark.parametrize("sinks", [JOINED, [*JOINED, {"from": "j", "topic": "all", "value": {"format": "json"}}]])
def test_a_join_with_a_table_between_filters_is_foreseen(sinks: Any) -> None:
    topology = topology_of([SOURCE, TABLE], [WHERE, JOIN, BEHIND], sinks)
    assert is_foreseen(topology)
    assert not is_added_up(topology)


@pytest.mark.parametrize(
    ("sources", "steps", "sinks"),
    [
        ([source(schema="a BIGINT, s STRING", timestamp="a"), TABLE], [WHERE, JOIN, BEHIND], JOINED),
        ([SOURCE, TABLE | {"timestamp": "cast(tier as bigint)"}], [WHERE, JOIN, BEHIND], JOINED),
        ([SOURCE, TABLE], [WHERE, JOIN, BEHIND | {"where": "tier + 1 > 0"}], JOINED),
        ([SOURCE, TABLE], [WHERE, JOIN | {"join": {"table": "users", "select": {"tier": "upper(s)"}}}, BEHIND], JOINED),
        ([SOURCE, TABLE], [WHERE, JOIN, BEHIND], [*JOINED, {"from": "w", "topic": "before"}]),
        ([SOURCE, TABLE], [WHERE, JOIN, BEHIND], [{"from": "b", "topicBy": "concat('of-', tier)"}]),
        ([SOURCE, TABLE], [WHERE, JOIN, BEHIND, JOIN | {"name": "k", "from": "b"}], [{"from": "k", "topic": "out"}]),
        ([SOURCE, TABLE], [WHERE, JOIN, BEHIND, {"name": "u", "from": "users", "where": "tier > 0"}], JOINED),
        ([SOURCE, TABLE], [WHERE, JOIN, BEHIND, TOTALS | {"from": "b", "aggregate": {"n": "count(*)"}}], JOINED),
    ],
    ids=[
        "time",
        "time of the table",
        "step",
        "select",
        "sink",
        "a topic by record",
        "two joins",
        "step of the table",
        "aggregate",
    ],
)
def test_a_join_that_needs_spark_for_rows_is_not(sources: Any, steps: Any, sinks: Any) -> None:
    assert not is_foreseen(topology_of(sources, steps, sinks))


@pytest.mark.parametrize(
    ("sources", "steps", "sinks"),
    [
        ([source(schema="a BIGINT", timestamp="a")], [TOTALS], OUT),
        ([source(value="string")], [TOTALS | {"aggregate": {"n": "count(*)"}}], OUT),
        ([SOURCE], [WHERE | {"where": "upper(s) = 'X'"}, TOTALS | {"from": "w"}], OUT),
        ([SOURCE], [WHERE | {"where": "a + 1 > 0"}, TOTALS | {"from": "w"}], OUT),
        ([SOURCE], [TOTALS | {"aggregate": {"a": "first(a)"}}], OUT),
        ([SOURCE], [TOTALS | {"aggregate": {"a": "sum(abs(a))"}}], OUT),
        ([SOURCE], [TOTALS | {"window": {"hopping": {"size": "1m", "advance": "10s"}}}], OUT),
        ([SOURCE], [TOTALS | {"window": {"tumbling": {"size": "1m"}, "late": {"topic": "late"}}}], OUT),
        ([SOURCE], [{"name": "k", "from": "in", "keyBy": "s"}, TOTALS | {"from": "k"}], OUT),
        ([SOURCE], [TOTALS, WHERE | {"from": "t", "where": "n > 1"}], [{"from": "w", "topic": "out"}]),
        ([SOURCE], [WHERE], [{"from": "w", "topic": "out"}]),
        ([SOURCE], [TOTALS], [{"from": "t", "topicBy": "concat('of-', _key)"}]),
    ],
    ids=[
        *("time", "format", "function", "sum", "order", "argument", "window", "late", "key", "behind", "no aggregate"),
        "a topic by record",
    ],
)
def test_what_needs_spark_for_rows_is_not(sources: Any, steps: Any, sinks: Any) -> None:
    assert not is_foreseen(topology_of(sources, steps, sinks))
