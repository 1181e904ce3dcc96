"""Aggregates by sliding windows through Spark: every kind of aggregate, the same wherever batches begin."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from pipeline_bench import Bench, open_tasks
from pipeline_kit import Pipeline, Record, source, topology_of
from shared_cases import EXAMPLES, shared, shared_batches

from streams_runtime.state.window_keys import LATEST, split_window_key
from streams_runtime.state.window_store import WindowStore

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.integration, pytest.mark.timeout(900)]

AGGREGATES = {
    "total": "sum(a)",
    "n": "count(*)",
    "most": "max(a)",
    "mean": "avg(a)",
    "oldest": "first(a)",
    "newest": "last(a)",
    "spread": "var_pop(a)",
    "different": "approx_count_distinct(a)",
    "middle": "approx_percentile(a, 0.5)",
    "all": "collect_list(a, 4)",
    "each": "collect_set(a, 4)",
    "kinds": "count(distinct a)",
}
STEP: dict[str, Any] = {
    "name": "around",
    "from": "in",
    "window": {"sliding": {"timeDifference": "5s", "grace": "4s"}},
    "aggregate": AGGREGATES,
    "store": "around",
}
Given = tuple[str | None, int | None, int, int]
"""Key, number, time (ms) and partition of a record."""
Case = tuple[Sequence[Given], Iterable[int]]
"""Records, and before which of them a batch begins."""


@pytest.fixture(scope="module")
def pipeline(spark: SparkSession) -> Pipeline:
    return Pipeline(spark, topology_of([source(schema="a BIGINT")], [STEP], [{"from": "around", "topic": "out"}]))


def processed(pipeline: Pipeline, cases: Sequence[Case]) -> tuple[Any, Any, int, int]:
    """What the stores show, the sink's last record of each key, and how many records were dropped and late. A case has
    two partitions of its own, and keys that say in which of them they are.
    """
    last: dict[bytes | None, Any] = {}
    with ExitStack() as stack:
        bench = Bench(pipeline, open_tasks(stack, pipeline.topology, 2 * len(cases)))
        for together in shared_batches((records(number, rows), cuts) for number, (rows, cuts) in enumerate(cases)):
            bench.store(bench.process(*together))
            last |= {
                key: (json.loads(value or b""), at)
                for to, _, key, value, at, _ in bench.producer.records
                if to == "out"
            }
        shown = {partition: contents(task.stores["around"]) for partition, task in bench.tasks.items()}
        return shown, rounded(last), bench.counters.records_dropped, bench.counters.late_records


def records(case: int, given: Sequence[Given]) -> list[Record]:
    return [
        Record(
            key and f"{key}{2 * case + partition}".encode(),
            None if number is None else json.dumps({"a": number}).encode(),
            partition=2 * case + partition,
            offset=offset,
            time=time,
        )
        for offset, (key, number, time, partition) in enumerate(given)
    ]


def contents(store: Any) -> Any:
    assert isinstance(store, WindowStore)
    return rounded({split_window_key(key): json.loads(value) for key, value in store.fetch(None, None, 0, LATEST)})


def rounded(found: Any) -> Any:
    """Digits apart that depend on the order of additions."""
    if isinstance(found, dict):
        return {key: rounded(value) for key, value in found.items()}
    if isinstance(found, tuple | list):
        return [rounded(value) for value in found]
    return pytest.approx(found, rel=1e-9, abs=1e-9) if isinstance(found, float) else found


@settings(max_examples=EXAMPLES)
@given(
    shared(
        st.lists(
            st.tuples(
                st.sampled_from(["a", "b", None]),
                st.one_of(st.none(), st.integers(-5, 5)),
                st.integers(0, 25_000),
                st.integers(0, 1),
            ),
            min_size=1,
            max_size=15,
        )
    )
)
@example([[("a", 1, 9_000, 0), ("a", 2, 12_000, 0), ("a", 3, 8_000, 0), ("b", 1, 20_000, 0), ("a", 4, 9_000, 0)]])
def test_windows_are_the_same_record_by_record_and_in_one_batch(pipeline: Pipeline, cases: list[list[Given]]) -> None:
    in_parts = processed(pipeline, [(given, range(0, len(given), 3)) for given in cases])
    assert processed(pipeline, [(given, []) for given in cases]) == in_parts


def test_changelog_and_sink_have_kafka_streams_keys_and_lie_where_the_key_does(pipeline: Pipeline) -> None:
    with ExitStack() as stack:
        bench = Bench(pipeline, open_tasks(stack, pipeline.topology))
        bench.process(Record(b"k", b'{"a": 4}', time=21_000))
        (log,), (out,) = (
            [each for each in bench.producer.records if each[0] == topic] for topic in ("app-around-changelog", "out")
        )
        start = (16_000).to_bytes(8, "big")
        assert (log[1], log[2], log[4]) == (0, b"k" + start + bytes(4), 21_000)
        assert (out[1], out[2], out[4]) == (None, b"k" + start, 21_000)
        assert json.loads(out[3] or b"")["all"] == [4]
        assert bench.producer.placed == {("out", b"k" + start): b"k"}
