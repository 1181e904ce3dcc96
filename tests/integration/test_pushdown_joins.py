"""Joins with tables that the scan and Arrow take over, beside Spark, which does the same whole."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any

import orjson
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pipeline_bench import Bench, open_tasks
from pipeline_kit import Pipeline, Record, source, topology_of
from shared_cases import EXAMPLES, shared, shared_batches

from streams_runtime.batch.stage import StageOutput
from streams_runtime.kafka.admin.kafka_admin import Admin
from streams_runtime.kafka.client.client_properties import client_properties
from streams_runtime.kafka.producer.batch_producer import BatchProducer
from streams_runtime.kafka.types import TopicPartition, TopicSpec
from streams_runtime.pipeline.batch_input import BatchInput, OffsetRange
from streams_runtime.pipeline.record_reader import RecordReader
from streams_runtime.pipeline.runner import SubTopologyRunner
from streams_runtime.processing.batch_work import Counters

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.integration

SCHEMA = "a BIGINT, d DOUBLE, s STRING, ok BOOLEAN, t TIMESTAMP, more STRUCT<x: INT, l: ARRAY<STRING>>"
USERS_SCHEMA = "tier STRING, score INT, more STRUCT<x: BIGINT>"
SELECT = {"tier": "users.tier", "a": "coalesce(a, cast(users.score as bigint))", "x": "users.more.x"}
KNOWN = {"known": "users is not null", "all": "users"}
TAKEN_OVER: dict[str, tuple[str, list[dict[str, Any]], list[dict[str, Any]]]] = {
    "inner": (
        "string",
        [
            {"name": "w", "from": "in", "where": "a >= 0 or s is null"},
            {"name": "j", "from": "w", "join": {"table": "users", "select": SELECT}},
        ],
        [{"from": "j", "topic": "out", "value": {"format": "json"}}],
    ),
    "left": (
        "bytes",
        [{"name": "j", "from": "in", "join": {"table": "users", "select": SELECT | KNOWN, "type": "left"}}],
        [{"from": "j", "topic": "out"}],
    ),
    "steps on both sides": (
        "long",
        [
            {"name": "b", "from": "in", "select": {"n": "a", "at": "_timestamp", "s": "s", "far": "_offset"}},
            {"name": "j", "from": "b", "join": {"table": "users", "select": {"u": "users", "s": "users.tier"}}},
            {"name": "w", "from": "j", "where": "u.score > 0 and far >= 1 and s <> 'x'"},
            {"name": "one", "from": "w", "select": {"value": "coalesce(s, '-')"}},
        ],
        [{"from": "w", "topic": "out"}, {"from": "one", "topic": "texts", "value": {"format": "string"}}],
    ),
    "another key": (
        "int",
        [
            {"name": "j", "from": "in", "join": {"table": "users", "select": {"tier": "users.tier"}}},
            {"name": "k", "from": "j", "keyBy": "tier"},
        ],
        [{"from": "k", "topic": "out"}],
    ),
}
Both = dict[str, tuple[Pipeline, Pipeline]]


def pipeline(
    spark: SparkSession, key: str, steps: Any, sinks: Any, topics: tuple[str, str] = ("in", "users")
) -> Pipeline:
    orders = source(schema=SCHEMA, key=key) | {"topic": topics[0]}
    users = source(schema=USERS_SCHEMA, key=key) | {"name": "users", "topic": topics[1], "table": {"store": "users"}}
    return Pipeline(spark, topology_of([orders, users], steps, sinks))


def by_spark(spark: SparkSession, one: Pipeline) -> Pipeline:
    """The same, with nothing taken over."""
    other = object.__new__(Pipeline)
    other.topology, other.compiled, other.compiler = one.topology, one.compiled, one.compiler
    reader = RecordReader(spark, {})
    other.runners = {
        sub.id: SubTopologyRunner(one.compiler, reader, sub, take_over=False) for sub in one.topology.subtopologies
    }
    return other


@pytest.fixture(scope="module")
def both(spark: SparkSession) -> Both:
    """Of each topology what runs it taken over, and what lets Spark do all of it."""
    ours = {name: pipeline(spark, *told) for name, told in TAKEN_OVER.items()}
    return {name: (one, by_spark(spark, one)) for name, one in ours.items()}


def outcomes(one: Pipeline, batches: Iterable[Sequence[Record]], partitions: int = 2) -> list[Any]:
    """All that becomes of batches: what is sent, what the table holds, and what is counted."""
    found: list[Any] = []
    with ExitStack() as stack:
        bench = Bench(one, open_tasks(stack, one.topology, partitions))
        for records in batches:
            outcome = bench.process(*records, policy="deadLetter", topic="letters")
            bench.store(outcome)
            held = [list(task.stores["users"].scan(None, None)) for task in bench.tasks.values()]
            sent = [each._replace(value=plain(each.topic, each.value)) for each in bench.producer.records]
            found.append((sent, held, outcome.offsets, outcome.records, counted(bench.counters)))
    return found


def counted(counters: Counters) -> dict[str, Any]:
    """All counters, and by step and reason what was dropped."""
    found = {each.name: getattr(counters, each.name) for each in fields(counters) if each.name != "recorder"}
    return found | {"dropped": dict(counters.recorder.dropped_records(counters.recorder.clock()))}


def plain(topic: str, value: bytes | None) -> Any:
    """What is read of a record's value, whichever way its numbers and characters are written."""
    return orjson.loads(value) if topic == "out" and value is not None else value


