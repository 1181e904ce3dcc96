"""Windowed aggregates: the same windows, late records and output as record by record, wherever batches begin."""

from __future__ import annotations

import json
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from pipeline_bench import Bench, open_tasks
from pipeline_kit import Pipeline, Record, source, topology_of
from shared_cases import EXAMPLES, shared, shared_batches
from windows_model import WindowsModel
from zone_days import local

from streams_runtime.state.window_keys import LATEST, split_window_key
from streams_runtime.state.window_store import WindowStore
from streams_runtime.testing.mock_producer import Sent
from streams_runtime.topology.nodes.window_kinds import TimeWindows

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [
    pytest.mark.integration,
    pytest.mark.timeout(900),
    pytest.mark.usefixtures("compiled_queries"),
]

DAY = 86_400_000
TIMES = {
    "days with a jump": (local("Europe/Berlin", "2024-03-29"), 7_200),
    "days with two midnights": (local("America/Havana", "2022-11-04"), 7_200),
}
"""When the records of a kind begin, and how many ms stand for one of theirs."""
KINDS: dict[str, tuple[dict[str, Any], TimeWindows]] = {
    "tumbling": ({"tumbling": {"size": "10s", "grace": "5s"}}, TimeWindows(10_000, 10_000, 5_000, 15_000)),
    "no grace": ({"tumbling": {"size": "7s"}, "retention": "1h"}, TimeWindows(7_000, 7_000, 0, 3_600_000)),
    "hopping": (
        {"hopping": {"size": "10s", "advance": "3s", "grace": "2s"}, "retention": "1h"},
        TimeWindows(10_000, 3_000, 2_000, 3_600_000),
    ),
    "offset": (
        {"hopping": {"size": "10s", "advance": "4s", "grace": "2s", "offset": "1s"}, "retention": "1h"},
        TimeWindows(10_000, 4_000, 2_000, 3_600_000, offset=1_000),
    ),
    # Half past two does not come on the last day of March.
    "days with a jump": (
        {"tumbling": {"size": "1d", "offset": "2h30m", "timezone": "Europe/Berlin", "grace": "3h"}},
        TimeWindows(DAY, DAY, 10_800_000, DAY + 14_400_000, offset=9_000_000, timezone="Europe/Berlin"),
    ),
    # Midnight comes twice on the sixth of November.
    "days with two midnights": (
        {"tumbling": {"size": "1d", "timezone": "America/Havana"}, "retention": "9d"},
        TimeWindows(DAY, DAY, 0, 9 * DAY, timezone="America/Havana"),
    ),
}
AGGREGATE = {"total": "sum(a)", "n": "count(*)", "mean": "avg(a)"}
SCHEMA = "a BIGINT"


def of(window: dict[str, Any], *steps: dict[str, Any], sinks: tuple[dict[str, Any], ...] = ()) -> Any:
    window = {"late": {"topic": "late"}} | window
    first = {"name": "windows", "from": "in", "window": window, "aggregate": AGGREGATE, "store": "windows"}
    return topology_of([source(schema=SCHEMA)], [first, *steps], sinks or [{"from": "windows", "topic": "out"}])


@pytest.fixture(scope="module")
def pipelines(spark: SparkSession) -> dict[str, Pipeline]:
    return {name: Pipeline(spark, of(window)) for name, (window, _) in KINDS.items()}


def record(key: str | None, time: int, amount: int | None = 1, partition: int = 0, offset: int | None = None) -> Record:
    value = None if amount is None else json.dumps({"a": amount}).encode()
    return Record(key.encode() if key else None, value, partition=partition, offset=offset, time=time)


def contents(bench: Bench) -> dict[tuple[int, str, int], tuple[int, int]]:
    """What the stores show: sum and count of each window, by partition, key and start."""
    found = {}
    for partition, task in bench.tasks.items():
        store = task.stores["windows"]
        assert isinstance(store, WindowStore)
        for key, value in store.fetch(None, None, 0, LATEST):
            name, start, _ = split_window_key(key)
            state = json.loads(value)
            found[partition, name.decode(), start] = (state["total"], state["n"])
    return found


def missed_by(late: Sent) -> tuple[int, int, list[int]]:
    """Where a late record was, and the starts of the windows that it missed."""
    facts = {name.removeprefix("__streams.late."): value.decode() for name, value in late[-1]}
    assert (facts["step"], facts["topic"]) == ("windows", "in")
    return int(facts["partition"]), int(facts["offset"]), [int(start) for start in facts["windows"].split(",")]


