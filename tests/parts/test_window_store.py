"""Window and session stores: retention by segments, stream time, fetches that agree with a dict, crashes."""

from __future__ import annotations

import logging
import shutil
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rocksdict import Rdict
from state_kit import memory_folder
from waiting import eventually

from streams_runtime.errors import NotSupportedException, ProcessorStateException, TaskCorruptedException
from streams_runtime.kafka.types import TopicPartition
from streams_runtime.state.database.open_database import StoreClosed
from streams_runtime.state.store import KeyValueStore, LocalStore, Updates, stamp
from streams_runtime.state.window_keys import LATEST, session_key, split_session_key, split_window_key, window_key
from streams_runtime.state.window_store import SegmentedStore, SessionStore, WindowStore

RETENTION, INTERVAL = 100, 40  # ms
CHANGELOG = TopicPartition("app-windows-changelog", 0)


@contextmanager
def opened(kind: type[SegmentedStore], folder: Path, retention: int = RETENTION) -> Iterator[SegmentedStore]:
    store = kind("windows", CHANGELOG, folder / "windows", retention, INTERVAL)
    try:
        yield store
    finally:
        store.close()


@pytest.fixture
def folder() -> Iterator[Path]:
    with memory_folder() as made:
        yield made


@pytest.fixture
def store(folder: Path) -> Iterator[SegmentedStore]:
    with opened(WindowStore, folder) as made:
        yield made


def put(store: SegmentedStore, *records: tuple[bytes, bytes | None], offset: int | None = None) -> None:
    """Write records of the changelog, the last of each key winning."""
    latest = dict(records)
    store.write(Updates(list(latest), list(latest.values()), [7] * len(latest)), offset)


def everything(store: SegmentedStore, reverse: bool = False) -> list[tuple[bytes, bytes]]:
    return list(store.fetch(None, None, 0, LATEST, reverse=reverse))


def families(folder: Path) -> list[str]:
    return sorted(set(Rdict.list_cf(str(folder / "windows"))) - {"default", "offsets"})


# --- against a dict


@dataclass
class Model:
    """What a store has to show: everything that was written and is not older than the retention."""

    kind: type[SegmentedStore]
    stream_time: int = -1
    records: dict[bytes, bytes] = field(default_factory=dict)

    def split(self, data: bytes) -> tuple[bytes, int, int]:
        """Record's key, and the start and end of the time that it is about."""
        if self.kind is WindowStore:
            key, start, _ = split_window_key(data)
            return key, start, start
        return split_session_key(data)

    def put(self, data: bytes, value: bytes | None) -> None:
        self.stream_time = max(self.stream_time, self.split(data)[2])
        self.records.pop(data, None)
        if value is not None:
            self.records[data] = value

    def fetch(
        self, from_key: bytes | None, to_key: bytes | None, earliest: int, latest: int, reverse: bool = False
    ) -> list[tuple[bytes, bytes]]:
        found = []
        for data, value in sorted(self.records.items(), reverse=reverse):
            key, start, end = self.split(data)
            if (
                end > self.stream_time - RETENTION
                and (from_key is None or key >= from_key)
                and (to_key is None or key <= to_key)
                and end >= earliest
                and start <= latest
            ):
                found.append((data, value))
        return found


KEYS = st.sampled_from([b"", b"\0", b"\0\0", b"a", b"a\0", b"a\0\0\0\0\0\0\0\0\0", b"ab", b"b", b"\xff"])
TIMES = st.integers(0, 300)
VALUES = st.none() | st.binary(max_size=2)


def window_data(key: bytes, time: int, sequence: int) -> bytes:
    return window_key(key, time, sequence)


def session_data(key: bytes, time: int, length: int) -> bytes:
    return session_key(key, time, time + 20 * length)


RECORDS = {
    kind: st.lists(st.tuples(st.builds(data, KEYS, TIMES, st.integers(0, 2)), VALUES), max_size=40)
    for kind, data in ((WindowStore, window_data), (SessionStore, session_data))
}
KINDS = st.sampled_from([WindowStore, SessionStore])


