"""spec.state.rocksdb in real databases: what is opened, what lies in files, what a restart with other options finds."""

from __future__ import annotations

import os
import random
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from rocksdict import Rdict
from state_kit import contents, memory_folder
from waiting import eventually

from streams_runtime.api.spec.pod_spec import RocksDBSpec
from streams_runtime.kafka.types import TopicPartition
from streams_runtime.state.database.rocksdb_adapter import write_sst
from streams_runtime.state.database.rocksdb_options import DEFAULT_OPTIONS, RocksDBOptions
from streams_runtime.state.store import KeyValueStore, LocalStore, Updates, stamp
from streams_runtime.state.store_options import store_options
from streams_runtime.state.versioned_store import VersionedStore
from streams_runtime.state.window_keys import window_key
from streams_runtime.state.window_store import WindowStore

LOG = TopicPartition("app-totals-changelog", 0)
ALL = {
    "memory": "64Mi",
    "writeBufferSize": "1Mi",
    "blockSize": "16Ki",
    "bloomFilterBits": 20,
    "compression": "zstd",
    "compaction": "universal",
    "maxBackgroundJobs": 4,
}
OPENED = {
    "write_buffer_size": "1048576",
    "arena_block_size": "65536",
    "block_size": "16384",
    "filter_policy": "bloomfilter",
    "compression": "kZSTD",
    "compaction_style": "kCompactionStyleUniversal",
    "max_background_jobs": "4",
    "cache_index_and_filter_blocks": "true",
}
BY_DEFAULT = {
    "write_buffer_size": "16777216",
    "arena_block_size": "1048576",
    "block_size": "4096",
    "filter_policy": "bloomfilter",
    "compression": "kSnappyCompression",
    "compaction_style": "kCompactionStyleLevel",
    "max_background_jobs": "2",
    "cache_index_and_filter_blocks": "false",
}
Make = Callable[[Path, RocksDBOptions], LocalStore]


@pytest.fixture
def folder() -> Iterator[Path]:
    with memory_folder() as made:
        yield made


def given(**fields: Any) -> RocksDBOptions:
    return store_options(RocksDBSpec.model_validate(fields))


def key_values(folder: Path, options: RocksDBOptions) -> KeyValueStore:
    return KeyValueStore("totals", LOG, folder, options=options)


def windows(folder: Path, options: RocksDBOptions) -> WindowStore:
    return WindowStore("minutes", LOG, folder, 600_000, 60_000, options=options)


def histories(folder: Path, options: RocksDBOptions) -> VersionedStore:
    return VersionedStore("prices", LOG, folder, 180_000, options=options)


def fill(store: LocalStore, rows: range = range(300), value: bytes = b"v" * 100) -> dict[bytes, bytes]:
    """Put records in, and return them: in three segments of a window store, or of what they replace in a history."""
    times = [60_000 * (row % 3) for row in rows]
    pairs = {
        window_key(b"%08d" % row, time) if isinstance(store, WindowStore) else b"%08d" % row: value
        for row, time in zip(rows, times, strict=True)
    }
    if isinstance(store, VersionedStore):
        store.write(Updates(list(pairs), [b"replaced"] * len(pairs), [0] * len(pairs)), 4)
    store.write(Updates(list(pairs), list(pairs.values()), [60_000 + time for time in times]), 5)
    return pairs


def options_file(folder: Path) -> dict[str, set[str]]:
    """Every option that RocksDB says a database was opened with, with its values over all families."""
    newest = max(folder.glob("OPTIONS-*"), key=lambda file: int(file.name.removeprefix("OPTIONS-")))
    found: dict[str, set[str]] = {}
    for name, value in re.findall(r"^  (\w+)=(.*)$", newest.read_text(), re.MULTILINE):
        found.setdefault(name, set()).add(value)
    return found


def families(folder: Path) -> int:
    return len(Rdict.list_cf(str(folder)))


def table_properties(store: KeyValueStore) -> dict[str, int]:
    """Of all files of a store together, by RocksDB's names."""
    text = store._database._db.property_value("rocksdb.aggregated-table-properties") or ""
    return {name: int(number) for name, number in re.findall(r"([^;=]+)=(\d+);", text.replace("; ", ";"))}


@pytest.mark.parametrize("make", [key_values, windows, histories])
@pytest.mark.parametrize(("fields", "opened"), [(ALL, OPENED), ({}, BY_DEFAULT)], ids=["all", "none"])
def test_every_family_of_a_database_is_opened_with_what_is_given(
    make: Make, fields: dict[str, Any], opened: dict[str, str], folder: Path
) -> None:
    store = make(folder / "store", given(**fields))
    fill(store)
    store.close()
    assert families(folder / "store") == (2 if make is key_values else 5)
    found = options_file(folder / "store")
    assert {name: found[name] for name in opened} == {name: {value} for name, value in opened.items()}


def test_without_options_all_stores_of_a_process_share_the_one_cache() -> None:
    assert given() is DEFAULT_OPTIONS
    assert given(blockSize="4096", writeBufferSize="16777216", compression="snappy") is DEFAULT_OPTIONS
    assert DEFAULT_OPTIONS.memory_figures()["block-cache-capacity"] == 50 * 1024 * 1024
    budget = given(memory="64Mi")
    assert budget is not given(memory="64Mi"), "each instance has memory of its own"
    assert budget.memory_figures()["block-cache-capacity"] == 64 * 1024 * 1024


