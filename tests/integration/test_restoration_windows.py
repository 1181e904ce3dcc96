"""Window and session stores restored from changelogs on a real broker: the same as if they had been written here."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from clients import delete_records, make_topics

from streams_runtime.kafka.admin.kafka_admin import Admin
from streams_runtime.kafka.consumer.changelog_consumer import ChangelogConsumer
from streams_runtime.kafka.producer.batch_producer import BatchProducer
from streams_runtime.kafka.types import TopicPartition
from streams_runtime.restore import changelog_reader as reader_module
from streams_runtime.restore.bulk.bulk_loader import BulkLoader
from streams_runtime.restore.changelog_reader import StoreChangelogReader
from streams_runtime.restore.restore_listener import NullListener
from streams_runtime.restore.restorer import StateRestorer
from streams_runtime.state.open_store import AnyStore, open_store
from streams_runtime.state.store import Updates
from streams_runtime.state.window_keys import LATEST, session_key, window_key
from streams_runtime.state.window_store import SegmentedStore
from streams_runtime.topology.plan import TaskId
from streams_runtime.topology.store_specs import StoreSpec, Windowing

pytestmark = pytest.mark.integration

MINUTE = 60_000
RETENTION = 5 * MINUTE
START = 1_767_268_800_000
Change = tuple[bytes | None, bytes | None]


class OneTask:
    """The restoring task of one store."""

    id = TaskId(0, 0)

    def __init__(self, store: AnyStore) -> None:
        self._store = store

    def reinitialize_state_stores_for_partitions(self, partitions: Collection[TopicPartition]) -> None:
        assert list(partitions) == [self._store.changelog]
        self._store.wipe()


class Restorations:
    """Restores stores from a broker's topics, with everything that a client would have."""

    def __init__(self, bootstrap: str, group: str, closing: ExitStack) -> None:
        properties = {"bootstrap.servers": bootstrap}
        self.producer = BatchProducer(properties, "test")
        closing.callback(self.producer.close)
        self._admin = Admin(properties)
        closing.callback(self._admin.close)
        consumer = ChangelogConsumer(properties, group)
        closing.callback(consumer.close)
        bulk = BulkLoader(properties, workers=1)
        closing.callback(bulk.close)
        self._reader = StoreChangelogReader(consumer, self._admin, group, NullListener(), bulk)
        closing.callback(self._reader.clear)

    def send(self, topic: str, changes: Sequence[Change]) -> None:
        """Append to the changelog, in order."""
        keys, values = [key for key, _ in changes], [value for _, value in changes]
        self.producer.send(topic, keys, values, [START] * len(changes), 0)  # type: ignore[arg-type]
        self.producer.flush()

    def run(self, store: AnyStore) -> int:
        """Restore the store; how many records that took."""
        restorer = StateRestorer(TaskId(0, 0), store)
        self._reader.register(restorer)
        for _ in range(600):
            if store.changelog in self._reader.restore({store.changelog: OneTask(store)}):
                self._reader.unregister([store.changelog])
                return restorer.restored
        raise AssertionError("not restored")

    def cut(self, partition: TopicPartition, offset: int) -> None:
        """Delete the changelog's records before the offset."""
        delete_records(self._admin, {partition: offset})


@pytest.fixture
def restorations(broker: Any, namespace: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Restorations]:
    # As if every changelog were large: stores in segments have to be restored without files all the same.
    monkeypatch.setattr(reader_module, "_BULK_RECORDS", 1)
    with ExitStack() as closing:
        yield Restorations(broker.bootstrap_servers, f"{namespace}-group", closing)


def window(key: bytes, minute: int) -> bytes:
    return window_key(key, START + minute * MINUTE)


def session(key: bytes, minute: int) -> bytes:
    return session_key(key, START + minute * MINUTE, START + minute * MINUTE + 1_000)


def shown(store: AnyStore) -> list[tuple[bytes, bytes | None]]:
    """All that the store shows, with the forms in which its values lie there."""
    assert isinstance(store, SegmentedStore)
    keys = [key for key, _ in store.fetch(None, None, 0, LATEST)]
    return list(zip(keys, store.get_stored(keys), strict=True))


@pytest.mark.parametrize(
    ("kind", "windowing", "at"),
    [("window", Windowing(RETENTION, MINUTE), window), ("session", Windowing(RETENTION), session)],
)
def test_a_restored_store_shows_what_one_shows_that_was_written_here(
    restorations: Restorations, broker: Any, namespace: str, tmp_path: Path, kind: Any, windowing: Windowing, at: Any
) -> None:
    topic = f"{namespace}-{kind}"
    make_topics(broker.bootstrap_servers, **{topic: 1})
    spec = StoreSpec("s", kind, topic, False, "s", windowing)
    keys = [b"%03d" % number for number in range(100)]
    first: list[Change] = [(at(key, minute), b"%d" % minute) for minute in range(12) for key in keys]
    first += [(at(b"001", 11), None), (at(b"002", 11), b"again"), (None, b"no key"), (at(b"late", 2), b"expired")]
    tail: list[Change] = [(at(b"003", 13), b"new"), (at(b"004", 11), None), (at(b"late", 8), b"expired by then")]

    def written_here(folder: str, changes: Sequence[Change]) -> AnyStore:
        """A store to which the changes were written one by one, as the smallest batches do."""
        store = open_store(spec, 0, tmp_path / folder)
        for key, value in changes:
            if key is not None:
                store.write(Updates([key], [value], [START]), None)
        return store

    restorations.send(topic, first)
    with ExitStack() as closing:
        store = open_store(spec, 0, tmp_path / "restored")
        closing.callback(store.close)
        expected = written_here("expected", first)
        closing.callback(expected.close)
        assert restorations.run(store) == len(first)
        assert shown(store) == shown(expected)
        assert len(shown(store)) == 5 * len(keys) - 1  # minutes 7 to 11: minute 6 is `retention` behind, to the ms
        assert (store.offset(), store.stream_time) == (len(first), expected.stream_time)  # type: ignore[union-attr]
        assert store.segments == expected.segments  # type: ignore[union-attr]

    restorations.send(topic, tail)
    with ExitStack() as closing:
        store = open_store(spec, 0, tmp_path / "restored")
        closing.callback(store.close)
        expected = written_here("whole", [*first, *tail])
        closing.callback(expected.close)
        # Stream time came back with the store, or the record that has expired would be in it again.
        assert restorations.run(store) == len(tail)
        assert shown(store) == shown(expected)
        restorations.cut(store.changelog, len(first))
        store.write(Updates([], [], []), 5)  # a checkpoint that the log no longer reaches back to
        assert restorations.run(store) == len(tail)
        assert [key for key, _ in shown(store)] == [at(b"003", 13)]
