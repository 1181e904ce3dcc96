"""Streams of one shape that are merged and aggregated, beside Kafka Streams' cogroup (KIP-150).

No record comes after its window has closed: that Kafka Streams judges by the stream of the record alone.
"""

from __future__ import annotations

import random
from typing import Any

import pytest
from both_drivers import SESSION, TUMBLING, as_written, once_a_batch, theirs
from oracle_driver import KafkaStreams
from topology_drivers import Made, document

pytestmark = [
    pytest.mark.integration,
    pytest.mark.oracle,
    pytest.mark.usefixtures("spark"),
    pytest.mark.timeout(900),
]

STREAMS = {"in": "a", "less": "-a", "seen": "cast(0 as bigint)"}
"""What each topic gives to the total."""
KINDS: dict[str, dict[str, Any]] = {"keys": {}, "windows": {"window": TUMBLING}, "sessions": {"window": SESSION}}


def application(kind: str) -> dict[str, Any]:
    text = {"key": {"format": "string"}, "value": {"format": "json", "schema": "a BIGINT"}}
    sources = [{"name": topic, "topic": topic, **text} for topic in STREAMS]
    given = [
        {"name": f"of-{topic}", "from": topic, "where": "a is not null", "select": {"x": more, "a": "a"}}
        for topic, more in STREAMS.items()
    ]
    all_of_them = {"name": "all", "merge": [each["name"] for each in given]}
    calls = {"total": "sum(x)", "n": "count(*)", "most": "max(a)"}
    together = {"name": "step", "from": "all", "aggregate": calls, "store": "step", **KINDS[kind]}
    return document(sources, [*given, all_of_them, together], {"out": "step"})


@pytest.mark.parametrize("kind", KINDS)
def test_a_merge_and_an_aggregate_give_what_a_cogroup_gives(driver: KafkaStreams, made: Made, kind: str) -> None:
    dice, time, records = random.Random(kind), 0, []
    for _ in range(30):
        time += dice.choice((0, 700, 3_000, 9_000))
        value = None if dice.random() < 0.1 else {"a": dice.randrange(-9, 10)}
        key = None if dice.random() < 0.05 else dice.choice("ab")
        records.append((dice.choice([*STREAMS]), key, value, max(0, time - dice.choice((0, 0, 2_000, 4_000)))))
    answer = theirs(driver, {"cogroup": kind}, records)
    ours = made(application(kind))
    for topic, given_key, given_value, at in records:
        ours.input_topic(topic).pipe(given_key, given_value, at)
    written = [as_written(each) for each in ours.output_topic("out").read_all()]
    assert written == once_a_batch(answer.sinks["out"])
    assert len(written) > 15
