"""One batch, two ways in: records that a member fetched, and ranges that Spark reads itself, give the same."""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from clients import delete_records
from confluent_kafka import Producer
from pipeline_kit import Pipeline, source, topology_of
from pyspark.errors import PythonException
from waiting import eventually

from streams_runtime.batch.stage import StageOutput
from streams_runtime.errors import BrokerNotAvailableException, StreamsException
from streams_runtime.kafka.admin.kafka_admin import Admin
from streams_runtime.kafka.client.client_properties import client_properties
from streams_runtime.kafka.client.librdkafka import message_headers
from streams_runtime.kafka.consumer import held_records as records
from streams_runtime.kafka.consumer import range_reader
from streams_runtime.kafka.consumer.group_consumer import Fetched, GroupConsumer, Membership
from streams_runtime.kafka.consumer.invalid_offset import InvalidOffsetException
from streams_runtime.kafka.consumer.message_columns import free
from streams_runtime.kafka.consumer.range_reader import RangeReader
from streams_runtime.kafka.consumer.record_table import RAW_SCHEMA
from streams_runtime.kafka.producer.batch_producer import BatchProducer
from streams_runtime.kafka.types import TopicPartition, TopicSpec
from streams_runtime.pipeline.batch_input import BatchInput, OffsetRange
from streams_runtime.pipeline.record_reader import RecordReader
from streams_runtime.pipeline.spark.query_failures import translated
from streams_runtime.processing.inputs.intake import batch_of
from streams_runtime.topology.nodes.source_and_sink_nodes import Format, SourceNode

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.integration

PATIENCE = 30.0


@pytest.fixture(scope="module")
def admin(broker: Any) -> Iterator[Admin]:
    found = Admin(client_properties(broker.bootstrap_servers, {}))
    yield found
    found.close()


@pytest.fixture
def topic(admin: Admin, namespace: str) -> str:
    admin.create_topics([TopicSpec(namespace, 3)])
    return namespace


def source_of(topic: str) -> SourceNode:
    return SourceNode(topic, topic, Format("bytes"), Format("bytes"), None, "")


def ranges_of(admin: Admin, topic: str, partitions: int = 3) -> tuple[OffsetRange, ...]:
    """Everything that the topic has."""
    all_of_them = [TopicPartition(topic, number) for number in range(partitions)]
    starts, ends = admin.start_offsets(all_of_them), admin.end_offsets(all_of_them)
    return tuple(OffsetRange(each, starts[each], ends[each]) for each in all_of_them)


def fetched(admin: Admin, ranges: tuple[OffsetRange, ...]) -> BatchInput:
    """The same records by way of a member of a group."""
    assigned: set[TopicPartition] = set()
    membership = Membership(f"g-{uuid.uuid4()}", "one", "one|h:1|1")
    member = GroupConsumer(
        client_properties(admin.address, {}), membership, assigned.update, assigned.difference_update
    )
    member.subscribe({each.partition.topic for each in ranges})
    deadline = time.monotonic() + PATIENCE
    while len(assigned) < len(ranges):
        assert time.monotonic() < deadline
        member.poll()
        time.sleep(0.01)
    member.resume({each.partition: each.start for each in ranges})
    messages: list[Any] = []
    ends: dict[TopicPartition, int] = {}
    while any(ends.get(each.partition, -1) < each.end for each in ranges if each.end > each.start):
        assert time.monotonic() < deadline
        new = member.fetch(10_000, 0.25)
        messages += new.records
        ends |= new.ends
    member.close()
    stops = {each.partition: each.end for each in ranges}
    below = [each for each in messages if each.offset() < stops[TopicPartition(each.topic(), each.partition())]]
    batch = batch_of(Fetched(below, {}), {each.partition: each.start for each in ranges})
    return BatchInput(ranges, None if batch is None else batch.records)