KEYS: dict[str, list[bytes | None]] = {
    "string": [None, b"k", b"", "ü".encode()],
    "bytes": [None, b"k", b"", b"\xff"],
    "long": [None, struct.pack(">q", -1), struct.pack(">q", 2**40), b"12345"],
    "int": [None, struct.pack(">i", -1), struct.pack(">i", 2**30), b"12345678"],
}
texts = st.sampled_from([None, "x", "y", "", 'ü\n"\u2028\x01', 1])
numbers = st.none() | st.integers(-3, 3) | st.sampled_from([2**40, 0.5, 2**63])
orders = st.fixed_dictionaries(
    {},
    optional={
        "a": numbers,
        "d": numbers | st.floats(-2, 2) | st.sampled_from([1e22, 1e-7]),
        "s": texts,
        "ok": st.sampled_from([None, True, "x"]),
        "t": st.sampled_from([None, "2026-01-02T03:04:05Z", "2026-01-02T03:04:05.123456", "then"]),
        "more": st.sampled_from([None, {}, {"x": 1, "l": ["a", None]}, {"l": []}, 7]),
    },
)
users = st.fixed_dictionaries(
    {},
    optional={
        "tier": texts,
        "score": st.sampled_from([None, 0, 1, 2, 2**31]),
        "more": st.sampled_from([None, {}, {"x": 3}, []]),
    },
)
ODD = [b"null", b"{", b"[{}]", b'{"a": 1, "a": 2}', b'{"tier": "a", "tier": "b"}', b'\n{"a": 1, "tier": "z"}', b"\xff"]
HEADERS = [None, [("h", b"1"), ("h", None)]]


def records_of(keys: Sequence[bytes | None]) -> st.SearchStrategy[list[Record]]:
    more = {"partition": st.integers(0, 1), "time": st.integers(1, 5), "headers": st.sampled_from(HEADERS)}
    key, odd = st.sampled_from(keys), st.none() | st.sampled_from(ODD)
    order = st.builds(Record, key, orders.map(orjson.dumps) | odd, st.just("in"), **more)
    user = st.builds(Record, key, users.map(orjson.dumps) | odd, st.just("users"), **more)
    return st.lists(order | user, min_size=1, max_size=14)


@pytest.mark.parametrize("name", TAKEN_OVER)
@given(data=st.data())
@settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_it_is_what_spark_makes_of_the_same_records(both: Both, name: str, data: st.DataObject) -> None:
    """A case has two partitions of its own, and is one batch or two."""
    cases = data.draw(shared(st.tuples(records_of(KEYS[TAKEN_OVER[name][0]]), st.integers(0, 14))))
    placed = [
        (list(on_their_places(records, 2 * case)), [cut % (len(records) + 1)])
        for case, (records, cut) in enumerate(cases)
    ]
    found, expected = (outcomes(one, shared_batches(placed), 2 * len(cases)) for one in both[name])
    assert found == expected