@settings(max_examples=30)
@given(st.data(), KINDS, st.integers(1, 8))
def test_any_fetch_after_any_writes_and_reopenings_agrees_with_a_dict(
    data: st.DataObject, kind: type[SegmentedStore], per_write: int
) -> None:
    records = data.draw(RECORDS[kind])
    model = Model(kind)
    with memory_folder() as folder:
        offset = 0
        for batch in _batched(records, per_write):
            with opened(kind, folder) as store:
                offset += len(batch)
                put(store, *batch, offset=offset)
                for key, value in batch:
                    model.put(key, value)
        with opened(kind, folder) as store:
            assert store.stream_time == model.stream_time
            assert store.offset() == (offset or None)
            assert everything(store) == model.fetch(None, None, 0, LATEST)
            assert store.get_stored([key for key, _ in records]) == [
                None if value is None else stamp(7, value) if kind is WindowStore else value
                for value in (dict(model.fetch(None, None, 0, LATEST)).get(key) for key, _ in records)
            ]
            for _ in range(4):
                first, last = data.draw(st.none() | KEYS), data.draw(st.none() | KEYS)
                earliest, latest = data.draw(st.integers(-5, 330)), data.draw(st.integers(-5, 330))
                for reverse in (False, True):
                    for ends in ((first, last), (last, last)):
                        asked = (*ends, earliest, latest)
                        expected = model.fetch(*asked, reverse=reverse)
                        assert list(store.fetch(*asked, reverse=reverse)) == expected


def _batched(records: list[tuple[bytes, bytes | None]], size: int) -> Iterator[list[tuple[bytes, bytes | None]]]:
    for at in range(0, len(records), size):
        yield records[at : at + size]


@settings(max_examples=25)
@given(st.data(), KINDS)
def test_what_is_shown_does_not_depend_on_how_writes_were_put_together(
    data: st.DataObject, kind: type[SegmentedStore]
) -> None:
    """Processing writes small batches, restoration large ones; both have to show the same."""
    records = data.draw(RECORDS[kind])
    with memory_folder() as one, memory_folder() as other, opened(kind, one) as slow, opened(kind, other) as fast:
        for record in records:
            put(slow, record)
        put(fast, *records)
        assert everything(slow) == everything(fast)
        assert slow.stream_time == fast.stream_time


def test_a_range_misses_no_key_that_its_last_key_begins_with(store: SegmentedStore) -> None:
    long = b"a" + bytes(9)
    put(store, (window_key(b"a", 300), b"v"), (window_key(long, 300), b"v"), (window_key(b"b", 300), b"v"))
    # The bytes of the shorter key come after those of the longer one, with their times behind them.
    assert [key[:-12] for key, _ in store.fetch(b"a", long, 0, 330)] == [long, b"a"]


# --- retention


def test_a_segment_is_dropped_whole_when_all_in_it_has_expired(folder: Path) -> None:
    with opened(WindowStore, folder) as store:
        put(store, *((window_key(b"k", time), b"v") for time in range(0, 120, 10)))
        assert store.segments == (0, 1, 2)
        put(store, (window_key(b"k", 139), b"v"))
        assert store.segments == (0, 1, 2, 3)  # 139 - 100 lies in the first still
        put(store, (window_key(b"k", 140), b"v"))
        assert store.segments == (1, 2, 3)
        put(store, (window_key(b"k", 10_000), b"v"))
        assert store.segments == (250,)
        assert everything(store) == [(window_key(b"k", 10_000), b"v")]
    assert families(folder) == ["segment.250"]


def test_a_record_expires_to_the_millisecond_before_its_segment_goes(store: SegmentedStore) -> None:
    put(store, (window_key(b"k", 0), b"v"), (window_key(b"k", 1), b"v"), (window_key(b"k", 100), b"v"))
    assert store.segments == (0, 2)
    assert [split_window_key(key)[1] for key, _ in everything(store)] == [1, 100]
    assert (store.get(window_key(b"k", 0)), store.get(window_key(b"k", 1))) == (None, b"v")


@pytest.mark.parametrize("reopen", [False, True])
def test_a_record_that_has_expired_is_not_written_also_after_a_restart(folder: Path, reopen: bool) -> None:
    with opened(WindowStore, folder) as store:
        put(store, (window_key(b"k", 500), b"v"), offset=1)
        if not reopen:
            put(store, (window_key(b"late", 300), b"v"), offset=2)
            assert (store.segments, store.expired_records) == ((12,), 1)
    with opened(WindowStore, folder) as store:
        if reopen:
            put(store, (window_key(b"late", 300), b"v"), offset=2)
            assert store.expired_records == 1
        assert (store.segments, store.stream_time, store.offset()) == ((12,), 500, 2)
        assert len(everything(store)) == 1