def by_partition(result: StageOutput) -> Mapping[Any, list[Any]]:
    """What was emitted, by the partition that it came from, in order; and what is for stores."""
    found: dict[Any, list[Any]] = {}
    for each in result.emissions:
        headers = each.headers or [None] * len(each)
        for key, value, at, header in zip(each.keys, each.values, each.timestamps, headers, strict=True):
            partition = (value or b"|").partition(b"|")[0]
            found.setdefault(partition, []).append((key, value, at, header))
    for keyed in result.store_batches:
        rows = zip(
            keyed.partitions.to_pylist(),
            keyed.keys.to_pylist(),
            keyed.timestamps.to_pylist(),
            keyed.columns.to_pylist(),
            strict=True,
        )
        found["stores"] = sorted(rows, key=repr)
    return found


def both_ways(
    spark: SparkSession, admin: Admin, topic: str, ranges: tuple[OffsetRange, ...]
) -> Mapping[Any, list[Any]]:
    """Runs the ranges and the fetched records; they have to agree. Each value begins with its partition and a bar."""
    stamped = {"value": "concat(_partition, '|', _offset, '|', value)"}
    steps = [
        {"name": "stamped", "from": "in", "select": stamped},
        {"name": "t", "from": "in", "aggregate": {"n": "count(*)", "most": "max(value)"}, "store": "t"},
    ]
    sinks = [{"from": "stamped", "topic": "out", "value": {"format": "string"}}]
    topology = topology_of([source("string", topic=topic)], steps, sinks)
    pipeline = Pipeline(spark, topology, client_properties(admin.address, {}))
    by_spark = pipeline.runners[0].run(BatchInput(ranges))
    by_member = pipeline.runners[0].run(fetched(admin, ranges))
    assert by_partition(by_spark) == by_partition(by_member)
    assert by_spark.accounts == by_member.accounts
    assert by_spark.dropped == by_member.dropped
    return by_partition(by_spark)


def test_ranges_and_fetched_records_give_the_same_with_keys_times_and_headers(
    spark: SparkSession, admin: Admin, topic: str
) -> None:
    producer = BatchProducer(client_properties(admin.address, {}), "test")
    for number in range(3):
        count = 50 + number
        producer.send(
            topic,
            [None if n % 7 == 6 else b"k%d" % (n % 5) for n in range(count)],
            [None if n % 11 == 10 else b"v%d" % n for n in range(count)],
            [1_700_000_000_000 + n for n in range(count)],
            partition=number,
            headers=[[("n", b"%d" % n), ("none", None)] if n % 3 == 0 else None for n in range(count)],
        )
    producer.flush()
    producer.close()
    found = both_ways(spark, admin, topic, ranges_of(admin, topic))
    assert found[b"1"][3] == (b"k3", b"1|3|v3", 1_700_000_000_003, [("n", b"3"), ("none", None)])
    assert [len(found[number]) for number in (b"0", b"1", b"2")] == [46, 47, 48]
    assert len(found["stores"]) == 15


def test_only_what_the_ranges_say_is_read(spark: SparkSession, admin: Admin, topic: str) -> None:
    producer = BatchProducer(client_properties(admin.address, {}), "test")
    for number in range(3):
        producer.send(topic, [b"k"] * 20, [b"v%d" % n for n in range(20)], [1] * 20, partition=number)
    producer.flush()
    producer.close()
    ranges = (
        OffsetRange(TopicPartition(topic, 0), 3, 7),
        OffsetRange(TopicPartition(topic, 1), 5, 5),
        OffsetRange(TopicPartition(topic, 2), 19, 20),
    )
    found = both_ways(spark, admin, topic, ranges)
    assert [value for _, value, _, _ in found[b"0"]] == [b"0|%d|v%d" % (n, n) for n in range(3, 7)]
    assert b"1" not in found
    assert [value for _, value, _, _ in found[b"2"]] == [b"2|19|v19"]


