"""What tests read of transactions: brokers write a transaction's end into its topics after they have confirmed it."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import clients
import pytest
from clients import Follower, make_topics, read, send
from confluent_kafka import Producer
from open_transactions import transaction

pytestmark = pytest.mark.integration


@pytest.fixture
def open_one(broker: Any, namespace: str) -> Iterator[Producer]:
    """An open transaction with a record behind another record, which is in none."""
    make_topics(broker.bootstrap_servers, **{namespace: 1})
    send(broker.bootstrap_servers, namespace, [("a", 1)])
    with transaction(broker.bootstrap_servers, namespace, namespace, [("b", b"2")]) as made:
        yield made


def values(messages: list[Any]) -> list[bytes]:
    return [each.value() for each in messages]


def test_a_transaction_that_ends_meanwhile_is_read(
    broker: Any, namespace: str, open_one: Producer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(clients, "_MARKS", 60.0)
    ends = threading.Timer(1.0, open_one.commit_transaction, [60])
    ends.start()
    follower = Follower(broker.bootstrap_servers, namespace, committed=True)
    assert values(follower.read_on()) == [b"1", b"2"]
    ends.join()
    assert follower.read_on() == []


def test_one_that_stays_open_is_left_out_and_read_once_it_is_committed(
    broker: Any, namespace: str, open_one: Producer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(clients, "_MARKS", 0.5)
    follower = Follower(broker.bootstrap_servers, namespace, committed=True)
    assert values(follower.read_on()) == [b"1"]
    assert follower.read_on() == []
    assert values(read(broker.bootstrap_servers, namespace)) == [b"1", b"2"]
    open_one.commit_transaction(60)
    monkeypatch.setattr(clients, "_MARKS", 60.0)
    assert values(follower.read_on()) == [b"2"]
