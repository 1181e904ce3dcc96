"""Joins of two streams beside Kafka Streams: the same records give the same output, record by record.

Kafka Streams looks for windows that have closed at most once a second by its clock, and not before a time that it
remembers from its last look; here both are turned off, so that it passes on each record at the first moment at which
it may. Which of the two sides comes first at one time is decided by the topics' names.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING

import pytest
from case_marks import BY_NUMBER, Row
from hypothesis import example, given, settings
from hypothesis import strategies as st
from oracle_driver import KafkaStreams
from pipeline_bench import Bench, open_tasks
from pipeline_kit import Pipeline, Record, source, topology_of
from shared_cases import EXAMPLES, shared

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.integration, pytest.mark.oracle, pytest.mark.timeout(900)]

Given = tuple[str, str | None, int | None, int]
"""Topic, key, number and time (ms) of a record; without a number it has no value."""
Case = tuple[list[Given], list[int]]
"""Records, and before which of them a batch begins."""
Join = tuple[str, tuple[int, int, int], bool]
"""Kind; before, after and grace (ms); whether a stream is joined with itself."""

WINDOWS = [(5, 5, 0), (6, 2, 4), (0, 3, 1)]
JOINS: list[Join] = [(kind, each, False) for kind in ("inner", "left", "outer") for each in WINDOWS]
JOINS += [("outer", (5, 5, 0), True)]
SEGMENT = 60_000  # ms, the shortest one of a store: records of long ago are dropped with it

records = st.lists(
    st.tuples(
        st.sampled_from(["in", "other"]),
        st.sampled_from(["a", "a", "b", None]),
        st.one_of(st.none(), *[st.integers(0, 9)] * 4),
        st.one_of(*[st.integers(0, 30)] * 12, st.integers(3 * SEGMENT, 3 * SEGMENT + 10)),
    ),
    min_size=1,
    max_size=30,
)
cuts = st.lists(st.integers(0, 30), max_size=5)


@pytest.fixture(scope="module")
def pipelines(spark: SparkSession) -> dict[Join, Pipeline]:
    made = {}
    other = source(schema="b BIGINT") | {"name": "other", "topic": "other"}
    for each in JOINS:
        kind, (before, after, grace), itself = each
        within, stream = {"before": f"{before}ms", "after": f"{after}ms"}, "in" if itself else "other"
        select = {"b": "`in`.a" if itself else "other.b"}
        join = {"stream": stream, "type": kind, "within": within, "grace": f"{grace}ms", "select": select}
        sources = [source(schema="a BIGINT"), *([] if itself else [other])]
        steps, sinks = [{"name": "both", "from": "in", "join": join}], [{"from": "both", "topic": "out"}]
        made[each] = Pipeline(spark, topology_of(sources, steps, sinks))
    return made


def in_turn(records: list[Given]) -> list[Given]:
    """The records in the order in which both sides process them: by the time that each topic has come to."""
    come: dict[str, int] = {}
    turns = []
    for number, each in enumerate(records):
        come[each[0]] = max(each[3], come.get(each[0], 0))
        turns.append((come[each[0]], each[0], number, each))
    return [each for *_, each in sorted(turns, key=lambda turn: turn[:3])]


def ours(pipeline: Pipeline, cases: Sequence[Case]) -> tuple[list[list[Row]], int, int]:
    """The sink's records of each case in order, and how many records of all were dropped, and late."""
    rows = [
        (
            [
                Record(key and key.encode(), value_of(topic, number), topic, offset=at, time=time)
                for at, (topic, key, number, time) in enumerate(given)
            ],
            cuts,
        )
        for given, cuts in cases
    ]
    with ExitStack() as stack:
        bench = Bench(pipeline, open_tasks(stack, pipeline.topology, len(cases)))
        return bench.written_each(rows, BY_NUMBER), bench.counters.records_dropped, bench.counters.late_records


def value_of(topic: str, number: int | None) -> bytes | None:
    return None if number is None else json.dumps({"a" if topic == "in" else "b": number}).encode()


LATE = [("in", "a", 1, 10), ("other", "b", 2, 30), ("other", "a", 3, 11), ("in", "b", 4, 29), ("in", "a", 5, 31)]
WAITING: list[Given] = [("in", key, at, at) for at, key in enumerate("abcabcabc")]
# Records whose windows end just when stream time is there, with a result before it goes on.
ENDS: list[Given] = [("in", "b", 0, 20), ("in", "a", 1, 15), ("in", "a", 2, 18), ("in", "a", 3, 17)]
ENDS += [("other", "b", 4, 20), ("other", "c", 5, 15), ("other", "c", 6, 14), ("other", "b", 7, 20), ("in", "b", 8, 40)]
LONG_AGO = [("in", "a", 1, 1), ("in", "a", 2, 3 * SEGMENT), ("in", "a", 3, 1), ("other", "a", 4, 2)]


@pytest.mark.parametrize("join", JOINS, ids=str)
@settings(max_examples=EXAMPLES)
@given(shared(st.tuples(records, cuts)))
@example(
    [
        (LATE, [2]),
        ([*WAITING, ("other", "a", 9, 7), ("other", None, 9, 40), ("other", "x", 9, 41)], [3, 10]),
        ([("in", None, 1, 5), ("in", "a", None, 5), ("other", None, 2, 6), ("other", "a", None, 90)], []),
        (
            [("in", "a", 1, 5), ("in", "a", 2, 5), ("other", "a", 3, 5), ("other", "a", 4, 5), ("in", "a", 5, 5)],
            [1, 3],
        ),
        (ENDS, [1, 5]),
        (LONG_AGO, []),
    ]
)
def test_two_streams_agree_with_kafka_streams_wherever_batches_begin(
    driver: KafkaStreams, pipelines: dict[Join, Pipeline], join: Join, given: list[Case]
) -> None:
    kind, (before, after, grace), itself = join
    if itself:
        given = [([("in", *rest) for _, *rest in records], cuts) for records, cuts in given]  # type: ignore[misc]
    given = [(in_turn(records), cuts) for records, cuts in given]
    told = {"kind": kind, "before": before, "after": after, "grace": grace, **({"self": True} if itself else {})}
    theirs = [
        driver.answer(
            {"streams": told},
            [
                {"topic": topic, "key": key, "value": value and value.decode(), "time": time}
                for topic, key, number, time in records
                for value in [value_of(topic, number)]
            ],
        )
        for records, _ in given
    ]
    found, dropped, late = ours(pipelines[join], given)
    assert found == [list(each.sinks["out"]) for each in theirs]
    # Kafka Streams counts a late record as dropped once its whole segment of time is gone.
    assert dropped <= sum(each.dropped for each in theirs) <= dropped + late
