"""The RocksDB adapter and the store over it: what is written is read back, in order, with its time and its offset."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from state_kit import contents, key_value_store, memory_folder

from streams_runtime.errors import ProcessorStateException
from streams_runtime.kafka.types import TopicPartition
from streams_runtime.query.stores.local_partitions import LocalView
from streams_runtime.state.database.rocksdb_adapter import RocksDB, StoreClosed, write_sst
from streams_runtime.state.store import KeyValueStore, Updates, stamp, unstamp

CHUNK = 512  # a scan reads this many pairs at a time


@pytest.fixture
def folder() -> Iterator[Path]:
    with memory_folder() as made:
        yield made


@pytest.fixture
def store(folder: Path) -> Iterator[KeyValueStore]:
    with key_value_store(folder) as opened:
        yield opened


def numbered(count: int) -> list[bytes]:
    return [f"{number:05}".encode() for number in range(count)]


def put(store: KeyValueStore, values: dict[bytes, bytes | None], offset: int | None = None, time: int = 1) -> None:
    store.write(Updates(list(values), list(values.values()), [time] * len(values)), offset)


def test_a_new_store_is_empty_and_has_no_checkpoint(store: KeyValueStore) -> None:
    assert (store.is_empty(), store.offset(), store.get(b"a"), contents(store)) == (True, None, None, {})


def test_values_come_back_by_key_and_a_none_deletes(store: KeyValueStore) -> None:
    put(store, {b"a": b"1", b"": b"empty key", b"\xff\xff": b"", b"gone": b"x"})
    put(store, {b"a": b"2", b"gone": None, b"never there": None})
    assert contents(store) == {b"a": b"2", b"": b"empty key", b"\xff\xff": b""}
    assert (store.get(b"gone"), store.get(b"\xff\xff"), store.is_empty()) == (None, b"", False)


@pytest.mark.parametrize("step", [1, 3, 40], ids=["close together", "apart", "far apart"])
def test_many_keys_are_read_as_few_are(folder: Path, step: int) -> None:
    keys = numbered(60_000)
    database = RocksDB(folder / "many")
    database.write(keys, [b"of " + key for key in keys], 1)
    database.write(keys[500:30_000], [None] * 29_500, 2)  # more at a time than a walk passes over
    database.write(keys[400:900], [b"again " + key for key in keys[400:900]], 3)
    there = {key: b"of " + key for key in keys[:400] + keys[30_000:]} | {key: b"again " + key for key in keys[400:900]}
    asked = [b"", *keys[::step], *(key + b"+" for key in keys[-1500:]), b"x"]
    unsorted = keys[:100] + keys[-100:] + keys[100:-100]
    for each in (sorted(asked), asked[::-1], unsorted, keys[-1500:], [b"x"] * 1500, asked[:10]):
        assert database.get(each) == [there.get(key) for key in each]
    database.close()


def test_a_walk_over_many_keys_does_not_keep_the_folder(folder: Path) -> None:
    keys = numbered(5000)
    for _ in range(2):
        database = RocksDB(folder / "many")
        database.write(keys, keys, None)
        assert database.get(keys) == keys
        database.close()
    with pytest.raises(StoreClosed):
        database.get(keys)


def test_a_value_carries_its_timestamp(store: KeyValueStore) -> None:
    store.write(Updates([b"a", b"b", b"c"], [b"1", b"2", None], [1_700_000_000_000, -1, 5]), None)
    stored = store.get_stored([b"b", b"a", b"c"])
    assert stored == [stamp(-1, b"2"), stamp(1_700_000_000_000, b"1"), None]
    assert unstamp(stamp(1_700_000_000_000, b"1")) == (1_700_000_000_000, b"1")
    assert stamp(258, b"v") == b"\0\0\0\0\0\0\x01\x02v"


def test_the_offset_moves_with_the_data_or_stays(store: KeyValueStore) -> None:
    put(store, {b"a": b"1"}, offset=0)
    assert store.offset() == 0
    put(store, {b"a": b"2"}, offset=2**62)
    put(store, {b"b": b"3"})
    put(store, {}, offset=None)
    assert store.offset() == 2**62


def test_contents_and_offset_survive_closing(folder: Path) -> None:
    with key_value_store(folder) as store:
        put(store, {b"a": b"1"}, offset=7, time=3)
    with key_value_store(folder) as again:
        assert (again.offset(), again.get_stored([b"a"])) == (7, [stamp(3, b"1")])


def test_keys_and_values_of_different_length_are_refused_and_nothing_is_written(store: KeyValueStore) -> None:
    with pytest.raises(ValueError, match="zip"):
        store.write(Updates([b"a", b"b"], [b"1", b"2"], [1]), 9)
    assert (contents(store), store.offset()) == ({}, None)


KEYS = st.binary(max_size=3)


@settings(max_examples=40)
@given(
    st.dictionaries(KEYS, st.binary(max_size=2), max_size=30),
    st.none() | KEYS,
    st.none() | KEYS,
    st.booleans(),
)
def test_a_scan_agrees_with_a_sorted_dict(
    model: dict[bytes, bytes], start: bytes | None, end: bytes | None, reverse: bool
) -> None:
    with memory_folder() as folder, key_value_store(folder) as store:
        put(store, dict(model))
        inside = [k for k in sorted(model) if (start is None or k >= start) and (end is None or k <= end)]
        expected = [(key, model[key]) for key in (reversed(inside) if reverse else inside)]
        assert list(store.scan(start, end, reverse=reverse)) == expected


@settings(max_examples=25)
@given(st.dictionaries(KEYS, st.just(b"v"), max_size=30), st.binary(max_size=2))
def test_a_prefix_scan_agrees_with_a_sorted_dict(model: dict[bytes, bytes], prefix: bytes) -> None:
    with memory_folder() as folder, key_value_store(folder) as store:
        put(store, dict(model))
        found = [key for key, _ in LocalView(store).prefix_scan(prefix)]
        assert found == sorted(key for key in model if key.startswith(prefix))


@settings(max_examples=15)
@given(
    st.lists(
        st.tuples(st.dictionaries(KEYS, st.none() | st.binary(max_size=2), max_size=10), st.booleans()), max_size=6
    )
)
def test_any_sequence_of_writes_and_reopenings_ends_as_a_dict_does(
    steps: list[tuple[dict[bytes, bytes | None], bool]],
) -> None:
    model: dict[bytes, bytes] = {}
    with memory_folder() as folder:
        for offset, (changes, reopen) in enumerate(steps):
            with key_value_store(folder) as store:
                put(store, changes, offset)
                for key, value in changes.items():
                    if value is None:
                        model.pop(key, None)
                    else:
                        model[key] = value
                if not reopen:
                    assert contents(store) == model
            with key_value_store(folder) as store:
                assert (contents(store), store.offset()) == (model, offset)


@pytest.mark.parametrize("count", [CHUNK - 1, CHUNK, CHUNK + 1, 2 * CHUNK, 2 * CHUNK + 1])
@pytest.mark.parametrize("reverse", [False, True])
def test_a_scan_misses_and_repeats_nothing_at_the_border_of_its_chunks(
    store: KeyValueStore, count: int, reverse: bool
) -> None:
    keys = numbered(count)
    put(store, dict.fromkeys(keys, b"v"))
    assert [key for key, _ in store.scan(None, None, reverse=reverse)] == (keys[::-1] if reverse else keys)
    inner = keys[1:-1]
    found = [key for key, _ in store.scan(inner[0], inner[-1], reverse=reverse)]
    assert found == (inner[::-1] if reverse else inner)


@pytest.mark.parametrize("reverse", [False, True])
def test_a_scan_goes_on_past_a_key_that_was_deleted_under_it(store: KeyValueStore, reverse: bool) -> None:
    keys = numbered(2 * CHUNK)
    put(store, dict.fromkeys(keys, b"v"))
    scan = store.scan(None, None, reverse=reverse)
    ordered = keys[::-1] if reverse else keys
    seen = [next(scan)[0] for _ in range(CHUNK)]
    put(store, {ordered[CHUNK - 1]: None, ordered[CHUNK]: None})
    assert seen + [key for key, _ in scan] == ordered[:CHUNK] + ordered[CHUNK + 1 :]


def test_every_read_of_a_closed_store_says_that_it_is_closed(folder: Path) -> None:
    with key_value_store(folder) as store:
        put(store, {b"a": b"1"}, 1)
    assert not store.is_open
    reads = [
        lambda: store.get(b"a"),
        lambda: store.get_stored([b"a"]),
        store.offset,
        store.is_empty,
        store.approximate_num_entries,
        lambda: list(store.scan(None, None)),
    ]
    for read in reads:
        with pytest.raises(StoreClosed):
            read()


@pytest.mark.parametrize("offset", [None, 7])
def test_a_write_to_a_closed_store_says_that_it_is_closed(folder: Path, offset: int | None) -> None:
    with key_value_store(folder) as store:
        pass
    with pytest.raises(StoreClosed):
        put(store, {b"a": b"1"}, offset)
    with pytest.raises(StoreClosed):
        store.ingest([], 7)


def test_closing_twice_is_the_same_as_closing_once(store: KeyValueStore) -> None:
    store.close()
    store.close()
    assert not store.is_open


@pytest.mark.parametrize("reverse", [False, True])
def test_a_scan_in_progress_ends_with_the_store_and_does_not_keep_the_folder(folder: Path, reverse: bool) -> None:
    with key_value_store(folder) as store:
        put(store, dict.fromkeys(numbered(CHUNK + 10), b"v"))
        scan = store.scan(None, None, reverse=reverse)
        for _ in range(CHUNK):
            next(scan)
        store.close()
        with key_value_store(folder) as again:
            with pytest.raises(StoreClosed):
                next(scan)
            assert len(contents(again)) == CHUNK + 10


def test_a_store_can_be_closed_and_opened_again_at_once_while_others_read_it(folder: Path) -> None:
    """Queries read on their own threads; a rebalance closes the store under them and may bring it back."""
    failures: list[BaseException] = []

    def read(store: KeyValueStore, started: threading.Event) -> None:
        try:
            while True:
                store.get_stored(numbered(200))
                store.offset()
                store.approximate_num_entries()
                next(store.scan(None, None))
                started.set()
        except StoreClosed:
            pass
        except BaseException as error:
            failures.append(error)

    for _ in range(5):
        with key_value_store(folder) as store:
            put(store, dict.fromkeys(numbered(200), b"v"))
            started = [threading.Event() for _ in range(3)]
            readers = [threading.Thread(target=read, args=(store, each)) for each in started]
            for reader in readers:
                reader.start()
            assert all(each.wait(10) for each in started)
            store.close()
            with key_value_store(folder) as again:
                assert len(contents(again)) == 200
            for reader in readers:
                reader.join(10)
    assert failures == []


def test_wiping_leaves_an_open_empty_store_without_a_checkpoint(folder: Path, store: KeyValueStore) -> None:
    put(store, {b"a": b"1"}, offset=7)
    store.wipe()
    assert (store.is_open, store.is_empty(), store.offset()) == (True, True, None)
    put(store, {b"b": b"2"}, offset=1)
    assert (contents(store), store.offset()) == ({b"b": b"2"}, 1)


def sst(folder: Path, name: str, pairs: dict[bytes, bytes | None]) -> Path:
    path = folder / f"{name}.sst"
    write_sst(path, sorted((k, None if v is None else stamp(1, v)) for k, v in pairs.items()))
    return path


def test_files_are_taken_over_with_their_deletes_and_later_ones_win(folder: Path, store: KeyValueStore) -> None:
    put(store, {b"a": b"old", b"b": b"old", b"c": b"old", b"d": b"old"}, offset=4)
    first = sst(folder, "first", {b"a": b"1", b"b": None, b"e": b"1", b"f": b"1"})
    second = sst(folder, "second", {b"b": b"2", b"e": None, b"f": b"2"})
    only_deletes = sst(folder, "third", {b"c": None})
    store.ingest([first, second, only_deletes], 90)
    assert contents(store) == {b"a": b"1", b"b": b"2", b"d": b"old", b"f": b"2"}
    assert store.offset() == 90
    put(store, {b"a": b"later"})
    assert store.get(b"a") == b"later"


def test_files_that_were_taken_over_are_still_there_after_reopening(folder: Path) -> None:
    with key_value_store(folder) as store:
        store.ingest([sst(folder, "first", dict.fromkeys(numbered(2000), b"v"))], 2000)
    with key_value_store(folder) as again:
        assert (len(contents(again)), again.offset()) == (2000, 2000)
        again.wipe()
        assert again.is_empty()


@settings(max_examples=25)
@given(st.lists(st.dictionaries(KEYS, st.none() | st.binary(max_size=2), min_size=1, max_size=12), max_size=5))
def test_ingesting_files_is_the_same_as_writing_their_records(files: list[dict[bytes, bytes | None]]) -> None:
    with memory_folder() as folder, key_value_store(folder, "a") as one, key_value_store(folder, "b") as other:
        for number, pairs in enumerate(files):
            put(one, pairs)
            other.ingest([sst(folder, str(number), pairs)], number)
        assert contents(other) == contents(one)


def test_a_damaged_file_is_not_taken_over_and_the_offset_stays(folder: Path, store: KeyValueStore) -> None:
    put(store, {b"a": b"1"}, offset=4)
    damaged = folder / "damaged.sst"
    damaged.write_bytes(b"no sst")
    with pytest.raises(ProcessorStateException, match="can't be written"):
        store.ingest([damaged], 90)
    assert (contents(store), store.offset()) == ({b"a": b"1"}, 4)


def test_a_sst_file_in_a_folder_that_is_gone_is_an_error_with_its_path(folder: Path) -> None:
    with pytest.raises(ProcessorStateException, match=r"absent/1\.sst can't be written"):
        write_sst(folder / "absent" / "1.sst", [(b"a", b"1")])


def test_a_database_that_is_open_already_can_not_be_opened_again(folder: Path) -> None:
    database = RocksDB(folder / "db")
    try:
        with pytest.raises(ProcessorStateException, match=r"can't be opened.*lock"):
            RocksDB(folder / "db")
    finally:
        database.close()
    RocksDB(folder / "db").close()


def test_a_file_in_place_of_the_folder_is_an_error_that_names_it(folder: Path) -> None:
    (folder / "totals").write_text("I am a file")
    with pytest.raises(ProcessorStateException, match="totals can't be opened"):
        KeyValueStore("totals", TopicPartition("t", 0), folder / "totals")
    assert (folder / "totals").read_text() == "I am a file"


def test_a_damaged_database_is_an_error_that_says_what_to_do(folder: Path) -> None:
    with key_value_store(folder) as store:
        put(store, {b"a": b"1"}, offset=4)
    (folder / "totals-0" / "CURRENT").write_text("nonsense\n")
    with pytest.raises(ProcessorStateException, match="the folder may be deleted and is restored"):
        KeyValueStore("totals", TopicPartition("t", 0), folder / "totals-0")
