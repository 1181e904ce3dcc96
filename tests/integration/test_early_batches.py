"""Batches that are done before Spark is there, by what its analysis left in the state folder: what they come to is what
the same batches come to with Spark, to the byte, and what only Spark can do waits for it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, fields, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import orjson
import pytest
from example_counts import examples
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pipeline_bench import open_tasks
from pipeline_kit import Pipeline, Record, batch, json, source, topology_of

from streams_runtime.pipeline.batch_input import BatchInput, OffsetRange
from streams_runtime.pipeline.runner import SubTopologyRunner
from streams_runtime.pipeline.without_spark.early_runner import EarlyRunner, SparkNeeded, is_done_early
from streams_runtime.pipeline.without_spark.findings_document import document_of, findings_of
from streams_runtime.processing.batch_processor import BatchProcessor
from streams_runtime.processing.batch_work import Counters
from streams_runtime.processing.failures.error_policy import ErrorPolicy
from streams_runtime.state.store import KeyValueStore
from streams_runtime.testing.mock_producer import MockProducer
from streams_runtime.testing.topology_runner import store

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.integration

SCHEMA = "a BIGINT, i INT, d DOUBLE, s STRING, ok BOOLEAN, t TIMESTAMP, more STRUCT<x: INT, l: ARRAY<STRING>>"
ALL = {"n": "count(*)", "known": "count(s)", "total": "sum(a)", "low": "min(a)", "high": "max(i)", "mean": "avg(i)"}
ALL |= {"sum": "sum(d)", "spread": "stddev(d)"}
USERS = source(schema="tier STRING, score INT") | {"name": "users", "topic": "users", "table": {"store": "users"}}
MINUTES = {"window": {"tumbling": {"size": "3ms", "grace": "2ms"}}}
OUT: list[dict[str, Any]] = [{"from": "totals", "topic": "out"}]


def totals(before: str = "in", **more: Any) -> dict[str, Any]:
    return {"name": "totals", "from": before, "aggregate": ALL, "store": "totals", **more}


JOIN: dict[str, Any] = {"table": "users", "type": "left", "select": {"a": "a", "t": "t", "tier": "users.tier"}}
Declared = tuple[list[dict[str, Any]], list[dict[str, Any]]]
EARLY: dict[str, Declared] = {
    "sums": (
        [{"name": "w", "from": "in", "where": "a >= 0 or s in ('x', 'y')"}, totals("w")],
        [*OUT, {"from": "totals", "topic": "again", "value": {"format": "json"}}],
    ),
    "windows": ([totals(**MINUTES)], OUT),
    "join": (
        [{"name": "j", "from": "in", "join": JOIN}, {"name": "w", "from": "j", "where": "tier is not null or a > 1"}],
        [{"from": "w", "topic": "out"}],
    ),
}
LATE: dict[str, Declared] = {
    "a step behind an aggregate": (
        [totals(), {"name": "w", "from": "totals", "where": "n > 1"}],
        [{"from": "w", "topic": "out"}],
    ),
    "a topic of late records": ([totals(window={"tumbling": {"size": "3ms"}, "late": {"topic": "l"}})], OUT),
    "a function": ([{"name": "w", "from": "in", "where": "upper(s) = 'X'"}, totals("w")], OUT),
    "another key": ([{"name": "k", "from": "in", "keyBy": "s"}, totals("k")], OUT),
    "a session": ([totals(window={"session": {"gap": "3ms"}})], OUT),
}


def pipeline(spark: SparkSession, name: str) -> Pipeline:
    steps, sinks = (EARLY | LATE)[name]
    sources = [source(schema=SCHEMA), USERS] if name == "join" else [source(schema=SCHEMA)]
    return Pipeline(spark, topology_of(sources, steps, sinks))


@pytest.fixture(scope="module")
def pipelines(spark: SparkSession) -> dict[str, Pipeline]:
    return {name: pipeline(spark, name) for name in EARLY}


@dataclass
class Asked:
    """Spark's runners; how often they were waited for."""

    runners: Any
    times: int = 0

    def runner(self, number: int) -> SubTopologyRunner:
        self.times += 1
        found: SubTopologyRunner = self.runners[number]
        return found


