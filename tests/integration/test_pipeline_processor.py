"""A batch of a sub-topology: what is produced, what is held for the stores, and what becomes of unreadable records."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import ExitStack
from typing import TYPE_CHECKING

import pytest
from pipeline_bench import Bench, open_tasks
from pipeline_kit import Pipeline, Record, source, topology_of

from streams_runtime.errors import DeserializationException, StreamsException
from streams_runtime.kafka.types import TopicPartition
from streams_runtime.state.store import Updates

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.integration


@pytest.fixture(scope="module")
def totals(spark: SparkSession) -> Pipeline:
    steps = [
        {"name": "totals", "from": "in", "aggregate": {"total": "sum(a)", "mean": "avg(a)"}, "store": "totals"},
        {"name": "by", "from": "in", "keyBy": "s"},
        {"name": "again", "from": "by", "aggregate": {"n": "count(*)"}, "store": "again"},
    ]
    sinks = [{"from": "totals", "topic": "out"}, {"from": "in", "topic": "copy"}]
    return Pipeline(spark, topology_of([source(schema="a BIGINT, s STRING")], steps, sinks))


@pytest.fixture
def bench(totals: Pipeline) -> Iterator[Bench]:
    with ExitStack() as stack:
        yield Bench(totals, open_tasks(stack, totals.topology))


def test_a_batch_goes_to_changelog_sinks_and_repartition_topic_and_to_no_store(bench: Bench) -> None:
    outcome = bench.process(
        Record(b"k", b'{"a":1,"s":"x"}', time=5),
        Record(b"k", b'{"a":2,"s":"y"}', time=3, partition=1, offset=7),
        Record(b"k", b'{"a":3,"s":"x"}', time=4),
    )
    log, out, copy, again = "app-totals-changelog", "out", "copy", "app-by-repartition"
    found = {
        topic: [each[1:] for each in bench.producer.records if each[0] == topic] for topic in (log, out, copy, again)
    }
    assert found[log] == [
        (0, b"k", b'{"total":4,"mean":{"sum":4.0,"count":2}}', 5, None),
        (1, b"k", b'{"total":2,"mean":{"sum":2.0,"count":1}}', 3, None),
    ]
    # A sink gets what a user sees, and Kafka chooses the partition by the key.
    assert found[out] == [
        (None, b"k", b'{"total":4,"mean":2.0}', 5, None),
        (None, b"k", b'{"total":2,"mean":2.0}', 3, None),
    ]
    assert sorted(key for _, key, *_ in found[again]) == [b"x", b"x", b"y"]
    assert len(found[copy]) == 3
    assert sum(map(len, found.values())) == len(bench.producer.records)
    assert [task.stores["totals"].is_empty() for task in bench.tasks.values()] == [True, True]
    assert outcome.offsets == {TopicPartition("in", 0): 2, TopicPartition("in", 1): 8}
    assert [(str(held.store.changelog), held.offset, len(held.updates)) for held in outcome.held] == [
        ("app-totals-changelog-0", None, 1),
        ("app-totals-changelog-1", None, 1),
    ]
    assert (outcome.records, bench.counters.records_processed) == (3, 3)


def test_the_next_batch_goes_on_from_what_was_stored(bench: Bench) -> None:
    bench.store(bench.process(Record(b"k", b'{"a":1,"s":"x"}')))
    bench.process(Record(b"k", b'{"a":2,"s":"x"}', offset=1))
    assert [value for topic, _, _, value, *_ in bench.producer.records if topic == "out"] == [b'{"total":3,"mean":1.5}']


def test_a_batch_without_usable_records_moves_the_offsets_and_counts_what_it_dropped(bench: Bench) -> None:
    outcome = bench.process(Record(None, b'{"a":1}'), Record(b"k", None))
    assert outcome.held == []
    assert outcome.offsets == {TopicPartition("in", 0): 2}
    assert {topic for topic, *_ in bench.producer.records} == {"copy"}
    # By the aggregate both, by the repartitioning both: neither has a key to be counted under, or a value.
    assert bench.counters.records_dropped == 4


POISON = (
    Record(b"k", b'{"a":1}'),
    Record(b"bad", b"{", partition=1, offset=41, time=77, headers=[("own", b"1")]),
    Record(None, b"[]", partition=1, offset=42, time=78),
)


def test_an_unreadable_record_stops_the_batch_with_its_place_before_anything_is_produced(bench: Bench) -> None:
    with pytest.raises(DeserializationException) as stopped:
        bench.process(*POISON)
    error = stopped.value
    assert (error.topic, error.partition, error.offset) == ("in", 1, 41)
    assert str(error).startswith("record in-1@41 can't be read: its value is not JSON (")
    assert "onDeserializationError" in str(error)
    assert bench.producer.records == []
    assert bench.counters.records_processed == 0


def test_unreadable_records_are_left_out_counted_and_named_when_told_to_continue(
    bench: Bench, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING, "streams_runtime"):
        outcome = bench.process(*POISON, policy="continue")
    assert outcome.offsets == {TopicPartition("in", 0): 1, TopicPartition("in", 1): 43}
    assert {key for topic, _, key, *_ in bench.producer.records if topic == "copy"} == {b"k"}
    counters = bench.counters
    assert (counters.records_processed, counters.deserialization_errors, counters.dead_letters) == (3, 2, 0)
    assert "2 records of source in could not be read and were left out; the first is record in-1@41" in caplog.text


def test_dead_letters_are_the_records_as_they_came_with_headers_that_say_why(bench: Bench) -> None:
    outcome = bench.process(*POISON, policy="deadLetter", topic="letters")
    letters = [each for each in bench.producer.records if each[0] == "letters"]
    assert [each[1:5] for each in letters] == [(None, b"bad", b"{", 77), (None, None, b"[]", 78)]
    first, second = (dict(each[5]) for each in letters)
    assert letters[0][5][0] == ("own", b"1")
    assert first["__streams.errors.exception"] == b"DeserializationException"
    assert first["__streams.errors.message"].startswith(b"its value is not JSON")
    assert second["__streams.errors.message"] == b"its value is JSON, but no object: []"
    assert [first[f"__streams.errors.{name}"] for name in ("topic", "partition", "offset")] == [b"in", b"1", b"41"]
    assert outcome.offsets[TopicPartition("in", 1)] == 43
    assert (bench.counters.deserialization_errors, bench.counters.dead_letters) == (2, 2)


def test_a_total_that_leaves_its_range_fails_with_its_field_and_holds_nothing(bench: Bench) -> None:
    bench.store(bench.process(Record(b"k", b'{"a":9223372036854775807,"s":"x"}')))
    with pytest.raises(StreamsException, match=r"steps\[0\]\.aggregate\.total.*BIGINT"):
        bench.process(Record(b"k", b'{"a":1,"s":"x"}', offset=1))


def test_a_tables_rows_are_held_with_the_offset_that_its_topic_is_read_to(spark: SparkSession) -> None:
    """The topic is the changelog, so nothing is produced for the store."""
    pipeline = Pipeline(spark, topology_of([source(schema="name STRING", table={"store": "users"})]))
    with ExitStack() as stack:
        bench = Bench(pipeline, open_tasks(stack, pipeline.topology))
        outcome = bench.process(
            Record(b"a", b'{"name":"A"}', time=5, offset=10),
            Record(b"b", None, offset=11),
            Record(None, b'{"name":"nobody"}', partition=1, offset=3),
        )
        assert bench.producer.records == []
        held = {each.store.partition: (each.updates, each.offset) for each in outcome.held}
        assert held[0] == (Updates([b"a", b"b"], [b'{"name":"A"}', None], [5, 1000]), 12)
        # A partition of which nothing is kept gets its offset all the same.
        assert held[1] == (Updates([], [], []), 4)
        only_one = bench.process(Record(b"c", b'{"name":"C"}', offset=12))
        assert [each.store.partition for each in only_one.held] == [0]
