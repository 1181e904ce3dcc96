"""reduce through Spark: the same wherever batches begin, states of every type, refusals and failures by field."""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from pipeline_bench import Bench, open_tasks
from pipeline_kit import Pipeline, Record, mistakes_of, source, topology_of
from shared_cases import EXAMPLES, shared

from streams_runtime.errors import StreamsException

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.integration, pytest.mark.timeout(900)]

WINDOWS: dict[str, Any] = {
    "by key": None,
    "tumbling": {"tumbling": {"size": "10s", "grace": "5s"}},
    "hopping": {"hopping": {"size": "10s", "advance": "4s", "grace": "5s"}},
    "sessions": {"session": {"gap": "3s", "grace": "5s"}},
    "sliding": {"sliding": {"timeDifference": "5s", "grace": "4s"}},
}
TRAIL = "reduce('', (state, row) -> concat(state, ',', coalesce(cast(row.a as string), 'null'))"
CALLS = {
    "trail": f"{TRAIL})",
    "total": "sum(a)",
    # Begins anew after each 0; what a batch began with would be seen.
    "since": "reduce(100, (n, r) -> if(r.a = 0, null, n + 1))",
    "newest": "reduce(cast(array() as array<struct<at: timestamp, `of it`: double, raw: binary>>), (`the last`, row) ->"
    " slice(concat(array(struct(row._timestamp as at, row.a / 2 as `of it`, encode(row._key, 'utf-8') as raw)),"
    " `the last`), 1, 3))",
}
MERGING = {"trail": f"{TRAIL}, (one, other) -> concat('[', one, '|', other, ']'))", "total": "sum(a)"}
Given = tuple[str | None, int | None, int]
"""Key, number and time (ms) of a record."""
Case = tuple[list[Given], Sequence[int]]
"""Records, and before which of them a batch begins."""


def pipeline(spark: SparkSession, window: str, calls: dict[str, str], schema: str = "a BIGINT") -> Pipeline:
    step = {"name": "s", "from": "in", "aggregate": calls, "store": "s"}
    step |= {} if WINDOWS[window] is None else {"window": WINDOWS[window]}
    return Pipeline(spark, topology_of([source(schema=schema)], [step], [{"from": "s", "topic": "out"}]))


@pytest.fixture(scope="module")
def pipelines(spark: SparkSession) -> dict[str, Pipeline]:
    return {window: pipeline(spark, window, MERGING if window == "sessions" else CALLS) for window in WINDOWS}


def records(given: list[Given]) -> list[Record]:
    return [
        Record(key and key.encode(), None if a is None else json.dumps({"a": a}).encode(), offset=at, time=time)
        for at, (key, a, time) in enumerate(given)
    ]


def last(pipeline: Pipeline, given: list[Given], cuts: list[int]) -> tuple[Any, int, int]:
    """The sink's last record of each key, and how many records were dropped and late."""
    found: dict[Any, Any] = {}
    with ExitStack() as stack:
        bench = Bench(pipeline, open_tasks(stack, pipeline.topology))
        for key, value, time in bench.written(records(given), cuts):
            found[key] = (value, time)
        shown = {key: row for key, row in found.items() if row[0] is not None}
        return shown, bench.counters.records_dropped, bench.counters.late_records


def last_of_each(pipeline: Pipeline, cases: Sequence[Case]) -> tuple[list[Any], int, int]:
    """The same of cases that share batches; the counts are of all."""
    with ExitStack() as stack:
        bench = Bench(pipeline, open_tasks(stack, pipeline.topology, len(cases)))
        found = [
            {key: (value, time) for key, value, time in sent}
            for sent in bench.written_each([(records(given), cuts) for given, cuts in cases])
        ]
        shown = [{key: row for key, row in each.items() if row[0] is not None} for each in found]
        return shown, bench.counters.records_dropped, bench.counters.late_records


@pytest.mark.parametrize("window", WINDOWS)
@settings(max_examples=EXAMPLES)
@given(
    shared(
        st.lists(
            st.tuples(st.sampled_from(["a", "b", None]), st.none() | st.integers(-2, 2), st.integers(0, 25_000)),
            min_size=1,
            max_size=15,
        )
    )
)
@example([[("a", 1, 9_000), ("a", 2, 14_000), ("a", 0, 11_000), ("b", 1, 20_000), ("a", 4, 9_000), ("a", 0, 18_000)]])
def test_a_lambda_gives_the_same_wherever_batches_begin(
    pipelines: dict[str, Pipeline], window: str, cases: list[list[Given]]
) -> None:
    in_parts = last_of_each(pipelines[window], [(given, [1, *range(2, len(given), 3)]) for given in cases])
    assert last_of_each(pipelines[window], [(given, []) for given in cases]) == in_parts


