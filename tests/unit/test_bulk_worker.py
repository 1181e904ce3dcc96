"""The bulk worker's account: how far it has read comes between what it hands over, and changes nothing of it."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from state_kit import contents, key_value_store, memory_folder

from streams_runtime.kafka.consumer.latest_consumer import Fetched
from streams_runtime.kafka.consumer.message_columns import Latest
from streams_runtime.kafka.types import TopicPartition
from streams_runtime.restore.bulk import bulk_worker
from streams_runtime.restore.bulk.bulk_loader import BulkLoader, Load, _Job, _Worker
from streams_runtime.restore.restorer import StateRestorer
from streams_runtime.topology.plan import TaskId

LOG = TopicPartition("app-totals-changelog", 0)


class PlayedConsumer:
    """Hands out two records in each poll, of which the second one is the last of its key."""

    def __init__(self, keys: Sequence[bytes]) -> None:
        self._keys = keys
        self._at = 0

    def add(self, ranges: Mapping[TopicPartition, tuple[int, int]]) -> None: ...

    def remove(self, partitions: Any) -> None: ...

    def poll(self, wait: float) -> dict[TopicPartition, Fetched]:
        key, value = self._keys[self._at // 2], b"%04d" % self._at * 25
        self._at += 2
        columns = (pa.array([each], pa.large_binary()) for each in (key, value))
        return {LOG: Fetched(2, Latest(*columns, np.full(1, 7)))}

    def position(self, partition: TopicPartition) -> int:
        return self._at


Events = list[dict[str, Any]]


@pytest.fixture
def loaded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[[Sequence[bytes]], Events]:
    """What a worker says that loads records of these keys."""

    def load(keys: Sequence[bytes]) -> Events:
        monkeypatch.setattr(bulk_worker, "LatestConsumer", lambda *_: PlayedConsumer(keys))
        end = 2 * len(keys)
        job = {"topic": LOG.topic, "partition": 0, "start": 0, "end": end, "folder": str(tmp_path), "rocksdb": {}}
        bulk_worker.load({}, [job])
        return [json.loads(line) for line in capsys.readouterr().out.splitlines()]

    return load


def test_a_worker_says_between_its_files_how_far_it_has_read(
    loaded: Callable[[Sequence[bytes]], Events], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bulk_worker, "_NEWS_SECONDS", 0.0)
    *news, last = loaded([b"a", b"b", b"c"])
    assert [each["read"] for each in news] == [2, 4]
    assert (last["records"], last["position"], last["last"], len(last["files"])) == (6, 6, True, 1)


def test_what_later_records_replace_is_never_written(
    loaded: Callable[[Sequence[bytes]], Events], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bulk_worker, "_CHUNK_BYTES", 500)
    (only,) = loaded([b"a", b"b"] * 20)
    assert (only["records"], only["position"], only["last"], len(only["files"])) == (80, 80, True, 1)


def test_more_contents_than_a_worker_holds_go_to_several_files(
    loaded: Callable[[Sequence[bytes]], Events], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bulk_worker, "_CHUNK_BYTES", 500)
    keys = [b"a", b"b", b"c", b"d", b"e", b"a", b"f"] * 2
    events = loaded(keys)
    assert [each["last"] for each in events] == [False] * (len(events) - 1) + [True]
    assert sum(each["records"] for each in events) == 28
    files = [Path(file) for each in events for file in each["files"]]
    assert len(files) > 1
    with memory_folder() as folder, key_value_store(folder) as store:
        store.ingest(files, 28)
        assert contents(store) == {key: b"%04d" % (2 * at) * 25 for at, key in enumerate(keys)}


def test_what_a_worker_has_read_is_passed_on_and_a_worker_that_dies_is_gone_on_from_what_it_handed_over() -> None:
    with memory_folder() as folder, key_value_store(folder) as store:
        loader = BulkLoader({})
        job = _Job(StateRestorer(TaskId(0, 0), store), 3, 90, folder / "bulk")
        dead = type("Process", (), {"returncode": -9, "wait": lambda self: -9, "kill": lambda self: None})()
        made = _Worker(dead, {LOG: job})
        loader._ready.put((made, {"topic": LOG.topic, "partition": 0, "read": 40}))
        loader._ready.put((made, None))
        assert list(loader.loaded()) == [Load(LOG, (), 0, 40, last=False), Load(LOG, (), 0, 3, last=True)]


def test_processes_that_were_begun_take_the_work_and_those_left_over_end() -> None:
    with memory_folder() as folder, key_value_store(folder) as store:
        loader = BulkLoader({"bootstrap.servers": "127.0.0.1:1"}, workers=2)
        try:
            loader.begin()
            begun = list(loader._idle)
            assert len(begun) == 2
            loader.start({StateRestorer(TaskId(0, 0), store): (0, 10)})
            (worker_,) = loader._workers
            assert worker_.process in begun
            (other,) = (each for each in begun if each is not worker_.process)
            assert other.returncode is not None
        finally:
            loader.close()
        assert worker_.process.returncode is not None


def test_one_that_ended_before_it_got_work_is_replaced() -> None:
    with memory_folder() as folder, key_value_store(folder) as store:
        loader = BulkLoader({"bootstrap.servers": "127.0.0.1:1"}, workers=1)
        try:
            loader.begin()
            (gone,) = loader._idle
            gone.kill()
            gone.wait()
            loader.start({StateRestorer(TaskId(0, 0), store): (0, 10)})
            (worker_,) = loader._workers
            assert worker_.process is not gone
            assert worker_.process.poll() is None
        finally:
            loader.close()


@pytest.mark.parametrize("closed", [True, False], ids=["nobody is there", "nobody says anything"])
def test_a_process_without_an_order_ends_by_itself(
    closed: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(bulk_worker, "_PATIENCE_SECONDS", 0.0)
    reading, writing = os.pipe()
    with os.fdopen(reading) as orders, os.fdopen(writing, "w") as other:
        if closed:
            other.close()
        monkeypatch.setattr("sys.stdin", orders)
        bulk_worker.main()
    assert capsys.readouterr().out == ""
