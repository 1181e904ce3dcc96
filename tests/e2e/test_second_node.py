"""A second node that goes: its pods are made on the first one. `make test-nodes` has more of nodes."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from clients import make_topics, read
from e2e_kit import PATIENCE, Application
from e2e_orders import expect, orders, totals
from kube_kafka import KafkaInCluster
from kube_node import Node, one_more
from waiting import eventually

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(1500, func_only=True)]

USERS = 500
SPEC = {
    "processing": {"guarantee": "exactly_once_v2"},
    "template": {"terminationGracePeriodSeconds": 5},
    "nodeLoss": {"forceDeleteAfter": "1m"},
}


@pytest.mark.long
def test_the_pod_of_a_node_without_power_is_made_elsewhere_and_counts_every_order_once(
    application: Callable[[str], Application], node: Node, kafka_in_cluster: KafkaInCluster, node_namespace: str
) -> None:
    if not node.machines:
        pytest.skip("the machines of this cluster are not ours to switch off")
    address, first = kafka_in_cluster.outside, node.machines[0].name
    make_topics(address, **{f"{node_namespace}-orders": 2, f"{node_namespace}-totals": 2})
    app = application("app")
    with one_more(node, "streams-node-more", "runtime") as second:
        app.apply(document=totals("app", node_namespace, **SPEC))
        app.reaches("RUNNING", "2/2")
        ((lost, _),) = ((pod, place) for pod, place in app.places().items() if place == second.name)
        orders(address, node_namespace, USERS, 1)
        expect(address, node_namespace, USERS, 1)
        before = app.uid(lost)
        node.cluster.kubectl("cordon", second.name)  # nobody has missed it yet, and pods would be sent there
        second.place.lose_power()
        app.kubectl("delete", "pod", lost, "--wait=false")
        eventually(lambda: app.uid(lost) not in (None, before), "the pod is made anew", PATIENCE)
        app.reaches("RUNNING", "2/2")
        assert set(app.places().values()) == {first}
        orders(address, node_namespace, USERS, 1)
        expect(address, node_namespace, USERS, 2)
        changes = read(address, f"{node_namespace}-totals", committed=True)
        assert len(changes) == 2 * USERS, "nothing was counted twice in between"