def test_a_partition_that_is_split_over_the_cores_keeps_its_order(
    spark: SparkSession, admin: Admin, topic: str
) -> None:
    producer = BatchProducer(client_properties(admin.address, {}), "test")
    producer.send(topic, [b"k"] * 5000, [b"%d" % n for n in range(5000)], [1] * 5000, partition=1)
    producer.flush()
    producer.close()
    reader = RecordReader(spark, client_properties(admin.address, {}))
    frame = reader.read(source_of(topic), BatchInput((OffsetRange(TopicPartition(topic, 1), 10, 4990),)))
    assert frame.rdd.getNumPartitions() == spark.sparkContext.defaultParallelism == 2
    assert frame.toArrow()["offset"].to_pylist() == list(range(10, 4990))


def test_a_batch_has_the_records_of_the_topic_that_is_asked_for(spark: SparkSession, admin: Admin, topic: str) -> None:
    other = f"{topic}-other"
    admin.create_topics([TopicSpec(other, 1)])
    producer = BatchProducer(client_properties(admin.address, {}), "test")
    producer.send(topic, [b"k"] * 3, [b"mine"] * 3, [1] * 3, partition=0)
    producer.send(other, [b"k"] * 4, [b"theirs"] * 4, [1] * 4, partition=0)
    producer.flush()
    producer.close()
    ranges = (OffsetRange(TopicPartition(topic, 0), 0, 3), OffsetRange(TopicPartition(other, 0), 0, 4))
    reader = RecordReader(spark, client_properties(admin.address, {}))
    for batch in (BatchInput(ranges), fetched(admin, (*ranges_of(admin, topic), ranges[1]))):
        counts = {name: reader.read(source_of(name), batch).count() for name in (topic, other, "absent")}
        assert counts == {topic: 3, other: 4, "absent": 0}
        both = reader.read(replace(source_of(f"{topic}.*"), by_pattern=True), batch).toArrow()
        assert both.group_by("topic").aggregate([("offset", "max")]).sort_by("topic").to_pylist() == [
            {"topic": topic, "offset_max": 2},
            {"topic": other, "offset_max": 3},
        ]


def transactional(admin: Admin, topic: str, *transactions: tuple[list[bytes], bool]) -> None:
    """Writes each list of values to partition 0 in a transaction of its own, committed or not."""
    producer = Producer({"bootstrap.servers": admin.address, "transactional.id": f"{topic}-writer"})
    producer.init_transactions(PATIENCE)
    for values, commit in transactions:
        producer.begin_transaction()
        for value in values:
            producer.produce(topic, value, b"k", 0, timestamp=1)
        producer.flush()
        if commit:
            producer.commit_transaction(PATIENCE)
        else:
            producer.abort_transaction(PATIENCE)
    # The coordinator writes the last marker after it has answered.
    end = {TopicPartition(topic, 0): sum(len(values) + 1 for values, _ in transactions)}
    eventually(lambda: admin.end_offsets(end) == end, "the last marker is written")


def test_transaction_markers_are_passed_wherever_they_stand(spark: SparkSession, admin: Admin, topic: str) -> None:
    """Each transaction ends with a marker, which takes an offset and is no record; the last one ends the range."""
    transactional(admin, topic, ([b"a", b"b"], True), ([b"c"], True), ([b"d"], True))
    ranges = ranges_of(admin, topic)
    assert ranges[0] == OffsetRange(TopicPartition(topic, 0), 0, 7)
    found = both_ways(spark, admin, topic, ranges)
    assert [value for _, value, _, _ in found[b"0"]] == [b"0|0|a", b"0|1|b", b"0|3|c", b"0|5|d"]
    only_a_marker = (OffsetRange(TopicPartition(topic, 0), 6, 7), *ranges[1:])
    assert both_ways(spark, admin, topic, only_a_marker) == {"stores": []}


def test_records_of_an_aborted_transaction_are_the_same_both_ways(
    spark: SparkSession, admin: Admin, topic: str
) -> None:
    transactional(admin, topic, ([b"a"], True), ([b"aborted"], False), ([b"b"], True))
    both_ways(spark, admin, topic, ranges_of(admin, topic))


