"""Classes in Python through Spark: the same wherever batches begin, with results of every type, and failures told."""

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

from streams_runtime.errors import UserCodeException

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.integration, pytest.mark.timeout(900)]

WINDOWS: dict[str, Any] = {
    "by key": None,
    "hopping": {"hopping": {"size": "10s", "advance": "4s", "grace": "5s"}},
    "sessions": {"session": {"gap": "3s", "grace": "5s"}},
    "sliding": {"sliding": {"timeDifference": "5s", "grace": "4s"}},
}
CALLS = {
    "trail": "python('custom_classes:Trail', a)",
    "total": "sum(a)",
    "newest": "python('custom_classes:Newest', _timestamp as at, a, a / 2 as half, encode(_key, 'utf-8') as raw)",
}
Given = tuple[str | None, int | None, int]
"""Key, number and time (ms) of a record."""
Case = tuple[list[Given], Sequence[int]]
"""Records, and before which of them a batch begins."""


def pipeline(spark: SparkSession, window: str, calls: dict[str, str], told: bool = False) -> Pipeline:
    """`told`: every change goes on."""
    step = {"name": "s", "from": "in", "aggregate": calls, "store": "s"}
    step |= {} if WINDOWS[window] is None else {"window": WINDOWS[window]}
    steps, last = ([step, {"name": "c", "from": "s", "toStream": {}}], "c") if told else ([step], "s")
    return Pipeline(spark, topology_of([source(schema="a BIGINT")], steps, [{"from": last, "topic": "out"}]))


@pytest.fixture(scope="module")
def pipelines(spark: SparkSession) -> dict[str, Pipeline]:
    calls = {window: {name: CALLS[name] for name in CALLS if name != "newest"} for window in WINDOWS}
    return {window: pipeline(spark, window, CALLS if window != "sessions" else calls[window]) for window in WINDOWS}


def last(pipeline: Pipeline, cases: Sequence[Case]) -> tuple[list[Any], int, int]:
    """Of each case the sink's last record of each key, and how many records of all were dropped and late."""
    rows = [
        (
            [
                Record(key and key.encode(), None if a is None else json.dumps({"a": a}).encode(), offset=at, time=time)
                for at, (key, a, time) in enumerate(given)
            ],
            cuts,
        )
        for given, cuts in cases
    ]
    with ExitStack() as stack:
        bench = Bench(pipeline, open_tasks(stack, pipeline.topology, len(cases)))
        found = [{key: (value, time) for key, value, time in sent} for sent in bench.written_each(rows)]
        shown = [{key: row for key, row in each.items() if row[0] is not None} for each in found]
        return shown, bench.counters.records_dropped, bench.counters.late_records


@pytest.mark.parametrize("window", WINDOWS)
@settings(max_examples=EXAMPLES)
@given(
    shared(
        st.lists(
            st.tuples(st.sampled_from(["a", "b", None]), st.none() | st.integers(-5, 5), st.integers(0, 25_000)),
            min_size=1,
            max_size=15,
        )
    )
)
@example(
    [[("a", 1, 9_000), ("a", 2, 14_000), ("a", 0, 11_000), ("b", None, 20_000), ("a", 4, 9_000), ("a", 5, 18_000)]]
)
def test_a_class_gives_the_same_wherever_batches_begin(
    pipelines: dict[str, Pipeline], window: str, cases: list[list[Given]]
) -> None:
    in_parts = last(pipelines[window], [(given, [1, *range(2, len(given), 3)]) for given in cases])
    assert last(pipelines[window], [(given, []) for given in cases]) == in_parts


@pytest.mark.parametrize("cuts", [[], [1, 3]], ids=str)
def test_sessions_that_come_together_are_merged_the_earlier_one_first(
    pipelines: dict[str, Pipeline], cuts: list[int]
) -> None:
    given: list[Given] = [("a", 1, 9_000), ("a", 3, 9_500), ("a", 2, 14_000), ("a", 0, 11_000)]
    (shown,), *_ = last(pipelines["sessions"], [(given, cuts)])
    ((row, _),) = shown.values()
    assert row == {"trail": {"trail": "[,1,3|,2],0", "n": 4}, "total": 6}


