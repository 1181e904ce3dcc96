"""Dedupes over real stores: they agree with a model wherever batches begin and whatever is restored."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from itertools import pairwise
from pathlib import Path

import pyarrow as pa
import pytest
from dedupe_model import DedupeModel
from example_counts import examples
from hypothesis import example, given, settings
from hypothesis import strategies as st
from state_kit import memory_folder

from streams_runtime.batch.columns import ID, OUT_TIME
from streams_runtime.batch.stage import StageInput
from streams_runtime.kafka.types import TopicPartition
from streams_runtime.processors.dedupe_records import Deduped, deduped
from streams_runtime.state.open_store import AnyStore
from streams_runtime.state.store import Updates
from streams_runtime.state.window_keys import split_window_key
from streams_runtime.state.window_store import DedupeStore
from streams_runtime.topology.nodes.dedupe_node import DedupeNode
from streams_runtime.topology.store_specs import Windowing

Given = tuple[str | None, int]
"""Id and time (ms) of a record; its topic's next."""
Row = tuple[int, Given]
"""A record with its offset."""


def node(within: int = 5, by: str | None = None) -> DedupeNode:
    return DedupeNode("once", "orders", by, within, "spec.topology.steps[0]")


@contextmanager
def store_of(dedupe: DedupeNode, folder: Path, partition: int = 0) -> Iterator[dict[str, AnyStore]]:
    """A partition's store, open; `folder` decides whether it is new."""
    changelog = TopicPartition(f"app-{dedupe.store}-changelog", partition)
    interval = Windowing(dedupe.retention).segment_interval
    made = DedupeStore(dedupe.store, changelog, folder / f"{partition}", dedupe.retention, interval)
    try:
        yield {dedupe.store: made}
    finally:
        made.close()


def rows(records: Sequence[Row], partition: int = 0, topic: str = "orders") -> pa.Table:
    """A batch as Spark gives it."""
    times = [time for _, (_, time) in records]
    return pa.table(
        {
            "_key": pa.array([key for _, (key, _) in records], pa.string()),
            "_timestamp": pa.array([time * 1000 for time in times], pa.timestamp("us", tz="UTC")),
            "_topic": pa.array([topic] * len(records), pa.string()),
            "_partition": pa.array([partition] * len(records), pa.int32()),
            "_offset": pa.array([offset for offset, _ in records], pa.int64()),
            ID: pa.array([key for _, (key, _) in records], pa.string()),
            OUT_TIME: pa.array(times, pa.int64()),
        }
    )


def process(dedupe: DedupeNode, table: pa.Table, stores: Mapping[int, Mapping[str, AnyStore]]) -> Deduped:
    """A batch's dedupe, with the stores as they will be afterwards."""
    found = deduped(StageInput(dedupe, table), stores)
    for store, updates in found.updates:
        store.write(updates, 1)
    return found


def offsets(found: Deduped) -> list[int]:
    assert {ID, OUT_TIME}.isdisjoint(found.passed.column_names)
    kept: list[int] = found.passed["_offset"].to_pylist()
    return kept


def numbered(*records: Given) -> list[Row]:
    return list(enumerate(records))


def test_the_first_of_an_id_goes_on_and_what_lies_close_to_it_does_not() -> None:
    given = numbered(("a", 100), ("a", 105), ("b", 105), ("a", 106), ("a", 95))
    with memory_folder() as folder, store_of(node(), folder) as store:
        found = process(node(), rows(given), {0: store})
        assert offsets(found) == [0, 2, 3], "both bounds belong to it, and a duplicate does not make it longer"
        assert (found.duplicates, found.late) == (2, 0)


@pytest.mark.parametrize(("time", "goes_on"), [(94, True), (95, False), (105, False), (106, True)])
def test_the_bounds_belong_to_it_also_for_what_the_store_holds(time: int, goes_on: bool) -> None:
    with memory_folder() as folder, store_of(node(), folder) as store:
        process(node(), rows(numbered(("a", 100))), {0: store})
        assert offsets(process(node(), rows([(1, ("a", time))]), {0: store})) == ([1] if goes_on else [])


def test_records_without_an_id_go_on_and_are_not_remembered() -> None:
    with memory_folder() as folder, store_of(node(), folder) as store:
        found = process(node(), rows(numbered((None, 1), (None, 1), (None, -7))), {0: store})
        assert offsets(found) == [0, 1, 2]
        assert (found.updates, found.duplicates) == ([], 0)