@pytest.mark.parametrize("cuts", [[], [1, 3]], ids=str)
def test_sessions_that_come_together_are_put_together_the_earlier_one_first(
    pipelines: dict[str, Pipeline], cuts: list[int]
) -> None:
    given: list[Given] = [("a", 1, 9_000), ("a", 3, 9_500), ("a", 2, 14_000), ("a", 0, 11_000)]
    shown, *_ = last(pipelines["sessions"], given, cuts)
    ((row, _),) = shown.values()
    assert row == {"trail": "[,1,3|,2],0", "total": 6}


def test_a_state_of_null_is_stored_and_the_next_record_begins_with_the_initial_value(
    pipelines: dict[str, Pipeline],
) -> None:
    pipeline = pipelines["by key"]
    given: list[Given] = [("a", 1, 1), ("a", 0, 2), ("b", 0, 3), ("b", 5, 4), ("c", 0, 5)]
    for cuts in [], [1, 2, 3, 4]:
        shown, *_ = last(pipeline, given, cuts)
        assert {key: row["since"] for key, (row, _) in shown.items()} == {b"a": None, b"b": 101, b"c": None}


def test_states_of_arrays_and_structs_are_kept_whole(pipelines: dict[str, Pipeline]) -> None:
    given: list[Given] = [("a", number, 1_000 * number) for number in range(5)]
    shown, *_ = last(pipelines["by key"], given, [2])
    row = shown[b"a"][0]
    assert row["trail"] == ",0,1,2,3,4"
    assert row["total"] == 10
    assert [each["of it"] for each in row["newest"]] == [2.0, 1.5, 1.0]
    assert row["newest"][0]["at"] == "1970-01-01T00:00:04.000000Z"
    assert row["newest"][0]["raw"] == "YQ=="


@pytest.mark.parametrize("window", ["by key", "sessions"])
def test_an_error_of_the_lambda_fails_the_batch_and_names_its_field(spark: SparkSession, window: str) -> None:
    merge = ", (one, other) -> one + other)" if window == "sessions" else ")"
    calls = {
        "fine": f"reduce(0, (n, row) -> n + 1{merge}",
        "bad": f"reduce(0, (n, row) -> n + cast(row.a as int){merge}",
    }
    made = pipeline(spark, window, calls, "a STRING")
    with ExitStack() as stack:
        bench = Bench(made, open_tasks(stack, made.topology))
        with pytest.raises(StreamsException) as failed:
            bench.process(Record(b"a", b'{"a": "1"}', offset=7), Record(b"b", b'{"a": "much"}', offset=8))
    told = str(failed.value)
    assert told.startswith("spec.topology.steps[0].aggregate.bad: the expression failed in Spark: [CAST_INVALID_INPUT]")
    assert "'much'" in told
    assert "Nothing of the batch was written" in told


@pytest.mark.parametrize(
    ("call", "found", "remedy"),
    [
        ("reduce(0, (n, row) -> n + row.b)", "'n + row.b' is DOUBLE, and the initial value '0'", "cast(0 as DOUBLE)"),
        (
            "reduce(named_struct('x', 0, 'y', 0), (s, row) -> named_struct('y', 0, 'x', 0))",
            "is STRUCT<y: INT, x: INT>",
            "cast",
        ),
        ("reduce(map('x', 0), (s, row) -> s)", "map<string, int32> are not there yet", "cast the initial value to"),
        ("reduce(0 + 0.5, (s, row) -> s)", "decimal128(3, 1) are not there yet", "cast the initial value to"),
        ("reduce(0, (n, row) -> nosuch(n))", "nosuch", "correct the expression"),
        ("reduce(nosuch(0), (n, row) -> n)", "nosuch", "correct the expression"),
        ("reduce(named_struct('x', 0), (s, row) -> named_struct('x', s.y))", "`y`", "correct the expression"),
    ],
)
def test_what_spark_knows_to_be_wrong_is_told_at_the_field(
    spark: SparkSession, call: str, found: str, remedy: str
) -> None:
    step = {"name": "s", "from": "in", "aggregate": {"n": "count(*)", "t": call}, "store": "s"}
    topology = topology_of([source(schema="a BIGINT, b DOUBLE")], [step], [{"from": "s", "topic": "out"}])
    mistakes = mistakes_of(spark, topology)
    assert list(mistakes) == ["spec.topology.steps[0].aggregate.t"]
    (told,) = mistakes.values()
    assert found in told
    assert remedy in told