def early_runners(one: Pipeline, asked: Asked) -> dict[int, EarlyRunner]:
    """Runners by what is read back of the document of the findings."""
    document = orjson.loads(orjson.dumps(document_of(one.compiled.findings(one.topology))))
    kept = findings_of(document, one.topology)
    return {sub.id: EarlyRunner(kept, sub, partial(asked.runner, sub.id)) for sub in one.topology.subtopologies}


def contents(kept: Any) -> Any:
    """What a store holds; of windows, which the changelog's records tell, how far it has come."""
    return list(kept.scan(None, None)) if isinstance(kept, KeyValueStore) else kept.stream_time


@dataclass
class Side:
    """Stores, a producer and counters; batches are done by runners, or by others where the first need Spark."""

    one: Pipeline
    runners: Any
    stack: ExitStack
    tasks: Any = None
    counters: Counters = field(default_factory=Counters)
    producer: MockProducer = field(default_factory=MockProducer)
    waited: int = 0

    def __post_init__(self) -> None:
        self.tasks = open_tasks(self.stack, self.one.topology)

    def come_to(self, given: BatchInput) -> Any:
        """All that becomes of a batch, and what the stores hold behind it."""
        self.producer.records.clear()
        sub = self.one.topology.subtopologies[0]
        policy = ErrorPolicy("deadLetter", "letters")
        try:
            processor = BatchProcessor(self.runners, policy, self.counters)
            result = processor.compute(sub, given)
        except SparkNeeded:
            assert not self.producer.records
            self.waited += 1
            processor = BatchProcessor(self.one.runners, policy, self.counters)
            result = processor.compute(sub, given)
        outcome = processor.apply(sub, self.tasks, given, result, self.producer)  # type: ignore[arg-type]
        store(outcome, lambda _: 100)
        held = [{name: contents(each) for name, each in task.stores.items()} for task in self.tasks.values()]
        counted = {each.name: getattr(self.counters, each.name) for each in fields(Counters) if each.name != "recorder"}
        dropped = dict(self.counters.recorder.dropped_records(self.counters.recorder.clock()))
        return list(self.producer.records), held, outcome.offsets, outcome.records, counted, dropped


members = st.fixed_dictionaries(
    {},
    optional={
        "a": st.none() | st.integers(-3, 3) | st.just(2**40),
        "i": st.none() | st.integers(-3, 3),
        "d": st.none() | st.floats(-2, 2) | st.sampled_from([1e22, 1e-7]),
        "s": st.sampled_from([None, "x", "y", "", 'ü\n"\u2028\x01']),
        "ok": st.sampled_from([None, True]),
        "t": st.sampled_from([None, "2026-01-02T03:04:05Z", "2026-01-02T03:04:05.123456"]),
        "more": st.sampled_from([None, {}, {"x": 1, "l": ["a", None]}]),
        "tier": st.sampled_from([None, "gold", "ü"]),
        "score": st.none() | st.integers(0, 3),
        "beside": st.just([1]),
    },
)
ODD = [None, b"{", b"null", b'\n{"a": 1}', b'{"a": 1, "a": 2}', b"\xff", b'{"a": "x", "score": "x"}']
HEADERS = [None, [("h", b"1"), ("h", None)]]


def records_of(topics: Sequence[str]) -> st.SearchStrategy[list[list[Record]]]:
    """Batches of which most have only what Arrow reads. A stream's record without a value is none of that."""
    more = {"partition": st.integers(0, 1), "time": st.integers(0, 9), "headers": st.sampled_from(HEADERS)}
    keys, values = st.sampled_from([None, b"k", b"", "ü".encode()]), members.map(orjson.dumps)
    readable = st.builds(Record, keys, values, st.sampled_from(topics), **more)
    if "users" in topics:
        readable |= st.builds(Record, keys, st.none(), st.just("users"), **more)
    odd = st.builds(Record, keys, st.sampled_from(ODD), st.sampled_from(topics), **more)
    batches = st.lists(readable, min_size=1, max_size=14)
    with_odd = st.tuples(st.lists(readable, max_size=5), odd).map(lambda both: [*both[0], both[1]])
    kinds = st.sampled_from([batches] * 5 + [with_odd])
    return st.lists(kinds.flatmap(lambda kind: kind), min_size=1, max_size=4)


