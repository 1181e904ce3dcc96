"""An application on a real node that is behind gets a second instance, which shares the work."""

from __future__ import annotations

from collections.abc import Callable
from threading import Event, Thread

import pytest
from clients import make_topics
from e2e_kit import PATIENCE, Application
from e2e_orders import expect, orders, totals
from kube_kafka import KafkaInCluster
from waiting import eventually

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(1800, func_only=True)]

SCALING = {"maxReplicas": 2, "targetCatchUp": "10s", "stabilization": "10m"}


def test_a_backlog_that_one_instance_can_t_catch_up_with_in_time_brings_a_second_one(
    application: Callable[[str], Application], kafka_in_cluster: KafkaInCluster, node_namespace: str
) -> None:
    address, users = kafka_in_cluster.outside, 20_000
    make_topics(address, **{f"{node_namespace}-orders": 2, f"{node_namespace}-totals": 2})
    app = application("scaled")
    # Small batches make a slow instance, so that a backlog of this size lasts.
    slow = {"maxBatchRecords": 1000}
    app.apply(document=totals("scaled", node_namespace, replicas=1, autoscaling=SCALING, processing=slow))
    app.reaches("RUNNING", "1/1")
    sent, enough = 0, Event()

    def keep_sending() -> None:
        nonlocal sent
        while not enough.is_set():
            orders(address, node_namespace, users, 1)
            sent += 1
            # As long as much more waits than can be processed in time, nothing is added.
            while (app.status().get("lag") or 0) > 20 * users and not enough.wait(1.0):
                pass

    feeding = Thread(target=keep_sending, daemon=True)
    feeding.start()
    try:
        eventually(lambda: app.status()["autoscaling"]["replicas"] == 2, lambda: str(app.status()), PATIENCE)
    finally:
        enough.set()
        feeding.join(PATIENCE)
    said = app.status()["autoscaling"]
    assert said["lastScaleMessage"].startswith("from 1 to 2, as it takes ")
    assert said["instanceRate"] > 0
    app.reaches("RUNNING", "2/2")
    eventually(
        lambda: all(app.instance(f"scaled-{each}").get("tasks") for each in range(2)), "both have work", PATIENCE
    )
    expect(address, node_namespace, users, sent)
    assert app.status()["autoscaling"]["replicas"] == 2
