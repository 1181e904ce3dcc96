"""Sessions that are passed on once they have closed, of long disordered input: Kafka Streams' own, in its order.

A record that comes out of order may join a session that has closed, so long as what comes of it has not. Kafka Streams
passes both on, the session as it closed and the longer one.
"""

from __future__ import annotations

import json
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import pytest
from oracle_driver import KafkaStreams
from oracle_operators import aggregated
from pipeline_bench import Bench, open_tasks
from pipeline_kit import Pipeline, Record, topology_of
from sessions_model import Session, SessionsModel, disordered

from streams_runtime.state.window_keys import split_session_key
from streams_runtime.topology.nodes.window_kinds import SessionWindows

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.integration, pytest.mark.oracle, pytest.mark.timeout(900)]

LENGTHS = {"gap": 10_000, "grace": 0, "retention": 3_600_000}
WINDOWS = SessionWindows(10_000, 0, 3_600_000, only_final=True)
FEW = [*disordered(400, 8, 300_000, 3_000), ("k0", 1, 400_000), ("k1", 1, 390_000), ("k0", 1, 390_000)]
MANY = disordered(5_520, 120, 300_000, 3_000)


@pytest.fixture(scope="module")
def sessions(spark: SparkSession) -> Pipeline:
    return Pipeline(spark, topology_of(*aggregated(LENGTHS, final=True)))


def in_batches(pipeline: Pipeline, records: list[tuple[str, int, int]], size: int) -> tuple[list[Any], int]:
    """What the sink has, in order, and how many records came too late."""
    rows = [
        Record(key.encode(), json.dumps({"a": amount}).encode(), offset=number, time=time)
        for number, (key, amount, time) in enumerate(records)
    ]
    with ExitStack() as stack:
        bench = Bench(pipeline, open_tasks(stack, pipeline.topology))
        written = bench.written(rows, range(size, len(rows), size))
        return [(split(key), value["n"]) for key, value, _ in written], bench.counters.late_records


def split(key: bytes | None) -> Session:
    assert key is not None
    name, start, end = split_session_key(key)
    return name.decode(), start, end


def modelled(records: list[tuple[str, int, int]]) -> SessionsModel:
    model = SessionsModel(WINDOWS)
    model.process(records)
    return model


@pytest.mark.parametrize("size", [len(FEW), 97])
def test_sessions_that_have_closed_are_passed_on_as_by_kafka_streams_wherever_batches_begin(
    driver: KafkaStreams, sessions: Pipeline, size: int
) -> None:
    asked = [{"topic": "in", "key": key, "value": json.dumps({"a": n}), "time": time} for key, n, time in FEW]
    answer = driver.answer({"windows": LENGTHS, "suppress": True}, asked)
    theirs = [(split(key), value["n"]) for key, value, _ in answer.sinks["out"]]
    assert len({start for (_, start, _), _ in theirs}) < len(theirs), "some sessions grow after they have closed"
    assert in_batches(sessions, FEW, size) == (theirs, answer.dropped)
    model = modelled(FEW)
    assert (model.passed_on, model.late) == (theirs, answer.dropped)


@pytest.mark.parametrize("size", [len(MANY), 1_700])
def test_long_disordered_input_without_grace_gives_the_sessions_of_record_by_record(
    sessions: Pipeline, size: int
) -> None:
    model = modelled(MANY)
    assert in_batches(sessions, MANY, size) == (model.passed_on, model.late)
