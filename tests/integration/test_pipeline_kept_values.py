"""Sketches and lists that are kept over batches, by key, in windows and in sessions, beside Python's own."""

from __future__ import annotations

import json
import math
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import pytest
from case_marks import mark
from hypothesis import example, given, settings
from hypothesis import strategies as st
from pipeline_bench import Bench, open_tasks
from pipeline_kit import Pipeline, Record, source, topology_of
from shared_cases import EXAMPLES, batches, shared

from streams_runtime.state.store import KeyValueStore
from streams_runtime.state.window_keys import LATEST, split_session_key, split_window_key
from streams_runtime.state.window_store import SessionStore, WindowStore

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.integration

SIZE, GAP = 10_000, 4_000
WINDOWS: dict[str, Any] = {
    "by key": None,
    "tumbling": {"tumbling": {"size": f"{SIZE}ms", "grace": "1h"}},
    "sessions": {"session": {"gap": f"{GAP}ms", "grace": "1h"}},
}
AGGREGATE = {
    "different": "approx_count_distinct(t)",
    "median": "approx_percentile(a, 0.5)",
    "last": "collect_list(t, 3)",
    "set": "collect_set(a, 2)",
    "old": "first(t)",
    "new": "last(a)",
    "exact": "count(distinct a)",
    "some": "count(distinct a) FILTER (WHERE t <> 'x')",
    "pairs": "count(distinct a, t)",
    "top": "top(t, a, 2)",
}
Given = tuple[str, int, int | None, str | None]
"""Key, time, and the record's columns a and t."""
Case = tuple[list[Given], list[int]]
"""Records, and before which of them a batch begins."""
Place = tuple[str, int | None]
"""Key, and start of the window."""


def declared(kind: str) -> Any:
    step: dict[str, Any] = {"name": "s", "from": "in", "aggregate": AGGREGATE, "store": "s"}
    step |= {} if WINDOWS[kind] is None else {"window": WINDOWS[kind]}
    return topology_of([source(schema="a BIGINT, t STRING")], [step], [{"from": "s", "topic": "out"}])


@pytest.fixture(scope="module")
def pipelines(spark: SparkSession) -> dict[str, Pipeline]:
    return {kind: Pipeline(spark, declared(kind)) for kind in WINDOWS}


def expected(kind: str, given: Sequence[Given]) -> dict[Place, Any]:
    """Each group's records by hand, in the order of their offsets."""
    groups: defaultdict[Place, list[Given]] = defaultdict(list)
    for each in given:
        groups[each[0], start_of(kind, each, given)].append(each)
    return {place: seen([each[2] for each in group], [each[3] for each in group]) for place, group in groups.items()}


def start_of(kind: str, record: Given, given: Sequence[Given]) -> int | None:
    key, time = record[:2]
    if kind == "by key":
        return None
    if kind == "tumbling":
        return time // SIZE * SIZE
    start = time
    for other in sorted((each[1] for each in given if each[0] == key and each[1] <= time), reverse=True):
        start = other if start - other <= GAP else start
    return start


def seen(numbers: Sequence[int | None], texts: Sequence[str | None]) -> dict[str, Any]:
    known, words = ([each for each in column if each is not None] for column in (numbers, texts))
    pairs = [each for each in zip(numbers, texts, strict=True) if each[1] is not None]
    ranked = [(a, t is not None, t) for a, t in zip(numbers, texts, strict=True) if a is not None]
    middle = sorted(known)[math.ceil(len(known) / 2) - 1] if known else None
    return {
        "different": len({*words}),
        "median": None if middle is None else pytest.approx(middle, rel=0.01),
        "last": words[-3:],
        "set": list(dict.fromkeys(reversed(known)))[::-1][-2:],
        "old": texts[0],
        "new": numbers[-1],
        "exact": len({*known}),
        "some": len({a for a, t in pairs if t != "x"} - {None}),
        "pairs": len({(a, t) for a, t in pairs if a is not None}),
        "top": [t for a, _, t in sorted(ranked, reverse=True)[:2]],
    }


def contents(bench: Bench, task: int = 0) -> Iterator[tuple[Place, Any]]:
    """What queries are told of the contents of a task's store."""
    store = bench.tasks[task].stores["s"]
    shown = bench.pipeline.compiler.aggregate("s").finish_value
    if isinstance(store, KeyValueStore):
        yield from (((key.decode(), None), shown(value)) for key, value in store.scan(None, None))
    elif isinstance(store, SessionStore):
        for data, value in store.fetch(None, None, 0, LATEST):
            key, start, _ = split_session_key(data)
            yield (key.decode(), start), shown(value)
    elif isinstance(store, WindowStore):
        for data, value in store.fetch(None, None, 0, LATEST):
            key, begin, _ = split_window_key(data)
            yield (key.decode(), begin), shown(value)


