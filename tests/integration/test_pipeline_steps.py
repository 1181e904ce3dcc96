"""What each step makes of records, and what of an application Spark's analysis refuses, each at its own field."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson
import pytest
from pipeline_kit import BY_SPARK, Pipeline, Record, json, mistakes_of, sent, source, topology_of, values
from state_kit import key_value_store, memory_folder

from streams_runtime.batch.stage import StageOutput
from streams_runtime.topology.nodes.aggregate_node import AggregateNode
from streams_runtime.topology.nodes.source_and_sink_nodes import Format

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.integration, pytest.mark.usefixtures("compiled_queries")]

AB = "a BIGINT, b STRING"


def test_where_keeps_what_is_true_and_select_names_the_new_columns(spark: SparkSession) -> None:
    steps = [{"name": "x", "from": "in", "where": "a > 1", "select": {"double": "a * 2", "b": "upper(b)"}}]
    pipeline = Pipeline(spark, topology_of([source(schema=AB)], steps, [{"from": "x", "topic": "out"}]))
    result = pipeline.run(
        Record(b"k1", json(a=1, b="x")),
        Record(b"k2", json(a=2, b="y"), time=7),
        Record(b"k3", json(b="a is null, so neither true nor false")),
        Record(b"k4", None),
        Record(None, json(a=3)),
    )
    assert values(result) == [(b"k2", {"double": 4, "b": "Y"}), (None, {"double": 6, "b": None})]
    assert sent(result.emissions, "out")[0][2] == 7


def test_a_star_keeps_the_columns_that_are_not_named(spark: SparkSession) -> None:
    steps = [
        {"name": "x", "from": "in", "where": "a > 0", "select": {"*": "*", "B": "upper(b)", "twice": "a * 2"}},
        {"name": "y", "from": "x", "select": {"*": "*", "a": "twice + 1"}},
        {"name": "t", "from": "x", "aggregate": {"n": "count(*)", "top-b": "max(b)"}, "store": "t"},
        {"name": "z", "from": "t", "select": {"*": "*", "n": "n * 10"}, "where": "n < 2"},
    ]
    sinks = [{"from": "y", "topic": "out"}, {"from": "z", "topic": "table"}]
    pipeline = Pipeline(spark, topology_of([source(schema=AB)], steps, sinks))
    with memory_folder() as folder:
        first, second = (behind(pipeline, folder, [Record(b"k", json(a=each, b="x"), offset=each)]) for each in (1, 2))
    assert values(pipeline.run(Record(b"k", json(a=1, b="x")))) == [(b"k", {"a": 3, "B": "X", "twice": 2})]
    assert values(first, "table") == [(b"k", {"n": 10, "top-b": "X"})]
    assert values(second, "table") == [(b"k", None)], "a row that leaves the table"


def test_a_tombstone_passes_a_select_as_a_tombstone(spark: SparkSession) -> None:
    steps = [{"name": "x", "from": "in", "select": {"c": "coalesce(a, 0)"}}]
    pipeline = Pipeline(spark, topology_of([source(schema=AB)], steps, [{"from": "x", "topic": "out"}]))
    assert values(pipeline.run(Record(b"k", None), Record(b"k", json()))) == [(b"k", None), (b"k", {"c": 0})]


@pytest.mark.parametrize("steps", [[], [{"name": "y", "from": "other", "where": "a > 1"}]], ids=["unused", "no sink"])
def test_records_of_which_nothing_is_made_are_accounted_for(spark: SparkSession, steps: list[dict[str, str]]) -> None:
    sources = [source(schema=AB), source(schema=AB, name="other", topic="other")]
    pipeline = Pipeline(spark, topology_of(sources, steps, [{"from": "in", "topic": "out"}]))
    (sub,) = (each for each in pipeline.topology.subtopologies if "other" in each.source_topics)
    result = pipeline.run(Record(b"k", json(a=2), "other"), Record(b"k", b"{", "other"), sub=sub.id)
    assert [(each.records, each.broken) for each in result.accounts.values()] == [(2, 1)]


KEYS: list[tuple[str, str, bytes | None]] = [
    ("b", "string", b"x"),
    ("a", "long", b"\0\0\0\0\0\0\0\x05"),
    ("cast(a as int)", "int", b"\0\0\0\x05"),
    ("a / 2", "double", bytes.fromhex("4004000000000000")),
    ("cast(b as binary)", "bytes", b"x"),
    ("named_struct('user', b, 'n', a)", "json", b'{"user":"x","n":5}'),
    ("nullif(b, 'x')", "string", None),
]


@pytest.mark.parametrize(("expression", "name", "expected"), KEYS)
def test_a_key_by_gives_each_record_the_expressions_value_as_its_key(
    spark: SparkSession, expression: str, name: str, expected: bytes | None
) -> None:
    steps = [{"name": "x", "from": "in", "keyBy": expression}]
    pipeline = Pipeline(spark, topology_of([source(schema=AB)], steps, [{"from": "x", "topic": "out"}]))
    assert values(pipeline.run(Record(b"old", json(a=5, b="x")))) == [(expected, {"a": 5, "b": "x"})]
    assert pipeline.compiler.key_format("x").name == name


def test_a_merge_takes_the_records_of_all_inputs_by_the_names_of_their_columns(spark: SparkSession) -> None:
    sources = [source(schema="a BIGINT, b STRING"), source(schema="b STRING, a BIGINT", name="other", topic="other")]
    steps = [{"name": "both", "merge": ["in", "other"]}]
    pipeline = Pipeline(spark, topology_of(sources, steps, [{"from": "both", "topic": "out"}]))
    result = pipeline.run(
        Record(b"1", json(a=1, b="x")), Record(b"2", json(a=2, b="y"), topic="other"), Record(b"3", json(a=3))
    )
    assert sorted(values(result), key=lambda row: row[0] or b"") == [
        (b"1", {"a": 1, "b": "x"}),
        (b"2", {"a": 2, "b": "y"}),
        (b"3", {"a": 3, "b": None}),
    ]


AGGREGATE = {
    "n": "count(*)",
    "known": "count(a)",
    "total": "sum(a)",
    "least": "min(b)",
    "most": "max(a)",
    "mean": "avg(a)",
}


def test_an_aggregate_gives_each_partition_and_key_once_with_the_latest_time(spark: SparkSession) -> None:
    steps = [{"name": "t", "from": "in", "aggregate": AGGREGATE, "store": "t"}]
    pipeline = Pipeline(spark, topology_of([source(schema=AB)], steps))
    result = pipeline.run(
        Record(b"k", json(a=1, b="z"), time=9),
        Record(b"k", json(a=None, b="y"), time=5),
        Record(b"k", json(a=4, b="x"), time=7, partition=1),
        Record(b"j", json(a=4), time=3),
        Record(b"k", None),
        Record(None, json(a=1)),
    )
    (keyed,) = result.store_batches
    rows = zip(
        keyed.partitions.to_pylist(),
        keyed.keys.to_pylist(),
        keyed.timestamps.to_pylist(),
        keyed.columns.to_pylist(),
        strict=True,
    )
    columns = ("n", "known", "total", "least", "most")
    found = {
        (p, k): (t, tuple(row[name] for name in columns), [each["record"] for each in row["mean.found"]])
        for p, k, t, row in rows
    }
    assert found == {
        (0, "k"): (9, (2, 1, 1, "y", 1), [1.0]),
        (1, "k"): (7, (1, 1, 4, "x", 4), [4.0]),
        (0, "j"): (3, (1, 1, 4, None, 4), [4.0]),
    }
    # Neither a record without a key nor one without a value can be aggregated.
    assert sorted((reason, number) for (_, reason), number in result.dropped.items()) == [
        ("null-key", 1),
        ("null-value", 1),
    ]


def aggregated(spark: SparkSession, steps: list[dict[str, Any]], sinks: list[dict[str, Any]]) -> Pipeline:
    totals = {"name": "totals", "from": "in", "aggregate": {"total": "sum(a)", "n": "count(*)"}, "store": "totals"}
    return Pipeline(spark, topology_of([source(schema=AB)], [totals, *steps], sinks))


def behind(pipeline: Pipeline, folder: Path, *batches: list[Record]) -> StageOutput:
    """What the steps behind the aggregate give for the last of the batches."""
    result = StageOutput()
    with ExitStack() as stack:
        stores = {number: stack.enter_context(key_value_store(folder, partition=number)) for number in range(2)}
        for records in batches:
            first = pipeline.run(*records)
            new = pipeline.merge(first, stores)
            for partition, updates in new.updates.items():
                stores[partition].write(updates, None)
            node = first.store_batches[0].node
            assert isinstance(node, AggregateNode)
            result.emissions = pipeline.runners[0].run_table(node.name, new.rows).emissions
    return result


def test_what_follows_an_aggregate_sees_its_new_rows(spark: SparkSession) -> None:
    steps = [{"name": "big", "from": "totals", "where": "total > 10", "select": {"value": "concat(_key, ':', total)"}}]
    sinks = [{"from": "totals", "topic": "all"}, {"from": "big", "topic": "big", "value": {"format": "string"}}]
    pipeline = aggregated(spark, steps, sinks)
    with memory_folder() as folder:
        result = behind(
            pipeline,
            folder,
            [Record(b"a", json(a=6), time=50), Record(b"b", json(a=1), time=1, partition=1)],
            [Record(b"a", json(a=7), time=40), Record(b"b", json(a=2), time=60, partition=1)],
        )
    assert sent(result.emissions, "all") == [(b"a", b'{"total":13,"n":2}', 50), (b"b", b'{"total":3,"n":2}', 60)]
    # What a where rejects of a table is deleted there, not passed over.
    assert sent(result.emissions, "big") == [(b"a", b"a:13", 50), (b"b", None, 60)]


def test_a_sink_right_behind_an_aggregate_writes_what_one_behind_a_step_writes(spark: SparkSession) -> None:
    """The first is written without Spark, the second by Spark."""
    totals = {
        "name": "t",
        "from": "in",
        "aggregate": {
            "s": "max(b)",
            "d": "max(a / 4)",
            "w": "sum(cast(a as double))",
            "t": "max(_timestamp)",
            "none": "min(nullif(a, a))",
        },
        "store": "t",
    }
    same = {"name": "same", "from": "t", "select": {each: each for each in ("s", "d", "w", "t", "none")}}
    sinks = [{"from": "t", "topic": "direct"}, {"from": "same", "topic": "spark"}]
    pipeline = Pipeline(spark, topology_of([source(schema=AB)], [totals, same], sinks))
    records = [Record(b"k", json(a=10, b='\u00fc"\\\n\U0001f600'), time=1_700_000_000_123), Record(b"j", json(a=-1))]
    with memory_folder() as folder:
        result = behind(pipeline, folder, records)
    assert values(result, "direct") == values(result, "spark")
    assert values(result, "direct")[1] == (
        b"k",
        {"s": '\u00fc"\\\n\U0001f600', "d": 2.5, "w": 10.0, "t": "2023-11-14T22:13:20.123000Z", "none": None},
    )


def test_records_come_out_of_a_repartition_topic_as_they_went_in(spark: SparkSession) -> None:
    """All types through JSON and back, with key, time and headers."""
    schema = (
        "a BIGINT, b STRING, d DOUBLE, f FLOAT, i INT, y BOOLEAN, t TIMESTAMP, l TIMESTAMP_NTZ, day DATE,"
        " price DECIMAL(10,2), raw BINARY, n STRUCT<x: INT, y: STRING>, m MAP<STRING, INT>, z ARRAY<DOUBLE>"
    )
    fields = [
        each.strip().split(" ")[0]
        for each in schema.replace("<x: INT, y: STRING>", "")
        .replace("<STRING, INT>", "")
        .replace("(10,2)", "")
        .split(",")
    ]
    text = {field: f"max(to_json(named_struct('v', {field})))" for field in fields}
    meta = {"at": "max(unix_micros(_timestamp))", "h": "max(to_json(named_struct('v', _headers)))", "n_": "count(*)"}
    steps = [
        {"name": "by", "from": "in", "keyBy": "named_struct('a', a, 't', date_trunc('day', t))"},
        {"name": "by-b", "from": "in", "keyBy": "b"},
        {"name": "through", "from": "by-b", "aggregate": text | meta, "store": "through"},
    ]
    pipeline = Pipeline(spark, topology_of([source(schema=schema)], steps, [{"from": "by", "topic": "keys"}]))
    value = orjson.dumps(
        {
            "a": -(2**63),
            "b": 'k\u00fc"',
            "d": 0.1,
            "f": 1.5,
            "i": 7,
            "y": True,
            "t": "2024-01-02T03:04:05.000001Z",
            "l": "2024-01-02T03:04:05.000001",
            "day": "0001-01-01",
            "price": 12.34,
            "raw": "AP8=",
            "n": {"x": None, "y": "z"},
            "m": {"p": 1},
            "z": [1.0, None],
        }
    )
    first = pipeline.run(Record(b"old", value, time=1_700_000_000_123, headers=[("h", b"1")]), Record(b"old", None))
    (moved,) = (each for each in first.emissions if each.internal)
    assert moved.topic == "app-by-b-repartition"
    assert (len(moved), first.dropped.total()) == (1, 1)
    assert moved.headers == [[("h", b"1")]]
    again = Record(moved.keys[0], moved.values[0], moved.topic, time=moved.timestamps[0], headers=moved.headers[0])
    second = pipeline.run(again, sub=1)
    assert second.accounts["by-b-repartition-source"].broken == 0
    (row,) = second.store_batches[0].columns.to_pylist()
    direct = Pipeline(
        spark,
        topology_of([source(schema=schema)], [{"name": "t", "from": "in", "aggregate": text | meta, "store": "t"}]),
    )
    (expected,) = (
        direct.run(Record(b"k", value, time=1_700_000_000_123, headers=[("h", b"1")]))
        .store_batches[0]
        .columns.to_pylist()
    )
    assert row == expected
    assert row["n_"] == 1


def test_everything_that_spark_refuses_is_reported_at_once_each_at_its_field(spark: SparkSession) -> None:
    steps = [
        {"name": "x", "from": "in", "where": "size(b) > 0"},
        {"name": "y", "from": "in", "select": {"fine": "a", "one": "size(a)", "two": "array(a) + 1"}},
        {"name": "z", "from": "in", "keyBy": "size(b)"},
        {"name": "w", "from": "in", "where": "a + 1"},
        {
            "name": "t",
            "from": "in",
            "aggregate": {"n": "count(*)", "p": "sum(array(a))", "q": "avg(map(a, a))"},
            "store": "t",
        },
        {"name": "behind", "from": "x", "select": {"c": "size(a)"}},
    ]
    found = mistakes_of(spark, topology_of([source(schema=AB)], steps, **BY_SPARK))
    at = "spec.topology.steps"
    assert sorted(found) == [
        f"{at}[0].where",
        f"{at}[1].select.one",
        f"{at}[1].select.two",
        f"{at}[2].keyBy",
        f"{at}[3].where",
        f"{at}[4].aggregate.p",
        f"{at}[4].aggregate.q",
    ]
    assert "size(b)" in found[f"{at}[0].where"]
    assert all("\n" not in each for each in found.values())


def test_a_key_that_no_format_carries_is_refused_with_what_would_do(spark: SparkSession) -> None:
    found = mistakes_of(
        spark, topology_of([source(schema="y BOOLEAN")], [{"name": "x", "from": "in", "keyBy": "not y"}], **BY_SPARK)
    )
    assert list(found) == ["spec.topology.steps[0].keyBy"]
    assert "BOOLEAN" in found["spec.topology.steps[0].keyBy"]
    assert "cast it to STRING, BIGINT, INT or DOUBLE" in found["spec.topology.steps[0].keyBy"]


def test_a_merge_of_different_columns_or_keys_names_both_inputs_and_what_they_have(spark: SparkSession) -> None:
    """Types that only Spark knows; what the file itself says is compared without it."""
    steps = [
        {"name": "x", "from": "in", "select": {"c": "size(array(a))"}},
        {"name": "y", "from": "in", "select": {"c": "a"}},
        {"name": "columns", "merge": ["x", "y"]},
        {"name": "k", "from": "in", "keyBy": "size(array(a))"},
        {"name": "keys", "merge": ["in", "k"]},
    ]
    found = mistakes_of(spark, topology_of([source(schema="a BIGINT")], steps, **BY_SPARK))
    at = "spec.topology.steps"
    assert sorted(found) == [f"{at}[2].merge", f"{at}[4].merge"]
    assert "y has other columns than x: key STRING, c BIGINT and key STRING, c INT" in found[f"{at}[2].merge"]
    assert "k has other columns than in: key INT, a BIGINT and key STRING, a BIGINT" in found[f"{at}[4].merge"]


def test_arguments_of_types_that_a_function_does_not_take_are_refused_at_their_columns(spark: SparkSession) -> None:
    """Types that only Spark knows; what the file itself says is judged without it."""
    aggregate = {
        "good": "approx_percentile(a + 1, 0.5)",
        "text": "approx_percentile(concat(a, 'x'), 0.5)",
        "array": "approx_count_distinct(array(a))",
        "map": "collect_list(map(a, a), 3)",
        "decimal": "collect_set(cast(a as decimal(10, 2)) + 1, 3)",
        "unknown": "collect_set(size(a), 3)",
        "maps": "count(distinct map(a, a))",
        "second": "count(distinct a, map(a, a))",
        "exact": "count(distinct cast(a as decimal(10, 2)) + 1, array(a))",
    }
    found = mistakes_of(
        spark,
        topology_of(
            [source(schema=AB)], [{"name": "t", "from": "in", "aggregate": aggregate, "store": "t"}], **BY_SPARK
        ),
    )
    at = "spec.topology.steps[0].aggregate"
    assert sorted(found) == [
        f"{at}.{name}" for name in ("array", "decimal", "map", "maps", "second", "text", "unknown")
    ]
    assert "approx_percentile is of numbers; cast it to DOUBLE" in found[f"{at}.text"]
    assert "lists do not keep yet; collect one field of it" in found[f"{at}.map"]
    assert "DECIMAL(11,2), which lists do not keep yet" in found[f"{at}.decimal"]
    assert "no two maps are compared; count array_sort(map_entries(x))" in found[f"{at}.maps"]
    assert "not counted by its values; count one field of it, or to_json of it" in found[f"{at}.array"]


def test_an_aggregate_of_a_type_that_can_not_be_kept_is_refused_at_its_column(spark: SparkSession) -> None:
    aggregate = {
        "good": "sum(a)",
        "bad": "sum(cast(a as decimal(10,2)))",
        "worse": "max(array(cast(a as decimal(10,2))))",
    }
    found = mistakes_of(
        spark,
        topology_of(
            [source(schema=AB)], [{"name": "t", "from": "in", "aggregate": aggregate, "store": "t"}], **BY_SPARK
        ),
    )
    assert sorted(found) == ["spec.topology.steps[0].aggregate.bad", "spec.topology.steps[0].aggregate.worse"]
    assert "cast the argument" in found["spec.topology.steps[0].aggregate.bad"]


FORMATS = [
    ("string", "a"),
    ("long", "b"),
    ("int", "a"),
    ("double", "a"),
    ("bytes", "b"),
    ("string", "a > 1"),
    ("long", "array(a)"),
]


@pytest.mark.parametrize(("declared", "expression"), FORMATS)
def test_a_sink_of_one_value_refuses_a_column_of_another_type(
    spark: SparkSession, declared: str, expression: str
) -> None:
    """Written all the same, it would be bytes that no reader of that format understands."""
    sinks = [{"from": "x", "topic": "out", "value": {"format": declared}}]
    found = mistakes_of(
        spark,
        topology_of(
            [source(schema=AB)], [{"name": "x", "from": "in", "select": {"value": expression}}], sinks, **BY_SPARK
        ),
    )
    assert list(found) == ["spec.topology.sinks[0].value.format"]


def test_a_sink_refuses_keys_of_another_format(spark: SparkSession) -> None:
    steps = [{"name": "k", "from": "in", "keyBy": "size(array(a))"}]
    found = mistakes_of(
        spark,
        topology_of([source(schema=AB)], steps, [{"from": "k", "topic": "out", "key": {"format": "long"}}], **BY_SPARK),
    )
    assert list(found) == ["spec.topology.sinks[0].key.format"]
    assert "the keys of k are int; declare int" in found["spec.topology.sinks[0].key.format"]


def test_the_formats_of_keys_are_known_everywhere_for_whoever_queries(spark: SparkSession) -> None:
    steps = [
        {"name": "by", "from": "in", "keyBy": "a"},
        {"name": "t", "from": "by", "aggregate": {"n": "count(*)"}, "store": "t"},
    ]
    pipeline = Pipeline(spark, topology_of([source(schema=AB)], steps))
    assert pipeline.compiler.key_format("in") == Format("string")
    assert pipeline.compiler.key_format("t") == Format("long")
    assert pipeline.compiler.aggregate("t").finish_value(b'{"n":3}') == {"n": 3}


def test_columns_may_have_odd_names(spark: SparkSession) -> None:
    names = ["value", "key", "Order", "per cent %", "\u00fc", "count(1)"]
    sums = {name: f"sum(`{name}`)" for name in names}
    steps = [
        {"name": "x", "from": "in", "select": dict.fromkeys(names, "a")},
        {"name": "t", "from": "x", "aggregate": sums | {"mean": "avg(`per cent %`)"}, "store": "t"},
        {"name": "y", "from": "t", "select": {name: f"`{name}` + 1" for name in names}},
    ]
    sinks = [{"from": "x", "topic": "x"}, {"from": "t", "topic": "t"}, {"from": "y", "topic": "y"}]
    pipeline = Pipeline(spark, topology_of([source(schema=AB)], steps, sinks))
    with memory_folder() as folder:
        result = behind(pipeline, folder, [Record(b"k", json(a=2))], [Record(b"k", json(a=2))])
    assert values(result, "t") == [(b"k", dict.fromkeys(names, 4) | {"mean": 2.0})]
    assert values(result, "y") == [(b"k", dict.fromkeys(names, 5))]
    assert values(pipeline.run(Record(b"k", json(a=2))), "x") == [(b"k", dict.fromkeys(names, 2))]
