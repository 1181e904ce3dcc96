"""One store on its way through its changelog: which records count, what the listener hears, where it has got to."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from changelog_records import Change
from example_counts import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from restore_heard import Heard
from state_kit import contents, key_value_store, memory_folder

from streams_runtime.kafka.types import TopicPartition
from streams_runtime.restore.restore_listener import NullListener
from streams_runtime.restore.restore_start import Beginning, Log
from streams_runtime.restore.restorer import StateRestorer
from streams_runtime.state.database.rocksdb_adapter import write_sst
from streams_runtime.state.store import KeyValueStore, Updates, stamp
from streams_runtime.state.versioned_store import Version, VersionedStore
from streams_runtime.topology.plan import TaskId


@pytest.fixture
def folder() -> Iterator[Path]:
    with memory_folder() as made:
        yield made


@pytest.fixture
def store(folder: Path) -> Iterator[KeyValueStore]:
    with key_value_store(folder) as opened:
        yield opened


def test_the_last_record_of_a_key_wins_null_keys_are_skipped_null_values_delete(store: KeyValueStore) -> None:
    restorer = StateRestorer(TaskId(0, 0), store)
    restorer.restore_started(0, 100)
    changes = [(b"a", b"1"), (None, b"no key"), (b"b", b"1"), (b"a", b"2"), (b"c", b"1"), (b"b", None), (b"d", None)]
    restorer.apply([Change(number, k, v) for number, (k, v) in enumerate(changes)], 7)
    assert contents(store) == {b"a": b"2", b"c": b"1"}
    restorer.apply([Change(7, b"c", None), Change(8, b"a", b"3", time=9)], 12)
    assert contents(store) == {b"a": b"3"}
    assert store.get_stored([b"a"]) == [stamp(9, b"3")]
    assert (store.offset(), restorer.position, restorer.checkpoint) == (12, 12, 12)


def test_a_store_with_a_history_gets_every_record_in_order(folder: Path) -> None:
    changelog = TopicPartition("prices", 0)
    store = VersionedStore("prices", changelog, folder / "prices", 100)
    try:
        restorer = StateRestorer(TaskId(0, 0), store)
        restorer.apply([Change(0, b"a", b"1", time=5), Change(1, None, b"no key"), Change(2, b"a", b"2", time=9)], 3)
        restorer.apply([Change(3, b"a", b"3", time=7), Change(4, b"a", None, time=9)], 5)
        assert [store.as_of(b"a", time) for time in (5, 7, 9)] == [Version(b"1", 5, 7), Version(b"3", 7, 9), None]
        assert (store.offset(), store.stream_time, restorer.restored) == (5, 9, 5)
    finally:
        store.close()


def test_a_batch_of_null_keys_moves_the_checkpoint_all_the_same(store: KeyValueStore) -> None:
    restorer = StateRestorer(TaskId(0, 0), store)
    restorer.apply([Change(3, None, b"x")], 4)
    assert (contents(store), store.offset()) == ({}, 4)


def test_the_listener_hears_start_batches_and_end_with_their_numbers(folder: Path, store: KeyValueStore) -> None:
    heard, restorer = Heard(), StateRestorer(TaskId(0, 0), store)
    restorer.set_user_restore_listener(heard)
    restorer.restore_started(5, 40)
    restorer.apply([Change(5, b"a", b"1"), Change(9, b"a", b"2")], 10)
    write_sst(folder / "bulk.sst", [(b"b", stamp(1, b"1"))])
    restorer.ingest([folder / "bulk.sst"], 25, 35)
    restorer.reached(40)
    restorer.restore_done()
    log = "app-totals-changelog-0"
    assert heard.calls == [
        ("start", log, "totals", 5, 40),
        ("batch", log, "totals", 10, 2),
        ("batch", log, "totals", 35, 25),
        ("end", log, "totals", 27),
    ]
    assert contents(store) == {b"a": b"2", b"b": b"1"}
    assert store.offset() == 40


def test_a_store_that_has_not_started_is_neither_ended_nor_suspended(store: KeyValueStore) -> None:
    heard, restorer = Heard(), StateRestorer(TaskId(0, 0), store)
    restorer.set_user_restore_listener(heard)
    restorer.restore_done()
    restorer.restore_suspended()
    assert heard.calls == []


def test_a_suspended_store_reports_what_it_has_restored(store: KeyValueStore) -> None:
    heard, restorer = Heard(), StateRestorer(TaskId(0, 0), store)
    restorer.set_user_restore_listener(heard)
    restorer.restore_started(0, 40)
    restorer.apply([Change(0, b"a", b"1")], 1)
    restorer.restore_suspended()
    assert heard.calls[-1] == ("suspended", "app-totals-changelog-0", "totals", 1)


def test_reaching_an_end_beyond_the_last_record_moves_the_checkpoint_there(store: KeyValueStore) -> None:
    """Transaction markers and compacted records at the end of a log are not handed out."""
    restorer = StateRestorer(TaskId(0, 0), store)
    restorer.restore_started(0, 9)
    restorer.apply([Change(0, b"a", b"1")], 1)
    restorer.reached(9)
    assert (store.offset(), restorer.position, contents(store)) == (9, 9, {b"a": b"1"})


CHANGES = st.lists(st.tuples(st.sampled_from([b"a", b"b", None]), st.sampled_from([b"1", b"2", None])), max_size=25)


@settings(max_examples=examples(30))
@given(CHANGES, st.lists(st.integers(0, 25), max_size=4))
def test_what_is_restored_does_not_depend_on_where_polls_end(
    changes: Sequence[tuple[bytes | None, bytes | None]], cuts: list[int]
) -> None:
    model: dict[bytes, bytes] = {}
    for key, value in changes:
        if key is None:
            continue
        if value is None:
            model.pop(key, None)
        else:
            model[key] = value
    records = [Change(number, k, v) for number, (k, v) in enumerate(changes)]
    ends = sorted({cut % (len(records) + 1) for cut in cuts} | {len(records)})
    with memory_folder() as folder, key_value_store(folder) as store:
        restorer = StateRestorer(TaskId(0, 0), store)
        for start, end in zip([0, *ends[:-1]], ends, strict=True):
            if end > start:
                restorer.apply(records[start:end], end)
        assert contents(store) == model


def test_a_listener_that_nobody_gave_hears_everything_and_does_nothing(store: KeyValueStore) -> None:
    restorer = StateRestorer(TaskId(0, 0), store)
    restorer.set_user_restore_listener(NullListener())
    restorer.restore_started(0, 1)
    restorer.apply([Change(0, b"a", b"1")], 1)
    restorer.restore_suspended()
    restorer.restore_done()
    assert contents(store) == {b"a": b"1"}


def prepared(store: KeyValueStore, log: Log) -> Beginning:
    """Where it begins in this log; the store is wiped if it has to be."""
    return StateRestorer(TaskId(0, 0), store).prepare(log, store.wipe)


def test_a_checkpoint_is_one_of_the_topic_that_it_was_made_in(store: KeyValueStore) -> None:
    store.write(Updates([b"a"], [b"1"], [7]), 5)
    assert prepared(store, Log(0, 9, 9, "first")) == Beginning(5, known=True), "not known until now"
    assert prepared(store, Log(0, 9, 9)) == Beginning(5, known=True), "brokers that have no ids"
    assert prepared(store, Log(0, 9, 9, "first")) == Beginning(5, known=True)
    assert contents(store) == {b"a": b"1"}
    begin = prepared(store, Log(0, 9, 9, "second"))
    assert (begin.offset, begin.known, contents(store)) == (0, False, {})
    assert begin.wipe == "its topic was deleted and made anew since the checkpoint 5"
    store.write(Updates([b"b"], [b"2"], [7]), 3)
    assert prepared(store, Log(0, 9, 9, "second")) == Beginning(3, known=True)


def test_a_store_that_goes_on_with_a_changelog_that_was_made_anew_reads_all_of_it_and_keeps_what_it_has(
    store: KeyValueStore,
) -> None:
    store.write(Updates([b"a"], [b"1"], [7]), 5)
    prepared(store, Log(0, 5, 5, "first"))
    store.follow("second", 0)
    assert prepared(store, Log(0, 2, 2, "second")) == Beginning(0, known=True)
    assert contents(store) == {b"a": b"1"}
