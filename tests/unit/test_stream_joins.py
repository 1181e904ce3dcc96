"""Joins of streams over real stores: they agree with a model wherever batches begin and whatever is restored."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from itertools import pairwise
from pathlib import Path

import pyarrow as pa
import pytest
from example_counts import examples
from hypothesis import example, given, settings
from hypothesis import strategies as st
from joins_model import JoinModel, Pair
from state_kit import memory_folder

from streams_runtime.api.steps.topology_spec import JoinType
from streams_runtime.batch.columns import LEFT, OUT_TIME, OUT_VALUE, RIGHT, SIDE
from streams_runtime.batch.stage import StageInput
from streams_runtime.kafka.types import TopicPartition
from streams_runtime.processors.joins.stream_stream_join import JoinedStreams, join_streams
from streams_runtime.state.open_store import AnyStore
from streams_runtime.state.serdes import key_serde
from streams_runtime.state.store import KeyValueStore, Updates
from streams_runtime.state.window_keys import split_window_key
from streams_runtime.state.window_store import JoinStore
from streams_runtime.topology.nodes.source_and_sink_nodes import Format
from streams_runtime.topology.nodes.stream_join_node import Side, StreamJoinNode
from streams_runtime.topology.store_specs import Windowing

KINDS: tuple[JoinType, ...] = ("inner", "left", "outer")
HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
TOPICS = {Side.LEFT: "l", Side.RIGHT: "r"}

Given = tuple[Side, str | None, int, str | None]
"""Side, key, time (ms) and value of a record; its topic's next."""


def node(kind: JoinType, before: int = 5, after: int = 5, grace: int = 0) -> StreamJoinNode:
    select = (("v", "r.v"),)
    return StreamJoinNode("j", "l", "r", "r", kind, before, after, grace, select, "spec.topology.steps[0]")


@contextmanager
def stores_of(join: StreamJoinNode, folder: Path, partition: int = 0) -> Iterator[dict[str, AnyStore]]:
    """A partition's stores, open; `folder` decides whether they are new."""
    with ExitStack() as stack:
        made: dict[str, AnyStore] = {}
        for name in join.stores:
            changelog, place = TopicPartition(f"app-{name}-changelog", partition), folder / f"{name}-{partition}"
            if name == join.alone_store:
                made[name] = KeyValueStore(name, changelog, place)
            else:
                interval = Windowing(join.retention).segment_interval
                made[name] = JoinStore(name, changelog, place, join.retention, interval)
            stack.callback(made[name].close)
        yield made


def in_order(records: Sequence[Given]) -> list[tuple[int, Given]]:
    """The records in their turns, each with its offset: by the time that its topic has come to, then by topic."""
    come: dict[Side, int] = {}
    turns = []
    for offset, each in enumerate(records):
        come[each[0]] = max(each[2], come.get(each[0], 0))
        turns.append((come[each[0]], TOPICS[each[0]], offset, each))
    return [(offset, each) for *_, offset, each in sorted(turns, key=lambda turn: turn[:3])]


def rows(records: Sequence[tuple[int, Given]], partition: int = 0) -> pa.Table:
    """A batch as Spark gives it: one side after the other, each in the order of its offsets."""
    lines = sorted(records, key=lambda line: (-line[1][0], line[0]))
    given = [each for _, each in lines]
    return pa.table(
        {
            "_key": pa.array([key for _, key, *_ in given], pa.string()),
            "_timestamp": pa.array([time * 1000 for *_, time, _ in given], pa.timestamp("us", tz="UTC")),
            "_topic": pa.array([TOPICS[side] for side, *_ in given], pa.string()),
            "_partition": pa.array([partition] * len(given), pa.int32()),
            "_offset": pa.array([offset for offset, _ in lines], pa.int64()),
            "_headers": pa.array([[{"key": "o", "value": str(offset).encode()}] for offset, _ in lines], HEADERS),
            OUT_TIME: pa.array([time for *_, time, _ in given], pa.int64()),
            OUT_VALUE: pa.array([value for *_, value in given], pa.string()),
            SIDE: pa.array([int(side) for side, *_ in given], pa.int32()),
        }
    )


def joined(join: StreamJoinNode, table: pa.Table, stores: Mapping[int, Mapping[str, AnyStore]]) -> JoinedStreams:
    """The join of a batch, with the stores as they will be afterwards."""
    found = join_streams(StageInput(join, table), stores, key_serde(Format("string")))
    for store, updates in found.updates:
        store.write(updates, 1)
    return found


