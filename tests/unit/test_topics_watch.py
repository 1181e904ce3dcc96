"""Noticing deleted topics without waiting for brokers."""

from __future__ import annotations

from concurrent.futures import Future
from types import SimpleNamespace

import pytest
from confluent_kafka import KafkaError, KafkaException

from streams_runtime.errors import BrokerNotAvailableException
from streams_runtime.kafka.admin.pending_requests import TopicLook
from streams_runtime.topics.topic_watch import TopicWatch

ABSENT = KafkaException(KafkaError(KafkaError.UNKNOWN_TOPIC_OR_PART))
SILENT = KafkaException(KafkaError(KafkaError._TIMED_OUT))


class Brokers:
    """Keeps the questions; the test answers them."""

    def __init__(self):
        self.asked = []
        self.away = False
        self.refreshed = 0

    def look_for(self, names):
        if self.away:
            raise BrokerNotAvailableException("away")
        self.asked.append({name: Future() for name in names})
        return TopicLook(self.asked[-1])

    def refresh(self):
        self.refreshed += 1

    def answer(self, **other):
        """What is not said otherwise is there, under its first id."""
        for name, future in self.asked[-1].items():
            answer = other.get(name, "first")
            if isinstance(answer, str):
                future.set_result(SimpleNamespace(topic_id=answer))
            else:
                future.set_exception(answer)


class Clock:
    now = 100.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def brokers():
    return Brokers()


@pytest.fixture
def watch(brokers, clock):
    return TopicWatch(brokers, ["a", "b"], ["users"], interval=3, clock=clock)


def look(watch, brokers, clock, **other):
    """Let the time come, the question be asked and answered; what the watch says then."""
    clock.now += 3
    watch.gone()
    brokers.answer(**other)
    return watch.gone()


def test_brokers_are_asked_once_an_interval_and_never_twice_at_a_time(watch, brokers, clock):
    for _ in range(5):
        assert watch.gone() == frozenset()
    clock.now += 100
    watch.gone()
    assert len(brokers.asked) == 1
    brokers.answer()
    watch.gone()
    clock.now += 2.9
    watch.gone()
    assert len(brokers.asked) == 1
    clock.now += 0.2
    watch.gone()
    assert len(brokers.asked) == 2


def test_a_topic_that_brokers_say_they_do_not_have_is_gone_until_they_say_otherwise(watch, brokers, clock):
    assert look(watch, brokers, clock, b=ABSENT) == {"b"}
    assert watch.gone() == {"b"}
    assert look(watch, brokers, clock) == frozenset()


def test_brokers_that_do_not_answer_are_no_sign_of_a_deleted_topic(watch, brokers, clock):
    assert look(watch, brokers, clock, a=ABSENT) == {"a"}
    assert brokers.refreshed == 0
    assert look(watch, brokers, clock, a=SILENT, b=SILENT) == frozenset()
    assert brokers.refreshed == 1, "the next look goes by other connections"
    brokers.away = True
    clock.now += 3
    assert watch.gone() == frozenset()
    brokers.away = False
    assert look(watch, brokers, clock, a=ABSENT) == {"a"}


def test_what_was_seen_to_is_forgotten_with_an_answer_that_is_under_way(watch, brokers, clock):
    assert look(watch, brokers, clock, a=ABSENT) == {"a"}
    clock.now += 3
    watch.gone()
    watch.forget()
    brokers.answer(a=ABSENT)
    assert watch.gone() == frozenset()


def test_a_topic_under_its_name_with_another_id_was_made_anew_until_that_is_seen_to(watch, brokers, clock):
    assert look(watch, brokers, clock) == frozenset()
    assert watch.renewed() == {}
    assert look(watch, brokers, clock, a="second", users="second") == frozenset()
    assert watch.renewed() == {"a": "second", "users": "second"}
    assert look(watch, brokers, clock, a="second", users="third") == frozenset()
    assert watch.renewed() == {"a": "second", "users": "third"}
    watch.forget()
    assert watch.renewed() == {}
    look(watch, brokers, clock, a="second", users="fourth")
    assert watch.renewed() == {"users": "fourth"}


def test_a_topic_that_was_gone_in_between_is_another_one(watch, brokers, clock):
    look(watch, brokers, clock)
    assert look(watch, brokers, clock, b=ABSENT, users=ABSENT) == {"b"}, "a user's topic is not for the watch to miss"
    watch.forget()
    assert look(watch, brokers, clock, b="second") == frozenset()
    assert watch.renewed() == {"b": "second"}


def test_an_application_without_internal_topics_asks_nothing(brokers, clock):
    watch = TopicWatch(brokers, [], interval=3, clock=clock)
    clock.now += 10
    assert watch.gone() == frozenset()
    assert brokers.asked == []
