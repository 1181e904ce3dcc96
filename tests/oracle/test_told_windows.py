"""toStream of windows that change with each record, beside Kafka Streams: every change of every window, in order."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pytest
from case_marks import BY_KEY, Row
from hypothesis import example, given, settings
from hypothesis import strategies as st
from machine_runs import asked, of_keys, sinks_each, sinks_of
from oracle_driver import KafkaStreams
from oracle_operators import (
    SUMS,
    TRAIL_JOINED,
    TRAIL_REDUCED,
    WINDOWS,
    Case,
    Given,
    aggregated,
    cases,
    close_records,
    cuts,
    records,
)
from pipeline_bench import Sinks
from pipeline_kit import Pipeline, Record, topology_of
from shared_cases import EXAMPLES

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.integration, pytest.mark.oracle, pytest.mark.timeout(900)]

KINDS = ("tumbling", "hopping by one", "sessions without grace", "sliding close by", "sliding kept shortly")
BEHIND = ("hopping", "sessions", "sliding close by")
"""Those with steps behind them."""
IN_TURN = ("tumbling", "hopping by one", "sessions", "sliding close by", "sliding kept shortly")
"""Those of aggregates to which every order matters."""
FITS = "total % 3 != 0"
LATE = [("a", 1, 0), ("a", 1, 30_000), ("a", 1, 9_999), ("b", None, 20_000), (None, 1, 50_000), ("b", 2, 24_000)]
EQUAL = [("a", None, 5_000), ("a", 2, 5_000), ("a", 1, 4_000), ("a", 5, 5_000), ("b", 1, 4_000), ("a", 3, 9_500)]
JOINING = [("a", 1, 0), ("a", 2, 8_000), ("a", 3, 4_000), ("a", 4, 16_000), ("a", 5, 12_000), ("a", 6, 2_000)]
CLOSE = [("a", 1, 16), ("b", 1, 19), ("b", 1, 20), ("a", 1, 20), ("a", 1, 18), ("a", 3, 10), ("a", 2, 17)]
SINKS = {"out": "told", "met": "met", "twice": "twice", "counts": "counts"}


@pytest.fixture(scope="module")
def pipelines(spark: SparkSession) -> dict[str, Pipeline]:
    made = {name: Pipeline(spark, topology_of(*told(name))) for name in KINDS}
    made |= {f"in turn {name}": Pipeline(spark, topology_of(*told(name, in_turn(name)))) for name in IN_TURN}
    return made | {f"behind {name}": Pipeline(spark, topology_of(*told(name, behind=True))) for name in BEHIND}


def in_turn(kind: str) -> dict[str, str]:
    """A class and a lambda that keep every record in its order, beside an aggregate that goes by no order."""
    reduced = TRAIL_REDUCED + (TRAIL_JOINED if kind == "sessions" else ")")
    return {"c": "python('custom_classes:Trail', a)", "r": reduced, "n": "count(*)"}


def told(kind: str, aggregate: Mapping[str, str] = SUMS, behind: bool = False) -> tuple[Any, Any, Any]:
    """Sources, steps and sinks; `behind`: with the steps of ToldWindows.java."""
    sources, steps, _ = aggregated(WINDOWS[kind], aggregate)
    every = {"name": "every", "from": "step", "toStream": {}}
    if not behind:
        return sources, [*steps, every], [{"from": "every", "topic": "out"}]
    more = [
        {"name": "fitting", "from": "step", "where": FITS},
        {"name": "told", "from": "fitting", "toStream": {}},
        every,
        {"name": "some", "from": "every", "where": FITS},
        {"name": "met", "merge": ["told", "every"]},
        {"name": "twice", "merge": ["some", "every"]},
        {"name": "by", "from": "some", "keyBy": "cast(abs(total) % 2 as string)"},
        {"name": "counted", "from": "by", "aggregate": {"v": "count(*)"}, "store": "counted"},
        {"name": "counts", "from": "counted", "toStream": {}},
    ]
    sinks = [{"from": name, "topic": topic} for topic, name in SINKS.items()]
    return sources, [*steps, *more], sinks


def written(given: list[Given], partitions: int = 1) -> list[Record]:
    """The records; those of b lie in another partition where there are two."""
    rows = []
    for key, amount, time in given:
        value = None if amount is None else json.dumps({"a": amount}).encode()
        rows.append(Record(key and key.encode(), value, partition=int(key == "b") % partitions, time=time))
    return rows


def of_what_is_there(rows: Sequence[Row]) -> list[Row]:
    """Without deletions of what is not there: Kafka Streams sends some, where a sliding window begins as another."""
    there: set[bytes | None] = set()
    found = []
    for key, value, time in rows:
        if value is not None or key in there:
            found.append((key, value, time))
        (there.discard if value is None else there.add)(key)
    return found


def found_each(pipeline: Pipeline, given: list[Case]) -> list[Sinks]:
    """The sinks of cases that share batches."""
    return sinks_each(pipeline, [(written(records), cuts) for records, cuts in given], marks=BY_KEY)


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=EXAMPLES)
@given(cases)
@example([(LATE, [2, 3]), (EQUAL, [1]), (CLOSE, [3])])
def test_every_change_of_every_window_is_that_of_kafka_streams_wherever_batches_begin(
    driver: KafkaStreams, pipelines: dict[str, Pipeline], kind: str, given: list[Case]
) -> None:
    theirs = [driver.answer({"windows": WINDOWS[kind]}, asked(written(records))).sinks for records, _ in given]
    assert found_each(pipelines[kind], given) == theirs


@pytest.mark.parametrize("kind", BEHIND)
@settings(max_examples=2)
@given(st.one_of(records, close_records), cuts)
@example(LATE, [2, 3])
@example(CLOSE, [3])
def test_what_lies_behind_such_a_stream_is_that_of_kafka_streams(
    driver: KafkaStreams, pipelines: dict[str, Pipeline], kind: str, given: list[Given], cuts: list[int]
) -> None:
    # Of a session of one moment that gets another record of that moment Kafka Streams forgets what it was.
    given = list({(key, time): (key, amount, time) for key, amount, time in given}.values())
    theirs = driver.answer({"windows": WINDOWS[kind], "behind": True}, asked(written(given))).sinks
    found = sinks_of(pipelines[f"behind {kind}"], written(given), cuts, 1)
    if "sliding" in kind:
        assert of_what_is_there(found.pop("out")) == of_what_is_there(theirs["out"])
        found.pop("met")
    assert found == {topic: theirs[topic] for topic in found}


@pytest.mark.parametrize("kind", IN_TURN)
@settings(max_examples=EXAMPLES)
@given(cases)
# Two sessions become one, in one batch and in two, and then another one with what came of them.
@example([(LATE, [2, 3]), (EQUAL, [1]), (CLOSE, [3]), (JOINING, [4]), (JOINING, [2])])
def test_a_class_and_a_lambda_tell_what_kafka_streams_tells_of_each_record(
    driver: KafkaStreams, pipelines: dict[str, Pipeline], kind: str, given: list[Case]
) -> None:
    told = {"windows": WINDOWS[kind], "trail": True}
    theirs = [driver.answer(told, asked(written(records))).sinks["out"] for records, _ in given]
    assert [sinks["out"] for sinks in found_each(pipelines[f"in turn {kind}"], given)] == [
        [(key, value and {"c": value, "r": value, "n": value["n"]}, time) for key, value, time in rows]
        for rows in theirs
    ]


@pytest.mark.parametrize("kind", KINDS)
def test_partitions_have_stream_times_of_their_own(
    driver: KafkaStreams, pipelines: dict[str, Pipeline], kind: str
) -> None:
    given: list[Given] = [("b", 1, 90_000), ("a", 1, 0), ("a", 2, 30_000), ("b", 3, 91_000), ("a", 1, 2), ("b", 1, 5)]
    given += [("b", 2, 90_999), ("a", 5, 29_999), ("b", 7, 91_001), ("a", 3, 30_001)]
    theirs = [
        driver.answer({"windows": WINDOWS[kind]}, asked(written([each for each in given if each[0] == key])))
        for key in "ab"
    ]
    found = of_keys(sinks_of(pipelines[kind], written(given, 2), [2], 2))
    assert found == of_keys(theirs[0].sinks) | of_keys(theirs[1].sinks)
