"""What happens to the nodes of a cluster: `make test-nodes` runs it, `make test` does not.

Three real nodes, each with its kubelet and containerd. The first has the control plane and the broker, and takes no
pods of applications; the two others are drained, cut off and lost. Under exactly once every order counts once.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pytest
from clients import make_topics
from e2e_kit import OPERATOR_NAMESPACE, PATIENCE, Application, operator_in_cluster
from e2e_orders import expect, orders, totals
from kube_kafka import KafkaInCluster, kafka_pod
from kube_leftovers import inhabited
from kube_machine import Machine, is_ready
from kube_node import Node, several_nodes
from kube_sources import made_elsewhere
from waiting import eventually

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(2400)]

USERS = 500
SPEC = {
    "processing": {"guarantee": "exactly_once_v2"},
    "template": {"terminationGracePeriodSeconds": 20},
    "nodeLoss": {"forceDeleteAfter": "1m"},
}


@dataclass(frozen=True, slots=True)
class Nodes:
    """The cluster, with the operator and a broker in it."""

    node: Node
    kafka: KafkaInCluster

    @property
    def workers(self) -> tuple[Machine, Machine]:
        """The two on which applications' pods are."""
        _, one, other = self.node.machines
        return one, other

    def kubectl(self, *arguments: str) -> str:
        return self.node.cluster.kubectl(*arguments, timeout=400).stdout


@pytest.fixture(scope="module")
def nodes() -> Iterator[Nodes]:
    if made_elsewhere():
        pytest.skip("the machines of this cluster are not ours to switch off")
    with several_nodes(3) as node:
        operator, runtime = node.load("operator"), node.load("runtime")
        first = node.machines[0].name
        with kafka_pod(node.cluster, runtime, first) as kafka, operator_in_cluster(node, operator, runtime):
            node.cluster.kubectl("cordon", first)
            yield Nodes(node, kafka)


@pytest.fixture
def app(nodes: Nodes, namespace: str) -> Iterator[Application]:
    """An application of two pods that runs and has counted an order of each user."""
    with inhabited(nodes.node.cluster, namespace):
        nodes.kafka.alias(namespace)
        make_topics(nodes.kafka.outside, **{f"{namespace}-orders": 2, f"{namespace}-totals": 2})
        found = Application(nodes.node, namespace, "app")
        found.apply(document=totals("app", namespace, **SPEC))
        found.reaches("RUNNING", "2/2")
        order_and_expect(nodes, found, 1)
        yield found
        print(found.words())  # shown when the test fails


def order_and_expect(nodes: Nodes, app: Application, times: int) -> None:
    """One more order of each user, after which there are so many."""
    orders(nodes.kafka.outside, app.namespace, USERS, 1)
    expect(nodes.kafka.outside, app.namespace, USERS, times)


def test_pods_are_spread_and_a_drained_node_is_left_one_after_the_other(nodes: Nodes, app: Application) -> None:
    one, other = nodes.workers
    assert set(app.places().values()) == {one.name, other.name}
    nodes.kubectl("drain", one.name, "--force", "--delete-emptydir-data", "--ignore-daemonsets", "--timeout=300s")
    app.reaches("RUNNING", "2/2")
    assert set(app.places().values()) == {other.name}
    order_and_expect(nodes, app, 2)
    nodes.kubectl("uncordon", one.name)


def test_a_rolling_change_goes_on_when_the_operator_is_lost_in_the_midst_of_it(nodes: Nodes, app: Application) -> None:
    before = {name: app.uid(name) for name in app.places()}
    app.merge(restartNonce=1)
    eventually(lambda: app.uid("app-1") not in (None, before["app-1"]), "the last pod is replaced", PATIENCE)
    where = f"--namespace={OPERATOR_NAMESPACE}"
    selector = "--selector=app.kubernetes.io/name=streams-operator"
    nodes.kubectl("delete", "pods", selector, where, "--force", "--grace-period=0")
    eventually(lambda: app.uid("app-0") not in (None, before["app-0"]), "the first pod is replaced too", PATIENCE)
    app.reaches("RUNNING", "2/2")
    order_and_expect(nodes, app, 2)


def test_pods_of_a_node_that_is_cut_off_are_made_elsewhere_and_double_nothing_when_it_is_back(
    nodes: Nodes, app: Application
) -> None:
    one, other = nodes.workers
    lost = {name for name, place in app.places().items() if place == one.name}
    assert lost
    before = {name: app.uid(name) for name in lost}
    one.place.cut()
    try:
        eventually(lambda: not is_ready(nodes.node.cluster, one.name), "the node is missed", PATIENCE)
        eventually(lambda: "PodStuckTerminating" in app.condition("Degraded"), "a pod is stuck", PATIENCE)
        assert one.name in app.condition("Degraded")[2]
        eventually(lambda: all(app.uid(name) not in (None, before[name]) for name in lost), "made anew", PATIENCE)
        app.reaches("RUNNING", "2/2")
        assert set(app.places().values()) == {other.name}
        order_and_expect(nodes, app, 2)
    finally:
        one.place.mend()
    eventually(lambda: is_ready(nodes.node.cluster, one.name), "the node is back", PATIENCE)
    order_and_expect(nodes, app, 3)
    app.reaches("RUNNING", "2/2")
    eventually(lambda: app.condition("Degraded")[0] == "False", "nothing is wrong any more", PATIENCE)


def test_pods_of_a_node_without_power_are_made_elsewhere(nodes: Nodes, app: Application) -> None:
    """The last test: the machine is not switched on again."""
    one, other = nodes.workers
    assert set(app.places().values()) == {one.name, other.name}
    other.place.lose_power()
    eventually(lambda: set(app.places().values()) == {one.name}, "all are on the node that is left", PATIENCE)
    app.reaches("RUNNING", "2/2")
    order_and_expect(nodes, app, 2)