def test_a_deletion_moves_stream_time_as_any_record_does(store: SegmentedStore) -> None:
    put(store, (window_key(b"k", 10), b"v"))
    put(store, (window_key(b"other", 500), None))
    assert (store.stream_time, everything(store)) == (500, [])


def test_a_session_is_kept_by_its_end(folder: Path) -> None:
    with opened(SessionStore, folder) as store:
        long = session_key(b"k", 0, 450)
        put(store, (long, b"v"), (session_key(b"k", 0, 10), b"v"), (session_key(b"k", 500, 500), b"v"))
        assert [key for key, _ in everything(store)] == [long, session_key(b"k", 500, 500)]
        assert [key for key, _ in store.fetch(b"k", b"k", 0, 5)] == [long]


def test_segments_that_a_crash_left_behind_are_dropped_at_the_next_opening(folder: Path) -> None:
    with opened(WindowStore, folder) as store:
        store._database.drop_before = lambda _: None  # type: ignore[method-assign]  # the crash comes before the drop
        put(store, (window_key(b"k", 0), b"v"), offset=1)
        put(store, (window_key(b"k", 10_000), b"v"), offset=2)
        assert store.segments == (0, 250)
        assert len(everything(store)) == 1
    with opened(WindowStore, folder) as store:
        assert (store.segments, store.offset()) == ((250,), 2)


@pytest.mark.parametrize(
    ("before", "said"),
    [
        (lambda folder: WindowStore("windows", CHANGELOG, folder, 2 * RETENTION, 2 * INTERVAL), "segments of 80 ms"),
        (lambda folder: SessionStore("windows", CHANGELOG, folder, RETENTION, INTERVAL), "sessions, segments of 40 ms"),
        (lambda folder: KeyValueStore("windows", CHANGELOG, folder), "a key-value store"),
    ],
    ids=["segments", "kind", "key-value"],
)
def test_what_was_written_as_another_store_is_wiped_and_restored(
    folder: Path, caplog: pytest.LogCaptureFixture, before: Callable[[Path], LocalStore], said: str
) -> None:
    """It would lie in the wrong segments, or be taken for something else, and the checkpoint would hide that."""
    old = before(folder / "windows")
    old.write(Updates([session_key(b"key", 5, 5)], [b"v"], [1]), 1)
    old.close()
    with caplog.at_level(logging.WARNING), opened(WindowStore, folder) as store:
        assert (store.is_empty(), store.offset(), store.stream_time) == (True, None, -1)
        put(store, (window_key(b"k", 10), b"v"), offset=2)
    assert f"{said}" in caplog.text
    assert "and is windows, segments of 40 ms now" in caplog.text
    caplog.clear()
    with opened(WindowStore, folder) as store:
        assert (store.offset(), len(everything(store))) == (2, 1)
    assert caplog.text == ""


# --- the store as tasks and restoration use it


def test_values_lie_with_their_timestamps_in_a_window_store_and_without_in_a_session_store(folder: Path) -> None:
    for kind, key, expected in (
        (WindowStore, window_key(b"k", 1), stamp(7, b"v")),
        (SessionStore, session_key(b"k", 1, 1), b"v"),
    ):
        with memory_folder() as made, opened(kind, made) as store:
            put(store, (key, b"v"))
            assert (store.get_stored([key]), store.get(key)) == ([expected], b"v")


def test_an_empty_write_moves_the_offset_alone(store: SegmentedStore) -> None:
    put(store, offset=4)
    assert (store.offset(), store.stream_time, store.is_empty()) == (4, -1, True)


def test_wiping_leaves_an_open_empty_store_without_checkpoint_and_stream_time(store: SegmentedStore) -> None:
    put(store, (window_key(b"k", 500), b"v"), offset=4)
    store.wipe()
    assert (store.is_open, store.is_empty(), store.offset(), store.stream_time) == (True, True, None, -1)
    put(store, (window_key(b"k", 1), b"v"), offset=1)
    assert (len(everything(store)), store.approximate_num_entries()) == (1, 1)


def test_a_key_that_is_too_short_is_an_error_that_names_the_topic(store: SegmentedStore) -> None:
    with pytest.raises(ProcessorStateException, match=r"app-windows-changelog-0 has a key of 5 bytes.*another kind"):
        put(store, (window_key(b"k", 1), b"v"), (b"plain", b"v"), offset=3)
    assert (store.is_empty(), store.offset()) == (True, None)


