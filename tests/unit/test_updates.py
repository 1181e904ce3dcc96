"""A batch's rows and what real stores have become what they will have: values, times, and where each row goes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import orjson
import pyarrow as pa
import pytest
from example_counts import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from state_kit import contents, key_value_store, memory_folder

from streams_runtime.batch.columns import OUT_VALUE
from streams_runtime.batch.json_columns import json_rows
from streams_runtime.batch.stage import StoreBatch
from streams_runtime.errors import StreamsException
from streams_runtime.processors.aggregates.store_updates import Merged, merged, table_updates
from streams_runtime.state.aggregates.aggregate_state import AggregateState
from streams_runtime.state.store import KeyValueStore, unstamp
from streams_runtime.topology.nodes.aggregate_node import Aggregate, AggregateNode
from streams_runtime.topology.nodes.source_and_sink_nodes import Format, TableSourceNode

AGGREGATES = tuple(
    Aggregate(name, function, "x", f"steps[0].aggregate.{name}")
    for name, function in [("n", "count"), ("total", "sum"), ("most", "max"), ("mean", "avg")]
)
NODE = AggregateNode("totals", "by-user", AGGREGATES, "totals", "steps[0]")
TABLE = TableSourceNode("users", "users", Format("string"), Format("json", "a INT"), None, "users", "sources[0]")

LISTED = pa.list_(pa.struct([("at", pa.int64()), ("record", pa.float64())]))

Row = tuple[int, str, int, int]  # partition, key, x, time


@pytest.fixture
def folder() -> Iterator[Path]:
    with memory_folder() as made:
        yield made


@pytest.fixture
def stores(folder: Path) -> Iterator[dict[int, KeyValueStore]]:
    with ExitStack() as stack:
        yield {number: stack.enter_context(key_value_store(folder, partition=number)) for number in range(3)}


def aggregate_state() -> AggregateState:
    state = AggregateState(AGGREGATES)
    kinds = {"mean.found": LISTED}
    state.bind(pa.schema([(column.name, kinds.get(column.name, pa.int64())) for column in state.columns]))
    return state


def keyed(rows: Sequence[Row]) -> StoreBatch:
    """What Spark gives for a batch: each (partition, key) once, in no order."""
    groups: dict[tuple[int, str], list[Row]] = {}
    for row in rows:
        groups.setdefault(row[:2], []).append(row)
    partials = [
        (p, k, len(g), sum(x for *_, x, _ in g), max(x for *_, x, _ in g), max(t for *_, t in g))
        for (p, k), g in sorted(groups.items(), key=lambda item: (item[0][1], -item[0][0]))
    ]
    columns = list(zip(*partials, strict=True)) or [[]] * 6
    arrays = {
        "n": pa.array(columns[2], pa.int64()),
        "total": pa.array(columns[3], pa.int64()),
        "most": pa.array(columns[4], pa.int64()),
        "mean.found": pa.array(
            [
                [{"at": at, "record": float(x)} for at, (*_, x, _) in enumerate(groups[partition, key])]
                for partition, key, *_ in partials
            ],
            LISTED,
        ),
    }
    return StoreBatch(
        NODE,
        pa.chunked_array([pa.array(columns[0], pa.int32())]),
        pa.chunked_array([pa.array(columns[1], pa.string())]),
        pa.chunked_array([pa.array(columns[5], pa.int64())]),
        pa.table(arrays),
    )


def expected(rows: Sequence[Row]) -> dict[int, dict[bytes, tuple[dict[str, Any], int]]]:
    """The same by hand: value as seen and time, by partition and key."""
    found: dict[int, dict[bytes, tuple[dict[str, Any], int]]] = {}
    for partition, key in {row[:2] for row in rows}:
        mine = [row for row in rows if row[:2] == (partition, key)]
        xs = [row[2] for row in mine]
        seen = {"n": len(xs), "total": sum(xs), "most": max(xs), "mean": sum(xs) / len(xs)}
        found.setdefault(partition, {})[key.encode()] = (seen, max(row[3] for row in mine))
    return found


def test_what_the_store_has_as_it_is_seen_is_not_made_again(stores: dict[int, KeyValueStore]) -> None:
    rows = [(0, "b", 3, 10), (1, "a", 4, 20), (0, "a", 5, 30)]
    given = keyed(rows)
    state = AggregateState(AGGREGATES[:3])
    state.bind(pa.schema([(column.name, pa.int64()) for column in state.columns]))
    for _ in range(2):
        plain = merged(state, replace(given, columns=given.columns.select(["n", "total", "most"])), stores)
        assert plain.rows.json == json_rows(plain.rows.columns)
        assert plain.rows.json == [value for part in (0, 1) for value in plain.updates[part].values]
        store_all(stores, plain)


def test_what_the_store_has_in_parts_is_not_taken_for_what_is_seen(stores: dict[int, KeyValueStore]) -> None:
    assert merged(aggregate_state(), keyed([(0, "a", 5, 30)]), stores).rows.json is None


def store_all(stores: dict[int, KeyValueStore], result: Merged) -> None:
    for partition, updates in result.updates.items():
        stores[partition].write(updates, None)


def stored(stores: dict[int, KeyValueStore]) -> dict[int, dict[bytes, tuple[dict[str, Any], int]]]:
    state, found = aggregate_state(), {}
    for partition, store in stores.items():
        keys = sorted(contents(store))
        rows = [unstamp(each) for each in store.get_stored(keys) if each is not None]
        if rows:
            found[partition] = {k: (state.finish_value(value), t) for k, (t, value) in zip(keys, rows, strict=True)}
    return found


def test_new_keys_get_what_the_batch_has(stores: dict[int, KeyValueStore]) -> None:
    rows = [(2, "b", 5, 100), (0, "a", 1, 50), (2, "a", 7, 10), (2, "b", 6, 90)]
    result = merged(aggregate_state(), keyed(rows), stores)
    store_all(stores, result)
    assert stored(stores) == expected(rows)


def test_nothing_is_written_by_merging(stores: dict[int, KeyValueStore]) -> None:
    merged(aggregate_state(), keyed([(0, "a", 1, 50)]), stores)
    assert [store.is_empty() for store in stores.values()] == [True] * 3


def test_values_are_added_to_what_is_stored_and_the_later_time_stays(stores: dict[int, KeyValueStore]) -> None:
    first = [(0, "a", 1, 50), (0, "b", 1, 500), (1, "a", 9, 1)]
    second = [(0, "a", 3, 70), (0, "b", 2, 20), (2, "a", 4, 2)]
    for rows in (first, second):
        store_all(stores, merged(aggregate_state(), keyed(rows), stores))
    assert stored(stores) == expected(first + second)
    assert stored(stores)[0][b"b"][1] == 500


def test_updates_are_sorted_by_key_within_each_partition(stores: dict[int, KeyValueStore]) -> None:
    rows = [(number % 3, f"{number * 7 % 20:02}", number, number) for number in range(60)]
    result = merged(aggregate_state(), keyed(rows), stores)
    assert sorted(result.updates) == [0, 1, 2]
    for updates in result.updates.values():
        assert list(updates.keys) == sorted(updates.keys)
        assert len(updates.keys) == len(updates.values) == len(updates.timestamps) == len(set(updates.keys))


def test_the_rows_for_the_steps_behind_are_those_of_the_updates(stores: dict[int, KeyValueStore]) -> None:
    rows = [(2, "b", 5, 100), (0, "a", 1, 50), (2, "a", 7, 10)]
    store_all(stores, merged(aggregate_state(), keyed([(2, "a", 3, 300)]), stores))
    result = merged(aggregate_state(), keyed(rows), stores)
    assert result.rows.partitions.to_pylist() == [0, 2, 2]
    assert result.rows.keys.to_pylist() == ["a", "a", "b"]
    assert result.rows.timestamps.to_pylist() == [50, 300, 100]
    assert result.rows.columns.to_pylist() == [
        {"n": 1, "total": 1, "most": 1, "mean": 1.0},
        {"n": 2, "total": 10, "most": 7, "mean": 5.0},
        {"n": 1, "total": 5, "most": 5, "mean": 5.0},
    ]
    in_order = [value for partition in (0, 2) for value in result.updates[partition].values]
    state = aggregate_state()
    assert [state.finish_value(value or b"") for value in in_order] == result.rows.columns.to_pylist()


def test_numbers_as_keys_are_sorted_by_their_bytes(stores: dict[int, KeyValueStore]) -> None:
    """Stores are ordered by bytes, where negative numbers come last."""
    rows = keyed([(0, "x", 1, 1), (0, "y", 2, 2), (0, "z", 3, 3)])
    numbers = StoreBatch(
        NODE, rows.partitions, pa.chunked_array([pa.array([5, -1, 0], pa.int64())]), rows.timestamps, rows.columns
    )
    result = merged(aggregate_state(), numbers, stores)
    assert result.rows.keys.to_pylist() == [0, 5, -1]
    assert [key.hex() for key in result.updates[0].keys] == ["0" * 16, "0" * 15 + "5", "f" * 16]
    assert [orjson.loads(value or b"")["total"] for value in result.updates[0].values] == [3, 1, 2]


def test_a_total_that_leaves_its_range_names_the_field_and_changes_nothing(stores: dict[int, KeyValueStore]) -> None:
    store_all(stores, merged(aggregate_state(), keyed([(0, "a", 2**63 - 1, 1)]), stores))
    before = stored(stores)
    with pytest.raises(StreamsException, match=r"steps\[0\]\.aggregate\.total.*BIGINT"):
        merged(aggregate_state(), keyed([(0, "a", 1, 1)]), stores)
    assert stored(stores) == before


ROWS = st.tuples(st.integers(0, 2), st.sampled_from("abcd"), st.integers(-(2**40), 2**40), st.integers(0, 2**41))


@settings(max_examples=examples(25))
@given(st.lists(ROWS, max_size=40), st.lists(st.integers(0, 40), max_size=4))
def test_what_is_stored_does_not_depend_on_where_batches_end(rows: list[Row], cuts: list[int]) -> None:
    ends = sorted({cut % (len(rows) + 1) for cut in cuts} | {len(rows)})
    with memory_folder() as folder, ExitStack() as stack:
        stores = {number: stack.enter_context(key_value_store(folder, partition=number)) for number in range(3)}
        for start, end in zip([0, *ends[:-1]], ends, strict=True):
            if end > start:
                store_all(stores, merged(aggregate_state(), keyed(rows[start:end]), stores))
        assert stored(stores) == expected(rows)


def table_rows(*rows: tuple[int, bytes, bytes | None, int]) -> StoreBatch:
    partitions, keys, values, times = zip(*rows, strict=True) if rows else ((), (), (), ())
    return StoreBatch(
        TABLE,
        pa.chunked_array([pa.array(partitions, pa.int32())]),
        pa.chunked_array([pa.array(keys, pa.binary())]),
        pa.chunked_array([pa.array(times, pa.int64())]),
        pa.table({OUT_VALUE: pa.array(values, pa.binary())}),
    )


def test_of_a_tables_rows_the_last_one_of_each_key_counts_and_tombstones_delete() -> None:
    found = table_updates(
        table_rows(
            (0, b"a", b"1", 9), (1, b"a", b"other", 1), (0, b"b", b"2", 2), (0, b"a", None, 3), (0, b"b", b"3", 1)
        )
    )
    assert {p: dict(zip(u.keys, zip(u.values, u.timestamps, strict=True), strict=True)) for p, u in found.items()} == {
        0: {b"a": (None, 3), b"b": (b"3", 1)},
        1: {b"a": (b"other", 1)},
    }


def test_a_table_without_rows_has_no_updates() -> None:
    assert table_updates(table_rows()) == {}