def on_their_places(records: Sequence[Record], first: int) -> Iterator[Record]:
    """The records with their offsets, in the partitions from the first one on."""
    ends: dict[tuple[str, int], int] = {}
    for each in records:
        offset = ends.get((each.topic, each.partition), 0)
        ends[each.topic, each.partition] = offset + 1
        yield replace(each, partition=first + each.partition, offset=offset)


@pytest.mark.parametrize("name", TAKEN_OVER)
def test_what_the_table_holds_and_only_spark_reads_it_reads(both: Both, name: str) -> None:
    key = KEYS[TAKEN_OVER[name][0]][1]
    users = [Record(key, b'\n{"tier": "z", "score": 7}', "users", time=time) for time in (1, 3)]
    orders = [Record(key, b'{"a": 1, "s": "y"}', time=time) for time in (2, 4, 5)]
    over, whole = both[name]
    expected = outcomes(whole, [users, orders])
    assert outcomes(over, [users, orders]) == expected
    sent, *_ = expected[1]
    assert len(sent) > 1


ORDER, USER = b'{"a": 1, "s": "y"}', b'{"tier": "bronze", "score": 2}'
BEFORE = {"for Spark to read": (None, True), "unreadable": (b"{", False), "dropped": (ORDER, True)}
"""The value of a record without a key, and whether it has a turn."""


@pytest.mark.parametrize("before", BEFORE)
@pytest.mark.parametrize("name", TAKEN_OVER)
def test_a_record_has_its_turn_by_all_that_can_be_read_before_it(both: Both, name: str, before: str) -> None:
    """An order of 9 without a key, one of 2 and a user of 5: the second meets the user if the first has a turn."""
    key = KEYS[TAKEN_OVER[name][0]][1]
    value, has_turn = BEFORE[before]
    orders = Record(None, value, time=9), Record(key, ORDER, offset=1, time=2)
    records = [*orders, Record(key, USER, "users", time=5), Record(key, None, "users", offset=1, time=12)]
    over, whole = both[name]
    expected = outcomes(whole, [records])
    assert outcomes(over, [records]) == expected
    ((sent, *_),) = expected
    assert any("bronze" in str(each.value) for each in sent if each.timestamp == 2) == has_turn


@pytest.mark.parametrize(
    "odd", [{}, {0: b"{"}, {0: None, 50: b"{"}], ids=["none is left", "one is left", "some are left"]
)
def test_ranges_that_workers_read_have_the_same_turns(
    spark: SparkSession, broker: Any, namespace: str, odd: Mapping[int, bytes | None]
) -> None:
    """Three partitions of two workers, each of which is read by one of them."""
    properties = client_properties(broker.bootstrap_servers, {})
    topics = f"{namespace}-in", f"{namespace}-users"
    ranges = written(properties, topics, odd)
    key, steps, sinks = TAKEN_OVER["inner"]
    one = pipeline(spark, key, steps, sinks, topics)
    reader, sub = RecordReader(spark, properties), one.topology.subtopologies[0]
    over, whole = (SubTopologyRunner(one.compiler, reader, sub, take_over=taken) for taken in (True, False))
    expected = handed_on(whole.run(BatchInput(ranges)))
    assert handed_on(over.run(BatchInput(ranges))) == expected
    assert over.is_taken_over
    orders, changes, accounts = expected
    assert 0 < len(orders) < 300
    assert len(changes) == 300
    assert accounts == {"in": (300, sum(each is not None for each in odd.values())), "users": (300, 0)}
    assert any(each["_turn"] > each["_timestamp"] for each in (*orders, *changes))


