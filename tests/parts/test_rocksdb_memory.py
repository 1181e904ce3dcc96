"""One memory budget for all stores of an instance: block cache, indexes, filters and memtables together."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path

import pytest
from state_kit import memory_folder

from streams_runtime.kafka.types import TopicPartition
from streams_runtime.state.database.open_database import StoreClosed
from streams_runtime.state.database.rocksdb_options import RocksDBOptions, RocksDBSettings
from streams_runtime.state.global_store import GlobalStore
from streams_runtime.state.store import KeyValueStore, LocalStore, Updates
from streams_runtime.state.window_keys import window_key
from streams_runtime.state.window_store import WindowStore

MIB = 1024 * 1024
BUDGET = 32 * MIB
ROWS = 1_000
BATCH = 2 * ROWS * 200  # bytes of one write, in a memtable and with its keys: what may go beyond
STORES = 8


@pytest.fixture
def folder() -> Iterator[Path]:
    with memory_folder() as made:
        yield made


def opened(stack: ExitStack, folder: Path, options: RocksDBOptions, count: int = STORES) -> list[LocalStore]:
    """Stores of every kind, closed with the stack."""
    stores: list[LocalStore] = []
    for number in range(count):
        log, place = TopicPartition("log", number), folder / str(number)
        store: LocalStore
        if number % 4 == 1:
            store = WindowStore("minutes", log, place, 600_000, 60_000, options=options)
        elif number % 4 == 2:
            store = GlobalStore("airlines", "log", place, options=options)
        else:
            store = KeyValueStore("totals", log, place, options=options)
        stores.append(store)
        stack.callback(store.close)
    return stores


def write(store: LocalStore, round_: int) -> None:
    numbers = range(ROWS * round_, ROWS * (round_ + 1))
    windowed = isinstance(store, WindowStore)
    keys = [window_key(b"%08d" % n, 60_000 * (n % 3)) if windowed else b"%08d" % n for n in numbers]
    store.write(Updates(keys, [b"%0100d" % n for n in numbers], [1] * ROWS), round_)


def memtables(stores: Sequence[LocalStore]) -> int:
    """Bytes of all memtables, the offsets' included."""
    found = 0
    for store in stores:
        database = store._database
        for family in (database._offsets, *database._data_families()):
            found += family.property_int_value("rocksdb.cur-size-all-mem-tables") or 0
    return found


def files_made(store: LocalStore) -> int:
    """RocksDB numbers all of its files in a row."""
    return max((int(file.stem) for file in store.folder.glob("*.sst")), default=0)


def worst(folder: Path, options: RocksDBOptions, rounds: int = 40) -> tuple[int, int]:
    """The most bytes that were in the cache, and in memtables, while stores were written and read."""
    cache = most = 0
    with ExitStack() as stack:
        stores = opened(stack, folder, options)
        for round_ in range(rounds):
            for store in stores:
                write(store, round_)
                most = max(most, memtables(stores))
                cache = max(cache, options.memory_figures()["block-cache-usage"])
        for store in stores:
            if isinstance(store, KeyValueStore):
                assert sum(1 for _ in store.scan(None, None)) == ROWS * rounds
            cache = max(cache, options.memory_figures()["block-cache-usage"])
    return cache, most


def test_all_stores_together_stay_within_the_budget_which_they_would_not_without(folder: Path) -> None:
    settings = RocksDBSettings(memory=BUDGET)
    cache, most = worst(folder / "with", RocksDBOptions(settings))
    assert cache <= BUDGET + BATCH
    assert most <= BUDGET // 2 + BATCH
    assert cache > BUDGET // 2, "and use it"
    _, without = worst(folder / "without", RocksDBOptions())
    assert without > 1.5 * BUDGET, "in memtables alone"


def test_the_cache_counts_memtables_indexes_and_filters(folder: Path) -> None:
    options = RocksDBOptions(RocksDBSettings(memory=BUDGET))
    with ExitStack() as stack:
        (store,) = opened(stack, folder, options, 1)
        empty = options.memory_figures()
        assert empty["block-cache-capacity"] == BUDGET
        for round_ in range(20):
            write(store, round_)
        held = memtables([store])
        assert held > 2 * MIB
        assert options.memory_figures()["block-cache-pinned-usage"] >= held
        store._database._db.flush()
        assert isinstance(store, KeyValueStore)
        assert store.get(b"%08d" % 7) == b"%0100d" % 7
        read = options.memory_figures()
        filters = 20 * ROWS * 10 // 8
        assert read["block-cache-usage"] - read["block-cache-pinned-usage"] >= filters
        assert store.properties()["estimate-table-readers-mem"] < filters, "they lie nowhere else"
    # What is closed gives its memory back.
    assert options.memory_figures()["block-cache-pinned-usage"] <= empty["block-cache-pinned-usage"]


def test_stores_that_nobody_writes_make_room_for_the_one_that_is_written(folder: Path) -> None:
    options = RocksDBOptions(RocksDBSettings(memory=16 * MIB))
    rounds = 100
    with ExitStack() as stack:
        stores = opened(stack, folder, options)
        # Together they have as much as makes RocksDB flush at each write, each far from a full memtable.
        for round_ in range(5):
            for store in stores[1:]:
                write(store, round_)
        for round_ in range(rounds):
            write(stores[0], round_)
        assert sum(files_made(each) > 0 for each in stores[1:]) > len(stores) // 2
        assert files_made(stores[0]) < rounds // 2


def test_a_batch_that_is_larger_than_the_budget_is_written_whole_and_gone_from_memory_with_the_next(
    folder: Path,
) -> None:
    options = RocksDBOptions(RocksDBSettings(memory=16 * MIB))
    with ExitStack() as stack:
        (store,) = opened(stack, folder, options, 1)
        assert isinstance(store, KeyValueStore)
        rows = 200_000
        keys = [b"%08d" % number for number in range(rows)]
        store.write(Updates(keys, [bytes(100)] * rows, [1] * rows), 7)
        assert memtables([store]) > 16 * MIB
        assert store.offset() == 7
        write(store, 1_000)
        store._database._db.flush()
        assert memtables([store]) < 8 * MIB
        assert store.get(keys[-1]) == bytes(100)


@pytest.mark.timeout(120)
def test_stores_are_written_opened_and_closed_by_several_threads_at_once(folder: Path) -> None:
    options = RocksDBOptions(RocksDBSettings(memory=16 * MIB))
    failed: list[BaseException] = []

    def live(number: int) -> None:
        try:
            for life in range(3):
                store = KeyValueStore("s", TopicPartition("log", number), folder / str(number), options=options)
                assert store.offset() == (None if life == 0 else 20 * life - 1)
                for round_ in range(20 * life, 20 * life + 20):
                    write(store, round_)
                store.close()
                with pytest.raises(StoreClosed):
                    write(store, 0)
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=live, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed
    for number in range(6):
        store = KeyValueStore("s", TopicPartition("log", number), folder / str(number), options=options)
        assert sum(1 for _ in store.scan(None, None)) == 60 * ROWS
        store.close()
