"""toStream with suppress beside Kafka Streams' untilTimeLimit: the same changes go on, with the same records."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import pytest
from case_marks import BY_KEY
from hypothesis import example, given, settings
from machine_runs import asked, of_keys, sinks_each
from oracle_driver import KafkaStreams
from oracle_operators import WINDOWS, aggregated, cases
from oracle_operators import Case as WindowCase
from oracle_operators import Given as WindowGiven
from pipeline_kit import Pipeline, Record, source, topology_of
from shared_cases import EXAMPLES, shared
from table_trees import PARTITIONS, SPREAD, Case, Given, in_partitions, renamed

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.integration, pytest.mark.oracle, pytest.mark.timeout(900)]


def read(topic: str, **more: Any) -> dict[str, Any]:
    return source(schema="v BIGINT") | {"name": topic, "topic": topic} | more


IN, OTHER, USERS = read("in"), read("other"), read("users", table={"store": "users"})


def step(name: str, from_: str, **what: Any) -> dict[str, Any]:
    return {"name": name, "from": from_, **what}


def held(name: str, from_: str, within: int, **buffer: Any) -> dict[str, Any]:
    """The step of `Suppressions.held`."""
    suppress = {"within": f"{within}ms"} | ({"buffer": buffer} if buffer else {})
    return step(name, from_, toStream={"suppress": suppress})


def beside(name: str, from_: str, table: str, kind: str) -> dict[str, Any]:
    select = {"v": f"coalesce(v, 0) * 10 + coalesce({table}.v, 0)"}
    return step(name, from_, join={"table": table, "type": kind, "select": select})


CASES: dict[str, tuple[list[Any], list[Any], Mapping[str, str]]] = {
    "a table": (
        [USERS],
        [
            held("calm", "users", 4),
            step("some", "users", where="v % 3 != 0"),
            held("calm-some", "some", 4),
            held("first", "users", 9, records=1),
            held("second", "users", 9, records=2, full="emitEarly"),
        ],
        {"out": "calm", "fitting": "calm-some", "one": "first", "two": "second"},
    ),
    "counts": (
        [IN],
        [
            step("counted", "in", aggregate={"v": "count(*)"}, store="counted"),
            step("every", "counted", toStream={}),
            held("calm", "counted", 4),
            {"name": "met", "merge": ["every", "calm"]},
        ],
        {"out": "calm", "met": "met"},
    ),
    "tables beside each other": (
        [USERS, IN],
        [
            step("kept", "in", toTable={"store": "kept"}),
            beside("both", "kept", "users", "outer"),
            held("calm", "both", 3),
        ],
        {"out": "calm"},
    ),
    "a table of what waited": (
        [USERS, OTHER],
        [
            held("calm", "users", 3),
            step("late", "calm", toTable={"store": "late"}),
            step("told", "late", toStream={}),
            beside("met", "other", "late", "left"),
        ],
        {"out": "told", "beside": "met"},
    ),
}


def row(topic: int, number: int | None, time: int, key: str | None = "a") -> Given:
    return Given(str(topic), key, number, time)


# A key that changes again and goes while it waits, beside one whose time comes with another's change; then late ones.
WAITING = [
    row(0, 1, 1),
    row(0, 2, 3),
    row(0, 5, 4, "b"),
    row(0, None, 5),
    row(0, 4, 8, "b"),
    row(0, 7, 9),
    row(0, 8, 20),
]
LATE = [row(0, 1, 20), row(0, 2, 3, "b"), row(0, 4, 2, "b"), row(1, 5, 20), row(0, 5, 16, "c"), row(0, None, 24, "z")]


@pytest.fixture(scope="module")
def pipelines(spark: SparkSession) -> dict[str, Pipeline]:
    made = {}
    for name, (sources, steps, sinks) in CASES.items():
        written = [{"from": each, "topic": topic} for topic, each in sinks.items()]
        made[name] = Pipeline(spark, topology_of(sources, steps, written))
    return made


@pytest.mark.parametrize("name", CASES)
@settings(max_examples=EXAMPLES)
@given(shared(SPREAD))
@example([(WAITING, [], 1), (WAITING, [1, 2, 3, 4, 5, 6], 1), (LATE, [2], 1)])
def test_every_change_goes_on_as_in_kafka_streams_wherever_batches_begin(
    driver: KafkaStreams, pipelines: dict[str, Pipeline], name: str, given: list[Case]
) -> None:
    topics = [each["topic"] for each in CASES[name][0]]
    read_ = [(in_partitions(renamed(records, topics), topics, partitions), cuts) for records, cuts, partitions in given]
    found = sinks_each(pipelines[name], read_, PARTITIONS)
    for sinks, (records, _), (_, _, partitions) in zip(found, read_, given, strict=True):
        if partitions == 1:
            assert sinks == driver.answer({"held": name}, asked(records)).sinks
        else:
            assert of_keys(sinks) == each_by_itself(driver, name, records)


def each_by_itself(driver: KafkaStreams, name: str, records: list[Record]) -> dict[tuple[str, bytes | None], list[Any]]:
    """What Kafka Streams makes of each partition: how long changes wait hangs on the others of their partition."""
    found = {}
    for partition in range(PARTITIONS):
        own = [each for each in records if each.partition == partition]
        found |= of_keys(driver.answer({"held": name}, asked(own)).sinks)
    return found


KINDS = ("tumbling", "hopping by one", "sessions without grace", "sliding close by")
WITHIN = 6_000
DISORDERED = [("a", 1, 0), ("a", 1, 8_000), ("b", 2, 4_000), ("a", 4, 16_000), ("a", 5, 12_000), ("b", 6, 2_000)]


@pytest.fixture(scope="module")
def windowed(spark: SparkSession) -> dict[str, Pipeline]:
    made = {}
    for kind in KINDS:
        sources, steps, _ = aggregated(WINDOWS[kind])
        calm = held("calm", "step", WITHIN)
        made[kind] = Pipeline(spark, topology_of(sources, [*steps, calm], [{"from": "calm", "topic": "out"}]))
    return made


def written(given: list[WindowGiven]) -> list[Record]:
    records = []
    for key, amount, time in given:
        value = None if amount is None else json.dumps({"a": amount}).encode()
        records.append(Record(key and key.encode(), value, partition=0, time=time))
    return records


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=EXAMPLES)
@given(cases)
@example([(DISORDERED, [2, 3]), (DISORDERED, []), (DISORDERED, [1, 4])])
def test_so_does_every_window(
    driver: KafkaStreams, windowed: dict[str, Pipeline], kind: str, given: list[WindowCase]
) -> None:
    theirs = [
        driver.answer({"windows": WINDOWS[kind], "within": WITHIN}, asked(written(records))).sinks
        for records, _ in given
    ]
    assert sinks_each(windowed[kind], [(written(records), cuts) for records, cuts in given], marks=BY_KEY) == theirs
