"""Processors of one's own beside Kafka Streams' Processor API: the same class in Python and in Java, record by record.

What is forwarded has to be equal, in order, wherever batches end (driver/Processors.java). Two schedules that are
due at one time have no order in Kafka Streams; the intervals and times are such that no two are, but for the first.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from oracle_driver import KafkaStreams
from processor_kit import Harness, Read, harness
from shared_cases import CASES, EXAMPLES
from state_kit import memory_folder
from topology_drivers import Made, document

from streams_runtime.batch.columns import BRANCH
from streams_runtime.processors.user_processors.process_records import has_due
from streams_runtime.testing import START, Record

pytestmark = [pytest.mark.integration, pytest.mark.oracle, pytest.mark.timeout(900)]

OPS = ("put", "put", "gone", "absent", "delete", "range", "from", "all", "clear", "get", "twice", "no")
KEYS = ("a", "b", "ba", "c", None)
OUTPUTS = ("large", "small")
WINDOW = {"size": "10ms", "retention": "30ms"}
SESSION = {"retention": "30ms"}


@dataclass(frozen=True, slots=True)
class Piped:
    """A record: key, what it says (None: no value), number, time."""

    key: str | None
    op: str | None
    number: int
    time: int

    @property
    def value(self) -> dict[str, Any] | None:
        return None if self.op is None else {"op": self.op, "n": self.number}


Event = Piped | int
"""A record, or by how much the clock goes on (ms)."""
Told = tuple[str | None, str | None, int]

records = st.builds(
    Piped,
    st.sampled_from(KEYS),
    st.one_of(st.none(), *[st.sampled_from(OPS)] * 12, st.just("cancel")),
    st.integers(0, 3),
    st.integers(0, 65),
)
cases = st.tuples(
    st.lists(st.one_of(*[records] * 6, st.integers(1, 60)), min_size=1, max_size=20),
    st.lists(st.integers(0, 20), max_size=5),
)

EVERYTHING: list[Event] = [
    *(Piped(key, "put", number, 3) for number, key in enumerate(("c", "a", "ba", "b"))),
    *(Piped("c", op, number, 4) for op in ("range", "all") for number in (0, 1)),
    *(46, 1, Piped("ba", "from", 0, 5), Piped("a", "twice", 0, 4), Piped("a", None, 0, 30), Piped(None, "put", 1, 31)),
    *(Piped("d", "no", 0, 64), Piped("e", "absent", 7, 1), 200, Piped("a", "clear", 0, 2), Piped("a", "cancel", 0, 2)),
    *(Piped("e", "absent", 8, 65), Piped("e", "gone", 8, 65), Piped("zz", "delete", 0, 65), Piped("a", "all", 0, 65)),
]

SESSIONS: list[Event] = [
    *(Piped("a", "absent", number, time) for number, time in enumerate((10, 20, 14, 16, 8, 40))),
    *(Piped("a", op, number, 20) for op in ("range", "from", "all", "clear") for number in (0, 1)),
    *(Piped("ba", "put", number, 41 + number) for number in range(4)),
    *(Piped("ba", "get", number, 41 + number) for number in range(4)),
    *(Piped("c", "clear", 1, 44), Piped("ba", None, 0, 42), Piped("a", "absent", 1, 11), Piped("a", "from", 0, 9)),
    *(Piped("b", "put", 2, 70), Piped("c", "put", 0, 40), Piped("c", "put", 0, 41), Piped("c", "all", 0, 41)),
]


def theirs(driver: KafkaStreams, events: Sequence[Event], **more: Any) -> list[Told]:
    asked: list[dict[str, Any]] = [
        {"advance": each}
        if isinstance(each, int)
        else {"topic": "in", "key": each.key, "value": each.value and json.dumps(each.value), "time": each.time}
        for each in events
    ]
    return [
        (key and key.decode(), value and value["seen"], time)
        for key, value, time in driver.answer({"processors": more}, asked).sinks["out"]
    ]


def ours(
    events: Sequence[Event],
    cuts: Sequence[int],
    of: str = "scripted_processor:Scripted",
    outputs: Sequence[str] = (),
    **more: Any,
) -> list[Told]:
    """The same in batches that end before these events, and wherever the clock goes on."""
    with memory_folder() as folder, harness(folder, of, outputs=outputs, **more) as made:
        has_due(made.node, made.context())  # its init is called at 0, as there
        waiting: list[Read] = []
        for at, event in enumerate(events):
            if waiting and (isinstance(event, int) or at in cuts):
                made.run(waiting)
                waiting = []
            if isinstance(event, int):
                _advance(made, event)
            else:
                offset = sum(isinstance(each, Piped) for each in events[:at])
                value = None if event.op is None else (event.op, event.number)
                waiting.append(Read("a", 0, offset, event.time, event.key, value, event.op != "no"))
        if waiting:
            made.run(waiting)
        told = [(key, seen, time) for key, seen, time, _ in made.told()]
        return [*_by_output(made, told, outputs)] if outputs else told


def _by_output(made: Harness, told: Sequence[Told], outputs: Sequence[str]) -> Iterator[Told]:
    """What the steps behind the outputs make of it, which write before it where it comes from."""
    for (key, seen, time), row in zip(told, made.rows, strict=True):
        to = row[BRANCH]
        for name in outputs if to is None else [outputs[to]]:
            yield key, None if seen is None else f"{name} {seen}", time


def _advance(made: Harness, by: int) -> None:
    made.now += by
    made.run([], is_tick=True)


@settings(max_examples=EXAMPLES * CASES)
@given(cases)
@example((EVERYTHING, [1, 2, 3, 7, 10, 11, 16, 17, 18]))
@example((EVERYTHING, []))
def test_a_processor_agrees_with_kafka_streams_wherever_batches_end(
    driver: KafkaStreams, case: tuple[list[Event], list[int]]
) -> None:
    events = [*case[0], Piped("a", "all", 0, 0)]
    assert ours(events, case[1]) == theirs(driver, events)


@settings(max_examples=EXAMPLES * CASES)
@given(cases)
@example((EVERYTHING, [1, 2, 3, 7, 10, 11, 16, 17, 18]))
def test_outputs_get_what_the_children_of_that_name_do(
    driver: KafkaStreams, case: tuple[list[Event], list[int]]
) -> None:
    assert ours(*case, "scripted_processor:Addressing", OUTPUTS) == theirs(driver, case[0], children=True)


@settings(max_examples=EXAMPLES * CASES)
@given(cases)
@example((EVERYTHING, [1, 2, 3, 7, 10, 11, 16, 17, 18]))
@example((EVERYTHING, []))
def test_a_window_store_agrees_with_kafka_streams_wherever_batches_end(
    driver: KafkaStreams, case: tuple[list[Event], list[int]]
) -> None:
    events = [*case[0], Piped("a", "all", 0, 0)]
    found = ours(events, case[1], "scripted_processor:Windowing", window=WINDOW)
    assert found == theirs(driver, events, windows=True)


@settings(max_examples=EXAMPLES * CASES)
@given(cases)
@example((EVERYTHING, [1, 2, 3, 7, 10, 11, 16, 17, 18]))
@example((EVERYTHING, []))
@example((SESSIONS, [1, 4, 5, 8, 12]))
def test_a_session_store_agrees_with_kafka_streams_wherever_batches_end(
    driver: KafkaStreams, case: tuple[list[Event], list[int]]
) -> None:
    events = [*case[0], Piped("a", "all", 0, 0)]
    found = ours(events, case[1], "scripted_processor:Sessioning", session=SESSION)
    assert found == theirs(driver, events, sessions=True)


@settings(max_examples=EXAMPLES * CASES)
@given(cases)
@example((EVERYTHING, [1, 2, 3, 7, 10, 11, 16, 17, 18]))
@example((EVERYTHING, []))
@example((SESSIONS, [1, 4, 5, 8, 12]))
def test_processors_of_batches_agree_with_kafka_streams_wherever_batches_end(
    driver: KafkaStreams, case: tuple[list[Event], list[int]]
) -> None:
    events, cuts = [*case[0], Piped("a", "all", 0, 0)], case[1]
    assert ours(events, cuts, "batch_processors:Scripted") == theirs(driver, events)
    assert ours(events, cuts, "batch_processors:Addressing", OUTPUTS) == theirs(driver, events, children=True)
    assert ours(events, cuts, "batch_processors:Windowing", window=WINDOW) == theirs(driver, events, windows=True)
    assert ours(events, cuts, "batch_processors:Sessioning", session=SESSION) == theirs(driver, events, sessions=True)


@pytest.mark.usefixtures("spark")
@pytest.mark.parametrize("merge", [OUTPUTS, OUTPUTS[::-1]], ids=str)
def test_what_outputs_get_meets_again_in_one_order(driver: KafkaStreams, made: Made, merge: Sequence[str]) -> None:
    steps = [_step("p", "Addressing", "seen", outputs=[*OUTPUTS])]
    steps += [{"name": each, "from": f"p.{each}", "select": {"seen": f"concat('{each} ', seen)"}} for each in OUTPUTS]
    found = by_the_driver(made, EVERYTHING, *steps, {"name": "both", "merge": [*merge]})
    start = round(START.timestamp() * 1000)
    assert found == theirs(driver, EVERYTHING, start=start, children=True)


@pytest.mark.usefixtures("spark")
def test_the_test_drivers_agree_on_a_processor_and_its_clock(driver: KafkaStreams, made: Made) -> None:
    start = round(START.timestamp() * 1000)
    assert by_the_driver(made, EVERYTHING, _step("p", "Scripted", "seen")) == theirs(driver, EVERYTHING, start=start)


@pytest.mark.usefixtures("spark")
def test_two_processors_of_one_task_have_their_punctuators_in_one_order(driver: KafkaStreams, made: Made) -> None:
    events = [
        *(Piped(key, op, at, 3 * at) for at, (key, op) in enumerate(zip("abcabcabcabc", OPS, strict=True))),
        *(Piped("a", "all", 0, time) for time in (35, 40, 42, 65, 20, 64)),
    ]
    steps = (_step("p", "Sweeping", "seen"), _step("q", "Counting", "other"))
    assert by_the_driver(made, events, *steps, {"name": "both", "merge": ["p", "q"]}) == theirs(
        driver, events, two=True
    )


def _step(name: str, of: str, store: str, **more: Any) -> dict[str, Any]:
    stores = {store: {"key": "STRING", "value": "n BIGINT"}}
    process = {"python": f"scripted_processor:{of}", "value": "seen STRING", "key": "STRING", "stores": stores, **more}
    return {"name": name, "from": "some", "process": process}


def by_the_driver(made: Made, events: Sequence[Event], *steps: dict[str, Any]) -> list[Told]:
    """What this project's test driver writes, in batches of all records up to the next time that the clock goes on."""
    value = {"format": "json", "schema": "op STRING, n BIGINT"}
    source = {"name": "in", "topic": "in", "key": {"format": "string"}, "value": value}
    some = {"name": "some", "from": "in", "where": "op is null or op != 'no'"}
    driver = made(document([source], [some, *steps], {"out": steps[-1]["name"]}))
    topic = driver.input_topic("in")
    waiting: list[Record] = []
    for event in [*events, None]:
        if waiting and not isinstance(event, Piped):
            with driver.batch():
                topic.pipe_all(waiting)
            waiting = []
        if isinstance(event, int):
            driver.advance_wall_clock(timedelta(milliseconds=event))
        elif event is not None:
            waiting.append(Record(event.key, event.value, timestamp=event.time))
    found = []
    for each in driver.output_topic("out").read_all():
        text = None if each.value is None else each.value["seen"]
        found.append((each.key, text, round(each.timestamp.timestamp() * 1000)))
    return found
