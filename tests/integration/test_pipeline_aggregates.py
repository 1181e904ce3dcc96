"""Every aggregate function, computed by Spark and kept over batches, beside Python's own."""

from __future__ import annotations

import json
import statistics
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import pytest
from pipeline_bench import Bench, open_tasks
from pipeline_kit import Pipeline, Record, source, topology_of

from streams_runtime.errors import InvalidApplicationException
from streams_runtime.state.aggregates.aggregate_kinds import KINDS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.integration

VALUES: list[float | None] = [None, 4.0, 0.5, None, 7.25, -3.0, None]
KNOWN = [value for value in VALUES if value is not None]
EXPECTED = {
    "count": len(KNOWN),
    "count_if": 3,
    "bool_and": False,
    "bool_or": True,
    "any_value": min(KNOWN),
    "sum": sum(KNOWN),
    "min": min(KNOWN),
    "max": max(KNOWN),
    "avg": statistics.fmean(KNOWN),
    "first": None,
    "last": None,
    "var_pop": statistics.pvariance(KNOWN),
    "var_samp": statistics.variance(KNOWN),
    "variance": statistics.variance(KNOWN),
    "stddev_pop": statistics.pstdev(KNOWN),
    "stddev_samp": statistics.stdev(KNOWN),
    "stddev": statistics.stdev(KNOWN),
    "approx_count_distinct": len({*KNOWN}),
    "count_distinct": len({0, 1, -1}),
    "max_by": -3.0,
    "min_by": max(KNOWN),
    "approx_percentile": 0.5,
    "collect_list": KNOWN[-3:],
    "collect_set": KNOWN[-3:],
    "top": sorted(KNOWN)[:3],
}
WITHIN = {"approx_percentile": 0.01}
CONDITIONS = dict.fromkeys(("count_if", "bool_and", "bool_or"), "a > 0")
NUMBERS = {"max_by": ", -a", "min_by": ", -a"} | {
    "approx_percentile": ", 0.5",
    "collect_list": ", 3",
    "collect_set": ", 3",
    "top": ", -a, 3",
}
WINDOWS: dict[str, Any] = {
    "by key": None,
    "tumbling": {"tumbling": {"size": "1h"}},
    "sessions": {"session": {"gap": "1m"}},
}


@pytest.mark.parametrize("window", WINDOWS)
def test_every_function_is_pythons_own_after_any_batches(spark: SparkSession, window: str) -> None:
    assert EXPECTED.keys() == {*KINDS}
    aggregate = {
        function: f"{function}({CONDITIONS.get(function, 'a')}{NUMBERS.get(function, '')})" for function in KINDS
    }
    aggregate["count_distinct"] = "count(distinct cast(a as int) % 2)"
    aggregate |= {"old": "first(b)", "new": "last(b)"}
    step = {"name": "s", "from": "in", "aggregate": aggregate, "store": "s"}
    step |= {} if WINDOWS[window] is None else {"window": WINDOWS[window]}
    topology = topology_of([source(schema="a DOUBLE, b BIGINT")], [step], [{"from": "s", "topic": "out"}])
    values = [json.dumps({"a": value, "b": number}).encode() for number, value in enumerate(VALUES)]
    # The first and the last by their offsets, whatever their times.
    records = [Record(b"k", value, offset=at, time=1000 - at) for at, value in enumerate(values)]
    with ExitStack() as stack:
        bench = Bench(Pipeline(spark, topology), open_tasks(stack, topology))
        for first, end in ((0, 2), (2, 3), (3, 7)):
            bench.store(bench.process(*records[first:end]))
        last = [json.loads(value) for topic, _, _, value, _, _ in bench.producer.records if topic == "out" and value]
    found = last[-1]
    assert (found.pop("old"), found.pop("new")) == (0, 6)
    assert found == {name: pytest.approx(value, rel=WITHIN.get(name)) for name, value in EXPECTED.items()}


@pytest.mark.parametrize("call", ["first(a)", "last(a)", "collect_list(a, 3)", "collect_set(a, 3)"])
def test_what_goes_by_the_order_of_several_topics_is_refused_since_they_have_none(
    spark: SparkSession, call: str
) -> None:
    sources = [source(schema="a BIGINT"), source(schema="a BIGINT") | {"name": "too", "topic": "too"}]
    steps = [
        {"name": "both", "merge": ["in", "too"]},
        {"name": "s", "from": "both", "aggregate": {"n": "count(*)", "a": call}, "store": "s"},
    ]
    with pytest.raises(InvalidApplicationException) as refused:
        Pipeline(spark, topology_of(sources, steps, [{"from": "s", "topic": "out"}]))
    (mistake,) = refused.value.mistakes
    assert mistake.path == "spec.topology.steps[1].aggregate.a"
    assert "no order" in mistake.found


@pytest.mark.parametrize("call", ["last(item)", "collect_list(item, 3)"])
def test_the_last_elements_of_records_are_refused_since_offsets_are_no_order(spark: SparkSession, call: str) -> None:
    steps = [
        {"name": "each", "from": "in", "flatMap": {"explode": "items", "as": "item"}},
        {"name": "s", "from": "each", "aggregate": {"a": call}, "store": "s"},
    ]
    with pytest.raises(InvalidApplicationException, match="records of a flatMap"):
        Pipeline(spark, topology_of([source(schema="items ARRAY<INT>")], steps, [{"from": "s", "topic": "out"}]))