def pairs(found: JoinedStreams) -> list[Pair]:
    table = found.results
    times = (time // 1000 for time in table["_timestamp"].cast(pa.int64()).to_pylist())
    assert table["_offset"].to_pylist() == list(range(len(table)))
    return list(zip(table["_key"].to_pylist(), times, table[LEFT].to_pylist(), table[RIGHT].to_pylist(), strict=True))


def of(*records: tuple[str, str | None, int, str | None]) -> list[Given]:
    return [(Side.LEFT if side == "l" else Side.RIGHT, *rest) for side, *rest in records]  # type: ignore[misc]


def test_records_of_one_key_meet_that_lie_in_the_window_and_the_later_time_counts() -> None:
    join = node("inner", before=5, after=2)
    with memory_folder() as folder, stores_of(join, folder) as stores:
        given = of(("l", "a", 100, "L"), ("r", "a", 94, "old"), ("r", "a", 95, "first"), ("r", "a", 102, "last"))
        given += of(("r", "a", 103, "young"), ("r", "b", 100, "other"))
        table = rows(list(enumerate(given)))
        found = joined(join, table, {0: stores})
        assert sorted(pairs(found)) == [("a", 100, "L", "first"), ("a", 102, "L", "last")]


@pytest.mark.parametrize("stored", [5, 15])
def test_the_ends_of_the_window_belong_to_it_also_for_what_the_store_holds(stored: int) -> None:
    join = node("inner")
    with memory_folder() as folder, stores_of(join, folder) as stores:
        joined(join, rows(list(enumerate(of(("r", "a", stored, "R"), ("r", "b", stored, "R"))))), {0: stores})
        found = joined(join, rows([(0, (Side.LEFT, "a", 10, "L"))]), {0: stores})
        assert pairs(found) == [("a", max(stored, 10), "L", "R")]


def test_what_meets_nobody_is_passed_on_once_its_window_and_grace_are_over() -> None:
    join = node("outer", before=5, after=2, grace=3)
    with memory_folder() as folder, stores_of(join, folder) as stores:
        first = joined(join, rows(list(enumerate(of(("l", "a", 10, "L"), ("r", "b", 11, "R"))))), {0: stores})
        assert pairs(first) == []
        second = joined(join, rows(list(enumerate(of(("l", "c", 15, "x"), ("l", "c", 16, "y"))))), {0: stores})
        assert pairs(second) == [("a", 10, "L", None)], "the left's window has ended 2 ms after it, the right's 5"
        third = joined(join, rows(list(enumerate(of(("l", "c", 19, "x"), ("l", "c", 20, "y"))))), {0: stores})
        assert pairs(third) == [("b", 11, None, "R")]
        assert third.results["_headers"].to_pylist() == [None], "no record of the batch brought it"


def test_a_result_has_the_headers_of_the_record_that_brought_it_about() -> None:
    join = node("left")
    with memory_folder() as folder, stores_of(join, folder) as stores:
        joined(join, rows(list(enumerate(of(("l", "a", 10, "L"))))), {0: stores})
        second = joined(join, rows([(7, of(("r", "a", 12, "R"))[0])]), {0: stores})
        assert pairs(second) == [("a", 12, "L", "R")]
        assert second.results["_headers"].to_pylist() == [[{"key": "o", "value": b"7"}]]


def test_keys_of_the_sides_stores_are_those_of_kafka_streams_with_a_number_for_equals() -> None:
    join = node("inner")
    with memory_folder() as folder, stores_of(join, folder) as stores:
        for offset, value in enumerate(["x", "y", "z"]):
            found = joined(join, rows([(offset, (Side.LEFT, "a", 10, value))]), {0: stores})
            (written,) = [updates for store, updates in found.updates if store.name == "j-this-join-store"]
            assert [split_window_key(key) for key in written.keys] == [(b"a", 10, offset)]
            assert written.values == [value.encode()]
        last = joined(join, rows([(3, (Side.RIGHT, "a", 9, "R"))]), {0: stores})
        assert [left for _, _, left, _ in pairs(last)] == ["x", "y", "z"]


def test_a_record_on_both_sides_meets_itself_and_what_came_before_it() -> None:
    join = node("inner")
    with memory_folder() as folder, stores_of(join, folder) as stores:
        both = [
            (offset, (side, "a", 10 + offset, str(offset))) for side in (Side.LEFT, Side.RIGHT) for offset in (0, 1)
        ]
        table = rows(both).set_column(2, "_topic", pa.array(["t"] * 4))
        found = pairs(joined(join, table, {0: stores}))
        assert [(left, right) for *_, left, right in found] == [("0", "0"), ("1", "0"), ("0", "1"), ("1", "1")]


def test_what_an_outer_join_has_kept_of_the_right_side_is_not_passed_on_by_a_left_join() -> None:
    with memory_folder() as folder, stores_of(node("outer"), folder) as stores:
        joined(node("outer"), rows(list(enumerate(of(("l", "a", 10, "L"), ("r", "b", 10, "R"))))), {0: stores})
        found = joined(node("left"), rows([(2, (Side.RIGHT, "c", 90, "x"))]), {0: stores})
        assert pairs(found) == [("a", 10, "L", None)]
        shared = stores["j-shared-join-store"]
        assert isinstance(shared, KeyValueStore)
        assert len(list(shared.scan(None, None))) == 1, "stream time is all that is left"


def test_partitions_know_nothing_of_each_other() -> None:
    join = node("left")
    with memory_folder() as folder, stores_of(join, folder) as zero, stores_of(join, folder, 1) as one:
        one_side = rows(list(enumerate(of(("l", "a", 10, "L")))))
        table = pa.concat_tables([one_side, rows(list(enumerate(of(("r", "a", 10, "R"), ("r", "b", 99, "R")))), 1)])
        found = joined(join, table, {0: zero, 1: one})
        assert pairs(found) == []
        assert {(store.name, store.partition) for store, _ in found.updates} == {
            ("j-this-join-store", 0),
            ("j-shared-join-store", 0),
            ("j-other-join-store", 1),
            ("j-shared-join-store", 1),
        }


some_records = st.lists(
    st.tuples(
        st.sampled_from([Side.LEFT, Side.RIGHT]),
        st.sampled_from(["a", "a", "b", "ab", None]),
        st.integers(0, 40),
        st.one_of(st.none(), *[st.sampled_from(["x", "y"])] * 4),
    ),
    min_size=1,
    max_size=30,
)
lengths = st.tuples(st.integers(0, 8), st.integers(0, 8), st.integers(0, 6)).filter(lambda each: sum(each) > 0)
cuts = st.lists(st.integers(0, 30), max_size=6)


@settings(max_examples=examples(150))
@given(st.sampled_from(KINDS), lengths, some_records, cuts, st.booleans())
@example(
    "left", (5, 5, 0), of(("l", "a", 0, "x"), ("r", None, 40, "y"), ("r", "b", 3, "x"), ("r", "b", 41, "x")), [2], False
)
@example(
    "outer",
    (5, 5, 5),
    of(("l", "a", 0, "x"), ("r", "b", 9, "y"), ("l", "a", 0, "y"), ("l", "c", 20, "x")),
    [1, 3],
    True,
)
@example(
    "outer",
    (0, 3, 0),
    of(("l", "a", 9, "x"), ("r", "a", 9, "x"), ("l", "a", 6, "y"), ("l", "a", 6, "y")),
    [1, 2, 3],
    True,
)
def test_a_join_agrees_with_the_model_wherever_batches_begin_and_stores_are_restored(
    kind: JoinType, sizes: tuple[int, int, int], records: list[Given], cuts: list[int], restored: bool
) -> None:
    join, ordered = node(kind, *sizes), in_order(records)
    model = JoinModel(join)
    for _, each in ordered:
        model.process(*each)
    found: list[Pair] = []
    late = dropped = 0
    changelogs: dict[str, dict[bytes, tuple[bytes | None, int]]] = {name: {} for name in join.stores}
    with memory_folder() as folder, ExitStack() as stack:
        stores = stack.enter_context(stores_of(join, folder / "0"))
        for number, (first, end) in enumerate(
            pairwise(sorted({0, len(ordered), *(c for c in cuts if c < len(ordered))}))
        ):
            batch = joined(join, rows(ordered[first:end]), {0: stores})
            found += pairs(batch)
            late, dropped = late + batch.late, dropped + batch.dropped
            if restored:
                for store, updates in batch.updates:
                    changelogs[store.name] |= {
                        key: (value, time)
                        for key, value, time in zip(updates.keys, updates.values, updates.timestamps, strict=True)
                    }
                stores = stack.enter_context(stores_of(join, folder / f"{number + 1}"))
                for name, lines in changelogs.items():
                    values = list(lines.values())
                    stores[name].write(Updates(list(lines), [v for v, _ in values], [t for _, t in values]), 1)
    assert found == model.results
    assert (late, dropped) == (model.late, model.dropped)


@pytest.mark.parametrize("kind", KINDS)
def test_nothing_of_what_has_met_another_or_was_passed_on_is_left_to_pass_on(kind: JoinType) -> None:
    join = node(kind)
    with memory_folder() as folder, stores_of(join, folder) as stores:
        for offset, each in enumerate(
            of(("l", "a", 1, "x"), ("r", "a", 2, "y"), ("l", "b", 3, "x"), ("r", "c", 99, "y"))
        ):
            joined(join, rows([(offset, each)]), {0: stores})
        if join.alone_store is None:
            return
        shared = stores[join.alone_store]
        assert isinstance(shared, KeyValueStore)
        held = [key[9:] for key, _ in shared.scan(None, None) if len(key) > 1]
        assert held == ([b"c"] if kind == "outer" else [])
