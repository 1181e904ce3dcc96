"""Whose turn it is, and aggregates that are told change by change: in whole columns what comes record by record."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import pyarrow as pa
from example_counts import examples
from hypothesis import example, given, settings
from hypothesis import strategies as st

from streams_runtime.batch.columns import ORDER, ORDER_TIME, OUT_VALUE
from streams_runtime.batch.record_order import ordinals_among
from streams_runtime.batch.stage import StoreBatch
from streams_runtime.processors.aggregates.per_update import merged_one_by_one
from streams_runtime.state.aggregates.aggregate_state import AggregateState
from streams_runtime.state.store import stamp
from streams_runtime.topology.nodes.aggregate_node import Aggregate, AggregateNode

Given = tuple[int, str, int, int]
"""Partition, key, number and time."""
NODE = AggregateNode("n", "in", (Aggregate("total", "sum", "v", "p"), Aggregate("most", "max", "v", "p")), "n", "p")


def rows(topic: str, *placed: tuple[int, int], turns: Sequence[int] = ()) -> pa.Table:
    """Offsets and times (ms), and the times of their turns where these are others."""
    columns = {
        "_topic": pa.array([topic] * len(placed), pa.string()),
        "_offset": pa.array([offset for offset, _ in placed], pa.int64()),
        "_timestamp": pa.array([time * 1000 for _, time in placed], pa.timestamp("us", tz="UTC")),
    }
    if turns:
        columns[ORDER_TIME] = pa.array([time * 1000 for time in turns], pa.timestamp("us", tz="UTC"))
    return pa.table(columns)


def in_turn(*several: pa.Table) -> list[tuple[int, int]]:
    """Which of the tables has its turn with which row."""
    placed = ordinals_among(*(([0] * len(table), table) for table in several))
    return [
        at for _, at in sorted((place, (n, row)) for n, some in enumerate(placed) for row, place in enumerate(some))
    ]


def test_what_one_record_changes_it_changes_in_the_given_order_and_before_the_next_record() -> None:
    assert in_turn(rows("a", (0, 5), (1, 5)), rows("a", (0, 5), (1, 5))) == [(0, 0), (1, 0), (0, 1), (1, 1)]


def test_of_two_topics_at_one_time_the_first_table_comes_first() -> None:
    assert in_turn(rows("z", (0, 5)), rows("a", (0, 5), (1, 4))) == [(0, 0), (1, 0), (1, 1)]


def test_a_topic_that_is_read_as_a_table_and_as_a_stream_comes_as_a_table_does() -> None:
    assert in_turn(rows("z", (0, 5)), rows("a", (0, 5)), rows("z", (0, 5))) == [(0, 0), (2, 0), (1, 0)]


def test_a_record_that_only_one_of_them_has_holds_back_the_later_ones_of_its_topic_for_all() -> None:
    # The second record of `a` is old: it comes when the first one has been there, which the table does not have.
    assert in_turn(rows("a", (1, 2)), rows("a", (0, 9), (1, 2)), rows("b", (0, 5))) == [(2, 0), (1, 0), (0, 0), (1, 1)]


def test_a_record_takes_the_turn_of_the_one_that_it_came_of() -> None:
    assert in_turn(rows("a", (0, 9), turns=[1]), rows("b", (0, 5))) == [(0, 0), (1, 0)]


@dataclass
class Store:
    """A key-value store in memory."""

    held: dict[bytes, bytes] = field(default_factory=dict)

    def get_stored(self, keys: list[bytes]) -> list[bytes | None]:
        return [self.held.get(key) for key in keys]


def keyed(given: Sequence[Given], first: int) -> StoreBatch:
    """The records as Spark gives them: sorted by nothing."""
    shuffled = sorted(enumerate(given), key=lambda each: (each[1][2], -each[0]))
    partitions, keys, numbers, times = (
        pa.array(column) for column in zip(*(each for _, each in shuffled), strict=True)
    )
    offsets = [first + at for at, _ in shuffled]
    place = rows("in", *zip(offsets, times.to_pylist(), strict=True))
    columns = {"total": numbers, "most": numbers, **dict(zip(place.column_names, place.columns, strict=True))}
    columns["_headers"] = pa.array([[{"key": "at", "value": bytes([at])}] for at in offsets])
    within = pa.table({ORDER: pa.array([at + 1 for at, _ in shuffled], pa.int32())})
    chunked = [pa.chunked_array([each]) for each in (partitions.cast(pa.int32()), keys, times)]
    return StoreBatch(NODE, *chunked, pa.table(columns), within)


records = st.lists(
    st.tuples(st.integers(0, 1), st.sampled_from("aab"), st.integers(-9, 9), st.integers(0, 9)), min_size=1, max_size=25
)


@settings(max_examples=examples(150))
@given(records, st.lists(st.integers(0, 25), max_size=3))
@example([(0, "a", 1, 5), (0, "a", 2, 3), (0, "b", 7, 1), (0, "a", 3, 9), (0, "a", 4, 2), (0, "a", 5, 1)], [4])
def test_each_change_is_what_the_records_up_to_it_come_to_wherever_batches_begin(
    given: list[Given], cuts: list[int]
) -> None:
    state = AggregateState(NODE.aggregates)
    state.bind(pa.schema([("total", pa.int64()), ("most", pa.int64())]))
    stores = {0: Store(), 1: Store()}
    found: dict[int, list[tuple[bytes, bytes, int, int]]] = {0: [], 1: []}
    for first, end in pairwise(sorted({0, len(given), *(cut for cut in cuts if cut < len(given))})):
        told = merged_one_by_one(state, keyed(given[first:end], first), stores)  # type: ignore[arg-type]
        for partition, updates in told.updates.items():
            lines = zip(updates.keys, updates.values, updates.timestamps, strict=True)
            stores[partition].held |= {key: stamp(time, value or b"") for key, value, time in lines}
        each = told.changes
        values = (each.keys, each.columns[OUT_VALUE], each.timestamps, each.columns["_offset"])
        for partition, *row in zip(each.partitions.to_pylist(), *(value.to_pylist() for value in values), strict=True):
            found[partition].append(tuple(row))
    expected: dict[int, list[tuple[bytes, bytes, int, int]]] = {0: [], 1: []}
    held: dict[tuple[int, str], tuple[int, int, int]] = {}
    for offset, (partition, key, number, time) in enumerate(given):
        total, most, latest = held.get((partition, key), (0, number, time))
        held[partition, key] = total, most, latest = total + number, max(most, number), max(latest, time)
        value = b'{"total":%d,"most":%d}' % (total, most)
        expected[partition].append((key.encode(), value, latest, offset))
    assert found == expected
    for (partition, key), (total, most, latest) in held.items():
        assert stores[partition].held[key.encode()] == stamp(latest, b'{"total":%d,"most":%d}' % (total, most))


def test_where_every_record_came_too_late_there_are_no_changes_in_the_columns_that_changes_have() -> None:
    state = AggregateState(NODE.aggregates)
    state.bind(pa.schema([("total", pa.int64()), ("most", pa.int64())]))
    of_one = keyed([(0, "a", 1, 5)], 0)
    one = merged_one_by_one(state, of_one, {0: Store()})  # type: ignore[dict-item]
    none = merged_one_by_one(state, of_one.filter(pa.chunked_array([[False]])), {0: Store()})  # type: ignore[dict-item]
    assert (len(none.changes.keys), none.updates) == (0, {})
    assert none.changes.table.schema == one.changes.table.schema
