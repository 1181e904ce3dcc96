"""A source of a pattern gives what sources of its topics give that are merged, whatever stands behind it."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest
from shared_cases import batches

from streams_runtime.errors import TopologyException
from streams_runtime.testing.driver import TopologyTestDriver

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.integration

TOPICS = ("in-a", "in-b")
START = datetime(2026, 1, 1, tzinfo=UTC)
FORMATS = {"key": {"format": "string"}, "value": {"format": "json", "schema": "n BIGINT"}}
WINDOW = {"tumbling": {"size": "10s", "grace": "5s"}}
STEPS: Sequence[Mapping[str, Any]] = (
    {"name": "large", "from": "orders", "where": "n > 2", "select": {"n": "n", "from": "_topic", "at": "_timestamp"}},
    {"name": "sums", "from": "orders", "store": "sums", "aggregate": {"total": "sum(n)", "records": "count(*)"}},
    {"name": "windows", "from": "orders", "store": "windows", "window": WINDOW, "aggregate": {"n": "sum(n)"}},
    {
        "name": "sessions",
        "from": "orders",
        "store": "sessions",
        "window": {"session": {"gap": "4s", "grace": "5s"}},
        "aggregate": {"n": "count(*)"},
    },
    {"name": "table", "from": "orders", "toTable": {"store": "table"}},
    {"name": "changes", "from": "table", "toStream": {}},
    {"name": "told", "from": "changes", "where": "n > 1"},
    {"name": "joined", "from": "orders", "join": {"table": "table", "select": {"m": "table.n"}}},
    {"name": "distinct", "from": "large", "dedupe": {"within": "5s", "by": "n"}},
    {"name": "by-n", "from": "orders", "keyBy": "cast(n as string)"},
    {"name": "counted", "from": "by-n", "store": "counted", "aggregate": {"n": "count(*)", "last": "last(n)"}},
)
OUT = ("large", "told", "joined", "distinct", "sums", "windows", "sessions", "table", "counted")


def document(by_pattern: bool) -> dict[str, Any]:
    sources: list[Mapping[str, Any]] = [{"name": "orders", "topicPattern": "in-[a-z]+", **FORMATS}]
    merge: list[Mapping[str, Any]] = []
    if not by_pattern:
        sources = [{"name": topic, "topic": topic, **FORMATS} for topic in TOPICS]
        merge = [{"name": "orders", "merge": list(TOPICS)}]
    return {
        "apiVersion": "streamsoperator.io/v1alpha1",
        "kind": "StreamsApplication",
        "metadata": {"name": "app"},
        "spec": {
            "topology": {
                "sources": sources,
                "steps": [*merge, *STEPS],
                "sinks": [{"from": name, "topic": f"out-{name}"} for name in OUT],
            }
        },
    }


def records_of(seed: int) -> Sequence[tuple[str, str | None, Any, int]]:
    """Of both topics, whose times go on at different speeds, with records that come late and some without a value."""
    source, at, found = random.Random(seed), dict.fromkeys(TOPICS, 0), []
    for _ in range(60):
        topic = source.choice(TOPICS)
        at[topic] += source.choice((0, 1, 2, 7) if topic == "in-a" else (0, 1, 3))
        value = None if source.random() < 0.1 else {"n": source.randrange(6)}
        found.append((topic, source.choice(("a", "b", "c", None)), value, max(0, at[topic] - source.choice((0, 0, 4)))))
    return found


def results(seed: int, by_pattern: bool) -> Mapping[str, Any]:
    records = records_of(seed)
    with TopologyTestDriver(document(by_pattern)) as driver:
        topics = {topic: driver.input_topic(topic) for topic in TOPICS}
        for first, end in batches(len(records), (5, 20, 21)):
            with driver.batch():
                for topic, key, value, seconds in records[first:end]:
                    topics[topic].pipe(key, value, START + timedelta(seconds=seconds))
        return {name: driver.output_topic(f"out-{name}").read_all() for name in OUT}


@pytest.mark.parametrize("seed", [1])
def test_a_pattern_is_its_topics_merged(spark: SparkSession, seed: int) -> None:
    found = results(seed, by_pattern=True)
    assert all(found.values())
    assert found == results(seed, by_pattern=False)


def test_a_driver_has_every_topic_that_fits(spark: SparkSession) -> None:
    with TopologyTestDriver(document(by_pattern=True), partitions={"in-[a-z]+": 3}) as driver:
        topic = driver.input_topic("in-b")
        with driver.batch():
            for number in range(6):
                topic.pipe(f"key-{number}", {"n": 3})
        assert {record.partition for record in driver.output_topic("out-large").read_all()} == {0}
        assert len(list(driver.store("sums").all())) == 6  # of all three partitions
        with pytest.raises(TopologyException, match="no source reads the topic 'out'"):
            driver.input_topic("out")
        for read in ("in-b", "in-later"):
            with pytest.raises(
                TopologyException, match=f"no sink writes the topic '{read}'; it is read; use input_topic"
            ):
                driver.output_topic(read)
    with pytest.raises(TopologyException, match="in-b"):
        TopologyTestDriver(document(by_pattern=True), partitions={"in-a": 2, "in-b": 3})
