"""What the scan takes over of a stage, beside Spark, which does the same stage whole."""

from __future__ import annotations

import struct
from collections.abc import Callable
from copy import copy
from dataclasses import replace
from itertools import chain, product
from typing import TYPE_CHECKING, Any

import orjson
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pipeline_kit import Pipeline, Record, batch, json, source, topology_of
from pyspark.errors import ArithmeticException
from shared_cases import EXAMPLES, shared

from streams_runtime.batch.encode import encoded
from streams_runtime.batch.stage import StageOutput
from streams_runtime.kafka.admin.kafka_admin import Admin
from streams_runtime.kafka.client.client_properties import client_properties
from streams_runtime.kafka.consumer.record_table import LATEST_TIME
from streams_runtime.kafka.producer.batch_producer import BatchProducer
from streams_runtime.kafka.types import TopicPartition, TopicSpec
from streams_runtime.pipeline.batch_input import BatchInput, OffsetRange
from streams_runtime.pipeline.pushdown.partial_columns import Answer, Stage
from streams_runtime.pipeline.record_reader import RecordReader
from streams_runtime.pipeline.runner import SubTopologyRunner

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.integration, pytest.mark.usefixtures("compiled_queries")]

SCHEMA = "a BIGINT, i INT, d DOUBLE, s STRING, ok BOOLEAN"
ALL = {"n": "count(*)", "known": "count(s)", "total": "sum(a)", "low": "min(a)", "high": "max(i)", "mean": "avg(i)"}
ALL |= {"sum": "sum(d)", "spread": "stddev(d)"}
TAKEN_OVER: dict[str, tuple[str, list[dict[str, Any]]]] = {
    "comparisons": ("string", [{"where": "a >= 0 and not (s = 'x' or s is null)"}]),
    "unknown": ("string", [{"where": "not (ok and s in ('x', 'y')) or not (i <=> a)"}]),
    "doubles": ("long", [{"where": "d > 0.5D or i < d"}]),
    "selected": (
        "int",
        [
            {"select": {"a": "i", "i": "i", "d": "d", "s": "coalesce(s, '-')", "r": "upper(s)", "far": "_offset"}},
            {"where": "s <> '-' and far >= 2"},
        ],
    ),
    "all": ("bytes", []),
}
LEFT_TO_SPARK = {
    "a function": ([{"where": "upper(s) = 'X'"}], ALL),
    "a sum that may leave its range": ([{"where": "a + 1 > 0"}], ALL),
    "a remainder": ([{"where": "a % 2 = 0"}], ALL),
    "a comparison of several types": ([{"where": "a = 0.5"}], ALL),
    "a selected function that is asked for": ([{"select": {"s": "upper(s)"}}, {"where": "s = 'X'"}], {"n": "count(*)"}),
    "a cast that may fail": ([{"where": "cast(s as bigint) > 0"}], ALL),
    "a narrowing cast": ([{"where": "cast(a as int) > 0"}], ALL),
    "an order": ([], {"x": "first(a)"}),
    "a list": ([], {"x": "collect_list(a, 3)"}),
    "a distinct count": ([], {"x": "approx_count_distinct(a)"}),
    "an exact distinct count": ([], {"x": "count(distinct a)"}),
    "a sum of an expression": ([], {"x": "sum(a * 2)"}),
    "a maximum of doubles": ([], {"x": "max(d)"}),
    "a peek": ([{"peek": {"log": "s"}}], {"n": "count(*)"}),
    "headers": ([{"where": "_headers is null"}], {"n": "count(*)"}),
    "records that become several": ([{"flatMap": {"as": "x", "explode": "split(s, ',')"}}], {"n": "count(*)"}),
}


WINDOWS: dict[str, dict[str, Any]] = {
    "windows": {"tumbling": {"size": "3ms", "grace": "0ms"}},
    "windows with grace": {"tumbling": {"size": "2ms", "grace": "2ms"}},
    "windows with an offset": {"tumbling": {"size": "3ms", "grace": "1ms", "offset": "1ms"}},
    "days of a time zone": {
        "tumbling": {"size": "1d", "grace": "1ms", "offset": "19h2ms", "timezone": "America/New_York"}
    },
}
"""Of the topologies with these names, which are taken over too."""
TAKEN_OVER |= {
    "windows": ("string", [{"where": "a >= 0 or s = 'x'"}]),
    "windows with grace": ("long", []),
    "windows with an offset": ("string", []),
    "days of a time zone": ("string", []),
}

