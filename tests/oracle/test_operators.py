"""Each operator beside Kafka Streams: the same records give the same store, sink and count of dropped records."""

from __future__ import annotations

import json
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from oracle_driver import KafkaStreams
from pipeline_bench import Bench, open_tasks
from pipeline_kit import Pipeline, Record, source, topology_of

from streams_runtime.state.store import KeyValueStore, unstamp
from streams_runtime.state.window_keys import LATEST, split_session_key, split_window_key
from streams_runtime.state.windows import SessionStore, WindowStore

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# Each example is several Spark jobs, and a failing one is made smaller by many more.
pytestmark = [pytest.mark.integration, pytest.mark.oracle, pytest.mark.timeout(900)]

Given = tuple[str | None, Any, int]
"""Key, number (or list of numbers) and time (ms) of a record; without a number it has no value."""

WINDOWS: dict[str, dict[str, int] | None] = {
    "by key": None,
    "tumbling": {"size": 10_000, "advance": 10_000, "grace": 5_000, "retention": 15_000},
    "tumbling without grace": {"size": 7_000, "advance": 7_000, "grace": 0, "retention": 3_600_000},
    "hopping": {"size": 10_000, "advance": 3_000, "grace": 2_000, "retention": 3_600_000},
    "sessions": {"gap": 4_000, "grace": 5_000, "retention": 3_600_000},
    "sessions kept shortly": {"gap": 4_000, "grace": 3_000, "retention": 7_000},
    "sessions without grace": {"gap": 3, "grace": 0, "retention": 3},
    "sliding": {"difference": 5_000, "grace": 4_000, "retention": 3_600_000},
    "sliding without grace": {"difference": 4, "grace": 0, "retention": 8},
    "sliding kept shortly": {"difference": 6_000, "grace": 3_000, "retention": 15_000},
    "sliding close by": {"difference": 3, "grace": 5, "retention": 11},
    "hopping by one": {"size": 4, "advance": 1, "grace": 3, "retention": 400_000},
}
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
records = st.lists(
    st.tuples(st.sampled_from(["a", "b", None]), st.one_of(st.none(), st.integers(-9, 9)), st.integers(0, 60_000)),
    min_size=1,
    max_size=30,
)
close_records = st.lists(
    st.tuples(st.sampled_from(["a", "b"]), st.integers(-9, 9), st.integers(0, 30)), min_size=1, max_size=30
)
list_records = st.lists(
    st.tuples(
        st.sampled_from(["a", "b", None]),
        st.one_of(st.none(), st.lists(st.one_of(st.none(), st.integers(-9, 9)), max_size=3)),
        st.one_of(st.integers(0, 30), st.integers(0, 60_000)),
    ),
    min_size=1,
    max_size=20,
)
cuts = st.lists(st.integers(0, 30), max_size=4)


@pytest.fixture(scope="module")
def pipelines(spark: SparkSession) -> dict[str, Pipeline]:
    made = {name: Pipeline(spark, topology_of(*declared(windows))) for name, windows in WINDOWS.items()}
    final = {f"final {name}": Pipeline(spark, topology_of(*declared(WINDOWS[name], final=True))) for name in FINAL}
    lists = {f"elements {name}": Pipeline(spark, topology_of(*of_lists(WINDOWS[name]))) for name in ELEMENTS}
    return made | final | lists


def declared(windows: dict[str, int] | None, final: bool = False) -> tuple[Any, Any, Any]:
    aggregate = {"total": "sum(coalesce(a, 0))", "n": "count(*)"}
    step: dict[str, Any] = {"name": "step", "from": "in", "aggregate": aggregate, "store": "store"}
    if windows is not None and "gap" in windows:
        lengths = {name: f"{windows[name]}ms" for name in ("gap", "grace")}
        step["window"] = {"session": lengths, "retention": f"{windows['retention']}ms"}
    elif windows is not None and "difference" in windows:
        lengths = {"timeDifference": f"{windows['difference']}ms", "grace": f"{windows['grace']}ms"}
        step["window"] = {"sliding": lengths, "retention": f"{windows['retention']}ms"}
    elif windows is not None:
        lengths = {name: f"{windows[name]}ms" for name in ("size", "advance", "grace")}
        step["window"] = {"hopping": lengths, "retention": f"{windows['retention']}ms"}
        if windows["size"] == windows["advance"]:
            step["window"] = {"tumbling": {"size": lengths["size"], "grace": lengths["grace"]}} | {
                "retention": f"{windows['retention']}ms"
            }
    if final:
        step["suppress"] = "untilWindowCloses"
    return [source(schema="a BIGINT")], [step], [{"from": "step", "topic": "out"}]


def of_lists(windows: dict[str, int] | None) -> tuple[Any, Any, Any]:
    _, (step,), sinks = declared(windows)
    each = {"name": "each", "from": "in", "flatMap": {"explode": "items", "as": "a"}}
    return [source(schema="items ARRAY<BIGINT>")], [each, step | {"from": "each"}], sinks


