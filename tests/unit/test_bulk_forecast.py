"""Whether a client starts the workers of bulk loads before it has tasks: by how long its changelogs are."""

from __future__ import annotations

import threading
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from clients import client
from orders import topology

from streams_runtime.errors import BrokerNotAvailableException
from streams_runtime.kafka.types import TopicPartition
from streams_runtime.restore import changelog_reader, state_updaters
from streams_runtime.restore.changelog_reader import are_worth_workers
from streams_runtime.restore.restore_start import hold_as_many

CHANGELOG = "app-totals-changelog"


@dataclass
class Brokers:
    """A changelog with partitions from a first offset to an end; None: there is no such topic."""

    logs: list[tuple[int, int]] | None

    def partition_counts(self, names: Collection[str]) -> dict[str, int]:
        return {CHANGELOG: len(self.logs)} if CHANGELOG in names and self.logs is not None else {}

    def start_offsets(self, partitions: Collection[TopicPartition]) -> dict[TopicPartition, int]:
        return {each: (self.logs or [])[each.partition][0] for each in partitions}

    def end_offsets(
        self, partitions: Collection[TopicPartition], read_committed: bool = False
    ) -> dict[TopicPartition, int]:
        del read_committed
        return {each: (self.logs or [])[each.partition][1] for each in partitions}

    def committed_offsets(self, group: str, partitions: Collection[TopicPartition]) -> dict[TopicPartition, int]:
        raise NotImplementedError(group, partitions)

    def topic_ids(self, names: Collection[str]) -> dict[str, str]:
        raise NotImplementedError(names)


class Away(Brokers):
    """Brokers that do not answer."""

    def partition_counts(self, names: Collection[str]) -> dict[str, int]:
        raise BrokerNotAvailableException(f"no answer about {names}")


LONG, SHORT = Brokers([(0, 7), (50, 150)]), Brokers([(0, 99), (50, 149), (200, 200)])


@pytest.mark.parametrize(
    ("brokers", "long"), [(LONG, True), (SHORT, False), (Brokers([]), False), (Brokers(None), False)]
)
def test_a_topic_is_as_long_as_what_its_longest_partition_still_has(brokers: Brokers, long: bool) -> None:
    assert hold_as_many(brokers, [CHANGELOG], 100) is long
    assert not hold_as_many(brokers, ["another"], 100)
    assert not hold_as_many(brokers, [], 0)


def test_brokers_that_give_no_answer_forecast_nothing() -> None:
    assert not are_worth_workers(Away(None), [CHANGELOG])


@pytest.mark.parametrize(
    ("brokers", "threads", "begun"),
    [(LONG, 1, 1), (SHORT, 1, 0), (Brokers(None), 1, 0), (Away(None), 1, 0), (LONG, 2, 0)],
)
def test_workers_begin_with_a_client_that_has_a_long_changelog_and_no_store(
    brokers: Brokers, threads: int, begun: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    loaders: list[Any] = []

    class Loader:
        def __init__(self, properties: Any) -> None:
            del properties
            self.begun, self.closed = 0, threading.Event()
            loaders.append(self)

        def begin(self) -> None:
            self.begun += 1

        def close(self) -> None:
            self.closed.set()

    class Consumer:
        def __init__(self, *_: Any) -> None: ...

        def unsubscribe(self) -> None: ...

        def close(self) -> None: ...

    monkeypatch.setattr(changelog_reader, "_BULK_RECORDS", 100)
    monkeypatch.setattr(state_updaters, "BulkLoader", Loader)
    monkeypatch.setattr(state_updaters, "ChangelogConsumer", Consumer)
    with client("127.0.0.1:9", "app", topology("app"), tmp_path, processing={"streamThreads": threads}) as made:
        monkeypatch.setattr(made.context, "admin", brokers)
        updater = made.context.make_updater("updater")
        made.context.directory.root.mkdir()
        updater.start()
        updater.stop()
        monkeypatch.undo()
    (loader,) = loaders
    assert loader.closed.is_set()
    assert loader.begun == begun