Both = dict[str, tuple[SubTopologyRunner, SubTopologyRunner]]


def pipeline(
    spark: SparkSession,
    steps: list[dict[str, Any]],
    aggregate: dict[str, str],
    key: str,
    window: dict[str, Any] | None = None,
    **more: Any,
) -> Any:
    named, before = [], "in"
    for number, step in enumerate(steps):
        named.append({"name": f"s{number}", "from": before} | step)
        before = f"s{number}"
    divided = {} if window is None else {"window": window}
    named.append({"name": "totals", "from": before, "aggregate": aggregate, "store": "totals", **divided})
    return Pipeline(spark, topology_of([source(schema=SCHEMA, key=key, **more)], named))


@pytest.fixture(scope="module")
def both(spark: SparkSession) -> Both:
    """Of each topology that is taken over, what runs it so, and what lets Spark do all of it."""
    found = {}
    for name, (key, steps) in TAKEN_OVER.items():
        one = pipeline(spark, steps, ALL, key, WINDOWS.get(name))
        sub = one.topology.subtopologies[0]
        found[name] = (
            SubTopologyRunner(one.compiler, RecordReader(spark, {}), sub),
            SubTopologyRunner(one.compiler, RecordReader(spark, {}), sub, take_over=False),
        )
    return found


def told(result: StageOutput) -> Any:
    """All that a stage has found, in an order of its own."""
    (keyed,) = result.store_batches
    table = keyed.table.drop_columns(["_key"])
    # As bytes: a text may be any.
    if keyed.within is not None:
        for name in keyed.within.column_names:
            table = table.append_column(name, keyed.within[name])
    # Spark collects values in any order.
    made = [
        {name: sorted(each, key=repr) if isinstance(each, list) else each for name, each in row.items()}
        for row in table.to_pylist()
    ]
    rows = list(zip(encoded(keyed.keys), made, strict=True))
    assert len({(row["_partition"], key, row.get("_window")) for key, row in rows}) == len(rows)
    return sorted(rows, key=repr), table.schema.types, result.dropped, result.accounts, result.late.total()


def outcome(runner: SubTopologyRunner, records: BatchInput) -> Any:
    """What `told` gives; of a sum that leaves its range, that it does."""
    try:
        return told(runner.run(records))
    except ArithmeticException as error:
        return error.getCondition()


KEYS = {
    "string": [None, b"k", b"", b"\xff", "ü".encode()],
    "bytes": [None, b"k", b"", b"\xff"],
    "long": [None, struct.pack(">q", -1), struct.pack(">q", 2**40), b"", b"12345"],
    "int": [None, struct.pack(">i", -1), struct.pack(">i", 2**30), b"", b"12345678"],
}
numbers = st.none() | st.integers(-3, 3) | st.sampled_from([2**31 - 1, -(2**31), 2**40, 0.5, 1.0])
members = st.fixed_dictionaries(
    {},
    optional={
        "a": numbers | st.just(2**63),
        "i": numbers,
        "d": numbers | st.floats(-2, 2),
        "s": st.sampled_from([None, "x", "y", "", "ü", 1]),
        "ok": st.sampled_from([None, True, False, "x"]),
        "more": st.just([1]),
    },
)
readable = st.fixed_dictionaries(
    {},
    optional={
        "a": st.none() | st.integers(-3, 3) | st.just(2**40),
        "i": st.none() | st.integers(-3, 3) | st.sampled_from([2**31 - 1, -(2**31)]),
        "d": st.none() | st.integers(-3, 3) | st.floats(-2, 2),
        "s": st.sampled_from([None, "x", "y", "", "ü"]),
        "ok": st.sampled_from([None, True, False]),
    },
)
large = st.fixed_dictionaries({"a": st.sampled_from([2**62, -(2**63)])})
times = st.integers(-1, 5) | st.just(LATEST_TIME + 1)
ODD = [b"null", b"{", b"[]", b"[{}]", b'{"a": 1, "a": 2}', b"\xff"]
values = st.none() | members.map(orjson.dumps) | st.sampled_from(ODD)


def any_record(keys: list[bytes | None], *among: str) -> st.SearchStrategy[Record]:
    """Mostly one that the scan can answer for: a batch in which a sum may leave its range, or with windows and a record
    that is left to Spark, is Spark's, all of it.
    """
    kinds = {
        name: st.builds(Record, st.sampled_from(some), value, partition=st.integers(0, 1), time=time)
        for name, some, value, time in (
            ("usual", keys[:3], readable.map(orjson.dumps), st.integers(0, 5)),
            ("odd", keys, values, times),
            ("large", keys[:3], large.map(orjson.dumps), st.integers(0, 5)),
        )
    }
    weights = {"usual": 89, "odd": 10, "large": 1}
    return st.sampled_from([name for name in among for _ in range(weights[name])]).flatmap(kinds.__getitem__)