def ours(pipeline: Pipeline, given: list[Given], cuts: list[int], once: bool = False) -> tuple[Any, Any, int]:
    """The sink's last record of each key, the store's contents, and how many records were dropped."""
    last: dict[bytes, tuple[Any, int]] = {}
    rows = [
        Record(key and key.encode(), _json(amount), offset=number, time=time)
        for number, (key, amount, time) in enumerate(given)
    ]
    with ExitStack() as stack:
        bench = Bench(pipeline, open_tasks(stack, pipeline.topology))
        for key_bytes, value, time in bench.written(rows, cuts):
            assert key_bytes is not None
            assert not (once and key_bytes in last), "a window is passed on once"
            last[key_bytes] = (value, time)
        counters = bench.counters
        shown = {key: row for key, row in last.items() if row[0] is not None}
        return shown, held(bench), counters.records_dropped + counters.late_records


def held(bench: Bench) -> dict[tuple[str, int | None], tuple[Any, int]]:
    store = bench.tasks[0].stores["store"]
    if isinstance(store, KeyValueStore):
        keys = [key for key, _ in store.scan(None, None)]
        names: list[tuple[str, int | None]] = [(key.decode(), None) for key in keys]
    elif isinstance(store, SessionStore):
        sessions = [(split_session_key(key), value) for key, value in store.fetch(None, None, 0, LATEST)]
        return {(key.decode(), start): (json.loads(value), end) for (key, start, end), value in sessions}
    else:
        assert isinstance(store, WindowStore)
        keys = [key for key, _ in store.fetch(None, None, 0, LATEST)]
        names = [(name.decode(), start) for name, start, _ in map(split_window_key, keys)]
    stored = [unstamp(each) for each in store.get_stored(keys) if each is not None]
    return {name: (json.loads(value), time) for name, (time, value) in zip(names, stored, strict=True)}


def _json(amount: int | list[int | None] | None) -> bytes | None:
    field = "items" if isinstance(amount, list) else "a"
    return None if amount is None else json.dumps({field: amount}).encode()


def theirs(
    driver: KafkaStreams, windows: dict[str, int] | None, given: list[Given], **more: bool
) -> tuple[Any, Any, int]:
    asked = [
        {"topic": "in", "key": key, "value": data and data.decode(), "time": time}
        for key, data, time in ((key, _json(amount), time) for key, amount, time in given)
    ]
    topology: dict[str, Any] = {} if windows is None else {"windows": windows}
    answer = driver.answer(topology | more, asked)
    # What came and went between two batches of ours is a tombstone there, and nothing here.
    last = {key: (value, time) for key, value, time in answer.sinks["out"]}
    return {key: row for key, row in last.items() if row[0] is not None}, answer.store, answer.dropped


@pytest.mark.parametrize("operator", WINDOWS)
@settings(max_examples=8)
@given(st.one_of(records, close_records), cuts)
@example([("a", 1, 0), ("a", 1, 30_000), ("a", 1, 9_999), ("b", None, 20_000), (None, 1, 50_000)], [2])
@example([("a", None, 5_000), ("a", 2, 5_000), ("a", 1, 4_000)], [1])
@example([("a", 1, 16), ("b", 1, 19), ("b", 1, 20), ("a", 1, 20)], [])  # a store kept shortly hides a's first window
def test_aggregates_agree_with_kafka_streams_wherever_batches_begin(
    driver: KafkaStreams, pipelines: dict[str, Pipeline], operator: str, given: list[Given], cuts: list[int]
) -> None:
    assert ours(pipelines[operator], given, cuts) == theirs(driver, WINDOWS[operator], given)


@pytest.mark.parametrize("operator", FINAL)
@settings(max_examples=6)
@given(st.one_of(records, close_records), cuts)
@example([("a", 1, 0), ("b", 1, 1_000), ("a", 1, 14_999), ("b", 3, 9_999), ("c", 1, 15_000), ("a", 1, 60_000)], [2, 4])
@example([("a", 1, 0), ("a", 1, 40_000)], [])
@example([("a", 1, 29), ("a", 1, 24)], [1])  # in the moment in which a sliding window closes, stream time stands still
@example([("a", 1, 29), ("b", 1, 26)], [1])  # the same for a session
def test_windows_that_are_passed_on_once_closed_agree_with_kafka_streams(
    driver: KafkaStreams, pipelines: dict[str, Pipeline], operator: str, given: list[Given], cuts: list[int]
) -> None:
    # Sessions and sliding windows take records in the very moment in which they close, and are passed on once more.
    once = "size" in (WINDOWS[operator] or {})
    mine = ours(pipelines[f"final {operator}"], given, cuts, once)
    assert mine == theirs(driver, WINDOWS[operator], given, suppress=True)


@pytest.mark.parametrize("operator", ELEMENTS)
@settings(max_examples=6)
@given(list_records, cuts)
@example([("a", [1, None, 2], 0), ("a", [3], 30_000), ("a", [1, 1], 5), (None, [1, 2], 1), ("a", None, 2)], [2])
@example([("a", [], 50_000), ("a", [1], 5), ("b", [1], 20_000), ("a", [2], 5)], [1])
def test_aggregates_of_elements_agree_with_kafka_streams_wherever_batches_begin(
    driver: KafkaStreams, pipelines: dict[str, Pipeline], operator: str, given: list[Given], cuts: list[int]
) -> None:
    mine = ours(pipelines[f"elements {operator}"], given, cuts)
    assert mine == theirs(driver, WINDOWS[operator], given, elements=True)
