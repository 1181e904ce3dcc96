"""Waiting for the brokers' answers: deadlines, passing refusals asked again, errors in this project's
words.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeout
from contextlib import contextmanager
from typing import Any, Protocol, TypeVar

from confluent_kafka import KafkaError, KafkaException

from streams_runtime.errors import StreamsException
from streams_runtime.kafka.connection import backoff
from streams_runtime.kafka.foreign import error_of, translated

ABSENT_TOPIC = frozenset({KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_TOPIC})
ABSENT_PARTITION = ABSENT_TOPIC | {KafkaError._UNKNOWN_PARTITION}
# librdkafka's own: of all partitions in a question none has a leader, because they are absent or new.
NO_LEADERS = KafkaError._NOENT
# What passes by itself: a leader that is being chosen, a coordinator that is being loaded.
PASSING = frozenset(
    {
        KafkaError.LEADER_NOT_AVAILABLE,
        KafkaError.NOT_LEADER_FOR_PARTITION,
        KafkaError.FENCED_LEADER_EPOCH,
        KafkaError.UNKNOWN_LEADER_EPOCH,
        KafkaError.OFFSET_NOT_AVAILABLE,
        KafkaError.REPLICA_NOT_AVAILABLE,
        KafkaError.KAFKA_STORAGE_ERROR,
        KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
        KafkaError.COORDINATOR_NOT_AVAILABLE,
        KafkaError.NOT_COORDINATOR,
        # A transaction with offsets of the group is being ended (KIP-447).
        KafkaError.UNSTABLE_OFFSET_COMMIT,
    }
)
_ANSWERED = ABSENT_PARTITION | {NO_LEADERS}
# Seconds between two questions when the answer was one of those: first, and at most.
ASK_AGAIN = (0.05, 1.0)
# Seconds that a future has beyond the request's own deadline, for librdkafka to report that deadline itself.
_GRACE = 5.0
# Seconds that a question still has when the time for a whole piece of work is spent: to put things away.
_LEAST = 1.0

K = TypeVar("K")
V = TypeVar("V")
Question = Callable[[], Mapping[K, "Future[V]"]]


class Brokers(Protocol):
    """What `Answers` wants from whoever holds the client."""

    address: str

    def refresh(self) -> None:
        """Makes the client forget who led what.

        Without it a leader's epoch from before a broker's restart is asked with, and refused, for minutes.
        """

    def connection_error(self) -> KafkaError | None:
        """Why connections failed lately, which is more than the time-out of a request says."""


class Answers:
    """Asks the brokers, with `timeout` seconds for each question."""

    def __init__(self, brokers: Brokers, timeout: float) -> None:
        self._brokers = brokers
        self._longest = timeout
        self._ends_at: float | None = None

    @property
    def timeout(self) -> float:
        """Seconds that a question has that is asked now."""
        if self._ends_at is None:
            return self._longest
        return min(self._longest, max(self._ends_at - time.monotonic(), _LEAST))

    @contextmanager
    def within(self, seconds: float) -> Iterator[None]:
        """All that is asked inside shares these seconds; what is asked when they have passed has one second each."""
        self._ends_at = time.monotonic() + seconds
        try:
            yield
        finally:
            self._ends_at = None

    def question(self, doing: str, method: Callable[..., Any], *args: Any, **options: Any) -> Question[Any, Any]:
        """One of AdminClient's methods with its arguments, to be asked as often as it takes."""

        def ask() -> Any:
            try:
                return method(*args, request_timeout=self.timeout, **options)
            except KafkaException as failure:
                raise self.translated(failure, doing) from failure

        return ask

    def once(
        self, ask: Question[K, V], doing: str, answers: Callable[[V], bool] = lambda _: True
    ) -> tuple[dict[K, V], dict[K, KafkaError]]:
        """Asks and waits for all; the answers, and the brokers' refusals.

        What is no answer by `answers` counts as a refusal that passes. No answer at all and a refused login are raised.
        """
        done: dict[K, V] = {}
        refused: dict[K, KafkaError] = {}
        for key, future in ask().items():
            try:
                # Not raised here: its trace would hold on to the future and to the client, beyond the client's close.
                failure = future.exception(timeout=self.timeout + _GRACE)
            except FutureTimeout as late:
                raise self.translated(KafkaError(KafkaError._TIMED_OUT), doing) from late
            if failure is None and answers(future.result()):
                done[key] = future.result()
            elif failure is None:
                refused[key] = KafkaError(KafkaError.LEADER_NOT_AVAILABLE)
            elif isinstance(failure, KafkaException):
                error = error_of(failure)
                # Negative codes are librdkafka's own: it did not get as far as an answer.
                if error is None or (error.code() < 0 and error.code() not in _ANSWERED):
                    raise self.translated(failure, doing) from failure
                refused[key] = error
            else:
                raise failure
        return done, refused

    def all(
        self,
        ask: Question[K, V],
        doing: str,
        absent: frozenset[int] = frozenset(),
        answers: Callable[[V], bool] = lambda _: True,
    ) -> dict[K, V]:
        """Asks, again while a refusal is a passing one; what is refused with a code of `absent` is left out.

        Any other refusal is raised. `answers` as in `once`.
        """
        end = time.monotonic() + self.timeout
        for delay in backoff(*ASK_AGAIN):
            done, refused = self.once(ask, doing, answers)
            passing = any(error.code() in PASSING for error in refused.values())
            if not passing or time.monotonic() + delay > end:
                break
            time.sleep(delay)
            self._brokers.refresh()
        for error in refused.values():
            if error.code() not in absent:
                raise self.translated(error, doing)
        return done

    def translated(self, failure: BaseException | KafkaError, doing: str) -> StreamsException:
        """The failure in this project's words; of a time-out, with the reason behind it."""
        error = error_of(failure)
        if error is not None and error.code() < 0:
            failure = self._brokers.connection_error() or failure
        return translated(failure, doing, self._brokers.address)
