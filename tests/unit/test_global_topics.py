"""Where a global store begins to read, and how it keeps up with its topic; brokers and consumer are played."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import pytest

from streams_runtime.errors import BrokerNotAvailableException, StreamsException
from streams_runtime.kafka.consumer.changelog_consumer import ChangelogConsumer
from streams_runtime.kafka.consumer.invalid_offset import InvalidOffsetException
from streams_runtime.kafka.types import TopicDescription, TopicPartition
from streams_runtime.restore.global_restore_start import GlobalBeginning, global_beginning
from streams_runtime.restore.global_topics import GlobalTopics
from streams_runtime.restore.restore_progress import ProgressListener
from streams_runtime.restore.restore_start import Log
from streams_runtime.state.global_store import GlobalStore
from streams_runtime.state.store import Updates

LOGS = {0: Log(0, 10, 10, "id"), 1: Log(2, 5, 5, "id")}
NOTHING = Updates([], [], [])


@pytest.mark.parametrize(
    ("checkpoints", "topic_id", "is_empty", "expected"),
    [
        ({}, None, True, GlobalBeginning({0: 0, 1: 2})),
        ({0: 4, 1: 5}, "id", False, GlobalBeginning({0: 4, 1: 5})),
        ({0: 4}, "id", False, GlobalBeginning({0: 4, 1: 2})),
        ({0: 4, 1: 3}, None, False, GlobalBeginning({0: 4, 1: 3})),
    ],
)
def test_a_store_goes_on_where_it_was_and_reads_new_partitions_whole(
    checkpoints: Mapping[int, int], topic_id: str | None, is_empty: bool, expected: GlobalBeginning
) -> None:
    assert global_beginning(checkpoints, topic_id, LOGS, is_empty) == expected


@pytest.mark.parametrize(
    ("checkpoints", "topic_id", "why"),
    [
        ({}, None, "the offsets that its contents reach to are not known"),
        ({0: 11, 1: 5}, "id", "in partition 0 it ends at 10, before the checkpoint 11"),
        ({0: 4, 1: 1}, "id", "in partition 1 it begins at 2, after the checkpoint 1"),
        ({0: 4, 1: 5}, "other", "in partition 0 its topic was deleted and made anew"),
        ({0: 4, 1: 5, 7: 1}, "id", "its topic has lost the partitions 7"),
    ],
)
def test_what_cannot_be_gone_on_from_in_one_partition_empties_the_store(
    checkpoints: Mapping[int, int], topic_id: str | None, why: str
) -> None:
    begin = global_beginning(checkpoints, topic_id, LOGS, is_empty=False)
    assert begin.offsets == {0: 0, 1: 2}
    assert begin.wipe is not None
    assert begin.wipe.startswith(why)


def test_a_store_has_an_offset_for_each_partition_in_one_write_with_the_data(tmp_path: Path) -> None:
    store = GlobalStore("s", "t", tmp_path / "s")
    store.follow("id")
    assert (store.offsets(), store.offset(), store.topic_id()) == ({}, None, "id")
    store.write_through(Updates([b"a", b"b"], [b"1", b"2"], [7, 8]), {0: 4, 300: 9})
    store.write_through(Updates([b"b"], [None], [9]), {0: 5})
    store.close()
    store = GlobalStore("s", "t", tmp_path / "s")
    assert store.offsets() == {0: 5, 300: 9}
    assert (store.get(b"a"), store.get(b"b"), store.partition) == (b"1", None, 0)
    store.wipe()
    assert (store.offsets(), store.is_empty(), store.topic_id()) == ({}, True, None)
    store.close()


@dataclass
class Brokers:
    """One topic, `t`."""

    id: str = "one"
    ends: dict[int, int] = field(default_factory=lambda: {0: 0})
    away: bool = False
    there: bool = True
    unnamed: set[int] = field(default_factory=set)

    def describe_topics(self, names: Collection[str], config: bool = True) -> dict[str, TopicDescription]:
        assert (list(names), config) == (["t"], False)
        if self.away:
            raise BrokerNotAvailableException("away")
        return {"t": TopicDescription("t", len(self.ends), 1, {}, self.id)} if self.there else {}

    def start_offsets(self, partitions: Collection[TopicPartition]) -> dict[TopicPartition, int]:
        return {each: 0 for each in partitions if each.partition not in self.unnamed}

    def end_offsets(
        self, partitions: Collection[TopicPartition], read_committed: bool = False
    ) -> dict[TopicPartition, int]:
        del read_committed
        return {each: self.ends[each.partition] for each in partitions if each.partition not in self.unnamed}

    def topic_ids(self, names: Collection[str]) -> dict[str, str]:
        return dict.fromkeys(names, self.id)

    def committed_offsets(self, group: str, partitions: Collection[TopicPartition]) -> dict[TopicPartition, int]:
        raise AssertionError("a global table belongs to no group")


@dataclass
class Consumer:
    """What a ChangelogConsumer was told, and what it is to say."""

    assigned: dict[int, int | None] = field(default_factory=dict)
    reached: dict[int, int] = field(default_factory=dict)
    failure: Exception | None = None

    def add(self, offsets: Mapping[TopicPartition, int | None]) -> None:
        self.assigned |= {each.partition: at for each, at in offsets.items()}

    def unsubscribe(self) -> None:
        self.assigned.clear()
        self.reached.clear()

    def poll(self, limit: int, wait: float) -> dict[TopicPartition, list[Any]]:
        del limit, wait
        if self.failure is not None:
            failure, self.failure = self.failure, None
            raise failure
        return {}

    def position(self, partition: TopicPartition) -> int | None:
        return self.reached.get(partition.partition)


class Played:
    """Topics over one store, with a clock that the test moves."""

    def __init__(self, folder: Path) -> None:
        self.brokers, self.consumer, self.now = Brokers(), Consumer(), 0.0
        self.progress = ProgressListener()
        self.store = GlobalStore("s", "t", folder / "s")
        self.topics = GlobalTopics(
            cast(ChangelogConsumer, self.consumer),
            self.brokers,
            [self.store],
            self.progress,
            False,
            0.0,
            lambda: self.now,
        )

    def look(self) -> None:
        self.now += 10
        self.topics.poll()


@pytest.fixture
def played(tmp_path: Path) -> Iterator[Played]:
    played = Played(tmp_path)
    yield played
    played.store.close()


def test_tables_are_complete_when_each_partition_is_read_to_where_it_ended_at_the_start(played: Played) -> None:
    played.brokers.ends = {0: 3, 1: 0, 2: 4}
    assert played.topics.begin() == ()
    assert played.consumer.assigned == {0: 0, 1: 0, 2: 0}
    assert not played.topics.complete
    played.consumer.reached = {0: 5, 1: 0}
    played.topics.note("t", played.topics.reached("t"), {0: 5})
    assert not played.topics.complete
    assert [row["remaining"] for row in played.progress.snapshot()] == [0, 4]
    played.consumer.reached[2] = 4  # past the marker of a transaction, without a record
    played.topics.note("t", played.topics.reached("t"), {})
    assert played.topics.complete
    assert not played.progress.ongoing


def test_an_empty_topic_is_complete_and_a_missing_one_is_named(played: Played) -> None:
    played.brokers.there = False
    assert played.topics.begin() == ("t",)
    played.brokers.there = True
    assert played.topics.begin() == ()
    assert played.topics.complete


def test_a_partition_that_the_brokers_do_not_name_yet_is_asked_for_again_and_not_left_out(played: Played) -> None:
    played.brokers.ends, played.brokers.unnamed = {0: 3, 1: 4}, {0}
    with pytest.raises(BrokerNotAvailableException, match=r"do not name .* t-0"):
        played.topics.begin()
    played.brokers.unnamed.clear()
    assert played.topics.begin() == ()
    assert played.consumer.assigned == {0: 0, 1: 0}


def test_a_store_that_is_ahead_of_its_log_is_emptied_and_read_from_the_beginning(
    played: Played, caplog: pytest.LogCaptureFixture
) -> None:
    played.store.follow("one")
    played.store.write_through(Updates([b"a"], [b"1"], [1]), {0: 9})
    played.brokers.ends = {0: 3}
    played.topics.begin()
    assert played.consumer.assigned == {0: 0}
    assert played.store.is_empty()
    assert "it ends at 3, before the checkpoint 9" in caplog.text


def test_more_partitions_are_read_from_their_beginning(played: Played) -> None:
    played.topics.begin()
    played.consumer.reached = {0: 2}
    played.topics.note("t", {0: 2}, {})
    played.brokers.ends = {0: 2, 1: 0}
    played.topics.poll()
    assert played.consumer.assigned == {0: 0}, "it is not looked at with every poll"
    played.look()
    assert played.consumer.assigned == {0: 2, 1: None}


def test_a_topic_that_goes_leaves_the_table_as_it_is_until_another_one_comes(
    played: Played, caplog: pytest.LogCaptureFixture
) -> None:
    played.topics.begin()
    played.store.write_through(NOTHING, {0: 2})
    played.topics.note("t", {0: 2}, {})
    played.brokers.there = False
    played.look()
    played.look()
    assert (played.consumer.assigned, played.topics.reached("t")) == ({}, {})
    played.brokers.there, played.brokers.id = True, "two"
    played.look()
    assert played.consumer.assigned == {0: None}
    assert played.store.topic_id() == "one", "so that the next start builds it anew"
    assert [each.count("not on the brokers any more") for each in caplog.messages].count(1) == 1
    assert "deleted and made anew" in caplog.text


def test_an_offset_that_the_log_does_not_have_is_fatal_unless_the_topic_is_another(played: Played) -> None:
    played.topics.begin()
    played.consumer.failure = InvalidOffsetException(TopicPartition("t", 0))
    with pytest.raises(StreamsException, match="the log of t-0 does not have the offset 0 any more"):
        played.topics.poll()
    played.brokers.id, played.consumer.failure = "two", InvalidOffsetException(TopicPartition("t", 0))
    assert played.topics.poll() == {}
    assert played.consumer.assigned == {0: None}


def test_brokers_that_are_away_are_waited_for(played: Played) -> None:
    played.topics.begin()
    played.brokers.away, played.consumer.failure = True, InvalidOffsetException(TopicPartition("t", 0))
    assert played.topics.poll() == {}
    assert played.consumer.assigned == {0: None}
