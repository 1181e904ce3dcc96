"""An answer of the brokers that serves many questions for a second."""

from __future__ import annotations

import pytest

from streams_runtime.errors import BrokerNotAvailableException, ConfigException
from streams_runtime.kafka.admin.recent_answer import RecentAnswer


class Asked:
    """Brokers that answer with how often they were asked, at times that a test says."""

    def __init__(self) -> None:
        self.times = 0
        self.now = 1000.0
        self.failure: Exception | None = None

    def __call__(self) -> int:
        self.times += 1
        if self.failure is not None:
            raise self.failure
        return self.times

    def answer(self) -> RecentAnswer[int]:
        return RecentAnswer(self, 0, lambda: self.now)


def test_within_a_second_the_brokers_are_asked_once() -> None:
    brokers = Asked()
    answer = brokers.answer()
    assert [answer.value(), answer.value()] == [1, 1]
    brokers.now += 0.9
    assert answer.value() == 1
    brokers.now += 0.2
    assert [answer.value(), answer.value()] == [2, 2]


def test_while_the_brokers_are_away_the_last_answer_counts_and_they_are_asked_once_a_second() -> None:
    brokers = Asked()
    answer = brokers.answer()
    assert answer.value() == 1
    brokers.failure = BrokerNotAvailableException("nobody answers")
    brokers.now += 2
    assert [answer.value(), answer.value()] == [1, 1]
    assert brokers.times == 2


def test_before_the_first_answer_there_is_nothing() -> None:
    brokers = Asked()
    brokers.failure = BrokerNotAvailableException("nobody answers")
    assert brokers.answer().value() == 0


def test_any_other_failure_is_the_caller_s() -> None:
    brokers = Asked()
    brokers.failure = ConfigException("who is that")
    answer = brokers.answer()
    with pytest.raises(ConfigException):
        answer.value()
