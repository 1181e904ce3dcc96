"""Steps of every kind behind each other, in the test driver's machine: what they give is what a plain model says.

A run makes a part of the pairs that fit: chains of up to six steps, several in an application, keys of every format,
and records that can't be read where the policy has an answer to them; a long run makes more of them, and runs each in
several ways. With `STREAMSAPP_TEST_PAIRS=all` it makes every pair, those of processors too. `STREAMSAPP_TEST_SEED`
names other chains, records and batches. A failure says which chain it was.
"""

from __future__ import annotations

import os
import random
from collections.abc import Sequence
from functools import cache
from itertools import islice
from typing import TYPE_CHECKING, Any

import pytest
from long_runs import also_long
from shared_cases import batches
from steps_model import Model
from topologies_made import (
    FORMATS,
    KINDS,
    PAIRED,
    REFUSED,
    Chain,
    Made,
    add_chain,
    covering,
    cuts_of,
    made_of,
    named_wrongly,
    pairs,
    records_for,
)
from topologies_played import Application, differences
from topologies_refused import refusals

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.integration, pytest.mark.timeout(900)]

SEED = int(os.environ.get("STREAMSAPP_TEST_SEED", "1"))
ALL = os.environ.get("STREAMSAPP_TEST_PAIRS") == "all"
POLICIES: Sequence[Any] = ("fail", "continue", {"deadLetter": {"topic": "letters"}})
WAYS: Sequence[tuple[str, int]] = (("fail", 1), ("continue", 3))
"""A policy for records that can't be read, and how many partitions."""
STEPS, CHAINS, APPLICATIONS, RECORDS = 6, 3, 4, 40
FEW = 2  # of the applications
OF_RESULTS: Sequence[Chain] = (
    ("left join stream", "headers", "reduce", "toStream", "class"),
    ("join with itself", "reduce", "toStream", "ends"),
    ("left join stream", "approximate", "toStream", "headers", "session closed"),
)
"""Aggregates that take records in turn, behind the changes of a table that results of a join were made to."""

OF_WAYS: Sequence[Chain] = (
    ("merge", "flatMap", "merge"),
    ("flatMap", "merge", "merge", "session"),
    ("tumbling", "toStream", "merge", "flatMap", "merge"),
)
"""Merges of what has come of one record, in pieces."""

OF_GROUPS: Sequence[tuple[str, Chain]] = (
    ("table", ("groupBy",)),
    ("table", ("where", "groupBy", "toStream", "sum")),
    ("table", ("outer join table", "groupBy", "where", "groupBy", "toStream")),
    ("table", ("left foreign key", "groupBy")),
    ("table", ("groupBy", "left join table", "toStream", "keyBy number", "toTable", "groupBy")),
    ("stream", ("sum", "groupBy", "toStream", "tumbling")),
    ("stream", ("toTable", "groupBy")),
)
"""Tables of every kind whose rows leave groups, and what stands behind such groups."""

OF_WAITING: Sequence[tuple[str, Chain]] = (
    ("table", ("suppress", "toTable", "groupBy", "suppress few")),
    ("table", ("outer join table", "suppress few", "toTable", "left foreign key", "suppress")),
    ("table", ("where", "groupBy", "suppress few", "toTable", "suppress")),
    ("table", ("left foreign key", "suppress few", "dedupe")),
    ("stream", ("sum", "suppress", "left join stream")),
    ("stream", ("keyBy number", "tumbling", "suppress few", "keyBy struct", "sum", "suppress")),
    ("stream", ("session", "suppress", "keyBy number", "hopping", "suppress few")),
)
"""Changes that wait, of tables of every kind and before every kind of state, several times in an application."""


OF_DAYS: Sequence[tuple[str, Chain]] = (
    ("stream", ("tumbling", "where", "suppress", "keyBy number", "toTable", "groupBy")),
    ("stream", ("tumbling closed", "toStream", "select")),
    ("stream", ("sum", "toStream", "tumbling", "toStream", "select")),
)
"""Tables of windows, their changes that wait, and those that have closed."""

OF_ITSELF: Sequence[tuple[str, Chain]] = (
    ("table", ("join of itself", "where", "toStream", "sum", "outer join of itself", "suppress few")),
    ("stream", ("ends", "outer join of itself", "left join table", "toStream", "toTable", "groupBy")),
    ("table", ("where", "outer join of itself", "join of itself", "suppress", "toTable", "left foreign key")),
    ("stream", ("keyBy number", "tumbling", "join of itself", "suppress few", "keyBy text", "sum")),
    ("stream", ("session", "outer join of itself", "where", "toStream", "merge")),
)
"""Tables that meet themselves, with old rows and without, before and behind state that goes by the order of changes."""

OF_HISTORIES: Sequence[tuple[str, Chain]] = (
    ("stream", ("left join table", "join table", "sum")),
    ("stream", ("dedupe", "toTable", "look up", "repartition", "left join table")),
    ("stream", ("keyBy number", "left join table", "tumbling", "toStream", "keyBy text", "left join table")),
)
"""Joins with tables of topics and of streams, before and behind other kinds of state."""

# Of the times at which records begin, the first ones lie before the first day that can be.
DAYS = {"tumbling": {"size": "1d", "grace": "1s", "offset": "19h1m45s", "timezone": "America/New_York"}}


@cache
def chains() -> Sequence[Sequence[tuple[str, Chain]]]:
    """Chains that have every pair that fits, by the applications that they are in; without ALL the first of them."""
    kinds = PAIRED if ALL else KINDS
    wanted = [pair for pair in pairs() if pair not in REFUSED and {pair[0][0], pair[1]} <= kinds.keys()]
    found = covering(random.Random(SEED), wanted, STEPS, refused, kinds)
    some = list(found if ALL else islice(found, CHAINS * APPLICATIONS))
    return [some[first : first + CHAINS] for first in range(0, len(some), CHAINS)]


