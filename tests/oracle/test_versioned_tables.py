"""Tables with a history beside Kafka Streams': streams meet the same rows, and queries of every time find the same."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import pytest
from case_marks import BY_TIME, DAY
from hypothesis import example, given, settings
from hypothesis import strategies as st
from machine_runs import asked
from oracle_driver import KafkaStreams
from pipeline_bench import Bench, open_tasks
from pipeline_kit import Pipeline, loaded, source, topology_of
from shared_cases import EXAMPLES, shared
from table_trees import RECORDS, Given, in_partitions, renamed

from streams_runtime.state.versioned_store import VersionedStore

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.integration, pytest.mark.oracle, pytest.mark.timeout(900)]

TOPICS = ["users", "other", "in"]
RETENTIONS = (1, 6)
KEYS, TIMES = "abc", range(33)
Case = tuple[list[Given], list[int]]
"""Records, and before which of them a batch begins."""
cases = st.tuples(RECORDS, st.lists(st.integers(0, 40), max_size=4))


def topology(retention: int) -> Any:
    history = {"historyRetention": f"{retention}ms"}
    read = {topic: source(schema="v BIGINT") | {"name": topic, "topic": topic} for topic in TOPICS}
    read["users"] |= {"table": {"store": "users", **history}}
    steps = [
        {"name": "keep", "from": "other", "toTable": {"store": "kept", **history}},
        *(beside(name, table, kind) for name, table, kind in JOINS),
    ]
    sinks = [{"from": name, "topic": topic} for topic, name in SINKS.items()]
    return topology_of(list(read.values()), steps, sinks)


def beside(name: str, table: str, kind: str) -> dict[str, Any]:
    select = {"v": f"coalesce(v, 0) * 10 + coalesce({table}.v, 0)"}
    return {"name": name, "from": "in", "join": {"table": table, "type": kind, "select": select}}


JOINS = (("met", "users", "inner"), ("all", "users", "left"), ("older", "keep", "left"))
SINKS = {"out": "met", "left": "all", "kept": "older"}


@pytest.fixture(scope="module")
def pipelines(spark: SparkSession) -> dict[int, Pipeline]:
    return {retention: Pipeline(spark, topology(retention)) for retention in RETENTIONS}


def row(topic: int, number: int | None, time: int, key: str | None = "a") -> Given:
    return Given(str(topic), key, number, time)


# A record beside what was before, between two versions, beside a deletion, and before all; then a version that comes
# late, one of the same time, and one that is too old.
BETWEEN = [row(0, 1, 5), row(0, 2, 9), row(2, 1, 4), row(2, 2, 5), row(2, 3, 8), row(2, 4, 9), row(2, 5, 7)]
LATE = [row(0, 1, 5), row(0, None, 9), row(0, 3, 7), row(0, 4, 7), row(2, 1, 6), row(2, 2, 7), row(2, 3, 12)]
TOO_OLD = [row(0, 1, 20, "b"), row(0, 2, 13), row(0, 3, 14), row(2, 1, 13), row(2, 2, 14), row(1, 5, 3), row(2, 3, 3)]


@pytest.mark.parametrize("retention", RETENTIONS)
@settings(max_examples=EXAMPLES)
@given(shared(cases))
@example([(BETWEEN, []), (BETWEEN, [2, 4]), (LATE, []), (LATE, [1, 2, 3, 4, 5]), (TOO_OLD, []), (TOO_OLD, [1, 4])])
def test_streams_and_queries_find_what_was_valid_as_in_kafka_streams_wherever_batches_begin(
    driver: KafkaStreams, pipelines: dict[int, Pipeline], retention: int, given: list[Case]
) -> None:
    read = [(in_partitions(renamed(records, TOPICS), TOPICS, 1), cuts) for records, cuts in given]
    theirs = [driver.answer({"versions": retention}, asked(records)) for records, _ in read]
    with ExitStack() as stack:
        tasks = open_tasks(stack, pipelines[retention].topology, len(read))
        bench = Bench(pipelines[retention], tasks)
        found = bench.sinks_each([(records, cuts) for records, cuts in read], BY_TIME)
        assert found == [{topic: list(rows) for topic, rows in each.sinks.items()} for each in theirs]
        assert bench.counters.records_dropped == sum(each.dropped for each in theirs)
        stores = [tasks[case].stores["users"] for case in range(len(read))]
        assert [of_store(store, case * DAY) for case, store in enumerate(stores)] == [each.store for each in theirs]


def of_store(store: object, since: int) -> Mapping[tuple[str, int], tuple[int, int]]:
    """What each key has at each time, and since when, as `Versions.store` says it."""
    assert isinstance(store, VersionedStore)
    found = {}
    for key in KEYS:
        for time in TIMES:
            version = store.as_of(key.encode(), since + time)
            if version is not None:
                found[key, time] = (loaded(version.value), version.valid_from - since)
    return found