def test_records_that_were_deleted_at_the_start_of_a_log_are_not_asked_for(
    spark: SparkSession, admin: Admin, topic: str
) -> None:
    producer = BatchProducer(client_properties(admin.address, {}), "test")
    producer.send(topic, [b"k"] * 20, [b"v%d" % n for n in range(20)], [1] * 20, partition=0)
    producer.flush()
    producer.close()
    delete_records(admin, {TopicPartition(topic, 0): 15})
    found = both_ways(spark, admin, topic, ranges_of(admin, topic))
    assert [value for _, value, _, _ in found[b"0"]] == [b"0|%d|v%d" % (n, n) for n in range(15, 20)]


def failure_of(spark: SparkSession, admin: Admin, ranges: tuple[OffsetRange, ...]) -> Exception:
    """What becomes of a scan that fails, as a batch's caller is told it."""
    reader = RecordReader(spark, client_properties(admin.address, {}))
    with pytest.raises(PythonException) as failed:
        reader.read(source_of(ranges[0].partition.topic), BatchInput(ranges)).toArrow()
    return translated(failed.value, ranges)


def filled(admin: Admin, topic: str, *values: bytes) -> None:
    """Partition 0 has these records."""
    producer = BatchProducer(client_properties(admin.address, {}), "test")
    producer.send(topic, [b"k"] * len(values), values, [1] * len(values), partition=0)
    producer.flush()
    producer.close()


def test_a_range_that_the_log_no_longer_has_is_told_with_its_partition(
    spark: SparkSession, admin: Admin, topic: str
) -> None:
    filled(admin, topic, *(b"v%d" % n for n in range(20)))
    first = TopicPartition(topic, 0)
    delete_records(admin, {first: 15})
    failure = failure_of(spark, admin, (OffsetRange(first, 5, 20),))
    assert isinstance(failure, InvalidOffsetException)
    assert failure.partition == first


def test_a_topic_that_is_not_there_is_told_with_its_name(spark: SparkSession, admin: Admin, namespace: str) -> None:
    failure = failure_of(spark, admin, (OffsetRange(TopicPartition(namespace, 0), 0, 5),))
    assert isinstance(failure, StreamsException)
    assert namespace in str(failure)


def values_of(reader: RangeReader, topic: str, ranges: Mapping[int, tuple[int, int]]) -> list[bytes | None]:
    return [value for part in reader.read(topic, ranges) for value in part.column("value").to_pylist()]


def test_a_broker_that_is_away_is_told_and_read_from_again(admin: Admin, topic: str) -> None:
    nowhere = RangeReader({"bootstrap.servers": "127.0.0.1:9"}, patience=0.5)
    with pytest.raises(BrokerNotAvailableException, match=r"127\.0\.0\.1:9"):
        list(nowhere.read(topic, {0: (0, 3)}))
    filled(admin, topic, b"a", b"b", b"c")
    reader = RangeReader(client_properties(admin.address, {}), patience=0.5)
    with pytest.raises(BrokerNotAvailableException, match=f"{topic}-0"):
        list(reader.read(topic, {0: (0, 4)}))  # nobody has written the fourth
    filled(admin, topic, b"d")
    assert values_of(reader, topic, {0: (0, 4)}) == [b"a", b"b", b"c", b"d"]
    reader.close()


def test_a_reader_goes_on_where_it_is_told_to_and_stops_there(admin: Admin, topic: str) -> None:
    large = [b"%03d" % n * 35_000 for n in range(300)]
    filled(admin, topic, *large)
    reader = RangeReader(client_properties(admin.address, {}))
    for start, end in ((0, 10), (10, 300), (7, 8), (0, 300)):
        parts = [part.column("value").to_pylist() for part in reader.read(topic, {0: (start, end), 1: (0, 0)})]
        assert [value for part in parts for value in part] == large[start:end]
        # Large records come a few at a time.
        assert all(len(part) <= 160 for part in parts)
    reader.close()


