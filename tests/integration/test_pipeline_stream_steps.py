"""What the steps that only streams have make of records, wherever batches begin."""

from __future__ import annotations

import uuid
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import pytest
from pipeline_bench import Bench, open_tasks
from pipeline_kit import BY_SPARK, Pipeline, Record, json, mistakes_of, sent, source, topology_of, values

from streams_runtime.batch.peeks import Line

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.integration

LINES = "a BIGINT, s STRING, lines ARRAY<STRUCT<item: STRING, n: INT>>"
AS = "a BIGINT, s STRING"
EACH = {"name": "each", "from": "in", "flatMap": {"explode": "lines", "as": "line"}}
OUT = {"from": "each", "topic": "out"}


def line(item: str | None, n: int | None = None) -> dict[str, Any]:
    return {"item": item, "n": n}


def test_each_element_becomes_a_record_with_the_rest_of_its_record(spark: SparkSession) -> None:
    pipeline = Pipeline(spark, topology_of([source(schema=LINES)], [EACH], [OUT]))
    result = pipeline.run(
        Record(b"k1", json(a=1, lines=[line("z", 1), line("a", 2), None]), time=7, headers=[("h", b"1")]),
        Record(b"k2", json(a=2, lines=[])),
        Record(b"k3", json(a=3)),
        Record(b"k4", None),
        Record(None, json(a=5, lines=[line(None)]), time=9),
    )
    lines = [line("z", 1), line("a", 2), None]
    assert values(result) == [
        *((b"k1", {"a": 1, "s": None, "lines": lines, "line": each}) for each in lines),
        (None, {"a": 5, "s": None, "lines": [line(None)], "line": line(None)}),
    ]
    assert [time for *_, time in sent(result.emissions, "out")] == [7, 7, 7, 9]
    assert result.emissions[0].headers == [[("h", b"1")]] * 3 + [None]
    assert result.records == 5
    assert result.dropped.total() == 0


def test_elements_keep_their_order_over_many_records(spark: SparkSession) -> None:
    """Records enough for several partitions in Spark."""
    only = {"name": "only", "from": "each", "select": {"value": "line.n"}}
    sinks = [{"from": "only", "topic": "out", "value": {"format": "int"}}]
    pipeline = Pipeline(spark, topology_of([source(schema=LINES)], [EACH, only], sinks))
    numbers = [list(range(first * 3, first * 3 + first % 4)) for first in range(500)]
    result = pipeline.run(*(Record(b"k", json(lines=[line(None, n) for n in each])) for each in numbers))
    found = [int.from_bytes(value or b"", "big") for _, value, _ in sent(result.emissions, "out")]
    assert found == [n for each in numbers for n in each]


def test_a_record_without_a_value_has_no_elements_whatever_the_expression_says(spark: SparkSession) -> None:
    words = {"name": "each", "from": "in", "flatMap": {"explode": "split(concat(_key, ',b'), ',')", "as": "word"}}
    pipeline = Pipeline(spark, topology_of([source(schema="a BIGINT")], [words], [OUT]))
    result = pipeline.run(Record(b"x", None), Record(b"y", json(a=1)))
    assert values(result) == [(b"y", {"a": 1, "word": "y"}), (b"y", {"a": 1, "word": "b"})]


NOTHING = ["cast(null as array<int>)", "cast(array() as array<int>)", "filter(array(a), x -> false)"]


@pytest.mark.parametrize("explode", NOTHING)
def test_records_are_counted_also_where_no_record_can_have_elements(spark: SparkSession, explode: str) -> None:
    none = {"name": "each", "from": "in", "flatMap": {"explode": explode, "as": "none"}}
    pipeline = Pipeline(spark, topology_of([source(schema="a BIGINT")], [none], [OUT]))
    result = pipeline.run(Record(b"x", json(a=1)), Record(b"x", b"{"))
    assert (values(result), result.records, result.broken) == ([], 2, 1)


