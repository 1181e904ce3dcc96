"""Functions that decide on records that fail, beside Kafka Streams' exception handlers (KIP-161, KIP-1033)."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest
from both_drivers import as_written
from oracle_driver import KafkaStreams
from topology_drivers import Made, document

from streams_runtime.errors import DeserializationException, FailedProcessingException

pytestmark = [
    pytest.mark.integration,
    pytest.mark.oracle,
    pytest.mark.usefixtures("spark"),
    pytest.mark.timeout(900),
]

GIVEN = {
    "name": "in",
    "topic": "in",
    "key": {"format": "string"},
    "value": {"format": "json", "schema": "a BIGINT, b BIGINT, said STRING"},
}
STEPS = [
    {"name": "divided", "from": "in", "select": {"q": "a div b"}},
    {"name": "counts", "from": "divided", "aggregate": {"total": "sum(q)", "n": "count(*)"}, "store": "counts"},
]
DECIDED = {"python": "record_decisions:as_they_say", "deadLetter": {"topic": "letters"}}
APPLICATION = document(
    [GIVEN],
    STEPS,
    {"out": "divided", "counts": "counts"},
    processing={"onDeserializationError": DECIDED, "onProcessingError": DECIDED},
)
Piped = list[tuple[str, str, int]]
"""Key, value and time (ms) of each record."""


def records(last: str) -> Piped:
    """Of every kind, in any order of times; `last` is the end of the last one, which can't be read or fails."""
    dice = random.Random(last)

    def value(said: str, kind: str) -> str:
        if kind == "unreadable":
            return json.dumps(said)
        zero = 0 if kind == "failing" else dice.choice((1, 2, -3))
        return json.dumps({"a": dice.randrange(-20, 20), "b": zero, "said": said})

    kinds = dice.choices(("good", "good", "failing", "unreadable"), k=16)
    piped = [
        (dice.choice("abc"), value(dice.choice(("continue", "deadLetter")), kind), dice.randrange(99)) for kind in kinds
    ]
    return [
        *piped,
        ("a", value(last, dice.choice(("failing", "unreadable"))), 50),
        ("b", value("continue", "good"), 51),
    ]


@pytest.mark.parametrize("last", ["continue", "deadLetter", "fail"])
def test_each_record_ends_as_the_handler_says(driver: KafkaStreams, made: Made, last: str) -> None:
    piped = records(last)
    asked = [{"topic": "in", "key": key, "value": value, "time": time} for key, value, time in piped]
    answer = driver.answer({"handlers": True}, asked)
    ours = made(APPLICATION)
    failure: Exception | None = None
    for key, value, time in piped:
        try:
            ours.input_topic("in").pipe(key, value.encode(), time)
        except (DeserializationException, FailedProcessingException) as error:
            failure = error
            break
    assert (failure is not None) == answer.failed == (last == "fail")
    for sink in ("out", "counts"):
        written = [as_written(each) for each in ours.output_topic(sink).read_all()]
        assert written == answer.sinks[sink]
    letters: list[Any] = ours.output_topic("letters").read_all()
    found = [(each.key, json.loads(each.value), round(each.timestamp.timestamp() * 1000)) for each in letters]
    assert found == answer.sinks["letters"]
    assert len(found) > 2