Given = tuple[str, int, int, int]
"""Key, time (ms), amount and partition of a record."""
Case = tuple[list[Given], list[int]]
"""Records, and before which of them a batch begins."""
records = st.lists(
    st.tuples(st.sampled_from(["a", "b"]), st.integers(0, 60_000), st.integers(-5, 5), st.integers(0, 1)),
    min_size=1,
    max_size=25,
)


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=EXAMPLES)
@given(shared(st.tuples(records, st.lists(st.integers(0, 25), max_size=4))))
@example(
    [
        ([("a", 0, 1, 0), ("a", 30_000, 1, 0), ("a", 9_999, 1, 0), ("b", 20_000, 1, 0)], [2]),
        ([("a", 0, 1, 0), ("a", 14_999, 1, 0), ("b", 9_999, 1, 0), ("b", 15_000, 1, 0), ("a", 1, 1, 0)], []),
        ([("a", 9_000, 1, 0), ("a", 8_999, 1, 0), ("a", 12_000, 1, 0), ("a", 1, 2, 0)], [1, 2, 3]),
        ([("a", 0, 1, 0), ("a", 12_000, 1, 0), ("a", 1, 2, 0)], []),
    ]
)
def test_windows_are_those_of_record_by_record_wherever_batches_begin(
    pipelines: dict[str, Pipeline], kind: str, cases: list[Case]
) -> None:
    """A case has two partitions of its own, and keys that say in which of them they are."""
    first, scale = TIMES.get(kind, (0, 1))
    models = [WindowsModel(KINDS[kind][1]) for _ in cases]
    rows: list[tuple[list[Record], list[int]]] = []
    for number, (each, cuts) in enumerate(cases):
        of_case = []
        for offset, (key, time, amount, partition) in enumerate(each):
            place, time = 2 * number + partition, first + time * scale  # noqa: PLW2901 - in the kind's own scale
            models[number].process(place, key, time, amount)
            of_case.append(record(f"{key}{place}", time, amount, place, offset))
        rows.append((of_case, cuts))
    last: dict[tuple[str, int], tuple[int, int]] = {}
    late: list[tuple[int, int, list[int]]] = []
    with ExitStack() as stack:
        bench = Bench(pipelines[kind], open_tasks(stack, pipelines[kind].topology, 2 * len(cases)))
        for together in shared_batches(rows):
            bench.store(bench.process(*together))
            late += [missed_by(each) for each in bench.producer.records if each[0] == "late"]
            for topic, _, key_bytes, value, *_ in bench.producer.records:
                if topic == "out":
                    assert key_bytes is not None
                    assert value is not None
                    seen = json.loads(value)
                    last[key_bytes[:-8].decode(), int.from_bytes(key_bytes[-8:])] = (seen["total"], seen["n"])
        wanted = {
            (p, f"{key}{p}", start): found[:2] for model in models for (p, key, start), found in model.found.items()
        }
        earliest = {p: task.stores["windows"]._earliest_shown() for p, task in bench.tasks.items()}  # type: ignore[attr-defined]
        assert contents(bench) == {cell: found for cell, found in wanted.items() if cell[2] >= earliest[cell[0]]}
        assert last == {(key, start): found for (_, key, start), found in wanted.items()}
        assert bench.counters.late_records == sum(model.late for model in models)
        assert sorted(late) == sorted(each for model in models for each in model.missed)
        assert {p: task.stores["windows"].latest_timestamp for p, task in bench.tasks.items()} == {  # type: ignore[attr-defined]
            place: models[place // 2].stream_time[place] for place in bench.tasks
        }


@pytest.fixture
def bench(pipelines: dict[str, Pipeline]) -> Any:
    with ExitStack() as stack:
        yield Bench(pipelines["tumbling"], open_tasks(stack, pipelines["tumbling"].topology))


def test_changelog_and_sink_have_kafka_streams_keys_and_lie_where_the_key_does(bench: Bench) -> None:
    bench.process(record("k", 21_000, 4), record("k", 20_500, 3))
    (log,), (out,) = (
        [each for each in bench.producer.records if each[0] == topic] for topic in ("app-windows-changelog", "out")
    )
    start = (20_000).to_bytes(8, "big")
    assert log[1:5] == (0, b"k" + start + bytes(4), b'{"total":7,"n":2,"mean":{"sum":7.0,"count":2}}', 21_000)
    assert out[1:5] == (None, b"k" + start, b'{"total":7,"n":2,"mean":3.5}', 21_000)
    assert bench.producer.placed == {("out", b"k" + start): b"k"}


def test_a_record_without_a_key_moves_no_time_and_one_without_a_value_counts(bench: Bench) -> None:
    bench.store(bench.process(record(None, 90_000), record("k", 21_000, None), record("k", 20_000), record("k", 1_000)))
    assert contents(bench) == {(0, "k", 20_000): (1, 2)}
    assert (bench.counters.records_dropped, bench.counters.late_records) == (1, 1)


def test_a_late_record_changes_nothing_and_is_counted(bench: Bench) -> None:
    bench.store(bench.process(record("k", 25_000), record("k", 9_999)))
    assert bench.counters.late_records == 1
    outcome = bench.process(record("other", 9_000), record("k", 10_000, 5))
    assert bench.counters.late_records == 3
    assert [len(held.updates) for held in outcome.held] == []
    assert [each[0] for each in bench.producer.records] == ["late", "late"]


def test_steps_behind_see_the_windows_bounds_and_may_leave_windows_out(spark: SparkSession) -> None:
    shown = {
        "name": "shown",
        "from": "windows",
        "where": "n > 1",
        "select": {"from": "unix_millis(_window_start)", "to": "unix_millis(_window_end)", "n": "n"},
    }
    pipeline = Pipeline(spark, of(KINDS["tumbling"][0], shown, sinks=({"from": "shown", "topic": "out"},)))
    with ExitStack() as stack:
        bench = Bench(pipeline, open_tasks(stack, pipeline.topology))
        bench.process(record("k", 21_000), record("k", 22_000), record("j", 22_000))
        found = sorted(each[2:4] for each in bench.producer.records if each[0] == "out")
    start = (20_000).to_bytes(8, "big")
    assert found == [(b"j" + start, None), (b"k" + start, b'{"from":20000,"to":30000,"n":2}')]
    assert bench.producer.placed == {("out", b"j" + start): b"j", ("out", b"k" + start): b"k"}


def test_records_of_several_topics_are_taken_in_the_order_of_their_times(spark: SparkSession) -> None:
    sources = [source(schema=SCHEMA, name=name, topic=name) for name in ("a", "b")]
    window = {"tumbling": {"size": "10s"}}
    steps = [
        {"name": "both", "merge": ["a", "b"]},
        {"name": "windows", "from": "both", "window": window, "aggregate": {"n": "count(*)"}, "store": "windows"},
    ]
    pipeline = Pipeline(spark, topology_of(sources, steps, [{"from": "windows", "topic": "out"}]))

    def of_topic(topic: str, time: int) -> Record:
        return Record(b"k", b'{"a":1}', topic, time=time)

    with ExitStack() as stack:
        bench = Bench(pipeline, open_tasks(stack, pipeline.topology))
        # One topic after the other, the second's records would be late.
        bench.process(of_topic("a", 1_000), of_topic("a", 11_000), of_topic("a", 21_000), of_topic("b", 2_000))
        assert bench.counters.late_records == 0
        bench.process(*(of_topic("b", time) for time in (3_000, 30_000, 4_000)), of_topic("a", 31_000))
        assert bench.counters.late_records == 1


def test_a_late_record_goes_to_its_topic_as_it_reached_the_step_with_its_own_headers(spark: SparkSession) -> None:
    more = {"name": "doubled", "from": "in", "select": {"a": "a * 2", "why": "'x'"}, "where": "a > 0"}
    window = {"tumbling": {"size": "10s"}, "late": {"topic": "late"}}
    aggregate = {"name": "windows", "from": "doubled", "window": window, "aggregate": {"n": "count(*)"}, "store": "s"}
    topology = topology_of([source(schema=SCHEMA)], [more, aggregate], [{"from": "windows", "topic": "out"}])
    with ExitStack() as stack:
        bench = Bench(Pipeline(spark, topology), open_tasks(stack, topology))
        bench.store(bench.process(record("k", 30_000)))
        assert not [each for each in bench.producer.records if each[0] == "late"]
        own = Record(b"late", b'{"a": 4}', offset=7, time=19_999, headers=[("own", b"\x00"), ("none", None)])
        bench.process(record(None, 1), record("k", 31_000), record("out", 1_000, amount=-1, offset=6), own)
        (late,) = (each for each in bench.producer.records if each[0] == "late")
        assert late[1:5] == (None, b"late", b'{"a":8,"why":"x"}', 19_999)
        assert late[5] == [
            ("own", b"\x00"),
            ("none", None),
            ("__streams.late.step", b"windows"),
            ("__streams.late.windows", b"10000"),
            ("__streams.late.topic", b"in"),
            ("__streams.late.partition", b"0"),
            ("__streams.late.offset", b"7"),
        ]
        assert bench.counters.late_records == 1