def test_elements_are_counted_by_a_new_key_and_by_windows_wherever_batches_begin(spark: SparkSession) -> None:
    steps = [EACH, {"name": "t", "from": "each", "aggregate": {"n": "sum(line.n)", "r": "count(*)"}, "store": "t"}]
    steps[1]["window"] = {"tumbling": {"size": "10ms", "grace": "0ms"}}
    pipeline = Pipeline(spark, topology_of([source(schema=LINES)], steps, [{"from": "t", "topic": "out"}]))
    records = [
        Record(b"k", json(lines=[line("x", each), line("y", 1)]), time=time, offset=each)
        for each, time in enumerate((5, 3, 12, 9, 31, 30, 19))
    ]
    found = []
    for cut in range(1, len(records)):
        with ExitStack() as stack:
            bench = Bench(pipeline, open_tasks(stack, pipeline.topology))
            last: dict[bytes | None, Any] = {}
            for rows in (records[:cut], records[cut:]):
                bench.store(bench.process(*rows))
                last |= {key: value for topic, _, key, value, *_ in bench.producer.records if topic == "out"}
            # The two late records have two elements each.
            assert bench.counters.late_records == 4
            found.append(sorted(last.values()))
    assert found == [[b'{"n":11,"r":4}', b'{"n":3,"r":2}', b'{"n":3,"r":4}']] * (len(records) - 1)


def test_what_gives_no_array_or_is_refused_by_spark_is_told_at_its_field(spark: SparkSession) -> None:
    steps = [
        {"name": "m", "from": "in", "flatMap": {"explode": "map(s, a)", "as": "x"}},
        {"name": "n", "from": "in", "flatMap": {"explode": "size(a)", "as": "x"}},
    ]
    found = mistakes_of(spark, topology_of([source(schema=LINES)], steps, **BY_SPARK))
    at = "spec.topology.steps"
    assert sorted(found) == [f"{at}[0].flatMap.explode", f"{at}[1].flatMap.explode"]
    assert "MAP<STRING,BIGINT>, which has no elements; give an ARRAY" in found[f"{at}[0].flatMap.explode"]
    assert "size(a)" in found[f"{at}[1].flatMap.explode"]


SIZED = {
    "name": "sized",
    "from": "in",
    "split": [{"name": "large", "where": "a > 100"}, {"name": "odd", "where": "a % 2 = 1 or s = 'odd'"}],
}
BRANCHES = ("large", "odd", "rest")


def split_sinks(*branches: str) -> list[dict[str, Any]]:
    return [{"from": f"sized.{branch}", "topic": branch} for branch in branches]


def test_a_record_goes_into_the_first_branch_that_is_true_for_it(spark: SparkSession) -> None:
    pipeline = Pipeline(spark, topology_of([source(schema=AS)], [{**SIZED, "default": "rest"}], split_sinks(*BRANCHES)))
    result = pipeline.run(
        Record(b"1", json(a=101)),
        Record(b"2", json(a=7), time=5, headers=[("h", b"x")]),
        Record(b"3", json(a=8)),
        Record(b"4", json(s="odd")),
        Record(b"5", json(s="a is null, so no condition is true")),
        Record(b"6", None),
        Record(None, json(a=102)),
    )
    found = {branch: [key for key, _ in values(result, branch)] for branch in BRANCHES}
    assert found == {"large": [b"1", None], "odd": [b"2", b"4"], "rest": [b"3", b"5", b"6"]}
    assert sent(result.emissions, "odd")[0] == (b"2", b'{"a":7,"s":null}', 5)
    assert next(each.headers for each in result.emissions if each.topic == "odd") == [[("h", b"x")], None]
    assert values(result, "rest")[-1] == (b"6", None)


