"""Aggregates by sliding windows over real stores: what windows there are by definition, wherever batches begin."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from itertools import pairwise

import pyarrow as pa
import pytest
from example_counts import examples
from hypothesis import example, given, settings
from hypothesis import strategies as st
from state_kit import memory_folder

from streams_runtime.batch.columns import ORDER, OUT_RECORDS
from streams_runtime.batch.stage import StoreBatch
from streams_runtime.errors import StreamsException
from streams_runtime.kafka.types import TopicPartition
from streams_runtime.processors.aggregates import sliding_windows
from streams_runtime.processors.aggregates.grouped_parts import put_together
from streams_runtime.processors.aggregates.sliding_windows import merged_sliding
from streams_runtime.processors.aggregates.store_updates import Merged
from streams_runtime.state.aggregates.aggregate_state import AggregateState
from streams_runtime.state.window_keys import LATEST, split_window_key
from streams_runtime.state.window_store import WindowStore
from streams_runtime.topology.nodes.aggregate_node import Aggregate, AggregateNode
from streams_runtime.topology.nodes.window_kinds import SlidingWindows
from streams_runtime.topology.store_specs import Windowing

FUNCTIONS = {"total": "sum", "n": "count", "least": "min", "newest": "last"}
AGGREGATES = tuple(Aggregate(name, function, "x", f"steps[0].aggregate.{name}") for name, function in FUNCTIONS.items())
FOREVER = SlidingWindows(10, 1_000_000, 2_000_000)

Row = tuple[int, str, int, int]
"""Partition, key, number and time (ms) of a record."""
Cell = tuple[int, str, int]
"""Partition, key and start of a window."""
Shown = tuple[int, int, int, int]
"""What is seen of a window: the aggregates."""


class Tasks:
    """The stores of two partitions, and what batches make of them."""

    def __init__(self, windows: SlidingWindows, stack: ExitStack) -> None:
        self.node = AggregateNode("step", "in", AGGREGATES, "store", "steps[0]", windows)
        self.state = AggregateState(AGGREGATES)
        self.state.bind(pa.schema([(column.name, pa.int64()) for column in self.state.columns]))
        kept = Windowing(windows.retention, windows.size)
        folder = stack.enter_context(memory_folder())
        self.stores = {
            number: WindowStore("store", TopicPartition("log", number), folder / str(number), kept.retention, 60_000)
            for number in range(2)
        }
        for store in self.stores.values():
            stack.callback(store.close)
        self.late = self.records = 0

    def batch(self, rows: Sequence[Row]) -> Merged:
        """Process the records as one batch, and store what they come to."""
        made = merged_sliding(self.state, self._keyed(rows), self.stores)
        for partition, updates in made.updates.items():
            self.stores[partition].write(updates, None)
        self.late += made.late
        self.records += len(rows)
        return made

    def shown(self) -> dict[Cell, Shown]:
        found = {}
        for partition, store in self.stores.items():
            for data, value in store.fetch(None, None, 0, LATEST):
                key, start, _ = split_window_key(data)
                seen = self.state.finish_value(value)
                found[partition, key.decode(), start] = (seen["total"], seen["n"], seen["least"], seen["newest"])
        return found

    def _keyed(self, rows: Sequence[Row]) -> StoreBatch:
        """What Spark gives for a batch: each record, in no order."""
        numbered = [(*row, self.records + turn) for turn, row in enumerate(rows)][::-1]
        partitions, keys, numbers, times, turns = zip(*numbered, strict=True) if rows else [()] * 5
        columns = {
            "total": numbers,
            "n": [1] * len(rows),
            "least": numbers,
            "newest.at": turns,
            "newest.value": numbers,
        }
        return StoreBatch(
            self.node,
            pa.chunked_array([pa.array(partitions, pa.int32())]),
            pa.chunked_array([pa.array(keys, pa.string())]),
            pa.chunked_array([pa.array(times, pa.int64())]),
            pa.table({name: pa.array(values, pa.int64()) for name, values in columns.items()}),
            pa.table({ORDER: pa.array(turns, pa.int64()), OUT_RECORDS: pa.array([1] * len(rows), pa.int64())}),
        )


@contextmanager
def tasks(windows: SlidingWindows = FOREVER) -> Iterator[Tasks]:
    with ExitStack() as stack:
        yield Tasks(windows, stack)


def by_definition(rows: Sequence[Row], size: int) -> dict[Cell, Shown]:
    """Every window that ends at a record, the first one for those that are too young, and each right after a record."""
    found = {}
    for partition, key in {row[:2] for row in rows}:
        mine = [row[2:] for row in rows if row[:2] == (partition, key)]
        starts = {max(time - size, 0) for _, time in mine} | {time + 1 for _, time in mine}
        for start in starts:
            xs = [x for x, time in mine if start <= time <= start + size]
            if xs:
                found[partition, key, start] = (sum(xs), len(xs), min(xs), xs[-1])
    return found


def in_batches(made: Tasks, rows: Sequence[Row], cuts: Sequence[int]) -> None:
    bounds = sorted({0, len(rows), *(cut % (len(rows) + 1) for cut in cuts)})
    for first, end in pairwise(bounds):
        made.batch(rows[first:end])


ROWS = st.lists(
    st.tuples(st.integers(0, 1), st.sampled_from("ab"), st.integers(-9, 9), st.integers(0, 40)), min_size=1, max_size=30
)
CUTS = st.lists(st.integers(0, 30), max_size=4)


@settings(max_examples=examples(60), deadline=None)
@given(ROWS, CUTS)
@example(
    [(0, "a", 1, 20), (0, "a", 2, 31), (0, "a", 3, 31)], []
)  # 21 to 31 is both the one's right and the other's own
@example([(0, "a", 1, 3), (0, "a", 2, 1), (0, "a", 3, 10), (0, "a", 4, 9)], [2])
def test_what_is_in_time_is_in_every_window_around_it_in_whatever_order_it_comes(
    rows: list[Row], cuts: list[int]
) -> None:
    with tasks() as made:
        in_batches(made, rows, cuts)
        assert made.shown() == by_definition(rows, FOREVER.size)
        assert made.late == 0


@pytest.mark.parametrize(
    "windows", [SlidingWindows(4, 0, 8), SlidingWindows(10, 3, 23), SlidingWindows(7, 5, 1_000)], ids=repr
)
@settings(max_examples=examples(40), deadline=None)
@given(ROWS, CUTS, st.sampled_from([1, 7, 1_000_000]))
@example(
    [(0, key, 1, time) for key, time in (("a", 16), ("b", 19), ("b", 20), ("a", 20))], [], 7
)  # b's hides a's first
def test_late_records_and_expired_windows_do_not_depend_on_where_batches_begin(
    windows: SlidingWindows, rows: list[Row], cuts: list[int], most: int
) -> None:
    with pytest.MonkeyPatch.context() as patch, tasks(windows) as one_by_one, tasks(windows) as together:
        in_batches(one_by_one, rows, range(len(rows)))
        patch.setattr(sliding_windows, "_MOST_PARTS", most)
        in_batches(together, rows, cuts)
        assert together.shown() == one_by_one.shown()
        assert together.late == one_by_one.late
        assert {p: each.latest_timestamp for p, each in together.stores.items()} == {
            p: max((time for q, _, _, time in rows if p == q), default=-1) for p in (0, 1)
        }


def test_a_record_is_late_for_each_window_that_has_closed_and_as_a_whole_if_all_have() -> None:
    with tasks(SlidingWindows(10, 5, 1_000)) as made:
        made.batch([(0, "a", 1, 100), (0, "b", 1, 60)])
        assert made.late == 1, "60 and its right window have closed by 95"
        made.batch([(0, "b", 1, 90)])
        assert (made.late, made.shown()) == (2, {(0, "a", 90): (1, 1, 1, 1)}), "none of its windows has been there"
        made.batch([(0, "b", 2, 95)])
        assert made.shown()[0, "b", 85] == (2, 1, 2, 2), "a window takes records in the moment in which it closes"
        made.batch([(1, "b", 3, 20)])
        assert made.late == 2, "stream time is that of the partition"


def test_a_window_takes_nothing_a_millisecond_after_it_has_closed() -> None:
    with tasks(SlidingWindows(10, 5, 1_000)) as made:
        made.batch([(0, "a", 1, 100), (0, "b", 1, 95), (0, "c", 1, 94)])
        assert (0, "b", 85) in made.shown()
        assert (0, "c", 84) not in made.shown()
        assert made.late == 1


def test_windows_are_passed_on_in_the_order_in_which_kafka_streams_writes_them() -> None:
    with tasks() as made:
        made.batch([(0, "a", 1, 100), (0, "a", 2, 104), (0, "a", 3, 108)])
        rows = made.batch([(0, "a", 5, 102)]).rows
        assert list(zip(rows.starts.to_pylist(), rows.columns["total"].to_pylist(), strict=True)) == [  # type: ignore[union-attr]
            (101, 10),
            (98, 11),
            (94, 8),
            (92, 6),
            (103, 5),
        ]
        assert rows.ends.to_pylist() == [111, 108, 104, 102, 113]  # type: ignore[union-attr]
        assert rows.timestamps.to_pylist() == [108, 108, 104, 102, 108]


def test_what_is_written_has_the_key_and_the_largest_time_of_its_window() -> None:
    with tasks() as made:
        updates = made.batch([(1, "k", 4, 30), (1, "k", 3, 25)]).updates[1]
        found = {
            split_window_key(key)[1]: json.loads(value or b"")["total"]
            for key, value in zip(updates.keys, updates.values, strict=True)
        }
        assert found == {20: 7, 15: 3, 26: 4}
        assert dict(zip(map(split_window_key, updates.keys), updates.timestamps, strict=True)) == {
            (b"k", 20, 0): 30,
            (b"k", 15, 0): 25,
            (b"k", 26, 0): 30,
        }


def test_a_total_that_leaves_its_range_names_the_field() -> None:
    with tasks() as made, pytest.raises(StreamsException, match=r"steps\[0\]\.aggregate\.total.*BIGINT"):
        made.batch([(0, "a", 2**63 - 1, 20), (0, "a", 1, 21)])


@given(st.lists(st.lists(st.integers(0, 9), min_size=1, max_size=9), max_size=6))
def test_parts_are_put_together_in_their_order(parts: list[list[int]]) -> None:
    rows = pa.table({"x": [[number] for number in range(10)]})

    def together(one: pa.Table, other: pa.Table) -> pa.Table:
        columns = (each["x"].to_pylist() for each in (one, other))
        return pa.table({"x": [x + y for x, y in zip(*columns, strict=True)]})

    assert put_together(rows, parts, together)["x"].to_pylist() == parts
