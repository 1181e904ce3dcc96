"""What the brokers were asked, and nobody waits for: whoever asked looks now and then whether they have answered."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import Future
from typing import Any

from streams_runtime.errors import StreamsException
from streams_runtime.kafka.admin.admin_futures import ABSENT_PARTITION, ABSENT_TOPIC, NO_LEADERS, UNANSWERED
from streams_runtime.kafka.client.librdkafka_errors import PASSING, error_of


class UnderWay:
    """Answers as they come, each by what it is about."""

    def __init__(self, answers: Mapping[Any, Future[Any]], client: object = None) -> None:
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
        """Whether nobody answered for some of it."""
        return any(_code(each) in UNANSWERED for each in self._answers.values() if each.done())


class TopicLook(UnderWay):
    """A look at topics."""

    @property
    def absent(self) -> frozenset[str]:
        """The topics that the brokers say they do not have; one without an answer is not counted as absent."""
        return frozenset(name for name, each in self._answers.items() if each.done() and _code(each) in ABSENT_TOPIC)

    @property
    def ids(self) -> dict[str, str]:
        """The ids of the topics that the brokers say they have: a topic that is made anew has another one."""
        found = {name: each for name, each in self._answers.items() if each.done() and each.exception() is None}
        return {name: str(each.result().topic_id) for name, each in found.items()}


class TopicListing(UnderWay):
    """A look at all topics, whose one answer is their names."""

    @property
    def names(self) -> frozenset[str] | None:
        """The names, but for those of brokers' own topics; None while there is no answer."""
        for each in self._answers.values():
            if each.done() and each.exception() is None:
                return frozenset(each.result())
        return None


class Deletion(UnderWay):
    """The deletion of records."""

    def __init__(
        self,
        answers: Mapping[Any, Future[Any]],
        translated: Callable[[BaseException], StreamsException],
        client: object = None,
    ) -> None:
        """`translated` puts a failure into this project's words."""
        super().__init__(answers, client)
        self._translated = translated

    @property
    def failure(self) -> StreamsException | None:
        """Why records are not deleted, of what is done; None: nothing has failed for good. What passes by itself is no
        failure, nor is a partition that the brokers do not have.
        """
        passing = PASSING | ABSENT_PARTITION | {NO_LEADERS}
        for each in self._answers.values():
            failure = each.exception() if each.done() else None
            if failure is not None and _code(each) not in passing:
                return self._translated(failure)
        return None


def _code(answer: Future[Any]) -> int | None:
    failure = answer.exception()
    error = error_of(failure) if failure is not None else None
    return None if error is None else error.code()