def test_without_a_default_what_belongs_to_no_branch_is_left_out(spark: SparkSession) -> None:
    sinks = split_sinks("large", "odd")
    pipeline = Pipeline(spark, topology_of([source(schema=AS)], [SIZED], sinks))
    result = pipeline.run(Record(b"1", json(a=101)), Record(b"2", json(a=2)), Record(b"3", None))
    assert [values(result, branch) for branch in ("large", "odd")] == [[(b"1", {"a": 101, "s": None})], []]
    assert (result.records, result.dropped.total()) == (3, 0)


def test_branches_are_split_merged_and_selected_further(spark: SparkSession) -> None:
    again = {"name": "again", "from": "sized.rest", "split": [{"name": "few", "where": "a < 5"}], "default": "rest"}
    steps = [
        {**SIZED, "default": "rest"},
        again,
        {"name": "m", "merge": ["sized.large", "again.few"]},
        {"name": "x", "from": "m", "select": {"b": "a + 1"}},
    ]
    sinks = [{"from": "x", "topic": "out"}, {"from": "again.rest", "topic": "rest"}]
    pipeline = Pipeline(spark, topology_of([source(schema=AS)], steps, sinks))
    result = pipeline.run(*(Record(b"k", json(a=a)) for a in (2, 300, 3, 10)))
    assert sorted(value["b"] for _, value in values(result)) == [3, 301]
    assert values(result, "rest") == [(b"k", {"a": 10, "s": None})]


def test_every_condition_that_spark_refuses_is_told_at_its_field(spark: SparkSession) -> None:
    conditions = ("size(a) > 0", "a > 0", "a + 1")
    split = [{"name": f"b{number}", "where": where} for number, where in enumerate(conditions)]
    found = mistakes_of(
        spark, topology_of([source(schema=AS)], [{"name": "x", "from": "in", "split": split}], **BY_SPARK)
    )
    at = "spec.topology.steps[0].split"
    assert sorted(found) == [f"{at}[0].where", f"{at}[2].where"]


def test_records_that_went_different_ways_meet_in_their_old_order_and_so_do_their_elements(spark: SparkSession) -> None:
    """The last record of a key must not depend on what came with it in a batch."""
    steps = [
        EACH,
        {"name": "s", "from": "each", "split": [{"name": "even", "where": "line.n % 2 = 0"}], "default": "odd"},
        {"name": "plain", "from": "in", "where": "lines is null", "select": {"n": "cast(a as int)"}},
        {"name": "even", "from": "s.even", "select": {"n": "line.n"}},
        {"name": "odd", "from": "s.odd", "select": {"n": "line.n"}},
        {"name": "m", "merge": ["plain", "odd", "even"]},
    ]
    pipeline = Pipeline(spark, topology_of([source(schema=LINES)], steps, [{"from": "m", "topic": "out"}]))
    result = pipeline.run(
        Record(b"k", json(lines=[line(None, n) for n in (4, 1, 2, 3)])),
        Record(b"k", json(a=5)),
        Record(b"k", json(lines=[line(None, n) for n in range(6, 30)])),
    )
    assert [value["n"] for _, value in values(result)] == [4, 1, 2, 3, *range(5, 30)]


@pytest.mark.parametrize("merged", ["xy", "yx"])
def test_what_became_of_one_record_on_two_ways_comes_in_the_order_in_which_they_part(
    spark: SparkSession, merged: str
) -> None:
    ways = [{"name": name, "from": "in", "select": {"way": f"'{name}'", "a": "a"}} for name in ("x", "y")]
    merge = {"name": "m", "merge": [*merged]}
    pipeline = Pipeline(spark, topology_of([source(schema=AS)], [*ways, merge], [{"from": "m", "topic": "out"}]))
    result = pipeline.run(*(Record(b"k", json(a=a)) for a in range(9)))
    assert [(each["a"], each["way"]) for _, each in values(result)] == [(a, way) for a in range(9) for way in "xy"]


def peek(**fields: Any) -> dict[str, Any]:
    return {"name": "seen", "from": "in", "peek": fields}


