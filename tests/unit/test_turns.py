"""Turns of records that the scan reads and of those that are left to Spark: as if one had read all of them."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum, auto

import pyarrow as pa
from example_counts import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from streams_runtime.batch.columns import ORDER_TIME
from streams_runtime.batch.stream_times import StreamTimes, put_off


class Fate(Enum):
    READ = auto()
    LEFT = auto()
    UNREADABLE = auto()


Given = tuple[int, int, Fate]
"""A record's partition, its time (µs), and what becomes of it; its place among all is its offset."""
records = st.lists(st.tuples(st.integers(0, 2), st.integers(0, 9), st.sampled_from(Fate)), max_size=20)


def table(rows: Sequence[tuple[int, int, int]]) -> pa.Table:
    """Rows of partition, offset and turn."""
    types = {"_partition": pa.int32(), "_offset": pa.int64(), ORDER_TIME: pa.timestamp("us", tz="UTC")}
    columns = (
        zip(types.items(), zip(*rows, strict=True), strict=True) if rows else ((each, ()) for each in types.items())
    )
    return pa.table({name: pa.array(values, pa.int64()).cast(kind) for (name, kind), values in columns})


def turns_of(rows: pa.Table) -> dict[int, int]:
    """By offset."""
    return dict(zip(rows["_offset"].to_pylist(), rows[ORDER_TIME].cast(pa.int64()).to_pylist(), strict=True))


def running(given: Sequence[Given], counted: set[Fate]) -> dict[int, int]:
    """What the definition says: the largest time that counts of each record's partition up to it, by offset."""
    return {
        offset: max((time for to, time, fate in given[: offset + 1] if to == partition and fate in counted), default=-1)
        for offset, (partition, _, _) in enumerate(given)
    }


def rows_of(given: Sequence[Given], fate: Fate, turns: dict[int, int]) -> pa.Table:
    return table([(to, at, turns[at]) for at, (to, _, what) in enumerate(given) if what is fate])


@settings(max_examples=examples(300))
@given(records, st.sampled_from([1, 3, 20]))
def test_both_parts_turns_are_those_of_all_readable_records(given: list[Given], piece: int) -> None:
    before, found = StreamTimes(), list[int]()
    for start in range(0, len(given), piece):
        some = given[start : start + piece]
        partitions, times = pa.array([to for to, *_ in some], pa.int32()), [time for _, time, _ in some]
        readable = pa.array([fate is Fate.READ for *_, fate in some])
        found += (
            before.order_times(partitions, pa.array(times, pa.timestamp("us", tz="UTC")), readable)
            .cast(pa.int64())
            .to_pylist()
        )
    scans = dict(enumerate(found))
    assert scans == running(given, {Fate.READ})
    sparks = running(given, {Fate.LEFT})
    left_of_scan = rows_of(given, Fate.LEFT, scans)
    read_by_spark = rows_of(given, Fate.LEFT, {at: time for at, (_, time, _) in enumerate(given)})
    made = [rows_of(given, Fate.READ, scans), rows_of(given, Fate.LEFT, sparks)]
    together = [turns_of(put_off(put_off(each, left_of_scan), read_by_spark)) for each in made]
    expected = running(given, {Fate.READ, Fate.LEFT})
    assert together[0] | together[1] == {
        at: turn for at, turn in expected.items() if given[at][2] is not Fate.UNREADABLE
    }


def test_without_others_nothing_changes() -> None:
    rows, none = table([(0, 0, 5), (1, 1, 2)]), table([])
    assert put_off(rows, none) is rows
    assert put_off(none, rows) is none
