"""Each step without state beside Kafka Streams: the same records give the same sinks, record for record."""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import machine_runs
import pytest
from case_marks import BY_TIME
from hypothesis import example, given, settings
from hypothesis import strategies as st
from machine_runs import of_keys
from oracle_driver import KafkaStreams
from pipeline_bench import Bench, Sinks, open_tasks
from pipeline_kit import Pipeline, Record, source, topology_of
from shared_cases import EXAMPLES, shared

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.integration, pytest.mark.oracle, pytest.mark.timeout(900)]

Given = tuple[str, str | None, dict[str, Any] | None, int]
"""Topic, key, value and time (ms) of a record."""
Case = tuple[list[Given], list[int]]
"""Records, and before which of them a batch begins."""

SCHEMA = "a BIGINT, s STRING, items ARRAY<STRING>"
ITEMS = {"explode": "items", "as": "item"}
SPLIT = [{"name": "large", "where": "a > 5"}, {"name": "odd", "where": "a % 2 = 1 or s = 'odd'"}]
SIZED = {"name": "sized", "from": "in", "split": SPLIT, "default": "rest"}
DOUBLED = {"b": "a * 2"}
SPLIT_SINKS = {branch: f"sized.{branch}" for branch in ("large", "odd", "rest")}

# name in driver/Streams.java: (steps, {topic: what it is written from})
STREAMS: dict[str, tuple[list[dict[str, Any]], dict[str, str]]] = {
    "filter": ([{"name": "x", "from": "in", "where": "a > 0"}], {"out": "x"}),
    "map the values": ([{"name": "x", "from": "in", "select": DOUBLED}], {"out": "x"}),
    "select the key": ([{"name": "x", "from": "in", "keyBy": "s"}], {"out": "x"}),
    "a topic by record": ([], {}),
    "repartition": ([{"name": "x", "from": "in", "repartition": {}}], {"out": "x"}),
    "repartition by another key": (
        [
            {"name": "k", "from": "in", "keyBy": "s"},
            {"name": "x", "from": "k", "repartition": {"partitions": 3}},
            {"name": "y", "from": "x", "select": DOUBLED},
        ],
        {"out": "y"},
    ),
    "map": (
        [{"name": "k", "from": "in", "keyBy": "s"}, {"name": "x", "from": "k", "select": DOUBLED}],
        {"out": "x"},
    ),
    "flat map the values": ([{"name": "x", "from": "in", "flatMap": ITEMS}], {"out": "x"}),
    "flat map": (
        [{"name": "e", "from": "in", "flatMap": ITEMS}, {"name": "x", "from": "e", "keyBy": "item"}],
        {"out": "x"},
    ),
    "split": ([SIZED], SPLIT_SINKS),
    "split without a default": (
        [{"name": "sized", "from": "in", "split": SPLIT}],
        {branch: SPLIT_SINKS[branch] for branch in ("large", "odd")},
    ),
    "merge": ([{"name": "x", "merge": ["in", "other"]}], {"out": "x"}),
    "peek": ([{"name": "x", "from": "in", "peek": {"log": "s", "metric": "a", "value": "a"}}], {"out": "x"}),
    "split and merge": (
        [SIZED, {"name": "x", "merge": ["sized.rest", "sized.large"]}],
        {"out": "x", "odd": "sized.odd"},
    ),
    "ways that meet again": (
        [
            {"name": "f", "from": "in", "where": "a > 0"},
            {"name": "k", "from": "in", "keyBy": "s"},
            {"name": "x", "merge": ["k", "f"]},
        ],
        {"out": "x"},
    ),
    "all of them": (
        [
            {"name": "m", "merge": ["in", "other"]},
            {"name": "f", "from": "m", "where": "a > -5"},
            {"name": "e", "from": "f", "flatMap": ITEMS},
            {**SIZED, "from": "e"},
            {"name": "x", "from": "sized.large", "keyBy": "item"},
            {"name": "d", "from": "sized.rest", "select": DOUBLED},
            {"name": "o", "from": "sized.odd", "select": DOUBLED},
            {"name": "y", "merge": ["d", "o"]},
        ],
        {"out": "x", "rest": "y"},
    ),
}
BY_RECORD = {
    "from": "in",
    "topicBy": "if(coalesce(a % 2 = 1, false) or coalesce(s = 'odd', false), 'odd', 'out')",
    "topics": ["out", "odd"],
}
SEVERAL_TOPICS = ("merge", "all of them")
SEVERAL_STAGES = ("repartition", "repartition by another key")
"""Between which records are spread by their keys: their order is that of each key."""

