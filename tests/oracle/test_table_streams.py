"""toTable, toStream and joins with aggregates beside Kafka Streams: every change of every table, record by record."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import example, given, settings
from machine_runs import asked, of_keys, sinks_each, sinks_of
from oracle_driver import KafkaStreams
from pipeline_kit import Pipeline, Record, source, topology_of
from shared_cases import EXAMPLES, shared
from table_trees import PARTITIONS, SPREAD, Case, Given, in_partitions, renamed

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.integration, pytest.mark.oracle, pytest.mark.timeout(900)]


def read(topic: str, **more: Any) -> dict[str, Any]:
    return source(schema="v BIGINT") | {"name": topic, "topic": topic} | more


IN, OTHER, USERS = read("in"), read("other"), read("users", table={"store": "users"})
FITS = "v % 3 != 0"


def step(name: str, from_: str, **what: Any) -> dict[str, Any]:
    return {"name": name, "from": from_, **what}


def kept(from_: str) -> dict[str, Any]:
    return step("kept", from_, toTable={"store": "kept"})


def counted(name: str, from_: str) -> dict[str, Any]:
    return step(name, from_, aggregate={"v": "count(*)"}, store=name)


def grouped(name: str, from_: str) -> list[dict[str, Any]]:
    """By odd and even numbers, but for some that are in no group: a thousand times their sum, and how many they are.

    0 is in none, since Kafka Streams takes what an aggregate begins with for the row before the first one, and takes
    that out of its group.
    """
    group = "if(v % 5 = 4 or v = 0, null, cast(v % 2 as string))"
    sums = step(f"{name}-sums", from_, groupBy=group, aggregate={"s": "sum(v)", "n": "count(*)"}, store=name)
    return [sums, step(name, f"{name}-sums", select={"v": "coalesce(s, 0) * 1000 + n"})]


def told(name: str, from_: str) -> dict[str, Any]:
    return step(name, from_, toStream={})


def beside(name: str, from_: str, table: str, kind: str = "left") -> dict[str, Any]:
    select = {"v": f"coalesce(v, 0) * 10 + coalesce({table}.v, 0)"}
    return step(name, from_, join={"table": table, "type": kind, "select": select})


# Begun with 6, which does not fit: Kafka Streams takes what an aggregate begins with for the row before the first one.
FOLDED = "reduce(cast(6 as bigint), (state, row) -> (state * 31 + coalesce(row.v, 0)) & 1048575)"
BESIDE_FOLDED = "coalesce(v, 0) * 10 + coalesce(folded.r, 0)"
BY_NUMBER = "cast(v % 2 as string)"
CASES: dict[str, tuple[list[Any], list[Any], Mapping[str, str]]] = {
    "a table": (
        [IN],
        [kept("in"), step("some", "kept", where=FITS), told("all", "kept")],
        {"out": "all", "fitting": "some"},
    ),
    "beside a table": ([IN, OTHER], [kept("in"), beside("both", "other", "kept")], {"out": "both"}),
    "beside its own table": (
        [IN],
        [step("some", "in", where=FITS), kept("some"), beside("both", "in", "kept")],
        {"out": "both"},
    ),
    "tables beside each other": ([USERS, IN], [kept("in"), beside("both", "kept", "users", "outer")], {"out": "both"}),
    "counts of changes": (
        [USERS],
        [
            step("some", "users", where=FITS),
            told("changes", "some"),
            step("by", "changes", keyBy=BY_NUMBER),
            counted("counted", "by"),
            told("counts", "counted"),
        ],
        {"out": "counts"},
    ),
    "counts of counts": (
        [IN],
        [
            counted("first", "in"),
            told("counts", "first"),
            step("by", "counts", keyBy=BY_NUMBER),
            counted("second", "by"),
            told("all", "second"),
        ],
        {"out": "all", "counts": "first"},
    ),
    "groups of a table": (
        [USERS],
        [step("some", "users", where=FITS), *grouped("groups", "some"), told("all", "groups")],
        {"out": "all"},
    ),
    "groups of counts": (
        [IN],
        [counted("first", "in"), told("counts", "first"), *grouped("groups", "first"), told("all", "groups")],
        {"out": "all", "counts": "counts"},
    ),
    "groups of tables beside each other": (
        [USERS, IN],
        [
            kept("in"),
            beside("both", "kept", "users", "outer"),
            *grouped("groups", "both"),
            step("some", "groups", where=FITS),
            told("all", "some"),
        ],
        {"out": "all"},
    ),
    "groups of groups": (
        [USERS],
        [*grouped("groups", "users"), *grouped("again", "groups"), told("all", "again"), told("first", "groups")],
        {"out": "all", "groups": "first"},
    ),
    "beside a count": (
        [IN, OTHER],
        [counted("counted", "in"), beside("both", "other", "counted"), beside("own", "in", "counted")],
        {"out": "both", "own": "own"},
    ),
    "a count beside a table": (
        [USERS, IN],
        [
            counted("counted", "in"),
            step("doubled", "counted", select={"v": "v * 2"}),
            step("some", "doubled", where=FITS),
            beside("both", "some", "users"),
            told("all", "both"),
        ],
        {"out": "all"},
    ),
    "foldings": (
        [IN, OTHER],
        [
            step("folded", "in", aggregate={"r": FOLDED, "c": "python('custom_classes:Folded', v)", "n": "count(*)"})
            | {"store": "folded"},
            step("one", "folded", select={"v": "r"}),
            step("two", "folded", select={"v": "c * 100 + n"}),
            step("some", "folded", where="r % 3 != 0", select={"v": "r"}),
            told("ones", "one"),
            told("twos", "two"),
            step("both", "other", join={"table": "folded", "type": "left", "select": {"v": BESIDE_FOLDED}}),
        ],
        {"out": "ones", "classes": "twos", "fitting": "some", "both": "both"},
    ),
    "a table of changes": (
        [USERS, OTHER],
        [
            step("some", "users", where=FITS),
            told("changes", "some"),
            kept("changes"),
            beside("both", "other", "kept"),
        ],
        {"out": "both", "changes": "kept"},
    ),
    "what fits beside a table": (
        [USERS, IN],
        [step("some", "in", where=FITS), beside("both", "some", "users")],
        {"out": "both"},
    ),
    "what fits beside a table of what fits": (
        [IN, OTHER],
        [
            step("some", "in", where=FITS),
            kept("some"),
            step("others", "other", where=FITS),
            beside("both", "others", "kept"),
        ],
        {"out": "both"},
    ),
    "what fits of two counted": (
        [IN, OTHER],
        [
            step("some", "in", where=FITS),
            step("others", "other", where=FITS),
            {"name": "merged", "merge": ["some", "others"]},
            counted("counted", "merged"),
            told("all", "counted"),
        ],
        {"out": "all"},
    ),
}
MEETING = ("counts of changes", "counts of counts", *(name for name in CASES if name.startswith("groups of")))
"""Those in which records of several partitions, as cases would be, get the same keys."""


def topics_of(name: str) -> list[str]:
    """Of a case, in the order in which records of one time are taken: tables' first."""
    return [each["topic"] for each in CASES[name][0]]


