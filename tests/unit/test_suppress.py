"""Changes that wait for later ones of their key: as in Kafka Streams' buffer, wherever batches and restarts are."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from itertools import chain, pairwise, product
from pathlib import Path
from typing import Any, cast

import pyarrow as pa
import pytest
from example_counts import examples
from hypothesis import example, given, settings
from hypothesis import strategies as st
from refused_applications import application, held_back, total
from state_kit import memory_folder
from suppress_model import ModelFull, SuppressModel
from zone_days import local

from streams_runtime.api import parse_application
from streams_runtime.batch.columns import (
    ELEMENT,
    FROM_OFFSET,
    FROM_TOPIC,
    NULL_VALUE,
    ORDER_TIME,
    OUT_TIME,
    OUT_VALUE,
    WINDOW_END,
    WINDOW_START,
)
from streams_runtime.batch.rows import moments
from streams_runtime.batch.stage import StageInput
from streams_runtime.errors import ProcessorStateException, StreamsException
from streams_runtime.kafka.types import TopicPartition
from streams_runtime.processors.contract import ApplyContext
from streams_runtime.processors.registry import apply_of
from streams_runtime.processors.tables.change_buffer import BufferFull, ChangeBuffer
from streams_runtime.processors.tables.suppress_changes import Suppressed, suppressed
from streams_runtime.state.open_store import open_store
from streams_runtime.state.serdes import Serde, key_serde
from streams_runtime.state.store import Updates
from streams_runtime.state.suppress_store import (
    STREAM_TIME,
    Change,
    SuppressStore,
    Waiting,
    change_key,
    packed,
    stream_time_value,
    unpacked,
)
from streams_runtime.topology.declared.build_topology import build_topology
from streams_runtime.topology.nodes.source_and_sink_nodes import Format
from streams_runtime.topology.nodes.suppress_node import SuppressNode
from streams_runtime.topology.nodes.window_kinds import SessionWindows, TimeWindows, Windows

Given = tuple[str, int, str | None]
"""Key, time (ms) and value of a change; its topic's next offset."""
Row = tuple[int, Given]
KEYS = key_serde(Format("string"))


def node(
    within: int = 10, records: int | None = None, size: int | None = None, full: Any = "emitEarly"
) -> SuppressNode:
    return SuppressNode("calm", "calm-suppress", within, records, size, full, "spec.topology.steps[1]")


@contextmanager
def store_of(folder: Path, partition: int = 0) -> Iterator[SuppressStore]:
    (spec,) = node().store_specs("app")
    made = open_store(spec, partition, folder / f"{partition}")
    assert isinstance(made, SuppressStore)
    assert made.changelog == TopicPartition("app-calm-suppress-store-changelog", partition)
    try:
        yield made
    finally:
        made.close()


def rows(changes: Sequence[Row], partition: int = 0, topic: str = "t", headers: Any = None) -> pa.Table:
    """A batch as Spark gives it (pipeline.kinds.suppress_kind)."""
    times = pa.array([time for _, (_, time, _) in changes], pa.int64())
    offsets = pa.array([offset for offset, _ in changes], pa.int64())
    topics = pa.array([topic] * len(changes), pa.string())
    kind = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
    return pa.table(
        {
            "_key": pa.array([key for _, (key, _, _) in changes], pa.string()),
            "_timestamp": moments(times),
            "_topic": topics,
            "_partition": pa.array([partition] * len(changes), pa.int32()),
            "_offset": offsets,
            "_headers": pa.array([headers] * len(changes), kind),
            OUT_TIME: times,
            OUT_VALUE: pa.array([value for _, (_, _, value) in changes], pa.string()),
            FROM_TOPIC: topics,
            FROM_OFFSET: offsets,
        }
    )


def numbered(*changes: Given) -> list[Row]:
    return list(enumerate(changes))


def process(
    suppress: SuppressNode,
    batch: pa.Table,
    stores: Mapping[int, SuppressStore],
    windows: Windows | None = None,
) -> Suppressed:
    """A batch whose updates are written, as after its commit."""
    found = suppressed(suppress, batch, dict(stores), KEYS, windows)
    for store, updates in found.updates:
        store.write(updates, None)
        assert isinstance(store, SuppressStore)
        assert store.waiting() == Waiting.of(store.scan(None, None))
    return found


