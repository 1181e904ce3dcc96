"""StoreChangelogReader on a real broker: where it starts, what it applies, when it is through."""

from __future__ import annotations

import logging
import re
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

import pytest
from clients import delete_records, make_topics, read, send
from confluent_kafka import Consumer, Producer
from confluent_kafka import TopicPartition as ConfluentTopicPartition
from waiting import eventually

from streams_runtime.kafka.admin.kafka_admin import Admin
from streams_runtime.kafka.client.client_properties import client_properties
from streams_runtime.kafka.consumer.changelog_consumer import ChangelogConsumer
from streams_runtime.kafka.producer.batch_producer import BatchProducer
from streams_runtime.kafka.types import TopicPartition, TopicSpec
from streams_runtime.restore import changelog_reader as reader_module
from streams_runtime.restore.bulk.bulk_loader import BulkLoader
from streams_runtime.restore.changelog_reader import StoreChangelogReader
from streams_runtime.restore.restore_log import TRACE
from streams_runtime.restore.restorer import StateRestorer
from streams_runtime.state.database.rocksdb_options import RocksDBOptions, RocksDBSettings
from streams_runtime.state.store import KeyValueStore, Updates
from streams_runtime.topology.plan import TaskId

pytestmark = pytest.mark.integration


class Heard:
    """A StateRestoreListener that writes everything down."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, int, int]] = []

    def on_restore_start(self, partition: TopicPartition, store: str, start: int, end: int) -> None:
        self.calls.append(("start", start, end))

    def on_batch_restored(self, partition: TopicPartition, store: str, batch_end: int, records: int) -> None:
        self.calls.append(("batch", batch_end, records))

    def on_restore_end(self, partition: TopicPartition, store: str, total: int) -> None:
        self.calls.append(("end", total, 0))

    def on_restore_suspended(self, partition: TopicPartition, store: str, total: int) -> None:
        self.calls.append(("suspended", total, 0))


class OneTask:
    """The restoring task of one store."""

    id = TaskId(0, 0)

    def __init__(self, store: KeyValueStore) -> None:
        self._store = store

    def reinitialize_state_stores_for_partitions(self, partitions: Collection[TopicPartition]) -> None:
        assert list(partitions) == [self._store.changelog]
        self._store.wipe()


class Restoration:
    """One store, its reader and its listener."""

    def __init__(
        self, bootstrap: str, topic: str, folder: Path, bulk: bool, source: bool, group: str, exactly_once: bool
    ) -> None:
        self.properties = client_properties(bootstrap, {}, exactly_once)
        self.admin = Admin(self.properties)
        self.store = KeyValueStore("s", TopicPartition(topic, 0), folder / "s")
        self.heard = Heard()
        self.loader = BulkLoader(self.properties, workers=1) if bulk else None
        self.consumer = ChangelogConsumer(self.properties, "restore-test")
        self.reader = StoreChangelogReader(
            self.consumer, self.admin, group, self.heard, self.loader, exactly_once=exactly_once
        )
        self.restorer = StateRestorer(TaskId(0, 0), self.store, source)

    def run(self) -> None:
        self.reader.register(self.restorer)
        tasks = {self.store.changelog: OneTask(self.store)}
        for _ in range(600):
            if self.store.changelog in self.reader.restore(tasks):
                return
        raise AssertionError(f"not restored: {self.heard.calls}")

    def contents(self) -> dict[bytes, bytes]:
        return dict(self.store.scan(None, None))

    def close(self) -> None:
        self.reader.clear()
        if self.loader is not None:
            self.loader.close()
        self.consumer.close()
        self.store.close()
        self.admin.close()


@pytest.fixture
def restoration(broker: Any, namespace: str, tmp_path: Path) -> Iterator[Any]:
    """Makes restorations of the test's own topic, and closes them."""
    made: list[Restoration] = []
    make_topics(broker.bootstrap_servers, **{namespace: 1})

    def make(folder: str = "a", bulk: bool = False, source: bool = False, exactly_once: bool = False) -> Restoration:
        group = f"{namespace}-group"
        it = Restoration(broker.bootstrap_servers, namespace, tmp_path / folder, bulk, source, group, exactly_once)
        made.append(it)
        return it

    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    yield make
    for it in made:
        it.close()


