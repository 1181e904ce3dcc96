"""max, min, max_by and top of every type that Spark orders: what Spark's own give of all records at once."""

from __future__ import annotations

import datetime as dt
import json
import random
import re
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import pytest
from pipeline_bench import Bench, open_tasks
from pipeline_kit import Pipeline, Record, source, topology_of

from streams_runtime.errors import InvalidApplicationException
from streams_runtime.state.window_keys import LATEST
from streams_runtime.state.window_store import SessionStore

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.integration

COLUMNS = "v DOUBLE, t STRING, l ARRAY<INT>, s STRUCT<a: INT, b: STRING>"
NAN = "if(v > 2, double('NaN'), if(v > 1, 0.0D, if(v > 0, -0.0D, v)))"
VALUES = {
    "pair": "struct(v, t)",
    "literal": "struct(1 as one, t)",
    "nested": f"struct({NAN} as a, array({NAN}, v) as b, struct(t, l) as c)",
    "declared": "s",
    "array": "l",
    "structs": "array(s, struct(cast(v as int) as a, t as b))",
    "arrays": "array(l, array(cast(v as int)))",
    "flags": "v > 1",
    "flag_pairs": "struct(v > 1 as big, t is null as none)",
    "bytes": "cast(t as binary)",
    "days": "struct(date_add(date'2024-02-28', cast(v as int)) as day, v)",
    "times": "array(timestamp_millis(cast(v * 4 as bigint)))",
    "local": "struct(cast(timestamp_millis(cast(v * 4 as bigint)) as timestamp_ntz) as at)",
}
RANKED = "sort_array(collect_list(if({by} is not null, struct({by} as k, {x} as w), null)), false)"
TOP = f"transform(slice({RANKED}, 1, 3), each -> each.w)"
CALLS = {
    "max": ("max({x})", "max({x})"),
    "min": ("min({x}) FILTER (WHERE t <> 'a')", "min({x}) FILTER (WHERE t <> 'a')"),
    "by": ("max_by(v, {x})", "max(if(({x}) is not null, struct({x}, v as w), null)).w"),
    "of": ("min_by({x}, t)", "min(if(t is not null, struct(t as k, {x} as w), null)).w"),
    "top": ("top({x}, v, 3)", TOP.replace("{by}", "v")),
    "first": ("top(t, {x}, 3)", TOP.replace("{x}", "t").replace("{by}", "({x})")),
}
"""Ours, and Spark's of all records at once."""


def rows() -> list[dict[str, Any]]:
    of = random.Random(7)
    numbers = [None, -1.5, 0.25, 1.0, 1.5, 2.0, 3.0]
    return [
        {
            "v": of.choice(numbers),
            "t": of.choice([None, "", "a", "ä", "\uffff", "\U0001f600"]),
            "l": of.choice([None, [], [1], [None], [1, None], [1, 2]]),
            "s": of.choice([None, {"a": None, "b": "x"}, {"a": 1, "b": None}, {"a": 1, "b": "y"}]),
        }
        for _ in range(24)
    ]


def expected(spark: SparkSession, given: list[dict[str, Any]]) -> dict[str, Any]:
    whole = spark.createDataFrame([tuple(each.values()) for each in given], COLUMNS)
    calls = [
        f"{theirs.format(x=x)} as {call}_{kind}" for kind, x in VALUES.items() for call, (_, theirs) in CALLS.items()
    ]
    found = whole.selectExpr(*calls).selectExpr("to_json(struct(*)) as shown").first()
    assert found is not None
    shown: dict[str, Any] = json.loads(found.shown)
    return shown


@pytest.mark.parametrize("window", [{}, {"window": {"session": {"gap": "5ms", "grace": "1h"}}}], ids=["key", "session"])
def test_they_are_those_of_spark_wherever_batches_begin(spark: SparkSession, window: dict[str, Any]) -> None:
    calls = {f"{call}_{kind}": ours.format(x=x) for kind, x in VALUES.items() for call, (ours, _) in CALLS.items()}
    step = {"name": "s", "from": "in", "aggregate": calls, "store": "s", **window}
    # Behind a step Spark writes the columns, without one the runtime itself.
    behind = {"name": "all", "from": "s", "select": {name: name for name in calls}}
    sinks = [{"from": "s", "topic": "out"}, {"from": "all", "topic": "behind"}]
    topology = topology_of([source(schema=COLUMNS)], [step, behind], sinks)
    given = rows()
    # Within a session's gap of each other, in an order in which sessions are put together.
    records = [
        Record(b"k", json.dumps(row).encode(), offset=at, time=1000 + 4 * (at % 2 * 12 + at // 2))
        for at, row in enumerate(given)
    ]
    none = {"v": None, "t": None, "l": None, "s": None}
    records.append(Record(b"j", json.dumps(none).encode(), offset=24, time=1000))
    with ExitStack() as stack:
        bench = Bench(Pipeline(spark, topology), open_tasks(stack, topology))
        written: dict[str, dict[bytes, Any]] = {"out": {}, "behind": {}}
        for first, end in ((0, 1), (1, 9), (9, 25)):
            bench.store(bench.process(*records[first:end]))
            for topic, _, key, value, *_ in bench.producer.records:
                if topic in written and value:
                    written[topic][key[:1]] = json.loads(value)
        store = bench.tasks[0].stores["s"]
        entries = store.fetch(None, None, 0, LATEST) if isinstance(store, SessionStore) else store.scan(None, None)
        shown = bench.pipeline.compiler.aggregate("s").finish_value
        queried = {key[:1]: shown(value) for key, value in entries}
    for key, of_key in ((b"k", given), (b"j", [none])):
        whole = comparable(expected(spark, of_key))
        assert comparable(written["behind"][key]) == whole
        assert comparable(written["out"][key]) == whole
        assert comparable(queried[key]) == whole


def comparable(value: Any) -> Any:
    """Without null fields, and with times of one form: Spark writes no microseconds where there are none."""
    if isinstance(value, dict):
        return {name: comparable(each) for name, each in value.items() if each is not None}
    if isinstance(value, list):
        return [comparable(each) for each in value]
    if isinstance(value, str) and re.match(r"\d{4}-\d\d-\d\dT", value):
        return dt.datetime.fromisoformat(value).replace(tzinfo=dt.UTC)
    return value


@pytest.mark.parametrize(
    ("call", "found"),
    [
        ("max(struct(cast(v as decimal(10, 2)) as d))", "struct<d: decimal128(10, 2)>"),
        ("min(map_from_arrays(array(t), array(v)))", "which has no order"),
        ("top(t, map_from_arrays(array(t), array(v)), 3)", "does not support ordering on type"),
    ],
)
def test_what_can_not_be_kept_or_ordered_is_refused_with_its_field(spark: SparkSession, call: str, found: str) -> None:
    step = {"name": "s", "from": "in", "aggregate": {"n": "count(*)", "m": call}, "store": "s"}
    with pytest.raises(InvalidApplicationException) as refused:
        Pipeline(spark, topology_of([source(schema=COLUMNS)], [step], [{"from": "s", "topic": "out"}]))
    (mistake,) = refused.value.mistakes
    assert mistake.path == "spec.topology.steps[0].aggregate.m"
    assert found in mistake.found