@pytest.mark.parametrize("name", TAKEN_OVER)
@given(data=st.data())
@settings(max_examples=2 * EXAMPLES, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_it_is_what_spark_makes_of_the_same_records(both: Both, name: str, data: st.DataObject) -> None:
    """All cases are one batch, in which each has two partitions of its own."""
    record = any_record(KEYS[TAKEN_OVER[name][0]], *data.draw(st.sampled_from([("usual",), ("usual", "odd", "large")])))
    cases = [
        [replace(each, partition=2 * case + each.partition) for each in records]
        for case, records in enumerate(data.draw(shared(st.lists(record, min_size=1, max_size=20))))
    ]
    together, (over, whole) = batch(*chain.from_iterable(cases)), both[name]
    expected = outcome(whole, together)
    assert outcome(anew(over), together) == expected
    if isinstance(expected, str):  # An error of one case, which is all that is seen of the others.
        for each in cases:
            assert outcome(anew(over), batch(*each)) == outcome(whole, batch(*each))


def anew(runner: SubTopologyRunner) -> SubTopologyRunner:
    """The same that has met no batch yet: after one that was Spark's, some more are."""
    made = copy(runner)
    made._spark_batches = 0
    return made


NUMBERED: dict[str, Callable[[int], bytes]] = {
    "string": b"k%d".__mod__,
    "bytes": b"k%d".__mod__,
    "long": struct.Struct(">q").pack,
    "int": struct.Struct(">i").pack,
}


@pytest.mark.parametrize("name", TAKEN_OVER)
def test_each_record_counts_where_it_does_with_spark(both: Both, name: str) -> None:
    """All that matters to the expressions, each under a key of its own and, for the sums, all under one."""
    key = NUMBERED[TAKEN_OVER[name][0]]
    cases = product((None, -1, 2), (None, 2), (None, 0.25, 3.5), (None, "x", "z"), (None, True, False))
    every = [json(a=a, i=i, d=d, s=s, ok=ok) for a, i, d, s, ok in cases]
    records = batch(*(Record(key(which), value) for at, value in enumerate(every) for which in (at + 1, 0)))
    over, whole = both[name]
    expected = told(whole.run(records))
    assert told(over.run(records)) == expected
    assert 0 < len(expected[0]) - 1 <= len(every)


@pytest.mark.parametrize(
    "values",
    [[json(a=2**62, s="z")] * 2, [json(a=2**50, s="z")] * 200 + [b'\n{"a": %d, "s": "z"}' % (2**63 - 50 * 2**50)]],
)
def test_a_sum_that_leaves_its_range_is_an_error_as_with_spark(both: Both, values: list[bytes]) -> None:
    """Within what is taken over, and together with what only Spark reads."""
    records = batch(*(Record(b"k", value) for value in values))
    assert [outcome(runner, records) for runner in both["comparisons"]] == ["ARITHMETIC_OVERFLOW"] * 2


class Asked(RecordReader):
    """Counts how often the scan is asked."""

    times = 0

    def answer(self, topic: str, batch: BatchInput, stage: Stage) -> Answer:
        self.times += 1
        return super().answer(topic, batch, stage)


def test_where_most_is_for_spark_to_read_it_reads_all_for_some_batches(spark: SparkSession) -> None:
    one = pipeline(spark, [], {"n": "count(*)"}, "string")
    reader = Asked(spark, {})
    runner = SubTopologyRunner(one.compiler, reader, one.topology.subtopologies[0])
    records = [Record(b"k", b'\n{"a": 1}')] * 20_001
    found = [runner.run(batch(*some)) for some in (records, *[records[:1]] * 10)]
    assert [result.store_batches[0].columns["n"].to_pylist() for result in found] == [[20_001], *[[1]] * 10]
    assert [result.records for result in found] == [20_001, *[1] * 10]
    assert reader.times == 1
    runner.run(batch(*records[:1]))
    assert reader.times == 2


@pytest.mark.parametrize("name", TAKEN_OVER)
def test_it_is_taken_over(both: Both, name: str) -> None:
    assert [runner.is_taken_over for runner in both[name]] == [True, False]


@pytest.mark.parametrize(
    "window",
    [
        {"hopping": {"size": "4ms", "advance": "2ms"}},
        {"sliding": {"timeDifference": "3ms"}},
        {"session": {"gap": "2ms"}},
    ],
)
def test_windows_that_overlap_are_left_to_spark(spark: SparkSession, window: dict[str, Any]) -> None:
    (runner,) = pipeline(spark, [], {"n": "count(*)"}, "string", window).runners.values()
    assert not runner.is_taken_over


@pytest.mark.parametrize("what", LEFT_TO_SPARK)
def test_it_is_left_to_spark(spark: SparkSession, what: str) -> None:
    (runner,) = pipeline(spark, *LEFT_TO_SPARK[what], "string").runners.values()
    assert not runner.is_taken_over


def test_a_declared_time_is_left_to_spark(spark: SparkSession) -> None:
    (runner,) = pipeline(spark, [], ALL, "string", timestamp="a").runners.values()
    assert not runner.is_taken_over


@pytest.mark.parametrize("whole_records", [True, False], ids=["none is left", "some are left"])
@pytest.mark.parametrize("partitions", [1, 3], ids=["cut in two", "divided"])
def test_ranges_that_workers_read_give_the_same(
    spark: SparkSession, broker: Any, namespace: str, partitions: int, whole_records: bool
) -> None:
    properties = client_properties(broker.bootstrap_servers, {})
    ranges = written(properties, namespace, partitions, whole_records)
    one = pipeline(spark, [{"where": "a >= 0"}], ALL, "string", topic=namespace)
    reader, sub = RecordReader(spark, properties), one.topology.subtopologies[0]
    over, whole = (SubTopologyRunner(one.compiler, reader, sub, take_over=taken) for taken in (True, False))
    expected = told(whole.run(BatchInput(ranges)))
    assert told(over.run(BatchInput(ranges))) == expected
    (account,) = expected[3].values()
    assert (account.records, account.broken, expected[2].total()) == (900, 0 if whole_records else 9, 36)


@pytest.mark.parametrize("partitions", [1, 3])
def test_what_is_late_for_a_window_is_so_by_all_records_of_its_partition(
    spark: SparkSession, broker: Any, namespace: str, partitions: int
) -> None:
    properties = client_properties(broker.bootstrap_servers, {})
    ranges = written(properties, namespace, partitions, whole_records=True, back=100)
    window = {"tumbling": {"size": "50ms", "grace": "10ms"}}
    one = pipeline(spark, [{"where": "a >= 0"}], ALL, "string", window, topic=namespace)
    reader, sub = RecordReader(spark, properties), one.topology.subtopologies[0]
    over, whole = (SubTopologyRunner(one.compiler, reader, sub, take_over=taken) for taken in (True, False))
    expected = told(whole.run(BatchInput(ranges)))
    assert expected[-1] > 0
    assert told(over.run(BatchInput(ranges))) == expected
    assert over._spark_batches == 0  # it was not left to Spark after all


def test_windows_beside_records_that_only_spark_reads_are_spark_s(both: Both) -> None:
    records = batch(*(Record(b"k", value, time=time) for time, value in [(9, b'\n{"a": 1}'), (1, json(a=1))]))
    over, whole = both["windows"]
    expected = told(whole.run(records))
    assert told(over.run(records)) == expected
    assert expected[-1] == 1


def written(
    properties: dict[str, str], topic: str, partitions: int, whole_records: bool, back: int = 0
) -> tuple[OffsetRange, ...]:
    """A topic with 900 records of 40 keys, of which 36 have no key, and, unless they are whole ones, 9 can't be read
    and as many have no value. Every seventh is by `back` older than the one before it:
    number 100, with which a second fetch begins, and number 450, with which a second part would begin.
    """
    odd = {} if whole_records else {50: None, 0: b"{"}
    admin = Admin(properties)
    admin.create_topics([TopicSpec(topic, partitions)])
    producer = BatchProducer(properties, "test")
    for number in range(900):
        value = odd.get(number % 100, b'{"a": %d, "s": "x"}' % number)
        key = None if number % 25 == 1 else b"k%d" % (number % 40)
        producer.send(topic, [key], [value], [1000 + number - back * (number % 7 == 2)], partition=number % partitions)
    producer.flush()
    producer.close()
    places = [TopicPartition(topic, number) for number in range(partitions)]
    ends = admin.end_offsets(places)
    admin.close()
    return tuple(OffsetRange(each, 0, ends[each]) for each in places)
