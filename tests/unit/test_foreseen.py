"""What shows, before Spark is there, of what a scan will take over."""

from __future__ import annotations

from typing import Any

import pytest
from pipeline_kit import source, topology_of

from streams_runtime.pipeline.pushdown.foreseen import is_foreseen

SOURCE = source(schema="a BIGINT, s STRING")
TOTALS = {"name": "t", "from": "in", "aggregate": {"n": "count(*)", "a": "sum(a)"}, "store": "t"}
WHERE = {"name": "w", "from": "in", "where": "a >= 0 and not (s in ('x', 'y') or s is null)"}
OUT = [{"from": "t", "topic": "out"}]


def test_filters_and_plain_aggregates_are_foreseen() -> None:
    assert is_foreseen(topology_of([SOURCE], [WHERE, TOTALS | {"from": "w"}], OUT))


def test_tumbling_windows_are_foreseen() -> None:
    window = {"window": {"tumbling": {"size": "1m", "grace": "1s"}}}
    assert is_foreseen(topology_of([SOURCE], [WHERE, TOTALS | window | {"from": "w"}], OUT))


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
    ],
    ids=["time", "format", "function", "sum", "order", "argument", "window", "late", "key", "behind", "no aggregate"],
)
def test_what_needs_spark_for_rows_is_not(sources: Any, steps: Any, sinks: Any) -> None:
    assert not is_foreseen(topology_of(sources, steps, sinks))