def test_the_bits_of_the_filter_are_those_that_files_have(folder: Path) -> None:
    sizes = {}
    for bits in (0, 10, 20):
        store = key_values(folder / str(bits), given(bloomFilterBits=bits))
        pairs = fill(store, range(5_000))
        store._database._db.flush()
        sizes[bits] = table_properties(store)["filter block size"] * 8 / len(pairs)
        assert contents(store) == pairs
        store.close()
    assert sizes[0] == 0
    assert 9 < sizes[10] < 11
    assert 19 < sizes[20] < 22


def test_larger_blocks_are_fewer(folder: Path) -> None:
    blocks = {}
    for size in ("4Ki", "64Ki"):
        store = key_values(folder / size, given(blockSize=size))
        fill(store, range(5_000))
        store._database._db.flush()
        blocks[size] = table_properties(store)["# data blocks"]
        store.close()
    assert blocks["4Ki"] > 10 * blocks["64Ki"]


@pytest.mark.parametrize(
    ("compression", "name"), [("none", b"NoCompression"), ("snappy", b"Snappy"), ("lz4", b"LZ4"), ("zstd", b"ZSTD")]
)
def test_files_are_compressed_as_it_says_those_of_bulk_loads_too(compression: str, name: bytes, folder: Path) -> None:
    options = given(compression=compression)
    store = key_values(folder / "store", options)
    fill(store, range(1_000))
    store._database._db.flush()
    write_sst(folder / "1.sst", [(b"%08d" % row, stamp(1, b"v" * 100)) for row in range(1_000)], options)
    files = [*(folder / "store").glob("*.sst"), folder / "1.sst"]
    for file in files:
        assert name in file.read_bytes()
        assert (file.stat().st_size > 100_000) is (compression == "none"), "it is not only called so"
    store.ingest([folder / "1.sst"], 7)
    assert contents(store) == {b"%08d" % row: b"v" * 100 for row in range(1_000)}
    store.close()


THREADS = """
import sys
from pathlib import Path
from streams_runtime.kafka.types import TopicPartition
from streams_runtime.state.database.rocksdb_options import RocksDBOptions, RocksDBSettings
from streams_runtime.state.store import KeyValueStore
options = RocksDBOptions(RocksDBSettings(max_background_jobs=int(sys.argv[2])))
stores = [KeyValueStore("s", TopicPartition("s", n), Path(sys.argv[1]) / str(n), options=options) for n in range(3)]
names = [each.read_text() for each in Path("/proc/self/task").glob("*/comm")]
print(sum("rocksdb:" in name for name in names))
[store.close() for store in stores]
"""


@pytest.mark.parametrize("jobs", [2, 6])
def test_the_jobs_are_threads_of_all_stores_together(jobs: int, folder: Path) -> None:
    command = [sys.executable, "-c", THREADS, str(folder), str(jobs)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=os.environ)
    assert int(done.stdout) == jobs


@pytest.mark.parametrize("make", [key_values, windows, histories])
def test_a_start_with_other_options_keeps_what_was_written_with_the_old_ones(make: Make, folder: Path) -> None:
    place, small = folder / "store", {"writeBufferSize": "64Ki"}
    rounds: list[dict[str, Any]] = [{}, ALL, small, {"compaction": "universal", **small}, {"bloomFilterBits": 0}, ALL]
    expected: dict[bytes, bytes] = {}
    for number, fields in enumerate(rounds):
        store = make(place, given(**fields))
        assert {key: store.get(key) for key in expected} == expected
        assert store.offset() == (5 if number else None)
        # Each round replaces some, and adds some.
        for start in range(0, 6_000, 1_000):
            rows = range(start + 500 * number, start + 500 * number + 1_000)
            expected |= fill(store, rows, random.Random(number).randbytes(200))
        store.close()
    again = make(place, given())
    assert {key: again.get(key) for key in expected} == expected
    again.close()


def test_compaction_styles_change_over_files_of_several_levels(folder: Path) -> None:
    expected = {}
    for number, style in enumerate(("level", "universal", "level")):
        store = key_values(folder / "store", given(compaction=style, writeBufferSize="64Ki"))
        for start in range(0, 10_000, 1_000):
            expected |= fill(store, range(start, start + 1_000), random.Random(f"{number} {start}").randbytes(100))
        store._database._db.compact_range(None, None)
        levels = store._database._db.property_value("rocksdb.levelstats") or ""
        assert re.findall(r"^\s+([1-6])\s+[1-9]", levels, re.MULTILINE), levels
        assert contents(store) == expected
        store.close()


@pytest.mark.parametrize(("written", "read"), [(ALL, {}), ({}, ALL)], ids=["from all", "to all"])
def test_a_store_begins_with_files_that_were_copied_from_one_with_other_options(
    written: dict[str, Any], read: dict[str, Any], folder: Path
) -> None:
    with (
        closing(key_values(folder / "old", given(**written))) as old,
        closing(key_values(folder / "new", given(**read))) as new,
    ):
        pairs = fill(old)
        old.flush_soon()
        eventually(lambda: old.checkpoint(folder / "copy") is not None, "its memtables are in files")
        new.adopt(folder / "copy")
        assert contents(new) == pairs
        assert new.offset() == 5
