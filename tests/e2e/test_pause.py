"""An application on a real node, paused and resumed."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from clients import make_topics
from e2e_kit import PATIENCE, Application
from e2e_orders import expect, orders, totals
from kube_kafka import KafkaInCluster
from waiting import eventually

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(1500)]


def test_a_paused_application_keeps_its_pods_and_processes_nothing_until_it_goes_on(
    application: Callable[[str], Application], kafka_in_cluster: KafkaInCluster, node_namespace: str
) -> None:
    address, users = kafka_in_cluster.outside, 500
    make_topics(address, **{f"{node_namespace}-orders": 2, f"{node_namespace}-totals": 2})
    app = application("paused")
    app.apply(document=totals("paused", node_namespace, replicas=1))
    app.reaches("RUNNING", "1/1")
    orders(address, node_namespace, users, 1)
    expect(address, node_namespace, users, 1)
    uid = app.uid("paused-0")
    app.merge(paused=True)
    eventually(lambda: app.condition("Paused")[:2] == ("True", "Paused"), "the pod says that it is paused", PATIENCE)
    orders(address, node_namespace, users, 1)
    eventually(lambda: (app.status().get("lag") or 0) >= users / 2, "the lag is shown", PATIENCE)
    assert app.status()["state"] == "RUNNING"
    assert app.condition("Ready")[0] == "True"
    expect(address, node_namespace, users, 1)
    app.merge(paused=False)
    expect(address, node_namespace, users, 2)
    eventually(lambda: app.condition("Paused")[:2] == ("False", "NotPaused"), "the pod says that it goes on", PATIENCE)
    assert app.uid("paused-0") == uid