def passed(found: Suppressed) -> list[tuple[str, int, str | None]]:
    columns = (found.rows[name].to_pylist() for name in ("_key", "_offset", OUT_VALUE))
    return list(zip(*columns, strict=True))


def test_the_last_change_of_a_key_goes_on_once_its_first_one_has_waited() -> None:
    with memory_folder() as folder, store_of(folder) as store:
        first = process(node(10), rows([(0, ("a", 100, "1")), (1, ("a", 105, "2")), (2, ("b", 109, "3"))]), {0: store})
        assert passed(first) == []
        second = process(node(10), rows([(3, ("c", 110, "4"))]), {0: store})
        assert passed(second) == [("a", 1, "2")]
        assert second.rows["_timestamp"].cast(pa.int64()).to_pylist() == [105_000]
        assert (second.rows[FROM_OFFSET].to_pylist(), second.rows[ELEMENT].to_pylist()) == ([3], [[0]])
        assert second.rows[ORDER_TIME].cast(pa.int64()).to_pylist() == [110_000]


def test_a_deletion_goes_on_as_one_with_its_headers() -> None:
    headers = [{"key": "h", "value": b"x"}, {"key": "h", "value": None}]
    with memory_folder() as folder, store_of(folder) as store:
        process(node(10), rows([(0, ("a", 100, "1")), (1, ("a", 101, None))], headers=headers), {0: store})
        found = process(node(10), rows([(2, ("b", 110, "1"))]), {0: store}).rows
        assert (found["_key"].to_pylist(), found[NULL_VALUE].to_pylist()) == (["a"], [True])
        assert found["_headers"].to_pylist() == [headers]


def test_changes_of_one_time_go_on_in_the_order_of_their_keys_and_older_ones_first() -> None:
    with memory_folder() as folder, store_of(folder) as store:
        batch = rows(numbered(("b", 100, "1"), ("a", 100, "2"), ("c", 99, "3"), ("d", 110, "4")))
        assert [key for key, *_ in passed(process(node(10), batch, {0: store}))] == ["c", "a", "b"]


def test_a_change_that_comes_late_goes_on_at_once() -> None:
    with memory_folder() as folder, store_of(folder) as store:
        batch = rows(numbered(("a", 100, "1"), ("b", 90, "2"), ("b", 91, "3")))
        assert passed(process(node(10), batch, {0: store})) == [("b", 1, "2")]


def test_what_goes_on_has_its_turn_by_the_time_that_the_topic_has_come_to() -> None:
    with memory_folder() as folder, store_of(folder) as store:
        batch = rows(numbered(("a", 100, "1"), ("b", 120, "2"), ("c", 90, "3")))
        found = process(node(10), batch, {0: store})
        assert passed(found) == [("a", 0, "1"), ("c", 2, "3")]
        assert found.rows[ORDER_TIME].cast(pa.int64()).to_pylist() == [120_000, 120_000]
        assert found.rows[FROM_OFFSET].to_pylist() == [1, 2]


def test_stream_time_stays_when_all_that_waited_has_gone_on_and_the_store_is_opened_again() -> None:
    with memory_folder() as folder:
        with store_of(folder) as store:
            process(node(10), rows([(0, ("a", 100, "1"))]), {0: store})
            assert passed(process(node(10), rows([(1, ("a", 120, "2"))]), {0: store})) == [("a", 1, "2")]
            assert (store.waiting().order, store.waiting().stream_time) == ([], 120)
        with store_of(folder) as store:
            assert passed(process(node(10), rows([(2, ("b", 110, "3"))]), {0: store})) == [("b", 2, "3")]


def test_partitions_know_nothing_of_each_other() -> None:
    with memory_folder() as folder, store_of(folder) as zero, store_of(folder, 1) as one:
        batch = pa.concat_tables([rows([(0, ("a", 100, "1"))]), rows([(7, ("b", 200, "2")), (8, ("c", 210, "3"))], 1)])
        found = process(node(10), batch, {0: zero, 1: one})
        assert passed(found) == [("b", 7, "2")]
        assert found.rows["_partition"].to_pylist() == [1]
        assert [each.partition for each, _ in found.updates] == [0, 1]