def test_a_store_without_a_checkpoint_is_restored_from_the_beginning(
    broker: Any, namespace: str, restoration: Any, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(TRACE, logger="streams_runtime.restore")
    records = [("a", b"1"), ("b", b"2"), (None, b"no key"), ("a", b"3"), ("c", b"4"), ("b", None)]
    send(broker.bootstrap_servers, namespace, records, 0)
    it = restoration()
    it.run()
    assert it.contents() == {b"a": b"3", b"c": b"4"}
    assert it.store.offset() == len(records)
    assert it.heard.calls[0] == ("start", 0, len(records))
    assert it.heard.calls[-1] == ("end", len(records), 0)
    said = [(record.levelno, record.getMessage()) for record in caplog.records]
    partition = f"{namespace}-0"
    assert said[:5] == [
        (TRACE, f"Added restorer for changelog {partition}"),
        (logging.DEBUG, f"Start restoring state stores from changelog topics ['{partition}']"),
        (TRACE, f"Did not find checkpoint from changelog {partition} for store s, rewinding to beginning."),
        (logging.INFO, f"Restoring task 0_0's state store s from beginning of the changelog {partition}"),
        (logging.DEBUG, f"Restoring partition {partition} from offset 0 to endOffset 6"),
    ]


def test_a_store_with_a_checkpoint_restores_only_the_tail(
    broker: Any, namespace: str, restoration: Any, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(TRACE, logger="streams_runtime.restore")
    send(broker.bootstrap_servers, namespace, [(f"k{i}", b"old") for i in range(10)], 0)
    it = restoration()
    it.store.write(Updates([b"mine"], [b"kept"], [1]), 8)
    it.run()
    assert it.contents() == {b"mine": b"kept", b"k8": b"old", b"k9": b"old"}
    assert it.heard.calls == [("start", 8, 10), ("batch", 10, 2), ("end", 2, 0)]
    said = [(record.levelno, record.getMessage()) for record in caplog.records]
    assert (TRACE, f"Found checkpoint 8 from changelog {namespace}-0 for store s.") in said
    assert (logging.DEBUG, f"Restoring partition {namespace}-0 from offset 8 to endOffset 10") in said


def test_a_store_at_its_end_is_complete_at_once_and_nobody_hears_of_it(
    broker: Any, namespace: str, restoration: Any
) -> None:
    send(broker.bootstrap_servers, namespace, [("a", b"1")], 0)
    it = restoration()
    it.store.write(Updates([b"a"], [b"1"], [1]), 1)
    it.run()
    assert it.heard.calls == []


@pytest.mark.parametrize("behind", [0, 1])
def test_workers_that_were_begun_for_nothing_end_once_that_is_known(
    broker: Any, namespace: str, restoration: Any, behind: int
) -> None:
    send(broker.bootstrap_servers, namespace, [("a", b"1")], 0)
    it = restoration(bulk=True)
    it.store.write(Updates([b"a"], [b"1"], [1]), 1 - behind)
    it.loader.begin()
    (idle,) = it.loader._idle
    assert idle.poll() is None
    it.run()
    assert idle.poll() is not None
    assert it.loader._idle == []


def test_a_log_that_ends_with_a_transaction_marker_is_complete_by_position(
    broker: Any, namespace: str, restoration: Any
) -> None:
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers, "transactional.id": namespace})
    producer.init_transactions(30)
    producer.begin_transaction()
    producer.produce(namespace, b"1", b"a", 0)
    producer.commit_transaction(30)
    it = restoration()
    ends = {it.store.changelog: 2}  # the marker has an offset of its own, and comes a moment after the commit
    eventually(lambda: it.admin.end_offsets(ends) == ends, "the transaction's marker")
    it.run()
    assert it.contents() == {b"a": b"1"}
    assert it.heard.calls[0] == ("start", 0, 2)
    assert it.store.offset() == 2


