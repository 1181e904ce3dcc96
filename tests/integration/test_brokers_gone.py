"""Clients find a cluster again that counted all of its brokers as gone, and told them so.

A broker that stands still for longer than its session with the controllers answers at first, when it goes on, with no
broker at all. librdkafka then forgets all that it knew, and now and then for good (its issue 5301).
"""

from __future__ import annotations

import ctypes
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from away import standing_still
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient  # type: ignore[attr-defined]
from waiting import eventually

from streams_runtime.errors import BrokerNotAvailableException
from streams_runtime.kafka.admin.kafka_admin import Admin
from streams_runtime.kafka.broker.embedded_broker import EmbeddedBroker
from streams_runtime.kafka.client import librdkafka
from streams_runtime.kafka.client.librdkafka import remind
from streams_runtime.kafka.client.librdkafka_errors import QuietLog
from streams_runtime.kafka.types import TopicSpec

pytestmark = pytest.mark.integration

CLIENTS = 24  # of which two or three would never connect again
AWAY = 6.0  # seconds; the embedded broker's session with its controller has four
NOWHERE = "127.0.0.1:9"


class Asking:
    """A client that is asked all the time, by a thread of its own, and when it was answered last."""

    def __init__(self, address: str) -> None:
        self.admin = Admin({"bootstrap.servers": address}, timeout=2)
        self.answered = 0.0
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._ask)
        self._thread.start()

    def close(self) -> None:
        self._done.set()
        self._thread.join()
        self.admin.close()

    def _ask(self) -> None:
        while not self._done.wait(0.05):
            try:
                found = self.admin.describe_topics(["orders"], config=False)
            except BrokerNotAvailableException:
                continue
            if found:
                self.answered = time.monotonic()


def test_all_clients_find_a_broker_again_that_was_counted_as_gone(tmp_path: Path) -> None:
    with EmbeddedBroker(tmp_path) as own:
        admin = Admin({"bootstrap.servers": own.bootstrap_servers})
        admin.create_topics([TopicSpec("orders", 1)])
        asking = [Asking(own.bootstrap_servers) for _ in range(CLIENTS)]
        try:
            eventually(lambda: all(each.answered for each in asking), "all clients are answered")
            with standing_still(own):
                time.sleep(AWAY)  # it is a time that takes the broker its session
            again = time.monotonic() + 2.0  # by when it is back, and those that were told so first know it

            def left() -> int:
                return sum(each.answered < again for each in asking)

            eventually(lambda: not left(), lambda: f"of {CLIENTS} clients {left()} are not answered again", 30.0)
        finally:
            for each in asking:
                each.close()
            admin.close()


def name_of(client: object) -> str | None:
    """What librdkafka calls the client whose handle `remind` would use; None: it has none."""
    handle = librdkafka._handle_of(client)
    name = librdkafka._function(librdkafka._short, "name", ctypes.c_char_p, ctypes.c_void_p)
    return None if handle is None else str(name(handle).decode())


@pytest.mark.parametrize("kind", [Consumer, Producer, AdminClient])
def test_a_clients_handle_is_the_one_with_its_name(kind: Callable[..., object]) -> None:
    """What is told to librdkafka of a client goes by where the binding keeps its handle."""
    config = {"bootstrap.servers": NOWHERE, "client.id": "orders"} | ({"group.id": "g"} if kind is Consumer else {})
    client = kind(config, logger=QuietLog())
    assert str(name_of(client)).startswith("orders#")
    remind(client, NOWHERE)
    if isinstance(client, Consumer):
        client.close()
        assert name_of(client) is None
        remind(client, NOWHERE)


def test_what_is_no_client_has_no_handle() -> None:
    assert name_of(object()) is None