def test_a_change_that_comes_and_goes_within_a_batch_leaves_nothing_but_stream_time() -> None:
    with memory_folder() as folder, store_of(folder) as store:
        ((_, updates),) = process(
            node(10, records=1), rows([(0, ("a", 100, "1")), (1, ("b", 99, "2"))]), {0: store}
        ).updates
        assert updates.keys == [change_key(b"a"), STREAM_TIME]
        assert updates.values[1] == stream_time_value(100)
        assert updates.timestamps == [100, 100]


def test_a_full_buffer_that_may_not_emit_early_ends_the_application_with_its_numbers() -> None:
    suppress = node(10, records=1, size=500, full="fail")
    with memory_folder() as folder, store_of(folder) as store:
        process(suppress, rows([(0, ("a", 100, "1"))]), {0: store})
        with pytest.raises(
            StreamsException, match=r"calm, partition 0, is full: 2 keys of at most 1 have.*at most 500\."
        ):
            process(suppress, rows([(1, ("b", 101, "1"))]), {0: store})
        assert list(store.waiting().first) == [b"a"]
        # What goes on in its time makes room.
        assert passed(process(suppress, rows([(1, ("b", 110, "1"))]), {0: store})) == [("a", 0, "1")]


MINUTES = TimeWindows(60_000, 60_000, 0, 60_000, False)
SESSIONS = SessionWindows(10, 0, 10, False)
DAYS = TimeWindows(86_400_000, 86_400_000, 0, 90_000_000, timezone="Europe/Berlin")
SPRING = [local("Europe/Berlin", f"2024-{day}") for day in ("03-31", "04-01", "04-02")]
"""A day of 23 hours and one of 24."""


@pytest.mark.parametrize(
    ("windows", "first", "second"),
    [
        (MINUTES, (0, 60_000), (60_000, 120_000)),
        (SESSIONS, (0, 60_000), (60_000, 120_000)),
        (DAYS, SPRING[:2], SPRING[1:]),
    ],
    ids=["windows", "sessions", "days"],
)
def test_windows_wait_each_for_itself_and_come_back_with_their_times(
    windows: Windows, first: Sequence[int], second: Sequence[int]
) -> None:
    def batch(*changes: Row, bounds: Sequence[int]) -> pa.Table:
        made = rows(changes)
        for name, at in zip((WINDOW_START, WINDOW_END), bounds, strict=True):
            made = made.append_column(name, pa.chunked_array([moments(pa.array([at] * len(changes), pa.int64()))]))
        return made

    with memory_folder() as folder, store_of(folder) as store:
        both = [
            batch((0, ("a", 100, "1")), bounds=first),
            batch((1, ("a", 70_000, "2")), bounds=second),
        ]
        process(node(100_000), pa.concat_tables(both), {0: store}, windows)
        last = batch((2, ("z", 200_000, "3")), bounds=second)
        found = process(node(100_000), last, {0: store}, windows).rows
        assert list(zip(found["_key"].to_pylist(), found[OUT_VALUE].to_pylist(), strict=True)) == [
            ("a", "1"),
            ("a", "2"),
        ]
        assert found[WINDOW_START].cast(pa.int64()).to_pylist() == [first[0] * 1000, second[0] * 1000]
        assert found[WINDOW_END].cast(pa.int64()).to_pylist() == [first[1] * 1000, second[1] * 1000]


def test_every_short_history_gives_what_kafka_streams_buffer_gives() -> None:
    """All histories of up to four changes of two keys at three times, in all ways to cut them into two batches."""
    changes = list(product((b"a", b"b"), (0, 1, 2)))
    bounds: list[tuple[int | None, int | None, bool]] = [
        (None, None, True),
        (1, None, True),
        (1, None, False),
        (None, 21, True),
    ]
    for within, (records, size, emits) in product((1, 2), bounds):
        suppress = node(within, records, size, "emitEarly" if emits else "fail")
        for history in chain.from_iterable(product(changes, repeat=length) for length in range(1, 5)):
            expected = by_model(SuppressModel(within, records, size, emits), history)
            for cut in range(len(history)):
                assert in_batches(suppress, history, cut) == expected, (suppress, history, cut)


def by_model(
    model: SuppressModel[bytes], history: Sequence[tuple[bytes, int]]
) -> list[list[tuple[bytes, bytes]] | None]:
    found: list[list[tuple[bytes, bytes]] | None] = []
    for number, (key, time) in enumerate(history):
        try:
            found.append(list(model.process(key, time, change_number(number))))
        except ModelFull:
            return [*found, None]
    return found