@pytest.mark.parametrize("left", [3, 0])
def test_a_checkpoint_that_the_log_no_longer_has_wipes_the_store(
    broker: Any, namespace: str, restoration: Any, left: int
) -> None:
    send(broker.bootstrap_servers, namespace, [(f"k{i}", b"v") for i in range(10)], 0)
    it = restoration()
    it.store.write(Updates([b"stale"], [b"v"], [1]), 2)
    delete_records(it.admin, {it.store.changelog: 10 - left})
    it.run()
    assert it.contents() == {f"k{i}".encode(): b"v" for i in range(10 - left, 10)}


def test_a_checkpoint_past_the_end_of_the_log_wipes_the_store(broker: Any, namespace: str, restoration: Any) -> None:
    send(broker.bootstrap_servers, namespace, [("a", b"1")], 0)
    it = restoration()
    it.store.write(Updates([b"stale"], [b"v"], [1]), 99)
    it.run()
    assert it.contents() == {b"a": b"1"}


def test_a_tables_topic_is_restored_up_to_the_committed_offset(broker: Any, namespace: str, restoration: Any) -> None:
    send(broker.bootstrap_servers, namespace, [(f"k{i}", b"v") for i in range(10)], 0)
    consumer = Consumer({"bootstrap.servers": broker.bootstrap_servers, "group.id": f"{namespace}-group"})
    consumer.commit(offsets=[ConfluentTopicPartition(namespace, 0, 4)], asynchronous=False)
    consumer.close()
    it = restoration(source=True)
    it.run()
    assert sorted(it.contents()) == [b"k0", b"k1", b"k2", b"k3"]
    assert it.store.offset() == 4


def test_a_restoration_that_a_rebalance_interrupts_is_heard_of_and_goes_on_where_it_was(
    broker: Any, namespace: str, restoration: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reader_module, "_BATCH_RECORDS", 10)
    send(broker.bootstrap_servers, namespace, [(f"k{i}", b"v") for i in range(100)], 0)
    it = restoration()
    log, tasks = it.store.changelog, {it.store.changelog: OneTask(it.store)}
    states = []
    it.reader.register(it.restorer)
    while not it.restorer.restored:
        states.append(str(it.reader.state(log)))
        assert it.reader.restore(tasks) == set()
    states.append(str(it.reader.state(log)))
    it.reader.unregister([log])
    assert it.heard.calls[-1] == ("suspended", 10, 0)
    assert it.store.offset() == 10
    it.store.close()
    it.store = KeyValueStore("s", log, it.store.folder)
    it.restorer = StateRestorer(TaskId(0, 0), it.store)
    it.run()
    states.append(str(it.reader.state(log)))
    assert list(dict.fromkeys(states)) == ["REGISTERED", "RESTORING", "COMPLETED"]
    assert it.heard.calls[-1] == ("end", 90, 0)
    assert len(it.contents()) == 100


def test_records_of_aborted_transactions_and_the_gaps_that_markers_leave_are_passed_by(
    broker: Any, namespace: str, restoration: Any, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, logger="streams_runtime.restore")
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers, "transactional.id": namespace})
    producer.init_transactions(30)
    for number, commits in enumerate([True, False, True, False]):
        producer.begin_transaction()
        producer.produce(namespace, b"%d" % number, b"a", 0)
        producer.produce(namespace, b"%d" % number, b"b%d" % number, 0)
        producer.flush()
        producer.commit_transaction(30) if commits else producer.abort_transaction(30)
    it, bulk = restoration("a", exactly_once=True), restoration("b", bulk=True, exactly_once=True)
    ends = {it.store.changelog: 12}  # 8 records and 4 markers, the last of which come a moment later
    eventually(lambda: it.admin.end_offsets(ends) == ends, "the last transaction's marker")
    it.store.write(Updates([b"left"], [b"over"], [1]), None)
    it.run()
    assert it.contents() == {b"a": b"2", b"b0": b"0", b"b2": b"2"}
    assert (it.store.offset(), it.heard.calls[-1]) == (12, ("end", 4, 0))
    (said,) = [record.getMessage() for record in caplog.records if record.levelno == logging.INFO]
    assert said == (
        f"No checkpoint found for task 0_0 state store s changelog {namespace}-0 with EOS turned on. Reinitializing the"
        " task and restore its state from the beginning."
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reader_module, "_BULK_RECORDS", 1)
        bulk.run()
    assert (bulk.contents(), bulk.store.offset()) == (it.contents(), 12)