def test_a_record_that_is_late_by_as_much_as_the_time_is_judged_like_any_other() -> None:
    with memory_folder() as folder, store_of(node(), folder) as store:
        process(node(), rows(numbered(("a", 90), ("x", 100))), {0: store})
        found = process(node(), rows([(2, ("a", 95)), (3, ("b", 90)), (4, ("b", 90))]), {0: store})
        assert (offsets(found), found.late) == ([3], 0)


def test_what_is_too_late_to_be_remembered_goes_on_each_time_and_is_counted() -> None:
    with memory_folder() as folder, store_of(node(), folder) as store:
        process(node(), rows(numbered(("a", 89), ("x", 100), ("b", 92))), {0: store})
        late = [(3, ("a", 89)), (4, ("a", 89)), (5, ("b", 89))]
        for _ in range(2):
            found = process(node(), rows(late), {0: store})
            assert (offsets(found), found.late) == ([3, 4], 2), (
                "a first of b that is still remembered lies close enough"
            )


def test_only_firsts_are_remembered_under_their_ids_and_times_with_the_time_as_value() -> None:
    with memory_folder() as folder, store_of(node(), folder) as store:
        ((_, written),) = process(node(), rows(numbered(("a", 300), ("a", 301), ("b", 299))), {0: store}).updates
        assert [split_window_key(key) for key in written.keys] == [(b"a", 300, 0), (b"b", 299, 0)]
        assert written.values == [bytes([0, 0, 0, 0, 0, 0, 1, 44]), bytes([0, 0, 0, 0, 0, 0, 1, 43])]
        assert written.timestamps == [300, 299]


def test_records_of_several_topics_take_turns_by_the_times_that_these_have_come_to() -> None:
    with memory_folder() as folder, store_of(node(), folder) as store:
        one = rows([(0, ("a", 20)), (1, ("b", 13))], topic="l")
        other = rows([(0, ("a", 19)), (1, ("b", 14))], topic="r")
        found = process(node(), pa.concat_tables([one, other]), {0: store}).passed
        assert list(zip(found["_topic"].to_pylist(), found["_offset"].to_pylist(), strict=True)) == [("r", 0), ("r", 1)]


def test_partitions_know_nothing_of_each_other() -> None:
    with memory_folder() as folder, store_of(node(), folder) as zero, store_of(node(), folder, 1) as one:
        table = pa.concat_tables([rows(numbered(("a", 10))), rows([(7, ("a", 10))], 1)])
        found = process(node(), table, {0: zero, 1: one})
        assert offsets(found) == [0, 7]
        assert [store.partition for store, _ in found.updates] == [0, 1]


records = st.lists(st.tuples(st.sampled_from(["a", "a", "b", "ab", None]), st.integers(0, 60)), min_size=1, max_size=30)


@settings(max_examples=examples(150))
@given(st.integers(1, 12), records, st.lists(st.integers(0, 30), max_size=6), st.booleans())
@example(5, [("a", 0), ("b", 11), ("a", 0), ("a", 0), ("b", 10)], [2, 3], True)
@example(5, [("a", 0), ("b", 10), ("a", 0), ("a", 5), ("a", 6)], [2], True)
def test_a_dedupe_agrees_with_the_model_wherever_batches_begin_and_stores_are_restored(
    within: int, records: list[Given], cuts: list[int], restored: bool
) -> None:
    dedupe, model, given = node(within), DedupeModel(within), numbered(*records)
    expected = [offset for offset, each in given if model.passes(*each)]
    passed: list[int] = []
    late = duplicates = 0
    changelog: dict[bytes, tuple[bytes | None, int]] = {}
    with memory_folder() as folder, ExitStack() as stack:
        store = stack.enter_context(store_of(dedupe, folder / "0"))
        for number, (first, end) in enumerate(pairwise(sorted({0, len(given), *(c for c in cuts if c < len(given))}))):
            batch = process(dedupe, rows(given[first:end]), {0: store})
            passed += offsets(batch)
            late, duplicates = late + batch.late, duplicates + batch.duplicates
            if restored:
                for _, updates in batch.updates:
                    lines = zip(updates.keys, updates.values, updates.timestamps, strict=True)
                    changelog |= {key: (value, time) for key, value, time in lines}
                store = stack.enter_context(store_of(dedupe, folder / f"{number + 1}"))
                values = list(changelog.values())
                written = Updates(list(changelog), [value for value, _ in values], [time for _, time in values])
                store[dedupe.store].write(written, 1)
    assert passed == expected
    assert (late, duplicates) == (model.late, len(records) - len(expected))
