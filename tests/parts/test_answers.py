"""How long brokers are waited for, and what is asked again."""

from __future__ import annotations

from concurrent.futures import Future

import pytest
from confluent_kafka import KafkaError, KafkaException

from streams_runtime.errors import BrokerNotAvailableException, StreamsException
from streams_runtime.kafka.admin.admin_futures import Answers, Patience

SILENT = KafkaError(KafkaError._TIMED_OUT)
CUT = KafkaError(KafkaError._TRANSPORT)
MOVING = KafkaError(KafkaError.NOT_COORDINATOR)
REFUSED = KafkaError(KafkaError.TOPIC_AUTHORIZATION_FAILED)


class Brokers:
    """Each client that is made answers the next thing in `says`, and the last one for ever."""

    address = "broker:9092"

    def __init__(self, *says: KafkaError | str) -> None:
        self.says = list(says)
        self.asked: list[tuple[int, float]] = []  # the client's number, the seconds it had
        self.made = 1

    def client(self) -> int:
        return self.made

    def refresh(self) -> None:
        self.made += 1

    def connection_error(self) -> None:
        return None

    def ask(self, client: int, request_timeout: float) -> dict[str, Future[str]]:
        self.asked.append((client, request_timeout))
        said = self.says.pop(0) if len(self.says) > 1 else self.says[0]
        answer: Future[str] = Future()
        if isinstance(said, str):
            answer.set_result(said)
        else:
            answer.set_exception(KafkaException(said))
        return {"topic": answer}


def all_of(brokers: Brokers, timeout: float = 30.0) -> dict[str, str]:
    answers = Answers(brokers, brokers.client, timeout)
    return answers.all(answers.question("asking", brokers.ask), "asking")


@pytest.mark.parametrize("no_answer", [SILENT, CUT, MOVING])
def test_what_nobody_answers_and_what_passes_is_asked_again_by_a_client_that_is_made_anew(
    no_answer: KafkaError,
) -> None:
    brokers = Brokers(no_answer, no_answer, "there")
    assert all_of(brokers) == {"topic": "there"}
    assert [client for client, _ in brokers.asked] == [1, 2, 3]


def test_an_attempt_that_nobody_answered_is_followed_by_a_longer_one() -> None:
    brokers = Brokers(SILENT, SILENT, SILENT, SILENT, "there")
    all_of(brokers)
    *attempts, last = [seconds for _, seconds in brokers.asked]
    assert attempts == [1.5, 3, 6, 12]
    assert last > 25, "all that is left is the last one's"


def test_a_refusal_that_passes_takes_no_time_of_the_next_attempt() -> None:
    brokers = Brokers(MOVING, MOVING, "there")
    all_of(brokers)
    assert [seconds for _, seconds in brokers.asked] == [1.5] * 3


def test_a_refusal_for_good_is_raised_at_once() -> None:
    brokers = Brokers(REFUSED)
    with pytest.raises(StreamsException):
        all_of(brokers)
    assert len(brokers.asked) == 1


def test_silence_to_the_end_is_raised() -> None:
    brokers = Brokers(SILENT)
    with pytest.raises(BrokerNotAvailableException, match="broker:9092"):
        all_of(brokers, timeout=0.4)
    assert len(brokers.asked) > 1


@pytest.mark.parametrize("grace", [0.0, 7.0])
def test_an_answer_is_waited_for_as_long_as_the_brokers_have_and_a_grace(grace: float) -> None:
    waited: list[float] = []

    class Unanswered(Future[str]):
        def exception(self, timeout: float | None = None) -> BaseException | None:
            assert timeout is not None
            waited.append(timeout)
            raise TimeoutError

    brokers = Brokers(SILENT)
    answers = Answers(brokers, brokers.client, 1.0, grace)
    with pytest.raises(BrokerNotAvailableException):
        answers.once(lambda *_: {"topic": Unanswered()}, "asking")
    assert waited == [pytest.approx(1.0 + grace, abs=0.5)]


def test_orders_are_given_once() -> None:
    brokers = Brokers(SILENT, "there")
    answers = Answers(brokers, brokers.client, 30.0)
    with pytest.raises(BrokerNotAvailableException):
        answers.once(answers.question("ordering", brokers.ask), "ordering")
    assert brokers.asked == [(1, 30.0)]


def test_the_last_attempt_has_all_that_is_left() -> None:
    now, taken = 100.0, []
    patience = Patience(30.0, clock=lambda: now)
    while patience.left > 0:
        taken.append(patience.attempt)
        now += patience.attempt
        patience.unanswered()
    assert taken == [1.5, 3.0, 6.0, 19.5]


def test_a_short_question_has_one_attempt() -> None:
    assert Patience(2.5, clock=lambda: 0.0).attempt == 2.5
