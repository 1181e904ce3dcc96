"""Joins beside Kafka Streams: the same records give the same output, record by record, and the same table."""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import pytest
from case_marks import BY_NUMBER, separated
from hypothesis import example, given, settings
from hypothesis import strategies as st
from oracle_driver import KafkaStreams
from pipeline_bench import Bench, open_tasks
from pipeline_kit import Pipeline, Record, source, topology_of
from shared_cases import EXAMPLES, shared
from state_kit import json_contents

from streams_runtime.state.store import KeyValueStore

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.integration, pytest.mark.oracle, pytest.mark.timeout(900)]

Given = tuple[str, str | None, int | None]
"""Topic, key and number of a record; without a number it has no value. Times follow the order."""
Case = tuple[list[Given], list[int]]
"""Records, and before which of them a batch begins."""
KINDS = ("inner", "left")
records = st.lists(
    st.tuples(
        st.sampled_from(["in", "users"]),
        st.sampled_from(["a", "b", "c", None]),
        st.one_of(st.none(), st.integers(0, 9)),
    ),
    min_size=1,
    max_size=25,
)
cuts = st.lists(st.integers(0, 25), max_size=4)


@pytest.fixture(scope="module")
def pipelines(spark: SparkSession) -> dict[str, Pipeline]:
    users = source(schema="b BIGINT") | {"name": "users", "topic": "users", "table": {"store": "store"}}
    sources, sinks = [source(schema="a BIGINT"), users], [{"from": "both", "topic": "out"}]
    made = {}
    for kind in KINDS:
        step = {"name": "both", "from": "in", "join": {"table": "users", "type": kind, "select": {"b": "users.b"}}}
        made[kind] = Pipeline(spark, topology_of(sources, [step], sinks))
    return made


def ours(pipeline: Pipeline, cases: Sequence[Case]) -> tuple[list[Any], int]:
    """The sink's records in order and the table's contents of each case, and how many records of all were dropped."""
    rows = [
        (
            [
                Record(key and key.encode(), _value(topic, number), topic, offset=at, time=at)
                for at, (topic, key, number) in enumerate(given)
            ],
            cuts,
        )
        for given, cuts in cases
    ]
    with ExitStack() as stack:
        bench = Bench(pipeline, open_tasks(stack, pipeline.topology, len(cases)))
        found = []
        for case, sink in enumerate(bench.written_each(rows, BY_NUMBER)):
            store = bench.tasks[case].stores["store"]
            assert isinstance(store, KeyValueStore)
            held = separated(json_contents(store), BY_NUMBER, len(cases))[case]
            found.append((sink, {(key and key.decode(), None): (value, time) for key, value, time in held}))
        return found, bench.counters.records_dropped


def _value(topic: str, number: int | None) -> bytes | None:
    return None if number is None else json.dumps({"a" if topic == "in" else "b": number}).encode()


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=EXAMPLES)
@given(shared(st.tuples(records, cuts)))
@example(
    [
        ([("in", "a", 1), ("users", "a", 5), ("in", "a", 2), ("users", "a", None), ("in", "a", 3)], []),
        ([("users", "a", 5), ("in", "a", 2), ("users", "a", 6), ("in", "a", 3), ("in", "b", 4)], [1, 3]),
        ([("users", "a", 5), ("in", None, 2), ("in", "a", None), ("in", None, None), ("users", None, 7)], []),
    ]
)
def test_a_stream_beside_a_table_agrees_with_kafka_streams_wherever_batches_begin(
    driver: KafkaStreams, pipelines: dict[str, Pipeline], kind: str, given: list[Case]
) -> None:
    theirs = [
        driver.answer(
            {"join": kind},
            [
                {"topic": topic, "key": key, "value": value and value.decode(), "time": at}
                for at, (topic, key, number) in enumerate(records)
                for value in [_value(topic, number)]
            ],
        )
        for records, _ in given
    ]
    found, dropped = ours(pipelines[kind], given)
    assert found == [(list(each.sinks["out"]), each.store) for each in theirs]
    assert dropped == sum(each.dropped for each in theirs)
