"""Merges and joins behind joins, dedupes and tables' changes beside Kafka Streams: record by record, in order."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import example, given, settings
from machine_runs import asked, of_keys, sinks_each
from oracle_driver import KafkaStreams
from pipeline_kit import Pipeline, source, topology_of
from shared_cases import EXAMPLES, shared
from table_trees import PARTITIONS, SPREAD, Case, Given, in_partitions, renamed

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.integration, pytest.mark.oracle, pytest.mark.timeout(900)]


def read(topic: str, **more: Any) -> dict[str, Any]:
    return source(schema="v BIGINT") | {"name": topic, "topic": topic} | more


TOPICS = ["base", "in", "other"]  # in the order in which records of one time are taken
SOURCES = [read("base", table={"store": "base"}), read("in"), read("other")]
FITS = "v % 3 != 0"


def step(name: str, from_: str, **what: Any) -> dict[str, Any]:
    return {"name": name, "from": from_, **what}


def merged(name: str, *inputs: str) -> dict[str, Any]:
    return {"name": name, "merge": list(inputs)}


def once(name: str, from_: str) -> dict[str, Any]:
    return step(name, from_, dedupe={"within": "4ms"})


def counted(name: str, from_: str) -> dict[str, Any]:
    return step(name, from_, aggregate={"v": "count(*)"}, store=name)


def beside(name: str, from_: str, kind: str) -> dict[str, Any]:
    return step(name, from_, join={"table": "base", "type": kind, "select": {"v": "v * 10 + coalesce(base.v, 0)"}})


def met(name: str, left: str, right: str, **more: Any) -> dict[str, Any]:
    select = {"v": f"coalesce(v, 0) * 10 + coalesce(`{right}`.v, 0)"}
    return step(name, left, join={"stream": right, "within": "4ms", "select": select} | more)


def told(name: str, from_: str) -> dict[str, Any]:
    return step(name, from_, toStream={})


CASES: dict[str, tuple[list[Any], Mapping[str, str]]] = {
    "a join and another topic": (
        [beside("enriched", "in", "left"), merged("all", "enriched", "other")],
        {"out": "all"},
    ),
    "a dedupe and its own stream": (
        [
            step("odd", "in", where=FITS),
            once("first", "in"),
            step("even", "in", select={"v": "v * 2"}),
            merged("all", "even", "first", "odd"),
        ],
        {"out": "all"},
    ),
    "elements": (
        [
            step("numbers", "in", flatMap={"explode": "array(v, v + 1)", "as": "n"}),
            step("twice", "numbers", select={"v": "n"}),
            once("some", "twice"),
            step("rest", "twice", where=FITS),
            merged("all", "in", "rest", "some"),
        ],
        {"out": "all"},
    ),
    "merges of merges": (
        [
            once("first", "in"),
            merged("some", "first", "other"),
            once("again", "some"),
            beside("besides", "some", "inner"),
            merged("every", "in", "again", "besides"),
            counted("counted", "every"),
            told("counts", "counted"),
        ],
        {"out": "every", "counts": "counts"},
    ),
    "streams beside each other": (
        [met("both", "in", "other"), once("first", "both"), merged("all", "in", "both", "first")],
        {"out": "all"},
    ),
    "streams behind stages": (
        [
            once("right", "other"),
            beside("besides", "in", "inner"),
            met("pairs", "besides", "right"),
            met("again", "pairs", "in"),
        ],
        {"out": "pairs", "again": "again"},
    ),
    "tables behind streams": (
        [
            met("results", "in", "other"),
            step("latest", "results", toTable={"store": "latest"}),
            told("newest", "latest"),
            counted("counted", "results"),
            told("counts", "counted"),
            beside("besides", "results", "left"),
        ],
        {"out": "besides", "latest": "newest", "counts": "counts"},
    ),
    "left joins behind stages": (
        [
            once("right", "other"),
            beside("besides", "in", "inner"),
            met("pairs", "besides", "right", type="left"),
            met("again", "pairs", "in", type="outer"),
        ],
        {"out": "pairs", "again": "again"},
    ),
    "outer joins behind stages": (
        [
            once("first", "in"),
            beside("besides", "other", "left"),
            met("pairs", "first", "besides", type="outer"),
            met("again", "other", "pairs", type="left"),
            merged("all", "pairs", "in", "other"),
        ],
        {"out": "all", "again": "again"},
    ),
    "tables behind outer joins": (
        [
            met("results", "in", "other", type="outer"),
            step("latest", "results", toTable={"store": "latest"}),
            told("newest", "latest"),
            counted("counted", "results"),
            told("counts", "counted"),
            beside("besides", "results", "left"),
        ],
        {"out": "besides", "latest": "newest", "counts": "counts"},
    ),
    "a stream beside itself": (
        [
            step("odd", "in", where=FITS),
            step("even", "in", select={"v": "v * 2"}),
            met("pairs", "even", "odd"),
            met("again", "odd", "even", type="outer"),
            met("third", "in", "odd", type="left"),
        ],
        {"out": "pairs", "again": "again", "third": "third"},
    ),
    "changes of a table": (
        [
            step("some", "base", where=FITS),
            told("fitting", "some"),
            told("changes", "base"),
            counted("counted", "in"),
            told("counts", "counted"),
            merged("all", "in", "counts", "changes", "fitting"),
        ],
        {"out": "all"},
    ),
}


@pytest.fixture(scope="module")
def pipelines(spark: SparkSession) -> dict[str, Pipeline]:
    made = {}
    for name, (steps, sinks) in CASES.items():
        written = [{"from": each, "topic": topic} for topic, each in sinks.items()]
        used = [each for each in SOURCES if f"'{each['name']}'" in repr(steps)]
        made[name] = Pipeline(spark, topology_of(used, steps, written))
    return made


def row(topic: int, number: int | None, time: int, key: str | None = "a") -> Given:
    return Given(str(topic), key, number, time)


# Several of one time and one key, from all topics; without a value, without a key, and of times long past.
SAME = [row(0, 2, 1), row(1, 1, 1), row(1, 4, 1), row(2, 7, 1), row(0, None, 2), row(1, None, 2), row(2, 5, 3, None)]
OLDER = [row(1, 4, 9), row(1, 7, 2), row(2, 2, 3), row(0, 6, 12), row(2, 5, 20), row(1, 3, 3, "b"), row(1, 8, 30)]


@pytest.mark.parametrize("name", CASES)
@settings(max_examples=EXAMPLES)
@given(shared(SPREAD))
@example([(SAME, [], 1), ([*SAME, *OLDER], [4], 1)])
def test_every_record_is_that_of_kafka_streams_wherever_batches_begin(
    driver: KafkaStreams, pipelines: dict[str, Pipeline], name: str, given: list[Case]
) -> None:
    read = [in_partitions(renamed(records, TOPICS), TOPICS, partitions) for records, _, partitions in given]
    used = pipelines[name].topology.source_topics
    mine = [
        ([each for each in records if each.topic in used], cuts)
        for records, (_, cuts, _) in zip(read, given, strict=True)
    ]
    found = sinks_each(pipelines[name], mine, PARTITIONS)
    for sinks, records, (_, _, partitions) in zip(found, read, given, strict=True):
        # Each partition has a stream time of its own, and the driver one partition.
        parts = [[each for each in records if each.partition == number] for number in range(partitions)]
        theirs = [driver.answer({"stages": name}, asked(part)).sinks for part in parts]
        if partitions == 1:
            assert sinks == theirs[0]
        else:
            assert as_it_stands(of_keys(sinks)) == as_it_stands(*map(of_keys, theirs))


def as_it_stands(*parts: dict[tuple[str, bytes | None], list[Any]]) -> dict[tuple[str, bytes | None], list[Any]]:
    """All parts together; what has no key may come of several partitions, and is in no order."""
    found: dict[tuple[str, bytes | None], list[Any]] = {}
    for part in parts:
        for place, rows in part.items():
            found.setdefault(place, []).extend(rows)
    return {place: rows if place[1] is not None else sorted(rows, key=repr) for place, rows in found.items()}