def change_number(number: int) -> bytes:
    """Changes of several lengths, so that replacing one changes the bytes that wait."""
    return bytes([number]) * (1 + number % 3)


def in_batches(
    suppress: SuppressNode, history: Sequence[tuple[bytes, int]], cut: int
) -> list[list[tuple[bytes, bytes]] | None]:
    """What goes on with each change, over a store that is no more than a mapping; None: the buffer is full."""
    held: dict[bytes, bytes | None] = {}
    found: list[list[tuple[bytes, bytes]] | None] = []
    for first, end in pairwise(sorted({0, cut, len(history)})):
        waiting = Waiting.of((key, value) for key, value in held.items() if value is not None)
        buffer = ChangeBuffer(suppress, waiting)
        for number, (key, time) in enumerate(history[first:end], first):
            try:
                gone = list(buffer.put(key, time, change_number(number)))
            except BufferFull:
                return [*found, None]
            found.append([(each.key, each.change or (held[change_key(each.key)] or b"")[8:]) for each in gone])
        updates = buffer.updates()
        held |= dict(zip(updates.keys, updates.values, strict=True))
    return found


given_changes = st.lists(
    st.tuples(st.sampled_from(["a", "ab", "b", "c", ""]), st.integers(0, 60), st.sampled_from(["1", "{}", None])),
    min_size=1,
    max_size=40,
)


@settings(max_examples=examples(150))
@given(
    st.integers(1, 20),
    st.one_of(st.none(), st.integers(1, 4)),
    st.one_of(st.none(), st.integers(30, 250)),
    given_changes,
    st.lists(st.integers(0, 40), max_size=6),
    st.booleans(),
)
@example(
    5, None, None, [("a", 10, "1"), ("a", 11, "2"), ("b", 15, "1"), ("a", 3, "3"), ("b", 20, None)], [1, 2, 3, 4], True
)
@example(20, 1, None, [("a", 10, "1"), ("b", 9, "2"), ("a", 9, "3"), ("b", 9, "4")], [1, 2, 3], True)
def test_a_suppress_agrees_with_the_model_wherever_batches_begin_and_stores_are_restored(
    within: int, records: int | None, size: int | None, changes: list[Given], cuts: list[int], restored: bool
) -> None:
    suppress, model, history = (
        node(within, records, size),
        SuppressModel[bytes](within, records, size),
        numbered(*changes),
    )
    expected = []
    for offset, (key, time, value) in history:
        change = packed(Change(time, "t", offset, None, None if value is None else value.encode()))
        expected += [
            (offset, gone.decode(), unpacked(data)) for gone, data in model.process(key.encode(), time, change)
        ]
    found: list[tuple[int, str, Change]] = []
    changelog: dict[bytes, tuple[bytes | None, int]] = {}
    with memory_folder() as folder, ExitStack() as stack:
        store = stack.enter_context(store_of(folder / "0"))
        for number, (first, end) in enumerate(
            pairwise(sorted({0, len(changes), *(c for c in cuts if c < len(changes))}))
        ):
            batch = process(suppress, rows(history[first:end]), {0: store})
            found += gone_on(batch)
            for _, updates in batch.updates:
                lines = zip(updates.keys, updates.values, updates.timestamps, strict=True)
                changelog |= {key: (value, time) for key, value, time in lines}
            if restored:
                store = stack.enter_context(store_of(folder / f"{number + 1}"))
                values = list(changelog.values())
                store.write(Updates(list(changelog), [value for value, _ in values], [time for _, time in values]), 1)
    assert found == expected