def place_of(kind: str, key: bytes) -> Place:
    if kind == "by key":
        return key.decode(), None
    if kind == "sessions":
        name, start, _ = split_session_key(key)
        return name.decode(), start
    return key[:-8].decode(), int.from_bytes(key[-8:])


records = st.lists(
    st.tuples(
        st.sampled_from(["a", "b"]),
        st.integers(0, 30_000),
        st.none() | st.integers(-3, 3),
        st.none() | st.sampled_from(["", "x", "y", "zz", "ü"]),
    ),
    min_size=1,
    max_size=20,
)


@pytest.mark.parametrize("kind", WINDOWS)
@settings(max_examples=EXAMPLES)
@given(shared(st.tuples(records, st.lists(st.integers(0, 20), max_size=4))))
@example(
    [
        # The first record is of the later session, and the third makes one of both.
        ([("a", 4_000, 1, "x"), ("a", 0, 2, "y"), ("a", 2_000, 3, "zz"), ("a", 8_000, -3, "ü")], [2]),
        ([("a", 9_000, 1, "x"), ("a", 0, 2, "y"), ("a", 4_000, 3, ""), ("a", 5_000, 1, None)], [1, 2, 3]),
    ]
)
def test_what_is_kept_is_pythons_own_wherever_batches_begin(
    pipelines: dict[str, Pipeline], kind: str, cases: list[Case]
) -> None:
    rows = [
        (
            [
                Record(key.encode(), json.dumps({"a": number, "t": text}).encode(), offset=at, time=time)
                for at, (key, time, number, text) in enumerate(each)
            ],
            cuts,
        )
        for each, cuts in cases
    ]
    with ExitStack() as stack:
        bench = Bench(pipelines[kind], open_tasks(stack, pipelines[kind].topology, len(cases)))
        sent = bench.written_each(rows)
        assert bench.counters.late_records == 0
        for case, (each, _) in enumerate(cases):
            held = {(key[len(mark(case)) :], start): value for (key, start), value in contents(bench, case)}
            last = {place_of(kind, key or b""): value for key, value, _ in sent[case]}
            shown = {place: value for place, value in last.items() if value is not None}
            assert held == shown == expected(kind, each)


def test_every_type_is_counted_and_collected(spark: SparkSession) -> None:
    values: dict[str, list[Any]] = {
        "BIGINT": [1, 2, 2],
        "TINYINT": [1, 2, 2],
        "DOUBLE": [0.5, 1.5, 1.5],
        "FLOAT": [0.5, 1.5, 1.5],
        "STRING": ["", "ü", "ü"],
        "BOOLEAN": [True, False, False],
        "DATE": ["2024-01-01", "2024-02-29", "2024-02-29"],
        "TIMESTAMP": ["2024-01-01T00:00:00.000000Z", "2024-02-29T12:00:00.000001Z", "2024-02-29T12:00:00.000001Z"],
    }
    schema = ", ".join(f"c_{kind} {kind}" for kind in values)
    aggregate = {f"n_{kind}": f"approx_count_distinct(c_{kind})" for kind in values}
    aggregate |= {f"d_{kind}": f"count(distinct c_{kind})" for kind in values}
    aggregate |= {f"l_{kind}": f"collect_list(c_{kind}, 5)" for kind in values}
    aggregate |= {f"s_{kind}": f"collect_set(c_{kind}, 5)" for kind in values}
    aggregate |= {f"t_{kind}": f"top(c_{kind}, c_{kind}, 2)" for kind in values}
    step = {"name": "s", "from": "in", "aggregate": aggregate, "store": "s"}
    # Behind a step Spark writes the columns, without one the runtime itself.
    behind = {"name": "all", "from": "s", "select": {name: name for name in aggregate}}
    sinks = [{"from": "s", "topic": "out"}, {"from": "all", "topic": "behind"}]
    topology = topology_of([source(schema=schema)], [step, behind], sinks)
    rows = [{f"c_{kind}": column[at] for kind, column in values.items()} for at in range(3)]
    with ExitStack() as stack:
        bench = Bench(Pipeline(spark, topology), open_tasks(stack, topology))
        for at, row in enumerate([*rows, {}]):
            bench.store(bench.process(Record(b"k", json.dumps(row).encode(), offset=at)))
        written = {topic: json.loads(value) for topic, _, _, value, *_ in bench.producer.records if value}
        ((_, found),) = contents(bench)
    wanted = {f"{which}_{kind}": 2 for kind in values for which in "nd"}
    wanted |= {f"l_{kind}": column for kind, column in values.items()}
    wanted |= {f"s_{kind}": column[:2] for kind, column in values.items()}
    wanted |= {f"t_{kind}": sorted(column, reverse=True)[:2] for kind, column in values.items()}
    assert written["out"] == written["behind"] == found == wanted