class DeletingOffsets:
    """Answers as the brokers do, and has records deleted right after it was asked."""

    def __init__(self, admin: Admin, before: dict[TopicPartition, int]) -> None:
        self._admin = admin
        self._before = before
        self.start_offsets = admin.start_offsets
        self.committed_offsets = admin.committed_offsets
        self.topic_ids = admin.topic_ids

    def end_offsets(
        self, partitions: Collection[TopicPartition], read_committed: bool = False
    ) -> dict[TopicPartition, int]:
        found = self._admin.end_offsets(partitions, read_committed)
        if self._before:
            delete_records(self._admin, self._before)
            self._before = {}
        return found


def test_an_offset_that_goes_out_of_range_wipes_that_store_alone(
    broker: Any, namespace: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    bootstrap, topic = broker.bootstrap_servers, f"{namespace}-two"
    make_topics(bootstrap, **{topic: 2})
    for number in range(2):
        send(bootstrap, topic, [(f"k{i}", b"v") for i in range(10)], number)
    stores = {each: KeyValueStore("s", each, tmp_path / str(each.partition)) for each in partitions(topic)}
    for store in stores.values():
        store.write(Updates([b"mine"], [b"kept"], [1]), 4)
    lost, other = stores
    admin, heard = Admin({"bootstrap.servers": bootstrap}), Heard()
    consumer = ChangelogConsumer({"bootstrap.servers": bootstrap}, "restore-test")
    reader = StoreChangelogReader(consumer, DeletingOffsets(admin, {lost: 7}), "group", heard)
    tasks = {each: OneTask(store) for each, store in stores.items()}
    for each, store in stores.items():
        reader.register(StateRestorer(TaskId(0, each.partition), store))
    done: set[TopicPartition] = set()

    def restored() -> bool:
        done.update(reader.restore(tasks))
        return len(done) == 2

    eventually(restored, "both are restored")
    assert dict(stores[lost].scan(None, None)) == {b"k7": b"v", b"k8": b"v", b"k9": b"v"}
    assert dict(stores[other].scan(None, None)) == {b"mine": b"kept"} | {b"k%d" % i: b"v" for i in range(4, 10)}
    assert [call[1:] for call in heard.calls if call[0] == "start"] == [(4, 10), (4, 10), (7, 10)]
    assert ("suspended", 0, 0) in heard.calls
    assert sorted(call for call in heard.calls if call[0] == "end") == [("end", 3, 0), ("end", 6, 0)]
    (said,) = [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]
    assert f"its changelog {lost}" in said
    assert "the log does not have the offset 4 any more" in said
    reader.clear()
    consumer.close()
    for store in stores.values():
        store.close()
    admin.close()


def test_what_compaction_removed_does_not_keep_a_restoration_from_its_end(
    broker: Any, namespace: str, tmp_path: Path
) -> None:
    bootstrap, topic = broker.bootstrap_servers, f"{namespace}-compacted"
    admin = Admin({"bootstrap.servers": bootstrap})
    config = {"cleanup.policy": "compact", "segment.ms": "1", "min.cleanable.dirty.ratio": "0.001"}
    admin.create_topics([TopicSpec(topic, 1, config=config)])
    producer = BatchProducer({"bootstrap.servers": bootstrap}, "test")
    for number in range(3):  # a segment each, by the records' own times; the last one is never compacted
        keys = [b"k%d" % i for i in range(50)] + [b"gone"]
        values = [b"%d" % number] * 50 + [None if number else b"x"]
        producer.send(topic, keys, values, [1_700_000_000_000 + 10_000 * number] * 51, 0)
        producer.flush()
    producer.close()
    eventually(lambda: len(read(bootstrap, topic)) < 110, "the broker has compacted the topic")
    it = Restoration(bootstrap, topic, tmp_path, False, False, namespace, False)
    it.run()
    assert it.contents() == {b"k%d" % i: b"2" for i in range(50)}
    start, *_, end = it.heard.calls
    assert (start, it.store.offset()) == (("start", 0, 153), 153)
    assert end[0] == "end"
    assert end[1] < 110
    it.close()
    admin.close()


@pytest.mark.parametrize("begun", [False, True])
def test_bulk_loading_gives_the_same_contents_and_leaves_nothing_behind(
    broker: Any, namespace: str, restoration: Any, tmp_path: Path, begun: bool
) -> None:
    changes = [(f"k{i * 7919 % 5000}", None if i % 11 == 0 else b"v%d" % i) for i in range(150_000)]
    send(broker.bootstrap_servers, namespace, changes, 0)
    plain, bulk = restoration("a"), restoration("b", bulk=True)
    bulk.store.write(Updates([b"k1", b"other"], [b"old", b"old"], [1, 1]), 0)
    plain.store.write(Updates([b"other"], [b"old"], [1]), 0)
    plain.run()
    if begun:
        bulk.loader.begin()
    bulk.run()
    assert bulk.contents() == plain.contents()
    assert len(bulk.contents()) > 1000
    assert bulk.store.offset() == plain.store.offset() == len(changes)
    assert [call for call in bulk.heard.calls if call[0] != "batch"] == [
        ("start", 0, len(changes)),
        ("end", len(changes), 0),
    ]
    assert sorted(path.name for path in (tmp_path / "b").iterdir()) == ["s"]


def test_files_of_a_bulk_load_are_written_with_the_options_of_their_store(
    broker: Any, namespace: str, restoration: Any
) -> None:
    send(broker.bootstrap_servers, namespace, [(f"k{i}", b"v" * 100) for i in range(150_000)], 0)
    it = restoration(bulk=True)
    it.store.close()
    options = RocksDBOptions(RocksDBSettings(memory=32 * 1024 * 1024, compression="zstd", bloom_filter_bits=20))
    it.store = KeyValueStore("s", it.store.changelog, it.store.folder, options=options)
    it.restorer = StateRestorer(TaskId(0, 0), it.store)
    it.run()
    assert len(it.contents()) == 150_000
    (file,) = it.store.folder.glob("*.sst")
    assert b"ZSTD" in file.read_bytes()
    text = it.store._database._db.property_value("rocksdb.aggregated-table-properties")
    assert 2 * 150_000 < int(re.search(r"filter block size=(\d+)", text)[1]) < 3 * 150_000, "20 bits a key"


def test_a_partition_that_is_taken_away_in_the_midst_of_a_bulk_load_can_come_back_and_disturbs_no_other(
    broker: Any, namespace: str, tmp_path: Path
) -> None:
    """One worker reads both; it goes on with the other, and what it still writes of the first is nobody's."""
    bootstrap = broker.bootstrap_servers
    topic = f"{namespace}-two"
    make_topics(bootstrap, **{topic: 2})
    records = [(f"k{i}", b"v%d" % i) for i in range(60_000)]
    for number in range(2):
        send(bootstrap, topic, records, number)
    loader = BulkLoader({"bootstrap.servers": bootstrap}, workers=1)
    stores = {each: KeyValueStore("s", each, tmp_path / str(each.partition) / "s") for each in partitions(topic)}
    restorers = {each: StateRestorer(TaskId(0, each.partition), store, False) for each, store in stores.items()}
    taken, other = stores
    for each in stores:
        (tmp_path / str(each.partition)).mkdir(exist_ok=True)

    loader.start({restorer: (0, len(records)) for restorer in restorers.values()})
    loader.cancel(taken)
    loader.start({restorers[taken]: (0, len(records))})
    loaded: dict[TopicPartition, int] = dict.fromkeys(stores, 0)

    def all_loaded() -> bool:
        for load in loader.loaded():
            assert all(file.exists() for file in load.files)
            stores[load.partition].ingest(load.files, load.position)
            loaded[load.partition] += load.records
        return loaded == dict.fromkeys(stores, len(records))

    eventually(all_loaded, f"both partitions are loaded once: {loaded}")
    assert all(len(dict(store.scan(None, None))) == len(records) for store in stores.values())
    loader.close()
    for store in stores.values():
        store.close()
    assert [sorted(path.name for path in (tmp_path / str(each.partition)).iterdir()) for each in stores] == [["s"]] * 2
    assert loaded[other] == len(records)


def partitions(topic: str) -> list[TopicPartition]:
    return [TopicPartition(topic, number) for number in range(2)]
