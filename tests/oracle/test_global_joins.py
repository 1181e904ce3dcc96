"""Joins with global tables beside Kafka Streams: the same records give the same output, in order, and the same table.

Nothing orders a global table's changes and the stream's records, so that a batch ends before the table changes.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from oracle_driver import KafkaStreams
from pipeline_kit import Pipeline, source, topology_of

from streams_runtime.state.store import unstamp
from streams_runtime.tasks.unreadable import ErrorPolicy
from streams_runtime.testing.machine import Machine
from streams_runtime.testing.outbox import Sent

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.integration, pytest.mark.oracle, pytest.mark.timeout(900)]

Given = tuple[str, str | None, int | None, str | None]
"""Topic, key, number and, of the stream, what the expression gives. Without a number it has no value."""
ON = {"key": "_key", "value": "u"}
KINDS = [(kind, on) for kind in ("inner", "left") for on in ON]
names = st.sampled_from(["a", "b", "c", None])
records = st.lists(
    st.tuples(st.sampled_from(["in", "users"]), names, st.one_of(st.none(), st.integers(0, 9)), names),
    min_size=1,
    max_size=25,
)
cuts = st.lists(st.integers(0, 25), max_size=4)


@pytest.fixture(scope="module")
def pipelines(spark: SparkSession) -> dict[tuple[str, str], Pipeline]:
    table = {"store": "store", "global": True}
    users = source(schema="b BIGINT") | {"name": "users", "topic": "users", "table": table}
    sources, sinks = [source(schema="a BIGINT, u STRING"), users], [{"from": "both", "topic": "out"}]
    made = {}
    for kind, on in KINDS:
        join = {"table": "users", "type": kind, "key": ON[on], "select": {"b": "users.b"}}
        steps = [
            {"name": "joined", "from": "in", "join": join},
            {"name": "both", "from": "joined", "select": {"a": "a", "b": "b"}},
        ]
        made[kind, on] = Pipeline(spark, topology_of(sources, steps, sinks))
    return made


def ours(pipeline: Pipeline, given: list[Given], cuts: Iterable[int]) -> tuple[Any, Any, int]:
    """The sink's records in order, the table's contents, and how many records were dropped."""
    with TemporaryDirectory() as folder:
        counts = dict.fromkeys(("in", "users", "out"), 1)
        machine = Machine(pipeline.topology, pipeline.compiled, ErrorPolicy("fail"), counts, Path(folder))
        try:
            for at, (topic, key, number, user) in enumerate(given):
                if at in cuts or (topic == "users" and at and given[at - 1][0] == "in"):
                    machine.work()
                sent = Sent(topic, None, key and key.encode(), _value(topic, number, user), at)
                machine.logs.append(sent, sent.key)
            machine.work()
            sink = [
                (each.key, each.value and json.loads(each.value), each.timestamp) for each in machine.logs.unread("out")
            ]
            store = machine.global_stores["users"]
            keys = [key for key, _ in store.scan(None, None)]
            stored = [unstamp(each) for each in store.get_stored(keys) if each is not None]
            held = {
                (key.decode(), None): (json.loads(value), time) for key, (time, value) in zip(keys, stored, strict=True)
            }
            return sink, held, machine.counters.records_dropped
        finally:
            machine.close()


def _value(topic: str, number: int | None, user: str | None) -> bytes | None:
    if number is None:
        return None
    return json.dumps({"a": number, "u": user} if topic == "in" else {"b": number}).encode()


@pytest.mark.parametrize(("kind", "on"), KINDS)
@settings(max_examples=5)
@given(records, cuts)
@example([("users", "a", 5, None), ("in", "b", 1, "a"), ("users", "a", None, None), ("in", "a", 2, "b")], [])
@example([("users", "a", 5, None), ("in", None, 1, "a"), ("in", "a", None, "a"), ("in", "a", 2, None)], [2])
@example([("users", None, 5, None), ("users", "a", 6, None), ("in", None, 3, None), ("in", "a", 4, "a")], [])
def test_a_stream_beside_a_global_table_agrees_with_kafka_streams(
    driver: KafkaStreams,
    pipelines: dict[tuple[str, str], Pipeline],
    kind: str,
    on: str,
    given: list[Given],
    cuts: list[int],
) -> None:
    asked = [
        {"topic": topic, "key": key, "value": value and value.decode(), "time": at}
        for at, (topic, key, number, user) in enumerate(given)
        for value in [_value(topic, number, user)]
    ]
    theirs = driver.answer({"global": {"type": kind, "on": on}}, asked)
    sink, held, dropped = ours(pipelines[kind, on], given, cuts)
    assert sink == list(theirs.sinks["out"])
    assert held == theirs.store
    assert dropped == theirs.dropped