def test_values_of_further_types_are_counted_exactly_as_spark_counts_them(spark: SparkSession) -> None:
    """Types that lists do not keep; what is the same is what Spark's own count of a whole batch says."""
    calls = {
        "decimals": "cast(v as decimal(10, 2))",
        "small": "cast(v as decimal(38, 12)) / 1000000",
        "arrays": "array(v, null)",
        "structs": "struct(v, t)",
        "bytes": "cast(t as binary)",
        "zeros": "if(v > 1, 0.0D, -0.0D)",
        "nans": "if(v > 1, double('NaN'), v)",
        "nested": "struct(if(v > 1, 0.0D, -0.0D) as a, array(if(v > 1, double('NaN'), 1.5D)) as b)",
        "times": "cast(timestamp_micros(cast(v * 4 as bigint)) as timestamp_ntz)",
        "entries": "array_sort(map_entries(map(coalesce(t, '?'), v)))",
    }
    rows = [(1.0, "a"), (1.25, "b"), (1.5, None), (2.0, "a"), (2.5, "ä"), (2.0, "a"), (None, "b"), (3.0, "")]
    aggregate = {name: f"count(distinct {call})" for name, call in calls.items()}
    step = {"name": "s", "from": "in", "aggregate": aggregate, "store": "s"}
    topology = topology_of([source(schema="v DOUBLE, t STRING")], [step], [{"from": "s", "topic": "out"}])
    with ExitStack() as stack:
        bench = Bench(Pipeline(spark, topology), open_tasks(stack, topology))
        records = [Record(b"k", json.dumps({"v": v, "t": t}).encode(), offset=at) for at, (v, t) in enumerate(rows)]
        for first, end in ((0, 3), (3, 4), (4, 8)):
            bench.store(bench.process(*records[first:end]))
        ((_, found),) = contents(bench)
    whole = spark.createDataFrame(rows, "v DOUBLE, t STRING")
    expected = whole.selectExpr(*(f"{call} as {name}" for name, call in aggregate.items())).first()
    assert expected is not None
    assert found == expected.asDict()


def test_sparks_sketches_of_many_values_are_read_and_put_together(spark: SparkSession) -> None:
    aggregate = {"n": "approx_count_distinct(v)", "p": "approx_percentile(v, 0.99)", "few": "collect_set(v % 3, 10)"}
    aggregate |= {"newest": "collect_list(v, 3)"}
    step = {"name": "s", "from": "in", "aggregate": aggregate, "store": "s"}
    topology = topology_of([source(schema="v BIGINT")], [step], [{"from": "s", "topic": "out"}])
    pipeline, seen_after = Pipeline(spark, topology), []
    for cuts in ([], [5_000, 5_001]):
        with ExitStack() as stack:
            bench = Bench(pipeline, open_tasks(stack, topology))
            for first, end in batches(12_000, cuts):
                rows = [Record(b"k", b'{"v":%d}' % (at % 6_000), offset=at) for at in range(first, end)]
                bench.store(bench.process(*rows), end)
            seen_after.append(dict(contents(bench)))
    once, often = seen_after
    assert once == often
    assert once["k", None] == {
        "n": pytest.approx(6_000, rel=0.049),
        "p": pytest.approx(5_939, rel=0.01),
        "few": [0, 1, 2],
        "newest": [5_997, 5_998, 5_999],
    }


def test_steps_behind_an_aggregate_see_lists_and_numbers(spark: SparkSession) -> None:
    aggregate = {"l": "collect_list(t, 3)", "p": "approx_percentile(a, 1)", "n": "approx_count_distinct(t)"}
    steps = [
        {"name": "s", "from": "in", "aggregate": aggregate, "store": "s"},
        {"name": "more", "from": "s", "where": "size(l) > 1", "select": {"newest": "l[size(l) - 1]", "twice": "p * n"}},
    ]
    topology = topology_of([source(schema="a BIGINT, t STRING")], steps, [{"from": "more", "topic": "out"}])
    with ExitStack() as stack:
        bench = Bench(Pipeline(spark, topology), open_tasks(stack, topology))
        rows = [Record(key, b'{"a":10,"t":"%s"}' % text) for key, text in ((b"k", b"x"), (b"k", b"y"), (b"j", b"z"))]
        bench.process(*rows)
        written = {
            key: value and json.loads(value) for topic, _, key, value, *_ in bench.producer.records if topic == "out"
        }
    assert written == {b"k": {"newest": "y", "twice": pytest.approx(20, rel=0.01)}, b"j": None}
