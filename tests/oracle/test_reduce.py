"""reduce beside Kafka Streams with an Aggregator in Java: sums, every order, and states that come to nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import example, given, settings
from oracle_driver import KafkaStreams
from oracle_operators import (
    TRAIL_ADDED,
    TRAIL_JOINED,
    TRAIL_REDUCED,
    WINDOWS,
    Case,
    Rows,
    aggregated,
    cases,
    ours,
    theirs,
)
from pipeline_kit import Pipeline, topology_of
from shared_cases import EXAMPLES

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# Each example is several Spark jobs, and a failing one is made smaller by many more.
pytestmark = [pytest.mark.integration, pytest.mark.oracle, pytest.mark.timeout(900)]

SUMS = {
    "total": "reduce(cast(0 as bigint), (total, row) -> total + coalesce(row.a, 0)",
    "n": "reduce(cast(0 as bigint), (n, row) -> n + 1",
}
RESTARTING = {"s": TRAIL_REDUCED.replace(TRAIL_ADDED, f"if(row.a = 0, null, {TRAIL_ADDED})")}
ADDING = ", (one, other) -> one + other)"
CASES: dict[str, tuple[dict[str, str], str, tuple[str, ...]]] = {
    "sums": (SUMS, ADDING, ("by key", "tumbling")),
    "trail": ({"s": TRAIL_REDUCED}, TRAIL_JOINED, ("by key", "hopping by one", "sessions", "sliding close by")),
    "restarting": (RESTARTING, "", ("by key", "hopping")),
}
CALLED = [(case, operator) for case, (_, _, operators) in CASES.items() for operator in operators]


@pytest.fixture(scope="module")
def pipelines(spark: SparkSession) -> dict[tuple[str, str], Pipeline]:
    return {(case, operator): _pipeline(spark, case, operator) for case, operator in CALLED}


def _pipeline(spark: SparkSession, case: str, operator: str) -> Pipeline:
    calls, merging, _ = CASES[case]
    closed = merging if operator == "sessions" else ")"
    whole = {name: call + closed for name, call in calls.items()}
    return Pipeline(spark, topology_of(*aggregated(WINDOWS[operator], whole)))


@pytest.mark.parametrize(("case", "operator"), CALLED)
@settings(max_examples=EXAMPLES)
@given(cases)
@example(
    [
        ([("a", 1, 0), ("a", 0, 30_000), ("a", 3, 9_999), ("b", None, 20_000), (None, 1, 50_000), ("b", 0, 9)], [2]),
        # Two sessions become one, in one batch and in two, and then another one with what came of them.
        ([("a", 1, 0), ("a", 2, 8_000), ("a", 3, 4_000), ("a", 4, 16_000), ("a", 5, 12_000), ("a", 6, 2_000)], [4]),
        ([("a", 1, 10), ("a", 0, 12), ("b", 7, 12), ("a", 3, 11), ("a", 0, 14), ("a", 5, 11)], [2]),
    ]
)
def test_a_lambda_gives_what_kafka_streams_gives_wherever_batches_begin(
    driver: KafkaStreams,
    pipelines: dict[tuple[str, str], Pipeline],
    case: str,
    operator: str,
    given: list[Case],
) -> None:
    mine, dropped = ours(pipelines[case, operator], given)
    real, really_dropped = theirs(driver, WINDOWS[operator], given, **({} if case == "sums" else {case: True}))
    assert [[_shown(rows, case, "s") for rows in each] for each in mine] == [
        [_shown(rows, case, None) for rows in each] for each in real
    ]
    assert dropped == really_dropped


def _shown(rows: Rows, case: str, column: str | None) -> dict[Any, Any]:
    """The states and their times; `column`: the name that the state is under, if it is."""
    if case == "sums":
        return rows
    states = {key: (value if column is None else value[column], time) for key, (value, time) in rows.items()}
    if case == "trail":
        return states
    # Where Kafka Streams deletes a row, and its time with it, a null is stored here, whose time goes on.
    return {key: state for key, (state, _) in states.items() if state is not None}