def written(
    properties: dict[str, str], topics: Sequence[str], odd: Mapping[int, bytes | None]
) -> tuple[OffsetRange, ...]:
    """300 records in three partitions of each topic, some of them out of order; `odd` are values of the first one's."""
    admin = Admin(properties)
    admin.create_topics([TopicSpec(topic, 3) for topic in topics])
    producer = BatchProducer(properties, "test")
    for number in range(300):
        time = 1000 + number - 100 * (number % 7 == 2)
        order = odd.get(number, b'{"a": %d, "s": "x"}' % (number % 5 - 1))
        for topic, value in zip(topics, (order, USER), strict=True):
            producer.send(topic, [b"k%d" % (number % 40)], [value], [time], partition=number % 3)
    producer.flush()
    producer.close()
    places = [TopicPartition(topic, number) for topic in topics for number in range(3)]
    ends = admin.end_offsets(places)
    admin.close()
    return tuple(OffsetRange(each, 0, ends[each]) for each in places)


def handed_on(result: StageOutput) -> tuple[list[Any], list[Any], dict[str, tuple[int, int]]]:
    """What the join and its table get, by its places, and the records of each source and the broken ones of them."""
    (join,), (table,) = result.inputs, result.store_batches
    changes = table.columns.append_column("_partition", table.partitions).append_column("_key", table.keys)
    both = [each.select(sorted(each.column_names)).to_pylist() for each in (join.rows, changes)]
    for rows in both:
        rows.sort(key=lambda row: (row["_partition"], row["_offset"]))
    return both[0], both[1], {name: (each.records, each.broken) for name, each in result.accounts.items()}


@pytest.mark.parametrize("name", TAKEN_OVER)
def test_it_is_taken_over(both: Both, name: str) -> None:
    ours, sparks = ([*one.runners.values()] for one in both[name])
    assert [(runner.is_taken_over, set(runner.after_joins)) for runner in ours] == [(True, {"j"})]
    assert [(runner.is_taken_over, set(runner.after_joins)) for runner in sparks] == [(False, set())]


JOIN: dict[str, Any] = {"name": "j", "from": "in", "join": {"table": "users", "select": {"tier": "users.tier"}}}
OUT = [{"from": "j", "topic": "out"}]
LEFT_TO_SPARK: dict[str, tuple[bool, set[str], list[dict[str, Any]], list[dict[str, Any]]]] = {
    "a function before it": (
        False,
        {"j"},
        [{"name": "w", "from": "in", "where": "upper(s) = 'X'"}, JOIN | {"from": "w"}],
        OUT,
    ),
    "a function of the table's columns": (
        True,
        set(),
        [JOIN | {"join": {"table": "users", "select": {"t": "upper(users.tier)"}}}],
        OUT,
    ),
    "a function behind it": (
        True,
        set(),
        [JOIN, {"name": "w", "from": "j", "where": "upper(tier) = 'X'"}],
        [{"from": "w", "topic": "out"}],
    ),
    "a sink before it": (False, {"j"}, [JOIN], [*OUT, {"from": "in", "topic": "all"}]),
    "a peek before it": (False, {"j"}, [{"name": "p", "from": "in", "peek": {"log": "s"}}, JOIN | {"from": "p"}], OUT),
    "a peek behind it": (
        True,
        set(),
        [JOIN, {"name": "p", "from": "j", "peek": {"log": "s"}}],
        [{"from": "p", "topic": "out"}],
    ),
    "an aggregate behind it": (
        True,
        set(),
        [JOIN, {"name": "t", "from": "j", "aggregate": {"n": "count(*)"}, "store": "t"}],
        OUT,
    ),
    "another join": (
        True,
        {"k"},
        [JOIN, JOIN | {"name": "k", "from": "j", "join": {"table": "users", "select": {"x": "users.score"}}}],
        [{"from": "k", "topic": "out"}],
    ),
}


@pytest.mark.parametrize("what", LEFT_TO_SPARK)
def test_it_is_left_to_spark(spark: SparkSession, what: str) -> None:
    scan, joins, steps, sinks = LEFT_TO_SPARK[what]
    (runner,) = pipeline(spark, "string", steps, sinks).runners.values()
    assert (runner.is_taken_over, set(runner.after_joins)) == (scan, joins)
