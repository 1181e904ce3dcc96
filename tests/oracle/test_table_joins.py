"""Steps over tables beside Kafka Streams: the same records give the same changes of every table, record by record."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING

import pytest
from case_marks import BY_TIME
from example_counts import examples
from hypothesis import example, given, settings
from machine_runs import asked, of_keys
from oracle_driver import KafkaStreams
from pipeline_bench import Bench, Sinks, open_tasks
from pipeline_kit import Pipeline, Record, topology_of
from shared_cases import EXAMPLES, shared
from table_trees import (
    KINDS,
    MEETING,
    PARTITIONS,
    RECORDS,
    SPREAD,
    TREES,
    Case,
    Given,
    Tree,
    in_partitions,
    joined,
    made,
    renamed,
    steps_of,
    table,
    topics_of,
)
from tables_model import TablesModel

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.integration, pytest.mark.oracle, pytest.mark.timeout(900)]

LEFT, RIGHT, THIRD = table("left"), table("right"), table("third")
WHOLE: dict[str, Tree] = (
    {f"{kind} of filtered": joined(kind, {"filter": LEFT}, {"filter": {"double": RIGHT}}) for kind in KINDS}
    | {"left join and filter": {"double": {"filter": joined("left", LEFT, RIGHT)}}}
    | {"outer join beside a join": joined("outer", joined("left", LEFT, RIGHT), THIRD)}
    | {"inner join beside a filtered join": joined("inner", LEFT, {"filter": joined("outer", RIGHT, THIRD)})}
    | {"filters": {"filter": {"double": {"filter": LEFT}}}}
)
MEETING_ITSELF: dict[str, Tree] = {
    "outer join with itself": joined("outer", {"filter": LEFT}, {"double": made(0)}),
    "filtered join with itself, joined with itself and others": joined(
        "left", {"filter": joined("inner", LEFT, made(0))}, joined("outer", RIGHT, {"double": made(1)})
    ),
    "join with what was made before": joined("outer", {"double": made(0)}, {"filter": LEFT}) | {"swapped": True},
}


def row(topic: int, number: int | None, time: int, key: str | None = "a") -> Given:
    return Given(str(topic), key, number, time)


# A deletion of what was never there, beside a row of the other side and without one, and before and after it.
DELETIONS = [row(0, None, 1), row(1, 4, 2), row(0, None, 3), row(1, None, 4), row(1, None, 5), row(0, None, 6)]
# Rows that fit, do not and fit again; a deletion that is younger than what is left; older records.
CHANGES = [row(0, 1, 1), row(0, 3, 2), row(0, 6, 3), row(0, 2, 4), row(1, 1, 9), row(1, 2, 5), row(1, None, 8)]
KEYS = [row(0, 1, 1, None), row(1, 1, 1, None), row(0, 1, 2, "b"), row(1, 5, 2, "b"), row(1, 5, 2), row(2, 1, 9)]


@pytest.fixture(scope="module")
def pipelines(spark: SparkSession) -> dict[str, Pipeline]:
    # The order of what several tables pass on is not Kafka Streams' in a merge, where one of them meets itself.
    made = {name: steps_of(tree, merged=name not in MEETING_ITSELF) for name, tree in (WHOLE | MEETING_ITSELF).items()}
    return {name: Pipeline(spark, topology_of(each.sources, each.steps, each.sinks)) for name, each in made.items()}


def ours(pipeline: Pipeline, cases: Sequence[tuple[Sequence[Record], list[int]]]) -> tuple[list[Sinks], int]:
    """Each sink's records of each case in order, and how many of all were dropped."""
    with ExitStack() as stack:
        bench = Bench(pipeline, open_tasks(stack, pipeline.topology, PARTITIONS * len(cases)))
        return bench.sinks_each(cases, BY_TIME, PARTITIONS), bench.counters.records_dropped


@settings(max_examples=examples(300))
@given(TREES | MEETING, RECORDS)
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
    assert numbers == model.sinks | {"all": model.all}


@pytest.mark.parametrize("name", WHOLE | MEETING_ITSELF)
@settings(max_examples=EXAMPLES)
@given(shared(SPREAD))
@example([(DELETIONS, [3], 1), (CHANGES, [1, 3], 1), (KEYS, [], 2)])
def test_every_change_of_every_table_is_that_of_kafka_streams_wherever_batches_begin(
    driver: KafkaStreams, pipelines: dict[str, Pipeline], name: str, given: list[Case]
) -> None:
    tree = (WHOLE | MEETING_ITSELF)[name]
    topics = topics_of(tree)
    read = [in_partitions(renamed(records, topics), topics, partitions) for records, _, partitions in given]
    theirs = [driver.answer({"tables": tree}, asked(records)) for records in read]
    for each in theirs if name in MEETING_ITSELF else ():
        del each.sinks["all"]
    found, dropped = ours(pipelines[name], [(records, cuts) for records, (_, cuts, _) in zip(read, given, strict=True)])
    assert [of_keys(sinks) for sinks in found] == [of_keys(each.sinks) for each in theirs]
    for sinks, each, (_, _, partitions) in zip(found, theirs, given, strict=True):
        if partitions == 1:
            assert sinks == each.sinks
    assert dropped == sum(each.dropped for each in theirs)
