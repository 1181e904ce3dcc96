"""Setting a group's offsets from outside: what its coordinator may answer, or not answer."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import closing
from types import SimpleNamespace
from typing import Any, NamedTuple

import pytest
from confluent_kafka import KafkaError, KafkaException

from streams_runtime.errors import BrokerNotAvailableException, ConfigException, IllegalStateException
from streams_runtime.kafka.admin import group_offsets
from streams_runtime.kafka.admin.group_offsets import CommittedOffset, GroupOffsets
from streams_runtime.kafka.types import TopicPartition

ORDERS = TopicPartition("orders", 0)


class FakeConsumer:
    """Answers to each commit in turn, and then that it holds."""

    made = 0

    def __init__(self, answers: list[Callable[[], Any]], commits: list[Any]) -> None:
        self._answers, self._commits = answers, commits
        FakeConsumer.made += 1

    def commit(self, offsets: list[Any], asynchronous: bool) -> list[Any]:
        assert not asynchronous
        self._commits.append([(each.topic, each.partition, each.offset, each.metadata) for each in offsets])
        if self._answers:
            return list(self._answers.pop(0)())
        return [SimpleNamespace(error=None) for _ in offsets]

    def close(self) -> None:
        pass


def refused(code: int) -> Callable[[], Any]:
    def answer() -> Any:
        raise KafkaException(KafkaError(code))

    return answer


def partly(code: int) -> Callable[[], Any]:
    return lambda: [SimpleNamespace(error=KafkaError(code))]


@pytest.fixture
def moved(monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[Any]]:
    """Moves an offset against these answers; returns the commits that were tried."""

    def move(*answers: Callable[[], Any], timeout: float = 5.0) -> list[Any]:
        commits: list[Any] = []
        given = list(answers)
        monkeypatch.setattr(group_offsets, "Consumer", lambda *_, **__: FakeConsumer(given, commits))
        monkeypatch.setattr(group_offsets, "remind", lambda *_: None)
        offsets = GroupOffsets({"bootstrap.servers": "kafka:9092"}, timeout)
        try:
            offsets.move("app", {ORDERS: 7}, {"orders": "id"})
        finally:
            offsets.close()
        return commits

    return move


def test_offsets_are_committed_with_the_ids_of_their_topics(moved: Callable[..., list[Any]]) -> None:
    assert moved() == [[("orders", 0, 7, "topic-id=id")]]


class Committed(NamedTuple):
    """As confluent-kafka answers: metadata of a Java client is read on to the first NUL in memory, text or not."""

    topic: str
    partition: int
    offset: int
    in_memory: bytes
    error: None = None
    leader_epoch: None = None

    @property
    def metadata(self) -> str:
        return self.in_memory.decode()


@pytest.mark.parametrize(
    ("in_memory", "topic_id"),
    [
        (b"", None),
        (b"topic-id=x1Qb", "x1Qb"),
        (b"AQAAAYvPV2gA", None),
        (b"AQAAAYvPV2gA~", None),
        (b"AQAAAYvPV2gA\x8b\xff", None),
        (b"\x8b", None),
    ],
)
def test_an_offset_is_read_whatever_lies_in_memory_behind_its_metadata(
    monkeypatch: pytest.MonkeyPatch, in_memory: bytes, topic_id: str | None
) -> None:
    consumer = SimpleNamespace(committed=lambda *_, **__: [Committed("orders", 0, 7, in_memory)], close=lambda: None)
    monkeypatch.setattr(group_offsets, "Consumer", lambda *_, **__: consumer)
    monkeypatch.setattr(group_offsets, "remind", lambda *_: None)
    with closing(GroupOffsets({"bootstrap.servers": "kafka:9092"}, 5.0)) as offsets:
        assert offsets.committed("app", [ORDERS]) == {ORDERS: CommittedOffset(7, topic_id)}


@pytest.mark.parametrize("answer", [refused, partly])
@pytest.mark.parametrize("code", [KafkaError.UNKNOWN_MEMBER_ID, KafkaError.STALE_MEMBER_EPOCH])
def test_a_group_with_members_refuses(
    answer: Callable[[int], Callable[[], Any]], code: int, moved: Callable[..., list[Any]]
) -> None:
    with pytest.raises(IllegalStateException, match="the group app has members"):
        moved(answer(code))


def test_what_passes_is_tried_again_and_what_does_not_is_told(moved: Callable[..., list[Any]]) -> None:
    assert len(moved(refused(KafkaError.NOT_COORDINATOR), partly(KafkaError.COORDINATOR_LOAD_IN_PROGRESS))) == 3
    with pytest.raises(ConfigException, match="setting the offsets of the group app"):
        moved(refused(KafkaError.GROUP_AUTHORIZATION_FAILED))


def test_a_coordinator_that_never_answers_is_given_up_with_the_consumer_that_waits_for_it(
    moved: Callable[..., list[Any]],
) -> None:
    never, before = threading.Event(), FakeConsumer.made
    try:
        assert len(moved(lambda: never.wait(20) and [], timeout=8.0)) == 2
        assert FakeConsumer.made == before + 2
        with pytest.raises(BrokerNotAvailableException):
            moved(lambda: never.wait(20) and [], timeout=1.0)
    finally:
        never.set()
