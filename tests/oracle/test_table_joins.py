"""Steps over tables beside Kafka Streams: the same records give the same changes of every table, record by record."""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from oracle_driver import KafkaStreams
from pipeline_bench import Bench, batches, open_tasks
from pipeline_kit import Pipeline, Record, topology_of
from table_trees import KINDS, RECORDS, TREES, Given, Tree, in_partitions, joined, renamed, steps_of, table, topics_of
from tables_model import TablesModel

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.integration, pytest.mark.oracle, pytest.mark.timeout(900)]

Sinks = dict[str, list[tuple[bytes | None, Any, int]]]
LEFT, RIGHT, THIRD = table("left"), table("right"), table("third")
WHOLE: dict[str, Tree] = (
    {f"{kind} of filtered": joined(kind, {"filter": LEFT}, {"filter": {"double": RIGHT}}) for kind in KINDS}
    | {"left join and filter": {"double": {"filter": joined("left", LEFT, RIGHT)}}}
    | {"outer join beside a join": joined("outer", joined("left", LEFT, RIGHT), THIRD)}
    | {"inner join beside a filtered join": joined("inner", LEFT, {"filter": joined("outer", RIGHT, THIRD)})}
    | {"filters": {"filter": {"double": {"filter": LEFT}}}}
)


def row(topic: int, number: int | None, time: int, key: str | None = "a") -> Given:
    return Given(str(topic), key, number, time)


# A deletion of what was never there, beside a row of the other side and without one, and before and after it.
DELETIONS = [row(0, None, 1), row(1, 4, 2), row(0, None, 3), row(1, None, 4), row(1, None, 5), row(0, None, 6)]
# Rows that fit, do not and fit again; a deletion that is younger than what is left; older records.
CHANGES = [row(0, 1, 1), row(0, 3, 2), row(0, 6, 3), row(0, 2, 4), row(1, 1, 9), row(1, 2, 5), row(1, None, 8)]
KEYS = [row(0, 1, 1, None), row(1, 1, 1, None), row(0, 1, 2, "b"), row(1, 5, 2, "b"), row(1, 5, 2), row(2, 1, 9)]


def asked(read: Sequence[Record]) -> list[dict[str, Any]]:
    """The records as the driver takes them."""
    texts = [(each.key and each.key.decode(), each.value and each.value.decode()) for each in read]
    return [
        {"topic": each.topic, "key": key, "value": value, "time": each.time}
        for each, (key, value) in zip(read, texts, strict=True)
    ]


@pytest.fixture(scope="module")
def pipelines(spark: SparkSession) -> dict[str, Pipeline]:
    made = {name: steps_of(tree) for name, tree in WHOLE.items()}
    return {name: Pipeline(spark, topology_of(each.sources, each.steps, each.sinks)) for name, each in made.items()}


def ours(pipeline: Pipeline, records: Sequence[Record], cuts: list[int]) -> tuple[Sinks, int]:
    """Each sink's records in order, and how many were dropped."""
    sinks: Sinks = {topic: [] for topic in pipeline.topology.sink_topics}
    with ExitStack() as stack:
        bench = Bench(pipeline, open_tasks(stack, pipeline.topology))
        for first, end in batches(len(records), cuts):
            bench.store(bench.process(*records[first:end]))
            for topic, _, key, value, time, _ in bench.producer.records:
                sinks[topic].append((key, value and json.loads(value), time))
        return sinks, bench.counters.records_dropped


def of_keys(sinks: Sinks) -> dict[tuple[str, bytes | None], list[Any]]:
    """Each key's records of each sink, in order."""
    found: dict[tuple[str, bytes | None], list[Any]] = {}
    for topic, rows in sinks.items():
        for key, value, time in rows:
            found.setdefault((topic, key), []).append((value, time))
    return found


@settings(max_examples=300)
@given(TREES, RECORDS)
def test_what_the_model_of_the_unit_tests_passes_on_is_what_kafka_streams_passes_on(
    driver: KafkaStreams, tree: Tree, given: list[Given]
) -> None:
    topics = topics_of(tree)
    read = in_partitions(renamed(given, topics), topics, 1)
    model = TablesModel(tree)
    model.feed(read)
    theirs = driver.answer({"tables": tree}, asked(read))
    numbers = {
        topic: [(key, value and value["v"], time) for key, value, time in rows] for topic, rows in theirs.sinks.items()
    }
    assert numbers == model.sinks


@pytest.mark.parametrize("name", WHOLE)
@settings(max_examples=4)
@given(RECORDS, st.lists(st.integers(0, 40), max_size=3), st.sampled_from([1, 2]))
@example(DELETIONS, [3], 1)
@example(CHANGES, [1, 3], 1)
@example(KEYS, [], 2)
def test_every_change_of_every_table_is_that_of_kafka_streams_wherever_batches_begin(
    driver: KafkaStreams,
    pipelines: dict[str, Pipeline],
    name: str,
    given: list[Given],
    cuts: list[int],
    partitions: int,
) -> None:
    topics = topics_of(WHOLE[name])
    read = in_partitions(renamed(given, topics), topics, partitions)
    theirs = driver.answer({"tables": WHOLE[name]}, asked(read))
    sinks, dropped = ours(pipelines[name], read, cuts)
    assert of_keys(sinks) == of_keys({topic: list(rows) for topic, rows in theirs.sinks.items()})
    if partitions == 1:
        assert sinks == theirs.sinks
    assert dropped == theirs.dropped
