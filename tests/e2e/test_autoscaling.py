"""An application on a real node that is behind gets a second instance, which shares the work."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from threading import Event, Thread

import pytest
from clients import make_topics
from e2e_kit import PATIENCE, Application
from e2e_orders import expect, orders, totals
from kube_kafka import KafkaInCluster
from waiting import eventually

from streams_runtime.errors import BrokerNotAvailableException
from streams_runtime.kafka.admin.kafka_admin import Admin
from streams_runtime.kafka.types import TopicPartition

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(1800, func_only=True)]

SCALING = {"maxReplicas": 2, "targetCatchUp": "10s", "stabilization": "10m"}
USERS, PARTITIONS = 20_000, 2
AHEAD = 30.0
"""Seconds of its work that wait for the instance: three times targetCatchUp. More would only take longer at the end."""


class Backlog:
    """Orders of each user that are sent as long as fewer wait than an instance processes in AHEAD seconds."""

    def __init__(self, address: str, namespace: str) -> None:
        self.rounds = 0
        """So many orders of each user are in the topic."""
        self._address, self._namespace = address, namespace
        self._outputs = [TopicPartition(f"{namespace}-totals", number) for number in range(PARTITIONS)]
        self._admin = Admin({"bootstrap.servers": address})
        self._enough = Event()
        self._thread = Thread(target=self._send, daemon=True)

    @contextmanager
    def growing(self) -> Iterator[None]:
        """Sent inside the block."""
        self._thread.start()
        try:
            yield
        finally:
            self._enough.set()
            self._thread.join(PATIENCE)
            self._admin.close()

    def _send(self) -> None:
        began = time.monotonic()
        while not self._enough.is_set():
            orders(self._address, self._namespace, USERS, 1)
            self.rounds += 1
            while self._is_long(time.monotonic() - began) and not self._enough.wait(1.0):
                pass

    def _is_long(self, seconds: float) -> bool:
        with suppress(BrokerNotAvailableException):
            # No batch has two orders of a user, so each order is one output. The status' lag would not do: it stays as
            # it is until it is another by a factor of two, and as much is sent meanwhile.
            done = sum(self._admin.end_offsets(self._outputs).values())
            return self.rounds * USERS - done > max(2 * USERS, AHEAD * done / seconds)
        return True


@pytest.mark.long
def test_a_backlog_that_one_instance_can_t_catch_up_with_in_time_brings_a_second_one(
    application: Callable[[str], Application], kafka_in_cluster: KafkaInCluster, node_namespace: str
) -> None:
    address = kafka_in_cluster.outside
    make_topics(address, **{f"{node_namespace}-orders": PARTITIONS, f"{node_namespace}-totals": PARTITIONS})
    app = application("scaled")
    # Small batches make a slow instance, so that a backlog of this size lasts.
    slow = {"maxBatchRecords": 1000}
    app.apply(document=totals("scaled", node_namespace, replicas=1, autoscaling=SCALING, processing=slow))
    app.reaches("RUNNING", "1/1")
    backlog = Backlog(address, node_namespace)
    with backlog.growing():
        eventually(lambda: app.status()["autoscaling"]["replicas"] == 2, lambda: str(app.status()), PATIENCE)
    said = app.status()["autoscaling"]
    assert said["lastScaleMessage"].startswith("from 1 to 2, as it takes ")
    assert said["instanceRate"] > 0
    app.reaches("RUNNING", "2/2")
    eventually(
        lambda: all(app.instance(f"scaled-{each}").get("tasks") for each in range(2)), "both have work", PATIENCE
    )
    expect(address, node_namespace, USERS, backlog.rounds)
    assert app.status()["autoscaling"]["replicas"] == 2
