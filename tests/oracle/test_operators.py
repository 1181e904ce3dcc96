"""Each operator beside Kafka Streams: the same records give the same store, sink and count of dropped records."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from oracle_driver import KafkaStreams, kafka_streams
from pipeline_bench import Bench, open_tasks
from pipeline_kit import Pipeline, Record, source, topology_of

from streams_runtime.state.store import KeyValueStore, unstamp
from streams_runtime.state.window_keys import LATEST, split_window_key
from streams_runtime.state.windows import WindowStore

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# Each example is several Spark jobs, and a failing one is made smaller by many more.
pytestmark = [pytest.mark.integration, pytest.mark.oracle, pytest.mark.timeout(900)]

Given = tuple[str | None, int | None, int]
"""Key, number and time (ms) of a record; without a number it has no value."""

WINDOWS: dict[str, dict[str, int] | None] = {
    "by key": None,
    "tumbling": {"size": 10_000, "advance": 10_000, "grace": 5_000, "retention": 15_000},
    "tumbling without grace": {"size": 7_000, "advance": 7_000, "grace": 0, "retention": 3_600_000},
    "hopping": {"size": 10_000, "advance": 3_000, "grace": 2_000, "retention": 3_600_000},
    "hopping by one": {"size": 4, "advance": 1, "grace": 3, "retention": 400_000},
}
FINAL = ("tumbling", "tumbling without grace", "hopping by one")
"""Those that are also asked for the last contents of each window only."""
records = st.lists(
    st.tuples(st.sampled_from(["a", "b", None]), st.one_of(st.none(), st.integers(-9, 9)), st.integers(0, 60_000)),
    min_size=1,
    max_size=30,
)
close_records = st.lists(
    st.tuples(st.sampled_from(["a", "b"]), st.integers(-9, 9), st.integers(0, 30)), min_size=1, max_size=30
)
cuts = st.lists(st.integers(0, 30), max_size=4)


@pytest.fixture(scope="module")
def driver(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaStreams]:
    with kafka_streams(tmp_path_factory.mktemp("driver")) as running:
        yield running


@pytest.fixture(scope="module")
def pipelines(spark: SparkSession) -> dict[str, Pipeline]:
    made = {name: Pipeline(spark, topology_of(*declared(windows))) for name, windows in WINDOWS.items()}
    final = {f"final {name}": Pipeline(spark, topology_of(*declared(WINDOWS[name], final=True))) for name in FINAL}
    return made | final


def declared(windows: dict[str, int] | None, final: bool = False) -> tuple[Any, Any, Any]:
    aggregate = {"total": "sum(coalesce(a, 0))", "n": "count(*)"}
    step: dict[str, Any] = {"name": "step", "from": "in", "aggregate": aggregate, "store": "store"}
    if windows is not None:
        lengths = {name: f"{windows[name]}ms" for name in ("size", "advance", "grace")}
        step["window"] = {"hopping": lengths, "retention": f"{windows['retention']}ms"}
        if windows["size"] == windows["advance"]:
            step["window"] = {"tumbling": {"size": lengths["size"], "grace": lengths["grace"]}} | {
                "retention": f"{windows['retention']}ms"
            }
    if final:
        step["suppress"] = "untilWindowCloses"
    return [source(schema="a BIGINT")], [step], [{"from": "step", "topic": "out"}]


def ours(pipeline: Pipeline, given: list[Given], cuts: list[int], final: bool = False) -> tuple[Any, Any, int]:
    """The sink's last record of each key, the store's contents, and how many records were dropped."""
    last: dict[bytes, tuple[Any, int]] = {}
    with ExitStack() as stack:
        bench = Bench(pipeline, open_tasks(stack, pipeline.topology))
        for first, end in pairwise(sorted({0, len(given), *(cut for cut in cuts if cut < len(given))})):
            rows = [
                Record(key and key.encode(), _json(amount), offset=number, time=time)
                for number, (key, amount, time) in enumerate(given[first:end], first)
            ]
            bench.store(bench.process(*rows))
            for topic, _, key_bytes, value, time, _ in bench.producer.records:
                if topic == "out":
                    assert key_bytes is not None
                    assert not (final and key_bytes in last), "a window is passed on once"
                    last[key_bytes] = (value and json.loads(value), time)
        counters = bench.counters
        return last, held(bench), counters.records_dropped + counters.late_records


def held(bench: Bench) -> dict[tuple[str, int | None], tuple[Any, int]]:
    store = bench.tasks[0].stores["store"]
    if isinstance(store, KeyValueStore):
        keys = [key for key, _ in store.scan(None, None)]
        names: list[tuple[str, int | None]] = [(key.decode(), None) for key in keys]
    else:
        assert isinstance(store, WindowStore)
        keys = [key for key, _ in store.fetch(None, None, 0, LATEST)]
        names = [(name.decode(), start) for name, start, _ in map(split_window_key, keys)]
    stored = [unstamp(each) for each in store.get_stored(keys) if each is not None]
    return {name: (json.loads(value), time) for name, (time, value) in zip(names, stored, strict=True)}


def _json(amount: int | None) -> bytes | None:
    return None if amount is None else json.dumps({"a": amount}).encode()


def theirs(
    driver: KafkaStreams, windows: dict[str, int] | None, given: list[Given], final: bool = False
) -> tuple[Any, Any, int]:
    asked = [
        {"topic": "in", "key": key, "value": None if amount is None else json.dumps({"a": amount}), "time": time}
        for key, amount, time in given
    ]
    topology: dict[str, Any] = {} if windows is None else {"windows": windows}
    answer = driver.answer(topology | ({"suppress": True} if final else {}), asked)
    if final:
        assert len({key for key, *_ in answer.sink}) == len(answer.sink)
    return {key: (value, time) for key, value, time in answer.sink}, answer.store, answer.dropped


@pytest.mark.parametrize("operator", WINDOWS)
@settings(max_examples=8)
@given(st.one_of(records, close_records), cuts)
@example([("a", 1, 0), ("a", 1, 30_000), ("a", 1, 9_999), ("b", None, 20_000), (None, 1, 50_000)], [2])
@example([("a", None, 5_000), ("a", 2, 5_000), ("a", 1, 4_000)], [1])
def test_aggregates_agree_with_kafka_streams_wherever_batches_begin(
    driver: KafkaStreams, pipelines: dict[str, Pipeline], operator: str, given: list[Given], cuts: list[int]
) -> None:
    assert ours(pipelines[operator], given, cuts) == theirs(driver, WINDOWS[operator], given)


@pytest.mark.parametrize("operator", FINAL)
@settings(max_examples=6)
@given(st.one_of(records, close_records), cuts)
@example([("a", 1, 0), ("b", 1, 1_000), ("a", 1, 14_999), ("b", 3, 9_999), ("c", 1, 15_000), ("a", 1, 60_000)], [2, 4])
@example([("a", 1, 0), ("a", 1, 40_000)], [])
def test_windows_that_are_passed_on_once_closed_agree_with_kafka_streams(
    driver: KafkaStreams, pipelines: dict[str, Pipeline], operator: str, given: list[Given], cuts: list[int]
) -> None:
    mine = ours(pipelines[f"final {operator}"], given, cuts, final=True)
    assert mine == theirs(driver, WINDOWS[operator], given, final=True)
