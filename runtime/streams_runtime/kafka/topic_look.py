"""A look at topics that is under way: nobody waits for it."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import Future
from typing import Any

from streams_runtime.kafka.answers import ABSENT_TOPIC, UNANSWERED
from streams_runtime.kafka.foreign import error_of


class TopicLook:
    """The brokers' answers by topic, as they come."""

    def __init__(self, answers: Mapping[str, Future[Any]], client: object = None) -> None:
        """`client` is who was asked: it is kept, since an answer comes only as long as it is there."""
        self._answers = answers
        self._client = client

    def let_go(self) -> None:
        """Let go of the client: what is not answered by now has failed."""
        self._client = None

    @property
    def done(self) -> bool:
        """Whether all answers, or failures to get one, are there."""
        return all(each.done() for each in self._answers.values())

    @property
    def unanswered(self) -> bool:
        """Whether nobody answered for some topic."""
        return any(_unanswered(each) for each in self._answers.values() if each.done())

    @property
    def absent(self) -> frozenset[str]:
        """The topics that the brokers say they do not have; one without an answer is not counted as absent."""
        return frozenset(name for name, each in self._answers.items() if each.done() and _is_absent(each))

    @property
    def ids(self) -> dict[str, str]:
        """The ids of the topics that the brokers say they have: a topic that is made anew has another one."""
        found = {name: each for name, each in self._answers.items() if each.done() and each.exception() is None}
        return {name: str(each.result().topic_id) for name, each in found.items()}


def _is_absent(answer: Future[Any]) -> bool:
    return _code(answer) in ABSENT_TOPIC


def _unanswered(answer: Future[Any]) -> bool:
    return _code(answer) in UNANSWERED


def _code(answer: Future[Any]) -> int | None:
    failure = answer.exception()
    error = error_of(failure) if failure is not None else None
    return None if error is None else error.code()
