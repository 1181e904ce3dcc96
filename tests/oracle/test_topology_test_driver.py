"""The test driver beside Kafka Streams' own: the same records, piped one by one, give the same records in the sinks."""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any

import pytest
from both_drivers import SESSION, TUMBLING, Piped, as_written, once_a_batch, theirs
from oracle_driver import KafkaStreams
from table_trees import joined, steps_of, table
from topology_drivers import Made, document

pytestmark = [
    pytest.mark.integration,
    pytest.mark.oracle,
    pytest.mark.usefixtures("spark"),
    pytest.mark.timeout(900),
]

_NUMBERS = [f'{{"v": {number}}}' for number in range(1, 7)]

AMOUNTS = {"name": "in", "topic": "in", "key": {"format": "string"}, "value": {"format": "json", "schema": "a BIGINT"}}
USERS = {
    "name": "users",
    "topic": "users",
    "key": {"format": "string"},
    "value": {"format": "json", "schema": "b BIGINT"},
    "table": {"store": "store"},
}
AGGREGATE = {
    "name": "step",
    "from": "in",
    "aggregate": {"total": "sum(coalesce(a, 0))", "n": "count(*)"},
    "store": "store",
}
LENGTHS = {"size": 10_000, "advance": 10_000, "grace": 5_000, "retention": 15_000}
AROUND = {"difference": 10_000, "grace": 5_000, "retention": 25_000}
SLIDING = {"sliding": {"timeDifference": "10s", "grace": "5s"}}
SESSIONS = {"gap": 4_000, "grace": 5_000, "retention": 3_600_000}

# name: (what the driver in Java is told, the same as an application)
CASES: dict[str, tuple[Mapping[str, Any], Any]] = {
    "an aggregate by key": ({}, document([AMOUNTS], [AGGREGATE], {"out": "step"})),
    "an aggregate by windows": (
        {"windows": LENGTHS},
        document([AMOUNTS], [{**AGGREGATE, "window": TUMBLING}], {"out": "step"}),
    ),
    "an aggregate by sliding windows": (
        {"windows": AROUND},
        document([AMOUNTS], [{**AGGREGATE, "window": SLIDING}], {"out": "step"}),
    ),
    "an aggregate by sessions": (
        {"windows": SESSIONS},
        document([AMOUNTS], [{**AGGREGATE, "window": SESSION}], {"out": "step"}),
    ),
    "windows once they have closed": (
        {"windows": LENGTHS, "suppress": True},
        document([AMOUNTS], [{**AGGREGATE, "window": TUMBLING, "suppress": "untilWindowCloses"}], {"out": "step"}),
    ),
    "a left join": (
        {"join": "left"},
        document(
            [AMOUNTS, USERS],
            [{"name": "both", "from": "in", "join": {"table": "users", "type": "left", "select": {"b": "users.b"}}}],
            {"out": "both"},
        ),
    ),
}

PIPED: list[Piped] = [
    ("in", "a", {"a": 1}, 1),
    ("in", "b", {"a": 5}, 3_000),
    ("users", "a", {"b": 7}, 3_500),
    ("in", "a", {"a": 2}, 4_000),
    ("in", None, {"a": 9}, 4_100),
    ("in", "a", {"a": 3}, 2_500),
    ("users", "a", {"b": 8}, 11_000),
    ("in", "a", None, 11_500),
    ("in", "b", {"a": 1}, 9_999),
    ("users", "a", None, 16_000),
    ("in", "a", {"a": 4}, 17_000),
    ("in", "b", {"a": 6}, 9_000),
    ("in", "a", {"a": 2}, 13_000),
    ("in", "a", {"a": 7}, 23_001),
    ("in", "a", {"a": 5}, 23_001),
    ("in", "a", {"a": -4}, 60_000),
    ("in", "a", {"a": 8}, 57_000),
    ("in", "a", {"a": 8}, 47_500),
]


@pytest.mark.parametrize("name", CASES)
def test_both_drivers_write_the_same_records_in_the_same_order(driver: KafkaStreams, made: Made, name: str) -> None:
    told, application = CASES[name]
    ours = made(application)
    topics = {topic: ours.input_topic(topic) for topic in ours.topology.source_topics}
    records = [each for each in PIPED if each[0] in topics]
    for topic, key, value, time in records:
        topics[topic].pipe(key, value, time)
    answer = theirs(driver, told, records)
    out = [as_written(each) for each in ours.output_topic("out").read_all()]
    assert out
    assert out == once_a_batch(answer.sinks["out"])
    assert ours.counters.records_dropped + ours.counters.late_records == answer.dropped


def test_a_table_keeps_the_row_of_a_key_whose_record_can_not_be_read(driver: KafkaStreams, made: Made) -> None:
    tree = joined("inner", {"filter": table("left")}, table("right"))
    steps = steps_of(tree)
    sinks = {each["topic"]: each["from"] for each in steps.sinks}
    application = document(steps.sources, steps.steps, sinks, processing={"onDeserializationError": "continue"})
    ours = made(application)
    dice = random.Random(5)
    records = [
        (dice.choice(("left", "right")), dice.choice("ab"), dice.choice((None, "nope", '{"v":', *_NUMBERS)), time)
        for time in range(60)
    ]
    for topic, key, text, time in records:
        ours.input_topic(topic).pipe(key, None if text is None else text.encode(), time)
    asked = [{"topic": topic, "key": key, "value": text, "time": time} for topic, key, text, time in records]
    answer = driver.answer({"tables": tree, "leavesOut": True}, asked)
    for topic in sinks:
        written = [as_written(each) for each in ours.output_topic(topic).read_all()]
        assert written == answer.sinks[topic]
        assert written
    assert ours.counters.deserialization_errors == answer.dropped > 10
