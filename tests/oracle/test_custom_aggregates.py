"""An aggregate in Python beside Kafka Streams' with an Aggregator in Java: one to which every order matters."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import example, given, settings
from oracle_driver import KafkaStreams
from oracle_operators import WINDOWS, Case, Rows, aggregated, cases, ours, theirs
from pipeline_kit import Pipeline, topology_of
from shared_cases import EXAMPLES

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# Each example is several Spark jobs, and a failing one is made smaller by many more.
pytestmark = [pytest.mark.integration, pytest.mark.oracle, pytest.mark.timeout(900)]
OPERATORS = ("by key", "tumbling", "hopping by one", "sessions", "sliding close by")
TRAIL = {"s": "python('custom_classes:Trail', a)"}


@pytest.fixture(scope="module")
def pipelines(spark: SparkSession) -> dict[str, Pipeline]:
    return {name: Pipeline(spark, topology_of(*aggregated(WINDOWS[name], TRAIL))) for name in OPERATORS}


@pytest.mark.parametrize("operator", OPERATORS)
@settings(max_examples=EXAMPLES)
@given(cases)
@example(
    [
        ([("a", 1, 0), ("a", 2, 30_000), ("a", 3, 9_999), ("b", None, 20_000), (None, 1, 50_000)], [2]),
        ([("a", 1, 10), ("a", 2, 12), ("b", 7, 12), ("a", 3, 11), ("a", 4, 14), ("a", 5, 11)], [2]),
        # Two sessions become one, in one batch and in two, and then another one with what came of them.
        ([("a", 1, 0), ("a", 2, 8_000), ("a", 3, 4_000), ("a", 4, 16_000), ("a", 5, 12_000), ("a", 6, 2_000)], [4]),
        ([("a", 1, 0), ("a", 2, 8_000), ("a", 3, 4_000), ("a", 4, 16_000), ("a", 5, 12_000), ("a", 6, 2_000)], [2]),
    ]
)
def test_a_class_sees_records_in_kafka_streams_order_wherever_batches_begin(
    driver: KafkaStreams, pipelines: dict[str, Pipeline], operator: str, given: list[Case]
) -> None:
    found, dropped = ours(pipelines[operator], given)
    mine = [(_states(sink), _states(store)) for sink, store in found], dropped
    assert mine == theirs(driver, WINDOWS[operator], given, trail=True)


def _states(rows: Rows) -> Rows:
    """The states alone, without the column's name."""
    return {key: (value["s"], time) for key, (value, time) in rows.items()}
