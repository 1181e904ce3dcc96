"""Joins beside Kafka Streams: the same records give the same output, record by record, and the same table."""

from __future__ import annotations

import json
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from oracle_driver import KafkaStreams
from pipeline_bench import Bench, open_tasks
from pipeline_kit import Pipeline, Record, source, topology_of

from streams_runtime.state.store import KeyValueStore, unstamp

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.integration, pytest.mark.oracle, pytest.mark.timeout(900)]

Given = tuple[str, str | None, int | None]
"""Topic, key and number of a record; without a number it has no value. Times follow the order."""
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


def ours(pipeline: Pipeline, given: list[Given], cuts: list[int]) -> tuple[Any, Any, int]:
    """The sink's records in order, the table's contents, and how many records were dropped."""
    rows = [
        Record(key and key.encode(), _value(topic, number), topic, offset=at, time=at)
        for at, (topic, key, number) in enumerate(given)
    ]
    with ExitStack() as stack:
        bench = Bench(pipeline, open_tasks(stack, pipeline.topology))
        sink = bench.written(rows, cuts)
        store = bench.tasks[0].stores["store"]
        assert isinstance(store, KeyValueStore)
        keys = [key for key, _ in store.scan(None, None)]
        stored = [unstamp(each) for each in store.get_stored(keys) if each is not None]
        held = {
            (key.decode(), None): (json.loads(value), time) for key, (time, value) in zip(keys, stored, strict=True)
        }
        return sink, held, bench.counters.records_dropped


def _value(topic: str, number: int | None) -> bytes | None:
    return None if number is None else json.dumps({"a" if topic == "in" else "b": number}).encode()


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=15)
@given(records, cuts)
@example([("in", "a", 1), ("users", "a", 5), ("in", "a", 2), ("users", "a", None), ("in", "a", 3)], [])
@example([("users", "a", 5), ("in", "a", 2), ("users", "a", 6), ("in", "a", 3), ("in", "b", 4)], [1, 3])
@example([("users", "a", 5), ("in", None, 2), ("in", "a", None), ("in", None, None), ("users", None, 7)], [])
def test_a_stream_beside_a_table_agrees_with_kafka_streams_wherever_batches_begin(
    driver: KafkaStreams, pipelines: dict[str, Pipeline], kind: str, given: list[Given], cuts: list[int]
) -> None:
    asked = [
        {"topic": topic, "key": key, "value": value and value.decode(), "time": at}
        for at, (topic, key, number) in enumerate(given)
        for value in [_value(topic, number)]
    ]
    theirs = driver.answer({"join": kind}, asked)
    sink, held, dropped = ours(pipelines[kind], given, cuts)
    assert sink == list(theirs.sinks["out"])
    assert held == theirs.store
    assert dropped == theirs.dropped