def jobs_of(spark: SparkSession, pipeline: Pipeline, *records: Record) -> int:
    """How many jobs Spark needs for a batch of these records."""
    group = str(uuid.uuid4())
    spark.sparkContext.setJobGroup(group, "peek")
    pipeline.run(*records)
    return len(spark.sparkContext.statusTracker().getJobIdsForGroup(group))


def test_a_peek_sees_what_passes_and_changes_nothing(spark: SparkSession) -> None:
    step = peek(log="concat(_key, ':', a)", atMost=2, metric="a", value="a")
    sinks = [{"from": "seen", "topic": "out"}, {"from": "seen", "topic": "copy"}]
    pipeline = Pipeline(spark, topology_of([source(schema=AS)], [step], sinks))
    records = [
        Record(b"k1", json(a=5)),
        Record(b"k2", b"{"),
        Record(b"k3", None),
        Record(None, json(a=1)),
        Record(b"k5", json(a=7), partition=3),
        Record(b"k6", json(a=8)),
    ]
    result = pipeline.run(*records)
    (found,) = result.peeks
    # One that can't be read does not pass, and neither is a text that is null logged.
    assert (found.records, found.total, found.texts) == (5, 21.0, 3)
    assert found.lines[0] == Line("in", 0, 0, "k1:5")
    assert len(found.lines) == 1  # of the first two rows: the second has no text
    plain = Pipeline(
        spark, topology_of([source(schema=AS)], [], [{"from": "in", "topic": topic} for topic in ("out", "copy")])
    )
    expected = plain.run(*records)
    assert [sent(result.emissions, topic) for topic in ("out", "copy")] == [
        sent(expected.emissions, topic) for topic in ("out", "copy")
    ]
    assert jobs_of(spark, pipeline, *records) == jobs_of(spark, plain, *records) > 0


def test_a_peek_that_nothing_follows_sees_its_records_too(spark: SparkSession) -> None:
    steps = [EACH, {**peek(metric="lines"), "from": "each"}]
    pipeline = Pipeline(spark, topology_of([source(schema=LINES)], steps))
    result = pipeline.run(Record(b"k", json(lines=[line("x"), line("y")])), Record(b"k", json(a=1)))
    assert [(seen.records, seen.total, seen.lines) for seen in result.peeks] == [(2, 2.0, ())]
    assert result.records == 2


def test_peeks_in_a_row_each_see_what_reaches_them(spark: SparkSession) -> None:
    steps = [
        peek(metric="all"),
        {"name": "x", "from": "seen", "where": "a > 1"},
        {"name": "last", "from": "x", "peek": {"log": "a", "metric": "some", "value": "a"}},
    ]
    pipeline = Pipeline(spark, topology_of([source(schema=AS)], steps))
    found = pipeline.run(*(Record(b"k", json(a=a)) for a in range(5))).peeks
    assert [(seen.node.name, seen.records, seen.total) for seen in found] == [("seen", 5, 5.0), ("last", 3, 9.0)]
    assert [each.text for each in found[1].lines] == ["2", "3", "4"]


def test_a_peek_before_sessions_that_are_cut_anew_counts_each_record_once(spark: SparkSession) -> None:
    sessions: dict[str, Any] = {"name": "t", "from": "seen", "aggregate": {"n": "count(*)"}, "store": "t"}
    sessions["window"] = {"session": {"gap": "5ms", "grace": "0ms"}}
    pipeline = Pipeline(spark, topology_of([source(schema=AS)], [peek(metric="all"), sessions]))
    with ExitStack() as stack:
        bench = Bench(pipeline, open_tasks(stack, pipeline.topology))
        for offset, time in enumerate((50, 10, 100, 40)):
            bench.store(bench.process(Record(b"k", json(a=1), time=time, offset=offset)))
        assert bench.counters.peeks == {("seen", "all"): (4, 4.0)}


