"""A stream beside a table with a history, in whole columns: each record meets what a loop would let it meet."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack

import pyarrow as pa
from example_counts import examples
from hypothesis import example, given, settings
from hypothesis import strategies as st
from join_rows import Row, changes_of, chunked, placed
from state_kit import memory_folder
from versions_model import Versions

from streams_runtime.batch.columns import MATCH, OUT_VALUE
from streams_runtime.batch.record_order import ordinals_among
from streams_runtime.batch.stage import StageInput, StoreBatch
from streams_runtime.kafka.types import TopicPartition
from streams_runtime.processors.aggregates.per_update import in_order
from streams_runtime.processors.joins.versioned_join import matched_versions
from streams_runtime.processors.tables.table_versions import versions_of
from streams_runtime.state.store import Updates
from streams_runtime.state.versioned_store import VersionedStore
from streams_runtime.topology.nodes.join_node import JoinNode

RETENTION = 5
KEYS = st.none() | st.sampled_from(["", "a", "ab"])
ROWS = st.lists(st.tuples(st.integers(0, 1), KEYS, st.integers(0, 12)), max_size=20)
BEFORE = st.lists(st.tuples(st.tuples(st.integers(0, 1), KEYS, st.integers(0, 9)), st.none() | st.integers(0, 9)))
PUTS = st.lists(st.tuples(st.integers(0, 1), KEYS, st.integers(0, 12)), max_size=12)


def models_of(before: Sequence[tuple[Row, int | None]]) -> dict[int, Versions]:
    models = {partition: Versions(RETENTION) for partition in (0, 1)}
    for (partition, key, time), value in before:
        if key is not None:
            models[partition].put(key, value, time)
    return models


def by_a_loop(
    rows: Sequence[Row], told: StoreBatch, models: dict[int, Versions], records: pa.Table
) -> list[bytes | None]:
    """What each record meets; the models then have what the table was told too."""
    partitions, keys, times = (each.to_pylist() for each in (told.partitions, told.keys, told.timestamps))
    values = told.columns[OUT_VALUE].to_pylist()
    turns, mine = ordinals_among((partitions, told.columns), (records["_partition"].to_pylist(), records))
    events = [(turn, 0, row) for row, turn in enumerate(turns)] + [(turn, 1, row) for row, turn in enumerate(mine)]
    found: list[bytes | None] = [None] * len(rows)
    for _, of_stream, row in sorted(events):
        if of_stream:
            partition, key, time = rows[row]
            version = None if key is None else models[partition].as_of(key, time)
            found[row] = None if version is None else str(version[0]).encode()
        elif keys[row] is not None:
            value = values[row]
            models[partitions[row]].put(keys[row], None if value is None else int(value), times[row])
    return found


def bytes_of(value: int | None) -> bytes | None:
    return None if value is None else str(value).encode()


# Beside a version of the batch and one of the store, a deletion, one that comes late, and one that is too old.
STORED = [((0, "a", 4), 1), ((0, "a", 8), None), ((0, "ab", 7), 2)]
TOLD = [(0, "a", 6), (0, "a", 9), (0, "a", 9), (0, "ab", 12), (0, "ab", 6), (1, "a", 3)]
ASKED = [(0, "a", time) for time in range(13)] + [(0, "ab", time) for time in (12, 6, 7, 8)] + [(1, "a", 2)]


@settings(max_examples=examples(300), deadline=None)
@given(
    BEFORE,
    PUTS,
    st.lists(st.none() | st.integers(0, 9), min_size=12, max_size=12),
    ROWS,
    st.booleans(),
)
@example(STORED, TOLD, [3, 4, 5, 6, 7, 8], ASKED, True)
@example(STORED, [], [], ASKED, False)
def test_each_record_meets_what_was_valid_at_its_time_when_its_turn_comes(
    before: list[tuple[Row, int | None]], told: list[Row], values: list[int | None], rows: list[Row], left: bool
) -> None:
    batch = changes_of(told, [bytes_of(value) for value, _ in zip(values, told, strict=False)])
    check(before, batch, batch, rows, left)


@settings(max_examples=examples(200), deadline=None)
@given(BEFORE, PUTS, PUTS, st.lists(st.none() | st.integers(0, 9), min_size=24, max_size=24), ROWS)
@example(STORED, TOLD, [(0, "a", 7), (0, "a", 13), (0, "ab", 8)], [*range(9)], ASKED)
def test_a_table_of_several_topics_takes_their_records_in_one_order(
    before: list[tuple[Row, int | None]],
    first: list[Row],
    second: list[Row],
    values: list[int | None],
    rows: list[Row],
) -> None:
    data = [bytes_of(value) for value in values]
    one, other = changes_of(first, data[: len(first)]), changes_of(second, data[len(first) :][: len(second)], "more")
    both = StoreBatch(
        one.node,
        pa.chunked_array([*one.partitions.chunks, *other.partitions.chunks]),
        pa.chunked_array([*one.keys.chunks, *other.keys.chunks]),
        pa.chunked_array([*one.timestamps.chunks, *other.timestamps.chunks]),
        pa.concat_tables([one.columns, other.columns]),
    )
    check(before, both, in_order(both), rows, left=True)


def check(
    before: Sequence[tuple[Row, int | None]], batch: StoreBatch, ordered: StoreBatch, rows: Sequence[Row], left: bool
) -> None:
    """Of a batch of the table, as it is read and in the order of its turns, and of records that are joined with it."""
    columns = {"_partition": chunked([at for at, *_ in rows], pa.int32())}
    columns["_key"] = chunked([key for _, key, _ in rows], pa.string())
    records = pa.table({**columns, **placed("orders", rows)})
    join = StageInput(JoinNode("joined", "orders", "users", left, (), "p"), records)
    models = models_of(before)
    with memory_folder() as folder, ExitStack() as closing:
        stores = {}
        for partition in (0, 1):
            store = VersionedStore("users", TopicPartition("users", partition), folder / str(partition), RETENTION)
            closing.callback(store.close)
            mine = [
                (key.encode(), bytes_of(value), time)
                for (at, key, time), value in before
                if at == partition and key is not None
            ]
            store.write(Updates(*([each[column] for each in mine] for column in range(3))), None)
            stores[partition] = store
        dropped = sum(each.dropped for each in models.values())
        expected = by_a_loop(rows, batch, models, records)
        versions = versions_of(ordered, stores)
        found = matched_versions(join, versions.changes, stores)
        for partition, updates in versions.updates.items():
            stores[partition].write(updates, None)
        assert versions.expired == sum(each.dropped for each in models.values()) - dropped
        kept = [row for row, value in enumerate(expected) if left or value is not None]
        assert found[MATCH].to_pylist() == [expected[row] for row in kept]
        assert found.drop_columns([MATCH]).to_pylist() == records.take(pa.array(kept, pa.int64())).to_pylist()
        assert [stores[each].stream_time for each in (0, 1)] == [models[each].stream_time for each in (0, 1)]
        for partition, model in models.items():
            newest = {key.decode(): int(value) for key, value in stores[partition].scan(None, None)}
            assert newest == {key: value for key, (value, _) in model.newest().items()}