@pytest.fixture(scope="module")
def pipelines(spark: SparkSession) -> dict[str, Pipeline]:
    made = {}
    for name, (sources, steps, sinks) in CASES.items():
        written = [{"from": each, "topic": topic} for topic, each in sinks.items()]
        made[name] = Pipeline(spark, topology_of(sources, steps, written))
    return made


def row(topic: int, number: int | None, time: int, key: str | None = "a") -> Given:
    return Given(str(topic), key, number, time)


# Rows that come, change, no longer fit and go; beside records of another topic before, at and after each of them.
CHANGES = [row(0, 1, 1), row(1, 5, 1), row(0, 3, 2), row(1, 5, 3), row(0, None, 4), row(1, 5, 4), row(0, 2, 5)]
# Older records, several of one time, and one without a key; another key.
OLDER = [row(0, 4, 9), row(0, 7, 2), row(1, 2, 3), row(0, 6, 2), row(0, 5, 2, None), row(1, 3, 9)]
TIMES = [*OLDER, row(0, 8, 9, "b"), row(1, 1, 9, "b")]
# The record without a key has its turn before the user is deleted; only then comes the older one behind it.
AHEAD = [row(1, 6, 14), row(0, None, 17), row(1, 5, 19, None), row(1, 2, 6), row(0, None, 20, "z")]
# So has one that does not fit, before the other topic's; the older one behind it comes after that.
UNFIT = [row(1, 6, 14), row(0, 5, 10), row(1, 2, 3), row(0, 7, 20)]


def read_of(name: str, given: list[Given], partitions: int) -> list[Record]:
    topics = topics_of(name)
    return in_partitions(renamed(given, topics), topics, partitions)


@pytest.mark.parametrize("name", [each for each in CASES if each not in MEETING])
@settings(max_examples=EXAMPLES)
@given(shared(SPREAD))
@example([(CHANGES, [], 1), (TIMES, [3], 1), (AHEAD, [], 1), (UNFIT, [], 1)])
def test_every_change_is_that_of_kafka_streams_wherever_batches_begin(
    driver: KafkaStreams, pipelines: dict[str, Pipeline], name: str, given: list[Case]
) -> None:
    read = [(read_of(name, records, partitions), cuts) for records, cuts, partitions in given]
    found = sinks_each(pipelines[name], read, PARTITIONS)
    for sinks, (records, _), (_, _, partitions) in zip(found, read, given, strict=True):
        theirs = driver.answer({"changes": name}, asked(records)).sinks
        if partitions == 1:
            assert sinks == theirs
        else:
            assert of_keys(sinks) == of_keys(theirs)


@pytest.mark.parametrize("name", MEETING)
@settings(max_examples=3)
@given(SPREAD)
@example((CHANGES, [], 1))
@example((TIMES, [3], 1))
def test_so_is_every_change_where_keys_meet_again(
    driver: KafkaStreams, pipelines: dict[str, Pipeline], name: str, given: Case
) -> None:
    records, cuts, partitions = given
    read = read_of(name, records, partitions)
    theirs = driver.answer({"changes": name}, asked(read)).sinks
    found = sinks_of(pipelines[name], read, cuts, partitions)
    if partitions == 1:  # of several they come in any order
        assert found == theirs
