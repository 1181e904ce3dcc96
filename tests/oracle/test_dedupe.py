"""Dedupes beside Kafka Streams: the same records give the same output, record by record.

Kafka Streams has no such operator; what stands there is a processor over a window store, as its users write it
(driver/Dedupe.java).
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING

import pytest
from case_marks import BY_TIME, Row
from hypothesis import example, given, settings
from hypothesis import strategies as st
from oracle_driver import KafkaStreams
from pipeline_bench import Bench, open_tasks
from pipeline_kit import Pipeline, Record, source, topology_of
from shared_cases import EXAMPLES, shared

from streams_runtime.topology.nodes.dedupe_node import DedupeNode

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.integration, pytest.mark.oracle, pytest.mark.timeout(900)]

Given = tuple[str | None, int | None, int]
"""Key, number and time (ms) of a record; without a number it has no value."""
Case = tuple[list[Given], list[int]]
"""Records, and before which of them a batch begins."""
Dedupe = tuple[int, bool]
"""Within (ms), and whether the id is the number instead of the key."""

DEDUPES: list[Dedupe] = [(5, False), (12, False), (5, True)]
SEGMENT = 60_000  # ms, the shortest one of a store: ids of long ago are dropped with it

records = st.lists(
    st.tuples(
        st.sampled_from(["a", "a", "b", None]),
        st.one_of(st.none(), *[st.integers(0, 2)] * 4),
        st.one_of(*[st.integers(0, 60)] * 12, st.integers(3 * SEGMENT, 3 * SEGMENT + 20)),
    ),
    min_size=1,
    max_size=30,
)
cuts = st.lists(st.integers(0, 30), max_size=5)


@pytest.fixture(scope="module")
def pipelines(spark: SparkSession) -> dict[Dedupe, Pipeline]:
    made = {}
    for each in DEDUPES:
        within, by = each
        dedupe = {"within": f"{within}ms", **({"by": "a"} if by else {})}
        steps = [{"name": "once", "from": "in", "dedupe": dedupe}]
        topology = topology_of([source(schema="a BIGINT")], steps, [{"from": "once", "topic": "out"}])
        made[each] = Pipeline(spark, topology)
    return made


def ours(pipeline: Pipeline, cases: Sequence[Case]) -> tuple[list[list[Row]], int, int]:
    """The sink's records of each case in order, and how many records of all were dropped, and late."""
    rows = [
        (
            [
                Record(key and key.encode(), value_of(number), offset=at, time=time)
                for at, (key, number, time) in enumerate(given)
            ],
            cuts,
        )
        for given, cuts in cases
    ]
    with ExitStack() as stack:
        bench = Bench(pipeline, open_tasks(stack, pipeline.topology, len(cases)))
        return bench.written_each(rows, BY_TIME), bench.counters.records_dropped, bench.counters.late_records


def value_of(number: int | None) -> bytes | None:
    return None if number is None else json.dumps({"a": number}).encode()


LATE: list[Given] = [("a", 1, 0), ("b", 1, 10), ("a", 2, 5), ("b", 2, 11), ("a", 1, 0), ("a", 1, 0), ("a", 1, 1)]
BOUNDS: list[Given] = [("a", 1, 20), ("a", 1, 15), ("a", 1, 25), ("a", 1, 14), ("a", 1, 26), ("a", 1, 31)]
LONG_AGO: list[Given] = [("a", 1, 1), ("b", 2, 3 * SEGMENT), ("a", 1, 1), ("a", 1, 2), ("b", 2, 3 * SEGMENT + 5)]
NOTHING: list[Given] = [(None, 1, 5), (None, 1, 5), ("a", None, 5), ("a", None, 6), (None, None, 5)]


@pytest.mark.parametrize("dedupe", DEDUPES, ids=str)
@settings(max_examples=EXAMPLES)
@given(shared(st.tuples(records, cuts)))
@example([(LATE, [2]), (BOUNDS, [1, 3]), (LONG_AGO, [2]), (NOTHING, [])])
def test_a_dedupe_agrees_with_kafka_streams_wherever_batches_begin(
    driver: KafkaStreams, pipelines: dict[Dedupe, Pipeline], dedupe: Dedupe, given: list[Case]
) -> None:
    within, by = dedupe
    retention = DedupeNode("once", "in", None, within, "").retention
    told = {"within": within, "retention": retention, **({"by": True} if by else {})}
    theirs = [
        driver.answer(
            {"dedupe": told},
            [
                {"topic": "in", "key": key, "value": value and value.decode(), "time": time}
                for key, number, time in records
                for value in [value_of(number)]
            ],
        )
        for records, _ in given
    ]
    found, dropped, late = ours(pipelines[dedupe], given)
    assert found == [list(each.sinks["out"]) for each in theirs]
    # Kafka Streams knows nothing of duplicates; a late record it counts once its whole segment of time is gone.
    assert dropped == sum(len(records) for records, _ in given) - sum(map(len, found))
    assert sum(each.dropped for each in theirs) <= late