def refused(chain: Chain, begins: str) -> bool:
    """Whether `validate` refuses a chain."""
    return named_wrongly(chain) or bool(refusals(made_of(chain, begins)))


def wrong(spark: SparkSession, document: dict[str, Any], partitions: int = 1, count: int = RECORDS) -> list[str]:
    """How what the topology makes of records differs from what it should."""
    source = random.Random(SEED)
    made = Application(spark, document, partitions)
    records = records_for(document, source, count)
    cuts, model = cuts_of(source, count)[:2], Model(document, partitions)
    for first, end in batches(len(records), cuts):
        model.feed(records[first:end])
    return differences(model, made.run(records, cuts))


def runs(policy: str, partitions: int) -> list[Any]:
    """How an application is run: like this, and otherwise in a long run."""
    return also_long([(policy, partitions)], [way for way in WAYS if way != (policy, partitions)])


@pytest.mark.parametrize("number", range(len(chains())) if ALL else also_long(range(FEW), range(FEW, APPLICATIONS)))
def test_steps_behind_each_other_give_what_the_model_says(spark: SparkSession, number: int) -> None:
    some, key, policy = chains()[number], FORMATS[number % len(FORMATS)], POLICIES[number % len(POLICIES)]
    if any("foreign key to" in chain for _, chain in some):
        key = "string"  # what the rows of the other table name their partners by
    if isinstance(policy, dict) and any("global" in kind for _, chain in some for kind in chain):
        policy = "continue"  # dead letters of global tables are refused
    together = Made(key, policy)
    for begins, chain in some:
        add_chain(together, begins, chain)
    try:
        found = wrong(spark, together.document)
    except Exception as error:
        found = [f"{type(error).__name__}: {error}"]
    if found:
        several = alone(spark, some, key, policy)
        pytest.fail("\n".join([f"seed {SEED}, keys {key}, policy {policy}", found[0], *several]))


@pytest.mark.parametrize(("policy", "partitions"), runs("continue", 3))
def test_groups_of_tables_of_every_kind_hold_what_their_rows_come_to(
    spark: SparkSession, policy: str, partitions: int
) -> None:
    together = Made("string", policy)
    for begins, chain in OF_GROUPS:
        add_chain(together, begins, chain)
    assert wrong(spark, together.document, partitions) == []


@pytest.mark.parametrize(("policy", "partitions"), runs("fail", 1))
def test_changes_wait_wherever_a_table_becomes_a_stream(spark: SparkSession, policy: str, partitions: int) -> None:
    together = Made("string", policy)
    for begins, chain in OF_WAITING:
        add_chain(together, begins, chain)
    assert wrong(spark, together.document, partitions) == []


@pytest.mark.parametrize(("policy", "partitions"), runs("continue", 3))
def test_days_of_a_time_zone_are_the_same_to_all_steps(spark: SparkSession, policy: str, partitions: int) -> None:
    together = Made("string", policy)
    for begins, chain in OF_DAYS:
        add_chain(together, begins, chain)
    document = together.document
    for step in document["spec"]["topology"]["steps"]:
        if "window" in step:
            step["window"] = DAYS
    assert wrong(spark, document, partitions) == []


@pytest.mark.parametrize(("policy", "partitions"), runs("fail", 1))
def test_tables_meet_themselves_by_one_path_after_the_other(spark: SparkSession, policy: str, partitions: int) -> None:
    together = Made("string", policy)
    for begins, chain in OF_ITSELF:
        add_chain(together, begins, chain)
    assert wrong(spark, together.document, partitions) == []


@pytest.mark.parametrize(("policy", "partitions"), runs("continue", 3))
def test_joins_meet_what_a_table_with_a_history_had_then(spark: SparkSession, policy: str, partitions: int) -> None:
    together = Made("string", policy)
    # The last one brings records of several partitions together, which have no one order before a join.
    for begins, chain in OF_HISTORIES if partitions == 1 else OF_HISTORIES[:-1]:
        add_chain(together, begins, chain)
    document = together.document
    topology = document["spec"]["topology"]
    tables = [
        each[kind]
        for each in (*topology["sources"], *topology["steps"])
        for kind in ("table", "toTable")
        if kind in each
    ]
    for table in tables:
        table["historyRetention"] = "2s"
    assert len(tables) > 2
    assert wrong(spark, document, partitions, 5 * RECORDS) == []


def test_what_one_record_becomes_on_several_ways_comes_way_by_way(spark: SparkSession) -> None:
    together = Made("string", "continue")
    for chain in OF_WAYS:
        add_chain(together, "stream", chain)
    assert wrong(spark, together.document) == []


def test_changes_of_a_table_of_results_have_the_order_of_these(spark: SparkSession) -> None:
    together = Made("string", "continue")
    for chain in OF_RESULTS:
        add_chain(together, "stream", chain)
    assert wrong(spark, together.document) == []


def alone(spark: SparkSession, some: Sequence[tuple[str, Chain]], key: str, policy: Any) -> list[str]:
    """Which of the chains fail by themselves, each cut to its shortest beginning that does."""
    told = []
    for begins, chain in some:
        for length in range(1, len(chain) + 1):
            try:
                found = wrong(spark, made_of(chain[:length], begins, key, policy))
            except Exception as error:
                found = [f"{type(error).__name__}: {error}"]
            if found:
                told.append(f"{begins}: {', '.join(chain[:length])}: {found[0]}")
                break
    return told