def test_a_topic_that_was_made_anew_is_read_by_a_reader_that_knew_it(admin: Admin, topic: str) -> None:
    filled(admin, topic, b"old")
    reader = RangeReader(client_properties(admin.address, {}), patience=2)
    assert values_of(reader, topic, {0: (0, 1)}) == [b"old"]
    before = admin.topic_ids({topic})
    admin.delete_topics({topic})
    eventually(lambda: not admin.topic_ids({topic}), "the topic is gone")
    admin.create_topics([TopicSpec(topic, 3)])
    eventually(lambda: admin.topic_ids({topic}).keys() == before.keys(), "the topic is there again")
    filled(admin, topic, b"new")

    def read() -> list[bytes | None]:
        try:
            return values_of(reader, topic, {0: (0, 1)})
        except StreamsException:  # as it is for a batch, which is read again
            return []

    eventually(lambda: read() == [b"new"], "the new topic's record is read")
    reader.close()


def test_columns_have_what_records_have(admin: Admin, topic: str) -> None:
    rows = [
        (None, b"", [("a", b"1"), ("a", None), ("", b"")]),
        (b"", None, None),
        (b"k", b"large" * 150_000, [("b", b"\xff")]),
        (b"l", b"v", None),
    ]
    producer = Producer({"bootstrap.servers": admin.address})
    for time_ms, (key, value, headers) in enumerate(rows, 1):
        producer.produce(topic, value, key, 1, timestamp=time_ms, headers=headers)
    producer.flush()
    reader = RangeReader(client_properties(admin.address, {}))
    parts = [
        pa.table([part.column(each.name) for each in RAW_SCHEMA], schema=RAW_SCHEMA).to_pylist()
        for part in reader.read(topic, {1: (0, 4)})
    ]
    reader.close()
    found = [row for part in parts for row in part]
    assert [(row["key"], row["value"]) for row in found] == [row[:2] for row in rows]
    headers_found = [row["headers"] and [(each["key"], each["value"]) for each in row["headers"]] for row in found]
    assert headers_found == [row[2] for row in rows]
    places = [(row["topic"], row["partition"], row["offset"], row["timestamp"].microsecond) for row in found]
    assert places == [(topic, 1, n, (n + 1) * 1000) for n in range(4)]


def test_a_reader_that_is_left_early_frees_what_it_holds_and_reads_again(
    admin: Admin, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    filled(admin, topic, *(b"%d" % n for n in range(300)))
    freed: list[int] = []
    monkeypatch.setattr(range_reader, "free", lambda addresses: (freed.append(len(addresses)), free(addresses)))
    reader = RangeReader(client_properties(admin.address, {}))
    reading = reader.read(topic, {0: (0, 300)})
    records = next(reading)
    count = len(records)
    first = records.column("value")
    reading.close()  # type: ignore[attr-defined]
    assert sum(freed) == count
    assert first[0].as_py() == b"0"
    with pytest.raises(ValueError, match="given back"):
        records.column("key")
    assert values_of(reader, topic, {0: (0, 300)}) == [b"%d" % n for n in range(300)]
    reader.close()


@pytest.mark.parametrize("compression", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_of_headers_are_asked_those_that_may_have_some(
    admin: Admin, topic: str, compression: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    values = [None, b"", b"v", b"\x00", b"long" * 500]
    several = [None, [("a", b"1")], [(str(number), b"") for number in range(100)]]
    rows = [(value, headers) for value in values for headers in several] * 20
    producer = Producer({"bootstrap.servers": admin.address, "compression.type": compression, "linger.ms": 100})
    for value, headers in rows:
        producer.produce(topic, value, b"k", 1, headers=headers)
    producer.flush()
    asked: list[int] = []

    def counted(message: int) -> Any:
        asked.append(message)
        return message_headers(message)

    monkeypatch.setattr(records, "message_headers", counted)
    reader = RangeReader(client_properties(admin.address, {}))
    found = [each for part in reader.read(topic, {1: (0, len(rows))}) for each in part.column("headers").to_pylist()]
    reader.close()
    assert [each and [(pair["key"], pair["value"]) for pair in each] for each in found] == [row[1] for row in rows]
    assert len(asked) == sum(not value or headers is not None for value, headers in rows)
