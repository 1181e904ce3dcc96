"""An application on a real node, looked at, paused and resumed by `kubectl streamsapp`."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from clients import make_topics
from e2e_kit import PATIENCE, Application
from e2e_orders import expect, orders, totals
from kube_kafka import KafkaInCluster
from kubectl_plugin import Plugin
from waiting import eventually

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(1500, func_only=True)]


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
    plugin = Plugin(app.cluster, app.namespace)
    seen = plugin.document("status", "paused")["instances"][0]
    # Stores are named by the pod itself, which the API server asks.
    assert [(task["id"], task["state"], task["stores"]) for task in seen["tasks"]] == [
        ("0_0", "RUNNING", ["totals"]),
        ("0_1", "RUNNING", ["totals"]),
    ]
    plugin.run("pause", "paused", "--wait")
    assert app.condition("Paused")[:2] == ("True", "Paused")
    orders(address, node_namespace, users, 1)
    eventually(lambda: (app.status().get("lag") or 0) >= users / 2, "the lag is shown", PATIENCE)
    assert app.status()["state"] == "RUNNING"
    assert app.condition("Ready")[0] == "True"
    expect(address, node_namespace, users, 1)
    plugin.run("resume", "paused", "--wait")
    assert app.condition("Paused")[:2] == ("False", "NotPaused")
    expect(address, node_namespace, users, 2)
    assert app.uid("paused-0") == uid
