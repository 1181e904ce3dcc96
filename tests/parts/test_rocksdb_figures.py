"""What RocksDB tells of stores of every kind: its properties, and statistics and reads where they are measured."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from state_kit import memory_folder

from streams_runtime.kafka.types import TopicPartition
from streams_runtime.metrics.definitions.store_definitions import COUNTS, PROPERTIES, TIMED
from streams_runtime.metrics.metric_definition import Level
from streams_runtime.metrics.store_recorder import StoreRecorder, StoreRecorders
from streams_runtime.state.database.open_database import StoreClosed
from streams_runtime.state.database.rocksdb_figures import OF_DATABASES, OF_FAMILIES, TICKERS, TIMES
from streams_runtime.state.database.rocksdb_options import DEFAULT_OPTIONS
from streams_runtime.state.state_directory import StateDirectory
from streams_runtime.state.store import KeyValueStore, LocalStore, Updates
from streams_runtime.state.window_keys import window_key
from streams_runtime.state.window_store import WindowStore
from streams_runtime.tasks.task import Task
from streams_runtime.topology.plan import SubTopology, TaskId
from streams_runtime.topology.store_specs import StoreSpec

CHANGELOG = TopicPartition("app-totals-changelog", 0)
KEYS = [window_key(f"{number:04}".encode(), 60_000 * (number % 3)) for number in range(300)]
Make = Callable[[Path, StoreRecorder | None], LocalStore]


@pytest.fixture
def folder() -> Iterator[Path]:
    with memory_folder() as made:
        yield made


def key_values(folder: Path, measured: StoreRecorder | None = None) -> LocalStore:
    return KeyValueStore("totals", CHANGELOG, folder / "kv", measured)


def windows(folder: Path, measured: StoreRecorder | None = None) -> LocalStore:
    return WindowStore("minutes", CHANGELOG, folder / "windows", 600_000, 60_000, measured)


def fill(store: LocalStore) -> None:
    store.write(Updates(KEYS, [b"v" * 100] * len(KEYS), [1] * len(KEYS)), 5)


def test_every_property_and_statistic_that_is_shown_is_one_that_rocksdb_has(folder: Path) -> None:
    assert PROPERTIES.keys() == {*OF_FAMILIES, *OF_DATABASES}
    assert COUNTS.keys() == set(TICKERS)
    assert TIMED.keys() == set(TIMES)
    store = key_values(folder, StoreRecorder())
    assert store.statistics().keys() == {*TICKERS, *(f"{each}.{part}" for each in TIMES for part in ("count", "sum"))}
    store.close()


@pytest.mark.parametrize("make", [key_values, windows])
def test_the_properties_of_all_families_with_data_are_added_up(make: Make, folder: Path) -> None:
    store = make(folder, None)
    fill(store)
    found = store.properties()
    assert found["estimate-num-keys"] == found["num-entries-active-mem-table"] == len(KEYS)
    assert found["background-errors"] == 0
    store.close()
    again = make(folder, None)
    assert again.properties()["live-sst-files-size"] > 0, "the close has flushed"
    assert again.properties()["estimate-num-keys"] == len(KEYS)
    again.close()
    with pytest.raises(StoreClosed):
        again.properties()


@pytest.mark.parametrize("make", [key_values, windows])
def test_reads_and_statistics_are_measured_and_outlive_the_store(make: Make, folder: Path) -> None:
    recorder = StoreRecorder()
    store = make(folder, recorder)
    fill(store)
    assert store.get(KEYS[7]) == b"v" * 100
    reading, keys, closed = recorder.reading()
    assert (reading.count, keys, closed) == (1, 1, {})
    written = store.statistics()["bytes.written"]
    assert written > 100 * len(KEYS)
    store.wipe()
    fill(store)
    store.close()
    assert recorder.reading()[2]["bytes.written"] >= 2 * written - 1000


def test_without_a_recorder_no_statistics_are_kept(folder: Path) -> None:
    store = key_values(folder)
    fill(store)
    assert store.statistics() == {}
    store.close()


@pytest.mark.parametrize("level", Level)
def test_the_stores_of_a_task_are_measured_as_the_level_says(level: Level, folder: Path) -> None:
    spec = StoreSpec("totals", "key-value", "app-totals-changelog", False, "totals")
    with StateDirectory(folder, "app", "i", measured=StoreRecorders(level)) as directory:
        task = Task(TaskId(0, 0), SubTopology(0, (), ("orders",), (), (), (spec,)), frozenset())
        task.open(directory)
        assert bool(task.stores["totals"].statistics()) is (level is Level.DEBUG)
        assert directory.measured.all.keys() == ({"totals"} if level is Level.DEBUG else set())
        task.close()


def test_the_block_cache_is_the_one_of_all_stores() -> None:
    found = DEFAULT_OPTIONS.memory_figures()
    assert found["block-cache-capacity"] == 50 * 1024 * 1024
    assert 0 <= found["block-cache-pinned-usage"] <= found["block-cache-usage"] <= found["block-cache-capacity"]