def test_files_of_a_changelog_are_refused_by_name(store: SegmentedStore) -> None:
    assert not store.takes_files
    with pytest.raises(NotSupportedException, match="store windows keeps its records in segments"):
        store.ingest([], 1)


def damaged(pattern: str, folder: Path) -> None:
    """Make the store's first file of that name end too early, and with nonsense."""
    path = min((folder / "windows").glob(pattern))
    path.write_bytes(path.read_bytes()[:60] + b"nonsense")


@pytest.mark.parametrize("pattern", ["CURRENT", "MANIFEST-*", "*.sst"])
def test_damaged_files_are_told_apart_and_the_folder_can_be_deleted_at_once(folder: Path, pattern: str) -> None:
    with opened(WindowStore, folder) as store:
        put(store, *((window_key(b"%04d" % at, 5), bytes(50)) for at in range(500)), offset=4)
    damaged(pattern, folder)
    with pytest.raises(TaskCorruptedException, match="windows can't be opened, its files are damaged"):
        WindowStore("windows", CHANGELOG, folder / "windows", RETENTION, INTERVAL)
    shutil.rmtree(folder / "windows")
    with opened(WindowStore, folder) as again:
        assert (again.is_empty(), again.offset()) == (True, None)


def test_every_read_and_write_of_a_closed_store_says_that_it_is_closed(folder: Path) -> None:
    with opened(WindowStore, folder) as store:
        put(store, (window_key(b"k", 1), b"v"))
        scan = store.fetch(None, None, 0, LATEST)
    store.close()
    assert not store.is_open
    for call in (
        lambda: store.get(window_key(b"k", 1)),
        lambda: next(scan),
        lambda: put(store, (window_key(b"k", 2), b"v")),
        lambda: put(store, offset=1),
        store.offset,
        store.approximate_num_entries,
    ):
        with pytest.raises(StoreClosed):
            call()


@pytest.mark.parametrize("reverse", [False, True])
def test_a_scan_in_progress_ends_with_the_store_and_does_not_keep_the_folder(folder: Path, reverse: bool) -> None:
    with opened(WindowStore, folder) as store:
        put(store, *((window_key(b"%04d" % at, at % 90), b"v") for at in range(2000)))
        scan = store.fetch(None, None, 0, LATEST, reverse=reverse)
        for _ in range(600):
            next(scan)
        store.close()
        with opened(WindowStore, folder) as again:
            with pytest.raises(StoreClosed):
                list(scan)
            assert len(everything(again)) == 2000


def test_a_scan_of_a_segment_that_is_dropped_meanwhile_ends_and_the_others_go_on(store: SegmentedStore) -> None:
    put(store, *((window_key(b"%04d" % at, 5), b"old") for at in range(1500)))
    put(store, *((window_key(b"%04d" % at, 45), b"new") for at in range(1500)))
    scan = store.fetch(None, None, 0, LATEST)
    seen = [next(scan) for _ in range(4)]
    put(store, (window_key(b"k", 141), b"v"))
    assert 0 not in store.segments
    seen += list(scan)
    assert len([value for _, value in seen if value == b"new"]) == 1500
    assert 0 < len([value for _, value in seen if value == b"old"]) < 1500
    assert [key for key, _ in seen] == sorted(key for key, _ in seen)


def test_reading_goes_on_safely_while_segments_come_and_go(folder: Path) -> None:
    failures: list[BaseException] = []
    rounds = [0, 0, 0]

    def read(store: SegmentedStore, reader: int) -> None:
        try:
            while True:
                for key, value in store.fetch(None, None, 0, LATEST, reverse=reader == 1):
                    assert value == b"%d" % split_window_key(key)[1]
                store.get_stored([window_key(b"00", max(store.stream_time, 0))])
                store.approximate_num_entries()
                rounds[reader] += 1
        except StoreClosed:
            pass
        except BaseException as error:
            failures.append(error)

    with opened(WindowStore, folder) as store:
        readers = [threading.Thread(target=read, args=(store, each)) for each in range(3)]
        for reader in readers:
            reader.start()
        for time in range(0, 40 * INTERVAL, INTERVAL):
            put(store, *((window_key(b"%02d" % at, time + at), b"%d" % (time + at)) for at in range(20)))
        eventually(lambda: failures or all(rounds), "every reader has read once")
    for reader in readers:
        reader.join(10)
    assert failures == []
    with opened(WindowStore, folder) as again:
        assert len(again.segments) <= RETENTION // INTERVAL + 2
