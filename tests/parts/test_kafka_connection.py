"""Waiting for a broker: addresses, back-off, and what a user is told."""

from __future__ import annotations

import socket
from itertools import islice

import pytest

from streams_runtime.errors import BrokerNotAvailableException
from streams_runtime.kafka.admin.connection import (
    ASK_BROKER_AGAIN,
    FailedAttempt,
    addresses,
    unreachable_reason,
    wait_until_answered,
)
from streams_runtime.retry_backoff import backoff


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    return port


def test_back_off_doubles_from_a_quarter_second_to_ten_seconds_and_stays_there() -> None:
    assert list(islice(backoff(*ASK_BROKER_AGAIN, jitter=lambda: 1.0), 8)) == [0.25, 0.5, 1, 2, 4, 8, 10, 10]


def test_jitter_takes_at_most_half_of_a_delay() -> None:
    assert list(islice(backoff(*ASK_BROKER_AGAIN, jitter=lambda: 0.0), 3)) == [0.125, 0.25, 0.5]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("kafka:9093", [("kafka", 9093)]),
        ("kafka", [("kafka", 9092)]),
        ("a:1, b:2", [("a", 1), ("b", 2)]),
        ("SASL_SSL://broker.example:9094", [("broker.example", 9094)]),
        ("[::1]:9092,[::1]", [("::1", 9092), ("::1", 9092)]),
    ],
)
def test_addresses_are_read_as_librdkafka_reads_them(text: str, expected: list[tuple[str, int]]) -> None:
    assert list(addresses(text)) == expected


def test_a_closed_port_is_reported_in_the_operating_systems_words() -> None:
    assert unreachable_reason(f"127.0.0.1:{free_port()}") == "connection refused"


def test_one_server_of_several_is_enough() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        assert unreachable_reason(f"127.0.0.1:{free_port()},127.0.0.1:{port}") is None


def test_a_name_without_an_address_is_reported() -> None:
    assert unreachable_reason("no-such-host.invalid:9092")


def test_waiting_ends_when_an_answer_comes_and_each_failure_names_the_address() -> None:
    answers = iter(["connection refused", "connection refused", None])
    seen: list[FailedAttempt] = []
    assert wait_until_answered(lambda: next(answers), "kafka:9092", seen.append)
    assert [attempt.number for attempt in seen] == [1, 2]
    assert all("kafka:9092" in str(attempt) and "connection refused" in str(attempt) for attempt in seen)


def test_waiting_stops_when_told_to() -> None:
    seen: list[FailedAttempt] = []
    assert not wait_until_answered(lambda: "no", "kafka:9092", seen.append, should_stop=lambda: bool(seen))
    assert len(seen) == 1


def test_waiting_gives_up_after_its_time_and_names_the_address_and_the_reason() -> None:
    with pytest.raises(BrokerNotAvailableException, match=r"kafka:9092.*connection refused.*Check"):
        wait_until_answered(lambda: "connection refused", "kafka:9092", timeout=0.0)
