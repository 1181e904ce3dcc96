"""Offsets that librdkafka gives back without having asked for them are asked for again."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Future
from types import SimpleNamespace
from typing import Any

import pytest

from streams_runtime.errors import BrokerNotAvailableException
from streams_runtime.kafka.admin import kafka_admin, partition_offsets
from streams_runtime.kafka.admin.kafka_admin import Admin
from streams_runtime.kafka.types import TopicPartition

CHANGELOG = TopicPartition("totals-changelog", 0)
UNASKED = SimpleNamespace(offset=-1, timestamp=-1)


class PlayedClient:
    """librdkafka's administrative client: answers questions for offsets with one result after the other."""

    results: Iterator[Any]

    def __init__(self, *_: object, **__: object) -> None:
        self.asked = 0

    def list_offsets(self, request: dict[Any, Any], **_: object) -> dict[Any, Future[Any]]:
        self.asked += 1
        answer: Future[Any] = Future()
        answer.set_result(next(self.results))
        return dict.fromkeys(request, answer)

    def list_topics(self, **_: object) -> None:
        """Nobody looks at it."""

    def poll(self, _: float) -> None:
        """There are no errors to hear of."""


@pytest.fixture
def played(monkeypatch: pytest.MonkeyPatch) -> type[PlayedClient]:
    for module in (kafka_admin, partition_offsets):
        monkeypatch.setattr(module, "AdminClient", PlayedClient)
    return PlayedClient


@pytest.mark.parametrize("ask", [Admin.end_offsets, Admin.start_offsets])
def test_a_negative_offset_is_no_answer_and_is_asked_for_again(played, ask):
    played.results = iter([UNASKED, UNASKED, SimpleNamespace(offset=7, timestamp=-1)])
    assert ask(Admin({"bootstrap.servers": "nowhere:9092"}), [CHANGELOG]) == {CHANGELOG: 7}


def test_an_offset_that_is_never_answered_is_a_broker_that_is_away(played):
    played.results = iter(lambda: UNASKED, None)
    with pytest.raises(BrokerNotAvailableException, match="end offsets of totals-changelog-0"):
        Admin({"bootstrap.servers": "nowhere:9092"}, timeout=0.2).end_offsets([CHANGELOG])


def test_a_time_given_back_in_place_of_its_offset_is_asked_for_again(played):
    at = 1_700_000_000_000
    played.results = iter([SimpleNamespace(offset=at, timestamp=-1), SimpleNamespace(offset=3, timestamp=at + 5)])
    assert Admin({"bootstrap.servers": "nowhere:9092"}).offsets_at({CHANGELOG: at}) == {CHANGELOG: 3}


def test_no_record_of_a_time_or_later_is_an_answer(played):
    played.results = iter([UNASKED])
    assert Admin({"bootstrap.servers": "nowhere:9092"}).offsets_at({CHANGELOG: 5}) == {CHANGELOG: None}