some_values = st.fixed_dictionaries(
    {
        "a": st.one_of(st.none(), st.integers(-9, 9)),
        "s": st.sampled_from(["x", "odd", "", None]),
        "items": st.one_of(st.none(), st.lists(st.sampled_from(["p", "q", "", None]), max_size=3)),
    }
)
records = st.lists(
    st.tuples(
        st.sampled_from(["in", "in", "other"]),
        st.sampled_from(["a", "b", None]),
        st.one_of(st.none(), some_values),
        st.integers(0, 60_000),
    ),
    min_size=1,
    max_size=25,
)
cuts = st.lists(st.integers(0, 25), max_size=4)


@pytest.fixture(scope="module")
def pipelines(spark: SparkSession) -> dict[str, Pipeline]:
    made = {}
    for name, (steps, written) in STREAMS.items():
        topics = ("in", "other") if name in SEVERAL_TOPICS else ("in",)
        sources = [source(schema=SCHEMA, name=topic, topic=topic) for topic in topics]
        sinks = [{"from": from_, "topic": topic} for topic, from_ in written.items()] or [BY_RECORD]
        made[name] = Pipeline(spark, topology_of(sources, steps, sinks))
    return made


def ours(pipeline: Pipeline, cases: Sequence[Case]) -> list[Sinks]:
    """The records of each sink, in order, of each case."""
    rows = [
        (
            [
                Record(key and key.encode(), value and json.dumps(value).encode(), topic, offset=number, time=time)
                for number, (topic, key, value, time) in enumerate(given)
            ],
            cuts,
        )
        for given, cuts in cases
    ]
    if len(pipeline.topology.subtopologies) > 1 or "topicBy" in repr(pipeline.topology.nodes[-1].summary):
        return machine_runs.sinks_each(pipeline, rows)
    with ExitStack() as stack:
        return Bench(pipeline, open_tasks(stack, pipeline.topology, len(cases))).sinks_each(rows, BY_TIME)


def theirs(driver: KafkaStreams, name: str, given: list[Given]) -> Sinks:
    asked = [
        {"topic": topic, "key": key, "value": value and json.dumps(value), "time": time}
        for topic, key, value, time in given
    ]
    return {topic: list(rows) for topic, rows in driver.answer({"stream": name}, asked).sinks.items()}


def unordered(sinks: Sinks) -> Sinks:
    """For records of several topics, among which there is no order."""
    return {
        topic: sorted(rows, key=lambda row: json.dumps([str(row[0]), *row[1:]], sort_keys=True))
        for topic, rows in sinks.items()
    }


FULL = {"a": 7, "s": "odd", "items": ["p", None, "q"]}


@pytest.mark.parametrize("name", STREAMS)
@settings(max_examples=EXAMPLES)
@given(shared(st.tuples(records, cuts)))
@example(
    [
        ([("in", "a", FULL, 5), ("in", None, FULL, 4), ("in", "a", None, 3), ("in", "b", {**FULL, "a": 1}, 2)], [2]),
        ([("in", "a", {**FULL, "a": a, "s": "x"}, 9) for a in (9, 2, 8, None, 1, 6, -1)], [3]),
        ([("in", "a", {"a": 1, "s": None, "items": []}, 1), ("in", "a", {"a": 2, "s": "x", "items": None}, 1)], []),
    ]
)
def test_steps_without_state_agree_with_kafka_streams_wherever_batches_begin(
    driver: KafkaStreams, pipelines: dict[str, Pipeline], name: str, given: list[Case]
) -> None:
    if name not in SEVERAL_TOPICS:
        given = [([("in", *rest) for _, *rest in records], cuts) for records, cuts in given]  # type: ignore[misc]
    mine, real = ours(pipelines[name], given), [theirs(driver, name, records) for records, _ in given]
    if name in SEVERAL_TOPICS:
        mine, real = [unordered(each) for each in mine], [unordered(each) for each in real]
    if name in SEVERAL_STAGES:
        assert [of_keys(each) for each in mine] == [of_keys(each) for each in real]
    else:
        assert mine == real
