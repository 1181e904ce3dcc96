"""Joins with global tables beside Kafka Streams: the same records give the same output, in order, and the same table.

Nothing orders a global table's changes and the stream's records, so that a batch ends before the table changes.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import pytest
from case_marks import BY_KEY, BY_TIME, Marks, Row, mark, separated
from hypothesis import example, given, settings
from hypothesis import strategies as st
from oracle_driver import KafkaStreams
from pipeline_bench import together
from pipeline_kit import Pipeline, Record, source, topology_of
from shared_cases import EXAMPLES, shared
from state_kit import json_contents

from streams_runtime.processing.failures.error_policy import ErrorPolicy
from streams_runtime.testing.mock_producer import Sent
from streams_runtime.testing.topology_runner import TopologyRunner

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.integration, pytest.mark.oracle, pytest.mark.timeout(900)]

Given = tuple[str, str | None, int | None, str | None]
"""Topic, key, number and, of the stream, what the expression gives. Without a number it has no value."""
Case = tuple[list[Given], list[int]]
"""Records, and before which of them a batch begins."""
ON = {"key": "_key", "value": "u"}
FAIL = ErrorPolicy("fail")
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


def ours(pipeline: Pipeline, cases: Sequence[Case]) -> tuple[list[Any], int]:
    """The sink's records in order and the table's contents of each case, and how many records of all were dropped."""
    rows = [
        (
            [
                Record(key and key.encode(), _value(topic, number, user), topic, time=at)
                for at, (topic, key, number, user) in enumerate(given)
            ],
            [*cuts, *_turns(given)],
        )
        for given, cuts in cases
    ]
    with TemporaryDirectory() as folder:
        counts = {"in": len(cases), "users": len(cases), "out": 1}
        machine = TopologyRunner(pipeline.topology, pipeline.compiled, (FAIL, FAIL), counts, Path(folder))
        try:
            for records in together(rows, OF_ONE_TABLE):
                for each in records:
                    machine.logs.append(Sent(each.topic, each.partition, each.key, each.value, each.time), each.key)
                machine.work()
            sink = [
                (each.key, each.value and json.loads(each.value), each.timestamp) for each in machine.logs.unread("out")
            ]
            table = json_contents(machine.global_stores["users"])
            held = [
                {(key and key.decode(), None): (value, time) for key, value, time in rows}
                for rows in separated(table, OF_ONE_TABLE, len(cases))
            ]
            found = list(zip(separated(sink, OF_ONE_TABLE, len(cases)), held, strict=True))
            return found, machine.counters.records_dropped
        finally:
            machine.close()


def _turns(given: list[Given]) -> Iterator[int]:
    """Before which records a batch ends because the table changes."""
    return (at for at in range(1, len(given)) if (given[at - 1][0], given[at][0]) == ("in", "users"))


def _marked(case: int, record: Record) -> Record:
    record = BY_TIME.put(case, BY_KEY.put(case, record))
    value = record.value and json.loads(record.value)
    if value and value.get("u") is not None:
        value["u"] = mark(case).decode() + value["u"]
    return replace(record, value=value and json.dumps(value).encode())


def _unmarked(row: Row) -> tuple[int, Row]:
    case, (key, value, time) = BY_TIME.take(row)
    return case, (key and key.removeprefix(mark(case)), value, time)


# All cases' rows lie in one table, by keys of their own; what has no key is told apart by its time.
OF_ONE_TABLE = Marks(_marked, _unmarked)


def _value(topic: str, number: int | None, user: str | None) -> bytes | None:
    if number is None:
        return None
    return json.dumps({"a": number, "u": user} if topic == "in" else {"b": number}).encode()


@pytest.mark.parametrize(("kind", "on"), KINDS)
@settings(max_examples=EXAMPLES)
@given(shared(st.tuples(records, cuts)))
@example(
    [
        ([("users", "a", 5, None), ("in", "b", 1, "a"), ("users", "a", None, None), ("in", "a", 2, "b")], []),
        ([("users", "a", 5, None), ("in", None, 1, "a"), ("in", "a", None, "a"), ("in", "a", 2, None)], [2]),
        ([("users", None, 5, None), ("users", "a", 6, None), ("in", None, 3, None), ("in", "a", 4, "a")], []),
    ]
)
def test_a_stream_beside_a_global_table_agrees_with_kafka_streams(
    driver: KafkaStreams, pipelines: dict[tuple[str, str], Pipeline], kind: str, on: str, given: list[Case]
) -> None:
    theirs = [
        driver.answer(
            {"global": {"type": kind, "on": on}},
            [
                {"topic": topic, "key": key, "value": value and value.decode(), "time": at}
                for at, (topic, key, number, user) in enumerate(records)
                for value in [_value(topic, number, user)]
            ],
        )
        for records, _ in given
    ]
    found, dropped = ours(pipelines[kind, on], given)
    assert found == [(list(each.sinks["out"]), each.store) for each in theirs]
    assert dropped == sum(each.dropped for each in theirs)