def failure(spark: SparkSession, window: str, *records: Record, told: bool = False) -> str:
    """What is said of the class Failing, over one batch of these records."""
    made = pipeline(spark, window, {"t": "python('custom_classes:Failing', a)"}, told)
    with ExitStack() as stack:
        bench = Bench(made, open_tasks(stack, made.topology))
        with pytest.raises(UserCodeException) as failed:
            bench.process(*records)
    return str(failed.value)


def test_a_failure_names_the_decoded_key_and_its_records(spark: SparkSession) -> None:
    found = failure(
        spark,
        "sessions",
        Record(b"a", b'{"a": 1}', partition=1, offset=7),
        Record(b"b", b'{"a": 13}', partition=1, offset=8),
        Record(b"b", b'{"a": 1}', partition=1, offset=9),
    )
    assert (
        "spec.topology.steps[0].aggregate.t: custom_classes:Failing failed in add for the key 'b' in partition 1"
        in found
    )
    assert "records of in at the offsets 8 to 9: KeyError: 'thirteen' (custom_classes.py, line " in found


@pytest.mark.parametrize("window", WINDOWS)
def test_a_failure_where_every_change_is_told_names_the_key_and_the_record(spark: SparkSession, window: str) -> None:
    found = failure(
        spark,
        window,
        Record(b"a", b'{"a": 1}', partition=1, offset=7),
        Record(b"b", b'{"a": 1}', partition=1, offset=8),
        Record(b"b", b'{"a": 13}', partition=1, offset=9),
        Record(b"b", b'{"a": 1}', partition=1, offset=10),
        told=True,
    )
    assert "custom_classes:Failing failed in add for the key 'b' in partition 1, with records" in found
    assert "records of in at the offsets 9 to 9: KeyError: 'thirteen' (custom_classes.py, line " in found


def test_a_failure_between_sessions_names_the_record_that_they_come_together_by(spark: SparkSession) -> None:
    found = failure(
        spark,
        "sessions",
        Record(b"a", b'{"a": 1}', offset=5, time=9_000),
        Record(b"a", b'{"a": 2}', offset=6, time=14_000),
        Record(b"a", b'{"a": 3}', offset=7, time=11_500),
        Record(b"a", b'{"a": 4}', offset=8, time=14_000),
        told=True,
    )
    assert "custom_classes:Failing failed in merge for the key 'a' in partition 0, with records" in found
    assert "records of in at the offsets 7 to 7: ArithmeticError: never together" in found


def test_classes_that_lack_something_are_refused_at_their_fields(spark: SparkSession) -> None:
    calls = {"one": "python('custom_classes:Trial', a)", "n": "count(*)", "two": "python('custom_classes:Newest', a)"}
    step = {"name": "s", "from": "in", "aggregate": calls, "store": "s", "window": WINDOWS["sessions"]}
    topology = topology_of([source(schema="a BIGINT")], [step], [{"from": "s", "topic": "out"}])
    found = mistakes_of(spark, topology)
    assert [path.rpartition(".")[2] for path in found] == ["one", "two"]
    assert "did you mean 'Trail'?" in found["spec.topology.steps[0].aggregate.one"]
    assert "has no method merge" in found["spec.topology.steps[0].aggregate.two"]


def test_columns_that_spark_refuses_are_told_at_the_field(spark: SparkSession) -> None:
    step = {
        "name": "s",
        "from": "in",
        "aggregate": {"t": "python('custom_classes:Trail', nosuch(a) as a)"},
        "store": "s",
    }
    topology = topology_of([source(schema="a BIGINT")], [step], [{"from": "s", "topic": "out"}])
    assert "nosuch" in mistakes_of(spark, topology)["spec.topology.steps[0].aggregate.t"]