@pytest.mark.parametrize("name", EARLY)
def test_a_batch_done_before_spark_is_what_it_is_with_spark(pipelines: dict[str, Pipeline], name: str) -> None:
    one = pipelines[name]
    done: list[bool] = []  # of each batch, whether it was done without Spark

    @given(batches=records_of(["in", "users"] if name == "join" else ["in"]))
    @settings(max_examples=examples(12), suppress_health_check=[HealthCheck.function_scoped_fixture])
    def compared(batches: list[list[Record]]) -> None:
        ends: Counter[tuple[str, int]] = Counter()
        with ExitStack() as stack:
            early, usual = Side(one, early_runners(one, Asked(one.runners)), stack), Side(one, one.runners, stack)
            for records in batches:
                placed = []
                for each in records:
                    placed.append(replace(each, offset=ends[each.topic, each.partition]))
                    ends[each.topic, each.partition] += 1
                given_ = batch(*placed)
                assert early.come_to(given_) == usual.come_to(given_)
            assert usual.waited == 0
        done.extend(number >= early.waited for number in range(len(batches)))

    compared()
    assert sum(done) * 2 > len(done), "most batches need Spark: little was compared"


@pytest.mark.parametrize("name", EARLY)
def test_batches_of_readable_records_never_wait_for_spark(pipelines: dict[str, Pipeline], name: str) -> None:
    one = pipelines[name]
    asked = Asked(one.runners)
    with ExitStack() as stack:
        early = Side(one, early_runners(one, asked), stack)
        users = [Record(b"k", json(tier="gold", score=1), "users", time=1)] if name == "join" else []
        for first in (0, 2):
            orders = [Record(b"k", json(a=4, s="x"), offset=first + number, time=5) for number in range(2)]
            sent, held, *_ = early.come_to(batch(*users, *orders))
            assert any(each.topic == "out" for each in sent)
            assert any(any(stores.values()) for stores in held)
            users = []
        assert (early.waited, asked.times) == (0, 0)


def test_a_table_s_value_that_only_spark_reads_waits_for_it_in_the_midst_of_a_batch(
    pipelines: dict[str, Pipeline],
) -> None:
    one = pipelines["join"]
    user = batch(Record(b"k", b'\n{"tier": "gold"}', "users", time=1))
    order = batch(Record(b"k", json(a=4), time=2))
    with ExitStack() as stack:
        asked = Asked(one.runners)
        early, usual = Side(one, early_runners(one, asked), stack), Side(one, one.runners, stack)
        assert early.come_to(user) == usual.come_to(user)
        assert (early.waited, asked.times) == (1, 0)
        assert early.come_to(order) == usual.come_to(order)
        assert (early.waited, asked.times) == (1, 1)


@pytest.mark.parametrize("name", EARLY)
def test_ranges_and_records_that_only_spark_judges_are_left_to_it(pipelines: dict[str, Pipeline], name: str) -> None:
    one = pipelines[name]
    (runner,) = early_runners(one, Asked({})).values()
    readable = batch(Record(b"k", json(a=4)))
    runner.run(readable)
    for left in (BatchInput(readable.ranges), batch(Record(b"k", json(a=4)), Record(b"k", b"{", offset=1))):
        with pytest.raises(SparkNeeded):
            runner.run(left)
    assert all(isinstance(each, OffsetRange) for each in readable.ranges)


@pytest.mark.parametrize("name", LATE)
def test_what_needs_spark_behind_or_before_its_stores_waits_for_it(spark: SparkSession, name: str) -> None:
    one = pipeline(spark, name)
    kept = one.compiled.findings(one.topology)
    sub = one.topology.subtopologies[0]
    assert not is_done_early(sub, kept)
    (runner, *_) = early_runners(one, Asked({})).values()
    with pytest.raises(SparkNeeded):
        runner.run(batch(Record(b"k", json(a=4))))
