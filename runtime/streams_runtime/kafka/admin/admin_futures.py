"""Waiting for the brokers' answers: deadlines, passing refusals asked again, errors in this project's
words.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeout
from contextlib import contextmanager
from typing import Any, Protocol, TypeVar

from confluent_kafka import KafkaError, KafkaException

from streams_runtime.errors import StreamsException
from streams_runtime.kafka.client.librdkafka_errors import PASSING, error_of, translated
from streams_runtime.retry_backoff import backoff

ABSENT_TOPIC = frozenset({KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_TOPIC})
ABSENT_PARTITION = ABSENT_TOPIC | {KafkaError._UNKNOWN_PARTITION}
# librdkafka's own: of all partitions in a question none has a leader, because they are absent or new.
NO_LEADERS = KafkaError._NOENT
_ANSWERED = ABSENT_PARTITION | {NO_LEADERS}
# librdkafka's own: nobody answered. Another broker may, or the same one by another connection.
UNANSWERED = frozenset({KafkaError._TIMED_OUT, KafkaError._TRANSPORT, KafkaError._ALL_BROKERS_DOWN})
# Seconds between two questions when the answer was one of those: first, and at most.
ASK_AGAIN = (0.05, 1.0)
# Seconds that a future has beyond the request's own deadline, for librdkafka to report that deadline itself.
_GRACE = 2.0
# Seconds of a question's first attempt; a broker that was killed is asked for no longer.
_FIRST_ATTEMPT = 1.5
# Seconds that an attempt has at the least, also when the time for a whole piece of work is spent: to put things away.
LEAST = 1.0

K = TypeVar("K")
V = TypeVar("V")
# Asks by an AdminClient, with the seconds that the brokers have.
Question = Callable[[Any, float], Mapping[K, "Future[V]"]]


class Brokers(Protocol):
    """What `Answers` wants from whoever holds the client."""

    address: str

    def refresh(self) -> None:
        """Makes the client forget who led what, and whom it was asking.

        Without it a leader's epoch from before a broker's restart is asked with, and refused, for minutes.
        """

    def connection_error(self) -> KafkaError | None:
        """Why connections failed lately, which is more than the time-out of a request says."""


class Patience:
    """How the seconds of a question are divided among its attempts: 1.5 for the first one, twice as many after each
    that nobody answered, and all that is left for the last.

    So a broker that is gone does not hold a question up while others could answer it, and a slow one has its time.
    """

    def __init__(self, seconds: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._end = clock() + seconds
        self._attempt = _FIRST_ATTEMPT

    @property
    def left(self) -> float:
        """Seconds until the end."""
        return self._end - self._clock()

    @property
    def attempt(self) -> float:
        """Seconds of an attempt that begins now."""
        left = self.left
        return self._attempt if left >= 2 * self._attempt else max(left, LEAST)

    def unanswered(self) -> None:
        """Nobody answered: the next attempt has twice as long."""
        self._attempt *= 2


class Answers:
    """Asks the brokers, with `timeout` seconds for each question."""

    def __init__(self, brokers: Brokers, client: Callable[[], Any], timeout: float, grace: float = _GRACE) -> None:
        """`client` gives the AdminClient to ask by, at each attempt. `grace`: seconds that an answer is waited for
        beyond those that the brokers have.
        """
        self._brokers = brokers
        self._client = client
        self._longest = timeout
        self._grace = grace
        self._ends_at: float | None = None

    @property
    def timeout(self) -> float:
        """Seconds that a question has that is asked now."""
        if self._ends_at is None:
            return self._longest
        return min(self._longest, max(self._ends_at - time.monotonic(), LEAST))

    @contextmanager
    def within(self, seconds: float) -> Iterator[None]:
        """All that is asked inside shares these seconds; what is asked when they have passed has one second each."""
        self._ends_at = time.monotonic() + seconds
        try:
            yield
        finally:
            self._ends_at = None

    def question(self, doing: str, method: Callable[..., Any], *args: Any, **options: Any) -> Question[Any, Any]:
        """One of AdminClient's methods with its arguments behind the client, to be asked as often as it takes."""

        def ask(client: Any, seconds: float) -> Any:
            try:
                return method(client, *args, request_timeout=seconds, **options)
            except KafkaException as failure:
                raise self.translated(failure, doing) from failure

        return ask

    def once(self, ask: Question[K, V], doing: str) -> tuple[dict[K, V], dict[K, KafkaError]]:
        """Asks and waits for all; the answers, and the brokers' refusals.

        No answer at all and a refused login are raised.
        """
        done, refused, failure = self._asked(ask, self.timeout, lambda _: True)
        if failure is not None:
            raise self.translated(failure, doing) from failure
        return done, refused

    def all(
        self,
        ask: Question[K, V],
        doing: str,
        absent: frozenset[int] = frozenset(),
        answers: Callable[[V], bool] = lambda _: True,
    ) -> dict[K, V]:
        """Asks, again while nobody answers or a refusal is a passing one; what is refused with a code of `absent` is
        left out.

        Any other refusal is raised. What is no answer by `answers` counts as a refusal that passes.
        """
        patience = Patience(self.timeout)
        for delay in backoff(*ASK_AGAIN):
            done, refused, failure = self._asked(ask, patience.attempt, answers)
            over = patience.left < delay
            if failure is not None:
                error = error_of(failure)
                if over or error is None or error.code() not in UNANSWERED:
                    raise self.translated(failure, doing) from failure
                patience.unanswered()
            elif over or not any(error.code() in PASSING for error in refused.values()):
                break
            time.sleep(delay)
            self._brokers.refresh()
        for error in refused.values():
            if error.code() not in absent:
                raise self.translated(error, doing)
        return done

    def _asked(
        self, ask: Question[K, V], seconds: float, answers: Callable[[V], bool]
    ) -> tuple[dict[K, V], dict[K, KafkaError], KafkaException | None]:
        """The answers, the brokers' refusals, and why there was no answer."""
        done: dict[K, V] = {}
        refused: dict[K, KafkaError] = {}
        end = time.monotonic() + seconds + self._grace
        client = self._client()  # held on to until it has answered: another thread may have it made anew
        for key, future in ask(client, seconds).items():
            try:
                # Not raised here: its trace would hold on to the future and to the client, beyond the client's close.
                failure = future.exception(timeout=max(end - time.monotonic(), 0.0))
            except FutureTimeout:
                return done, refused, KafkaException(KafkaError(KafkaError._TIMED_OUT))
            if failure is None and answers(future.result()):
                done[key] = future.result()
            elif failure is None:
                refused[key] = KafkaError(KafkaError.LEADER_NOT_AVAILABLE)
            elif isinstance(failure, KafkaException):
                error = error_of(failure)
                # Negative codes are librdkafka's own: it did not get as far as an answer.
                if error is None or (error.code() < 0 and error.code() not in _ANSWERED):
                    return done, refused, failure
                refused[key] = error
            else:
                raise failure
        return done, refused, None

    def translated(self, failure: BaseException | KafkaError, doing: str) -> StreamsException:
        """The failure in this project's words; of a time-out, with the reason behind it."""
        error = error_of(failure)
        if error is not None and error.code() < 0:
            failure = self._brokers.connection_error() or failure
        return translated(failure, doing, self._brokers.address)


def listed(names: Sequence[str], most: int = 5) -> str:
    """Names of what was asked about, for a message: the first ones, and how many more."""
    shown = ", ".join(names[:most])
    return shown if len(names) <= most else f"{shown} and {len(names) - most} more"
