"""Joins by a foreign key beside Kafka Streams: the same records, the same store, and the same last record of a key."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pytest
from foreign_keys_played import LEFT, RIGHT, Played, document
from hypothesis import example, given, settings
from hypothesis import strategies as st
from oracle_driver import Answer, KafkaStreams

from streams_runtime.testing import TopologyTestDriver

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.integration, pytest.mark.oracle, pytest.mark.timeout(600)]

Given = tuple[str, str, int | None, str | None, int]
"""Topic, key, number (None: a deletion), foreign key and time (ms) of a record."""

_LEFT = st.tuples(
    st.just(LEFT),
    st.sampled_from("abc"),
    st.one_of(st.none(), st.integers(1, 4)),
    st.sampled_from(["x", "y", "z", None]),
    st.integers(0, 20),
)
_RIGHT = st.tuples(
    st.just(RIGHT), st.sampled_from("xyz"), st.one_of(st.none(), st.integers(1, 4)), st.none(), st.integers(0, 20)
)
RECORDS = st.lists(st.one_of(_LEFT, _RIGHT), min_size=1, max_size=30)

# Rows without a foreign key, with one that nobody has, another one; deletions on both sides, also of what is not there.
STORY: list[Given] = [
    (LEFT, "a", 1, "x", 5),
    (LEFT, "b", 1, None, 1),
    (LEFT, "c", None, None, 1),
    (RIGHT, "x", 1, None, 3),
    (RIGHT, "y", 2, None, 9),
    (LEFT, "a", 2, "x", 4),
    (LEFT, "b", 2, "x", 2),
    (LEFT, "a", 2, "y", 6),
    (RIGHT, "x", 3, None, 1),
    (RIGHT, "x", 4, None, 8),
    (RIGHT, "z", None, None, 8),
    (RIGHT, "y", None, None, 10),
    (LEFT, "b", 3, "x", 11),
    (LEFT, "b", 4, "x", 12),
    (LEFT, "a", None, None, 12),
    # One that is older than the row that it names; of filtered tables one without its other row, and one that is gone.
    (LEFT, "c", 4, "x", 2),
    (RIGHT, "y", 3, None, 13),
    (LEFT, "d", 2, "y", 13),
    (LEFT, "e", 3, "x", 13),
]


def value_of(record: Given) -> dict[str, Any] | None:
    topic, _, number, foreign, _ = record
    return None if number is None else {"v": number} | ({"f": foreign} if topic == LEFT else {})


def theirs(driver: KafkaStreams, kind: str, filtered: bool, records: Sequence[Given]) -> Answer:
    asked = []
    for record in records:
        value = value_of(record)
        text = None if value is None else json.dumps(value)
        asked.append({"topic": record[0], "key": record[1], "value": text, "time": record[4]})
    return driver.answer({"foreign": {"type": kind, "filtered": filtered}}, asked)


def last(sent: Iterable[tuple[bytes | None, Any, int]]) -> dict[bytes | None, Any]:
    """The last record of each key, with its time. They also delete what is not there, which we do not."""
    found = {key: (value, time) for key, value, time in sent}
    return {key: row for key, row in found.items() if row[0] is not None}


@pytest.mark.parametrize("filtered", [False, True])
@pytest.mark.parametrize("kind", ["inner", "left"])
@settings(max_examples=15)
@given(RECORDS, st.sampled_from([(1, 1), (2, 3), (3, 1)]))
@example(STORY, (2, 3))
def test_one_record_after_the_other_both_end_with_the_same_rows_and_times(
    driver: KafkaStreams, kind: str, filtered: bool, records: list[Given], partitions: tuple[int, int]
) -> None:
    played = Played(kind, filtered, partitions)
    for record in records:
        value = value_of(record)
        data = None if value is None else json.dumps(value).encode()
        played.tables[record[0]].add(record[1].encode(), data, record[4])
        played.settle()
    answer = theirs(driver, kind, filtered, records)
    assert played.stored() == answer.store
    assert last((key, *row) for key, row in played.sink.items()) == last(answer.sinks["out"])
    assert played.dropped == answer.dropped


@pytest.fixture(scope="module", params=["inner", "left"])
def ours(request: pytest.FixtureRequest, spark: SparkSession) -> Iterator[tuple[str, TopologyTestDriver]]:
    with TopologyTestDriver(document(request.param, filtered=True), partitions={LEFT: 3, RIGHT: 2}) as made:
        yield request.param, made


@settings(max_examples=1)
@given(RECORDS, st.lists(st.integers(0, 30), max_size=2))
@example(STORY, [7])
def test_spark_makes_the_same_of_them_wherever_batches_begin(
    driver: KafkaStreams, ours: tuple[str, TopologyTestDriver], records: list[Given], cuts: list[int]
) -> None:
    kind, machine = ours
    ends = sorted({*(cut for cut in cuts if cut < len(records)), len(records)})
    topics = {name: machine.input_topic(name) for name in (LEFT, RIGHT)}
    # The rows of the example before go first: what is deleted is as what never was.
    everything: list[Given] = [(LEFT, key, None, None, 0) for key in "abcde"] + [
        (RIGHT, key, None, None, 0) for key in "xyz"
    ]
    _pipe(machine, topics, everything)
    sink = machine.output_topic("out")
    sink.read_all()
    start = 0
    for end in ends:
        _pipe(machine, topics, records[start:end])
        start = end
    answer = theirs(driver, kind, True, records)
    rows = {each.key: each.value for each in machine.store("result").all()}
    assert rows == {
        key: {"v": row["v"], "f": rows[key]["f"], "w": row["w"]} for (key, _), (row, _) in answer.store.items()
    }
    shown = {key: row for key, row in sink.read_latest_by_key().items() if row is not None}
    assert shown == rows


def _pipe(machine: TopologyTestDriver, topics: Mapping[str, Any], records: Sequence[Given]) -> None:
    with machine.batch():
        for record in records:
            value = value_of(record)
            full = None if value is None else {"v": value["v"], "f": value.get("f")}
            topics[record[0]].pipe(record[1], full, record[4])
