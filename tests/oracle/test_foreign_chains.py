"""Joins by a foreign key of what joins, aggregates and other such joins give, beside Kafka Streams.

What they come to is compared, wherever batches begin: the last record of each key. How many records come before it
hangs on how far the answers of the other side have come, there as here.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from oracle_driver import KafkaStreams

from streams_runtime.testing import TopologyTestDriver

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.integration, pytest.mark.oracle, pytest.mark.timeout(900)]

Given = tuple[str, str, int | None, str | None, int]
"""Topic, key, number (None: a deletion), another key and time (ms) of a record."""
Chain = tuple[list[str], list[dict[str, Any]]]
"""Topics that are read, `clicks` as a stream and all others as tables, and the steps; the last one is written."""


def foreign(name: str, left: str, right: str, kind: str, key: str, store: str, **select: str) -> dict[str, Any]:
    return {"name": name, "from": left, "join": {"table": right, "type": kind, "key": key, "select": select}} | {
        "store": store
    }


def by_key(name: str, left: str, right: str) -> dict[str, Any]:
    select = {"x": f"`{right}`.v", "h": f"`{right}`.f"}
    return {"name": name, "from": left, "join": {"table": right, "type": "left", "select": select}}


LEFT_AND_RIGHT = foreign("both", "left", "right", "inner", "f", "first", w="right.v", g="right.f")
CHAINS: dict[str, Chain] = {
    "chain": (
        ["left", "right", "third"],
        [LEFT_AND_RIGHT, foreign("all", "both", "third", "left", "g", "second", x="third.v", h="third.f")],
    ),
    "other side": (
        ["left", "right", "third"],
        [
            foreign("other", "right", "third", "left", "f", "first", x="third.v", h="third.f"),
            foreign("all", "left", "other", "inner", "f", "second", w="other.v", x="other.x"),
        ],
    ),
    "beside": (
        ["left", "right", "third"],
        [LEFT_AND_RIGHT, by_key("beside", "both", "third"), {"name": "odd", "from": "beside", "where": "w % 2 = 1"}],
    ),
    "of a join": (
        ["left", "right", "third"],
        [
            by_key("beside", "left", "third"),
            {"name": "some", "from": "beside", "where": "v % 3 != 0"},
            foreign("all", "some", "right", "left", "h", "first", w="right.v", g="right.f"),
        ],
    ),
    "counted": (
        ["left", "clicks"],
        [
            {"name": "counts", "from": "clicks", "aggregate": {"v": "count(*)"}, "store": "counts"},
            foreign("all", "left", "counts", "left", "f", "first", w="counts.v", g="cast(null as string)"),
        ],
    ),
    "stream": (
        ["left", "right"],
        [
            foreign("both", "left", "right", "left", "f", "first", w="right.v", g="right.f"),
            {"name": "told", "from": "both", "toStream": {}},
            {"name": "times", "from": "told", "select": {"v": "10 * v", "f": "f", "w": "w", "g": "g"}},
            {"name": "again", "from": "times", "toTable": {"store": "again"}},
        ],
    ),
    "asked": (["left", "right", "clicks"], [LEFT_AND_RIGHT, by_key("beside", "clicks", "both")]),
}

# Topics of tables that are found by a foreign key only.
OTHER_SIDES = {name: {"right"} for name in CHAINS} | {"chain": {"right", "third"}, "counted": {"clicks"}}
# Rows that come before and after those that they name; other names; deletions of either side, and of the third.
STORY: list[Given] = [
    ("left", "a", 1, "x", 5),
    ("left", "b", 2, "y", 1),
    ("clicks", "x", 1, None, 2),
    ("right", "x", 1, "a", 3),
    ("third", "a", 7, "x", 4),
    ("third", "b", 8, "y", 4),
    ("right", "y", 3, "b", 6),
    ("clicks", "y", 1, None, 6),
    ("left", "c", 4, None, 7),
    ("left", "d", 5, "x", 7),
    ("right", "x", 2, "b", 8),
    ("clicks", "x", 1, None, 8),
    ("third", "b", None, None, 9),
    ("right", "x", 5, "a", 10),
    ("left", "b", 2, "x", 11),
    ("left", "d", None, None, 11),
    ("third", "a", 9, "y", 2),
    ("right", "y", None, None, 12),
    ("left", "c", 4, "y", 12),
    ("left", "e", 3, "x", 13),
    # From a row in one partition of the other side to one in another: the answer to the first may come last.
    ("third", "b", 8, "y", 13),
    ("third", "b", 8, "x", 14),
    ("third", "c", 6, "x", 13),
    ("third", "c", 6, "y", 14),
    ("right", "y", 6, "c", 14),
    ("clicks", "a", 1, None, 14),
    ("clicks", "b", 1, None, 14),
    ("clicks", "c", 1, None, 14),
]
KEYS = {"left": "abcde", "right": "xyz", "third": "abcde", "clicks": "abxy"}


@st.composite
def records(draw: st.DrawFn) -> list[Given]:
    several = []
    for topic in draw(st.lists(st.sampled_from(sorted(KEYS)), min_size=1, max_size=30)):
        key = draw(st.sampled_from(KEYS[topic]))
        number = draw(st.integers(1, 6) if topic == "clicks" else st.one_of(st.none(), st.integers(1, 6)))
        other = draw(st.sampled_from(["a", "b", "x", "y", None]))
        several.append((topic, key, number, other, draw(st.integers(0, 20))))
    return several


def document(topics: Sequence[str], steps: Sequence[dict[str, Any]]) -> dict[str, Any]:
    value = {"format": "json", "schema": "v BIGINT, f STRING"}
    sources: list[dict[str, Any]] = [
        {"name": topic, "topic": topic, "key": {"format": "string"}, "value": value} for topic in topics
    ]
    for source in sources:
        if source["name"] != "clicks":
            source["table"] = {"store": f"{source['name']}-store"}
    return {
        "apiVersion": "streamsoperator.io/v1alpha1",
        "kind": "StreamsApplication",
        "metadata": {"name": "app"},
        "spec": {
            "topology": {
                "sources": sources,
                "steps": list(steps),
                "sinks": [{"from": steps[-1]["name"], "topic": "out"}],
            }
        },
    }


def value_of(record: Given) -> dict[str, Any] | None:
    _, _, number, other, _ = record
    return None if number is None else {"v": number, "f": other}


@pytest.mark.parametrize("name", sorted(CHAINS))
@settings(max_examples=1)
@given(records(), st.lists(st.integers(0, 30), max_size=2))
@example(STORY, [9])
def test_they_come_to_what_they_come_to_in_kafka_streams(
    driver: KafkaStreams, spark: SparkSession, name: str, records: list[Given], cuts: list[int]
) -> None:
    topics, steps = CHAINS[name]
    told = [each for each in records if each[0] in topics]
    # A stream that asks for the result finds what is there at its turn: the answers of the other side come first.
    asking = [each for each in told if name == "asked" and each[0] == "clicks"]
    told = [each for each in told if each not in asking]
    ends = sorted({*(cut for cut in cuts if cut < len(told)), len(told)})
    batches = [*(told[start:end] for start, end in zip([0, *ends], ends, strict=False)), asking]
    # Those that meet by their own keys have as many partitions.
    counts = dict.fromkeys(topics, 3) | {topic: 5 for topic in topics if topic in OTHER_SIDES[name]}
    with TopologyTestDriver(document(topics, steps), partitions=counts) as machine:
        for batch in batches:
            with machine.batch():
                for record in batch:
                    machine.input_topic(record[0]).pipe(record[1], value_of(record), record[4])
        found = machine.output_topic("out").read_latest_by_key()
    answer = driver.answer({"chains": name}, [_asked(each) for each in (*told, *asking)])
    expected = {(key or b"").decode(): row for key, row, _ in answer.sinks["out"]}
    # Kafka Streams also deletes what was never there.
    assert _there(found) == _there(expected)


def _there(rows: dict[Any, Any]) -> dict[Any, Any]:
    return {key: row for key, row in rows.items() if row is not None}


def _asked(record: Given) -> dict[str, Any]:
    value = value_of(record)
    text = None if value is None else json.dumps(value)
    return {"topic": record[0], "key": record[1], "value": text, "time": record[4]}