def gone_on(found: Suppressed) -> list[tuple[int, str, Change]]:
    """The offset of the change with which each one goes on, its key, and itself."""
    table = found.rows
    values = [None if each is None else each.encode() for each in table[OUT_VALUE].to_pylist()]
    times = [each // 1000 for each in table["_timestamp"].cast(pa.int64()).to_pylist()]
    columns = [times, *(table[name].to_pylist() for name in ("_topic", "_offset", "_headers")), values]
    changes = [Change(*each) for each in zip(*columns, strict=True)]
    return list(zip(table[FROM_OFFSET].to_pylist(), table["_key"].to_pylist(), changes, strict=True))


@given(
    st.integers(-1, 2**53),
    st.text(max_size=5),
    st.integers(0, 2**53),
    st.one_of(
        st.none(),
        st.lists(st.fixed_dictionaries({"key": st.text(max_size=3), "value": st.none() | st.binary(max_size=3)})),
    ),
    st.none() | st.binary(max_size=9),
)
def test_a_change_comes_out_of_the_store_as_it_went_in(
    time: int, topic: str, offset: int, headers: Any, value: bytes | None
) -> None:
    change = Change(time, topic, offset, headers, value)
    assert unpacked(packed(change)) == change


def test_what_no_suppress_has_written_is_refused_before_anything_of_it_goes_on() -> None:
    with memory_folder() as folder, store_of(folder) as store:
        store.write(Updates([b"a"], [b"1"], [5]), None)
        with pytest.raises(ProcessorStateException, match=r"a key b'a' in the store of a suppress.*another name"):
            process(node(10), rows([(0, ("a", 100, "1"))]), {0: store})


def test_an_index_follows_writes_that_take_changes_from_anywhere() -> None:
    """A changelog that another instance went on with deletes and moves what is in the middle of the order."""
    entry = {key: change_key(key) for key in (b"a", b"b", b"c", b"d")}

    def at(time: int) -> bytes:
        return time.to_bytes(8, "big") + b"x"

    held: dict[bytes, bytes | None] = {entry[b"a"]: at(1), entry[b"b"]: at(2), entry[b"c"]: at(3)}
    waiting = Waiting.of((key, value) for key, value in held.items() if value is not None)
    written = {entry[b"b"]: None, entry[b"c"]: at(9), entry[b"d"]: at(0), STREAM_TIME: stream_time_value(9)}
    waiting.take(written.items())
    held |= written
    assert waiting == Waiting.of((key, value) for key, value in held.items() if value is not None)
    assert waiting.order == [(0, b"d"), (1, b"a"), (9, b"c")]


def test_a_store_says_how_much_waits_once_a_batch_has_come() -> None:
    with memory_folder() as folder:
        with store_of(folder) as store:
            process(node(10), rows(numbered(("a", 100, "1"), ("b", 101, "22"), ("a", 102, None))), {0: store})
            size = store.waiting().size
            assert size > 0
            found = store.properties()
            assert (found["suppression-buffer-count"], found["suppression-buffer-size"]) == (2, size)
            process(node(10), rows([(3, ("c", 200, "1"))]), {0: store})
            assert store.properties()["suppression-buffer-count"] == 1
        with store_of(folder) as store:
            assert not any(name.startswith("suppression") for name in store.properties())
            process(node(10), rows([(4, ("c", 200, "1"))]), {0: store})
            assert store.properties()["suppression-buffer-count"] == 1


def test_a_stage_finds_its_stores_and_the_windows_in_its_keys() -> None:
    """Over sessions: two of a key's wait side by side, and come back with their ends."""
    sessions = total(name="n", window={"session": {"gap": "10s"}})
    topology = build_topology(parse_application(application(sessions, held_back({"within": "5s"}, from_="n"))))
    sub, spec = topology.store("s-suppress-store")
    suppress = topology.node("s")
    assert isinstance(suppress, SuppressNode)

    class Spark:
        def key_serde(self, node: str) -> Serde:
            assert node == "s"
            return KEYS

    batch = rows(numbered(("a", 1_000, "1"), ("a", 40_000, "2"), ("b", 45_000, "3")))
    for name, at in ((WINDOW_START, [0, 39_000, 45_000]), (WINDOW_END, [1_000, 40_000, 45_000])):
        batch = batch.append_column(name, pa.chunked_array([moments(pa.array(at, pa.int64()))]))
    with memory_folder() as folder:
        store = open_store(spec, 0, folder / "0")
        try:
            context = ApplyContext(cast(Any, Spark()), sub, {0: {spec.name: store}}, {}, {}, {}, {})
            given_rows = StageInput(suppress, batch)
            applied = apply_of(suppress)(given_rows, context)
            assert applied.rows is not None
            assert applied.rows[OUT_VALUE].to_pylist() == ["1", "2"]
            assert applied.rows[WINDOW_END].cast(pa.int64()).to_pylist() == [1_000_000, 40_000_000]
            ((found, updates),) = applied.updates
            assert found is store
            assert len(updates) == 2
        finally:
            store.close()
