"""Each operator beside Kafka Streams: the same records give the same store, sink and count of dropped records."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from oracle_driver import KafkaStreams
from oracle_operators import WINDOWS, Case, aggregated, cases, cuts, ours, theirs
from pipeline_kit import Pipeline, source, topology_of
from shared_cases import EXAMPLES, shared

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# Each example is several Spark jobs, and a failing one is made smaller by many more.
pytestmark = [pytest.mark.integration, pytest.mark.oracle, pytest.mark.timeout(900)]

FINAL = (
    "sessions",
    "sessions without grace",
    "sliding",
    "sliding without grace",
    "sliding close by",
    "tumbling",
    "tumbling without grace",
    "hopping by one",
)
"""Those that are also asked for the last contents of each window only."""
ELEMENTS = ("by key", "tumbling", "hopping by one", "sessions", "sliding close by")
"""Those that also aggregate the elements of lists."""
list_records = st.lists(
    st.tuples(
        st.sampled_from(["a", "b", None]),
        st.one_of(st.none(), st.lists(st.one_of(st.none(), st.integers(-9, 9)), max_size=3)),
        st.one_of(st.integers(0, 30), st.integers(0, 60_000)),
    ),
    min_size=1,
    max_size=20,
)


@pytest.fixture(scope="module")
def pipelines(spark: SparkSession) -> dict[str, Pipeline]:
    made = {name: Pipeline(spark, topology_of(*aggregated(windows))) for name, windows in WINDOWS.items()}
    final = {f"final {name}": Pipeline(spark, topology_of(*aggregated(WINDOWS[name], final=True))) for name in FINAL}
    lists = {f"elements {name}": Pipeline(spark, topology_of(*of_lists(WINDOWS[name]))) for name in ELEMENTS}
    return made | final | lists


def of_lists(windows: dict[str, int] | None) -> tuple[Any, Any, Any]:
    _, (step,), sinks = aggregated(windows)
    each = {"name": "each", "from": "in", "flatMap": {"explode": "items", "as": "a"}}
    return [source(schema="items ARRAY<BIGINT>")], [each, step | {"from": "each"}], sinks


@pytest.mark.parametrize("operator", WINDOWS)
@settings(max_examples=EXAMPLES)
@given(cases)
@example(
    [
        ([("a", 1, 0), ("a", 1, 30_000), ("a", 1, 9_999), ("b", None, 20_000), (None, 1, 50_000)], [2]),
        ([("a", None, 5_000), ("a", 2, 5_000), ("a", 1, 4_000)], [1]),
        # A store kept shortly hides a's first window.
        ([("a", 1, 16), ("b", 1, 19), ("b", 1, 20), ("a", 1, 20)], []),
    ]
)
def test_aggregates_agree_with_kafka_streams_wherever_batches_begin(
    driver: KafkaStreams, pipelines: dict[str, Pipeline], operator: str, given: list[Case]
) -> None:
    found, dropped = theirs(driver, WINDOWS[operator], given)
    assert ours(pipelines[operator], given) == (found, dropped + before_the_first_window(operator, given))


def before_the_first_window(operator: str, given: list[Case]) -> int:
    """How many records an offset leaves without a window: Kafka Streams passes over them and counts none."""
    first = (WINDOWS[operator] or {}).get("offset", 0)
    return sum(key is not None and time < first for records, _ in given for key, _, time in records)


@pytest.mark.parametrize("operator", FINAL)
@settings(max_examples=EXAMPLES)
@given(cases)
@example(
    [
        (
            [("a", 1, 0), ("b", 1, 1_000), ("a", 1, 14_999), ("b", 3, 9_999), ("c", 1, 15_000), ("a", 1, 60_000)],
            [2, 4],
        ),
        ([("a", 1, 0), ("a", 1, 40_000)], []),
        # In the moment in which a sliding window closes, stream time stands still; the same for a session.
        ([("a", 1, 29), ("a", 1, 24)], [1]),
        ([("a", 1, 29), ("b", 1, 26)], [1]),
    ]
)
def test_windows_that_are_passed_on_once_closed_agree_with_kafka_streams(
    driver: KafkaStreams, pipelines: dict[str, Pipeline], operator: str, given: list[Case]
) -> None:
    # Sessions and sliding windows take records in the very moment in which they close, and are passed on once more.
    once = "size" in (WINDOWS[operator] or {})
    mine = ours(pipelines[f"final {operator}"], given, once)
    assert mine == theirs(driver, WINDOWS[operator], given, suppress=True)


@pytest.mark.parametrize("operator", ELEMENTS)
@settings(max_examples=EXAMPLES)
@given(shared(st.tuples(list_records, cuts)))
@example(
    [
        ([("a", [1, None, 2], 0), ("a", [3], 30_000), ("a", [1, 1], 5), (None, [1, 2], 1), ("a", None, 2)], [2]),
        ([("a", [], 50_000), ("a", [1], 5), ("b", [1], 20_000), ("a", [2], 5)], [1]),
    ]
)
def test_aggregates_of_elements_agree_with_kafka_streams_wherever_batches_begin(
    driver: KafkaStreams, pipelines: dict[str, Pipeline], operator: str, given: list[Case]
) -> None:
    mine = ours(pipelines[f"elements {operator}"], given)
    assert mine == theirs(driver, WINDOWS[operator], given, elements=True)