def test_texts_are_logged_when_a_batch_is_processed_and_cut_where_they_are_long(
    spark: SparkSession, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "streams_runtime.peek")
    pipeline = Pipeline(spark, topology_of([source(schema=AS)], [peek(log="s")], [{"from": "seen", "topic": "out"}]))
    with ExitStack() as stack:
        bench = Bench(pipeline, open_tasks(stack, pipeline.topology))
        bench.process(Record(b"k", json(s="a\u00fc\n")), Record(b"k", json(s="x" * 5000)))
        assert bench.counters.peeks == {}
    assert caplog.messages == ["peek seen: a\u00fc\n", f"peek seen: {'x' * 1000}"]


def test_what_spark_refuses_of_a_peek_is_told_at_its_field(spark: SparkSession) -> None:
    steps = [peek(log="size(a)", metric="m", value="upper(s)")]
    found = mistakes_of(spark, topology_of([source(schema=AS)], steps, **BY_SPARK))
    at = "spec.topology.steps[0].peek"
    assert sorted(found) == [f"{at}.log", f"{at}.value"]
    assert "upper(s) is STRING, which can't be added up; give a number" in found[f"{at}.value"]


def test_a_peek_at_a_topic_that_a_batch_has_nothing_of_has_seen_nothing(spark: SparkSession) -> None:
    sources = [source(schema=AS), source(schema=AS, name="other", topic="other")]
    steps = [{**peek(log="s", metric="n"), "from": "other"}, {"name": "m", "merge": ["in", "seen"]}]
    pipeline = Pipeline(spark, topology_of(sources, steps, [{"from": "m", "topic": "out"}]))
    result = pipeline.run(Record(b"k", json(a=1)))
    assert [(seen.records, seen.total, seen.texts) for seen in result.peeks] == [(0, 0.0, 0)]
    assert values(result) == [(b"k", {"a": 1, "s": None})]


def test_headers_take_the_place_of_those_of_the_same_name_and_leave_the_rest(spark: SparkSession) -> None:
    expressions = {"who": "_key", "a": "a", "raw": "unhex('00FF')", "gone": "cast(null as string)", "s": "s"}
    step = {"name": "h", "from": "in", "headers": expressions}
    pipeline = Pipeline(spark, topology_of([source(schema=AS)], [step], [{"from": "h", "topic": "out"}]))
    own = [("s", b"old"), ("kept", None), ("gone", b"1"), ("s", b"older"), ("kept", b"2")]
    result = pipeline.run(Record(b"k1", json(a=1, s="new"), headers=own), Record(b"k2", None))
    assert values(result) == [(b"k1", {"a": 1, "s": "new"}), (b"k2", None)]
    assert result.emissions[0].headers == [
        [("kept", None), ("kept", b"2"), ("who", b"k1"), ("a", b"1"), ("raw", b"\x00\xff"), ("s", b"new")],
        [("who", b"k2"), ("raw", b"\x00\xff")],
    ]


def test_headers_are_seen_by_expressions_behind_them_and_go_on_through_other_steps(spark: SparkSession) -> None:
    steps = [
        {"name": "h", "from": "in", "headers": {"n": "a"}},
        {"name": "x", "from": "h", "select": {"seen": "cast(_headers[0].value as string)"}},
        {"name": "again", "from": "x", "headers": {"n": "concat(seen, '!')"}},
    ]
    pipeline = Pipeline(spark, topology_of([source(schema=AS)], steps, [{"from": "again", "topic": "out"}]))
    result = pipeline.run(Record(b"k", json(a=7)))
    assert values(result) == [(b"k", {"seen": "7"})]
    assert result.emissions[0].headers == [[("n", b"7!")]]


def test_what_spark_refuses_of_headers_is_told_with_its_field(spark: SparkSession) -> None:
    step = {"name": "h", "from": "in", "headers": {"good": "a", "bad": "date_add(s, s, s)"}}
    found = mistakes_of(spark, topology_of([source(schema=AS)], [step], [{"from": "h", "topic": "out"}]))
    assert list(found) == ["spec.topology.steps[0].headers.bad"]
