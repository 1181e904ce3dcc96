"""An instance whose executors are pods: they compute, may be killed, and go with the instance's pod."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from clients import last_values, make_topics, send
from e2e_kit import PATIENCE, Application, kill_process
from kube_kafka import KafkaInCluster
from waiting import eventually

from streams_runtime.pipeline.spark.executor_template import LABEL

pytestmark = [pytest.mark.e2e, pytest.mark.long, pytest.mark.timeout(1500, func_only=True)]

TIERS = """
def tier(amount):
    return "gold" if amount % 3 == 0 else "plain"
"""
FEW, MANY = 500, 20_000
EXECUTORS = 2


def tiers(namespace: str) -> dict[str, Any]:
    """Amounts by a function of the user's, which executors call."""
    value = {"format": "json", "schema": "amount BIGINT"}
    config = {
        "spark.executor.instances": EXECUTORS,
        "spark.executor.memory": "600m",
        "spark.kubernetes.executor.request.cores": "100m",
    }
    return {
        "apiVersion": "streamsoperator.io/v1alpha1",
        "kind": "StreamsApplication",
        "metadata": {"name": "spread"},
        "spec": {
            "applicationId": namespace,
            "kafka": {"bootstrapServers": "kafka:9092"},
            "processing": {"commitInterval": "100ms", "maxBatchRecords": 1000},
            "spark": {"master": "k8s://https://kubernetes.default.svc", "config": config},
            "code": {"configMap": "tiers"},
            "topology": {
                "functions": {"tier": {"python": "pod_tiers:tier", "returns": "STRING"}},
                "sources": [
                    {"name": "orders", "topic": f"{namespace}-orders", "key": {"format": "string"}, "value": value}
                ],
                "steps": [
                    {"name": "tiers", "from": "orders", "keyBy": "tier(amount)"},
                    {
                        "name": "totals",
                        "from": "tiers",
                        "aggregate": {"total": "sum(amount)", "orders": "count(*)"},
                        "store": "totals",
                    },
                ],
                "sinks": [{"from": "totals", "topic": f"{namespace}-totals"}],
            },
        },
    }


def totals(amounts: range) -> dict[str, dict[str, int]]:
    by_tier = {"gold": [each for each in amounts if each % 3 == 0], "plain": [each for each in amounts if each % 3]}
    return {tier: {"total": sum(each), "orders": len(each)} for tier, each in by_tier.items()}


def executors(app: Application, phase: str = "Running") -> dict[str, Any]:
    """The executors' pods in a phase, by name."""
    found = app.cluster.find("pods", app.namespace, f"{LABEL}={app.name}")
    return {each["metadata"]["name"]: each for each in found if each["status"].get("phase") == phase}


def test_executors_as_pods_compute_may_be_killed_and_leave_nothing_behind(
    application: Callable[[str], Application], kafka_in_cluster: KafkaInCluster, node_namespace: str
):
    address = kafka_in_cluster.outside
    make_topics(address, **{f"{node_namespace}-orders": 4, f"{node_namespace}-totals": 1})
    app = application("spread")
    metadata = {"name": "tiers", "namespace": node_namespace}
    app.cluster.apply({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"pod_tiers.py": TIERS}})
    app.apply(document=tiers(node_namespace))
    app.reaches("RUNNING", "1/1")

    def add(begin: int, end: int) -> None:
        send(address, f"{node_namespace}-orders", [(f"o{each}", {"amount": each}) for each in range(begin, end)])

    def expect(end: int) -> None:
        wanted = totals(range(end))
        eventually(
            lambda: last_values(address, f"{node_namespace}-totals") == wanted,
            lambda: f"{wanted}, not {last_values(address, f'{node_namespace}-totals')}: {app.words()}",
            PATIENCE,
        )

    def all_there() -> bool:
        return len(executors(app)) == EXECUTORS

    eventually(all_there, lambda: f"all executors run: {app.words()}", PATIENCE)
    add(0, FEW)
    expect(FEW)
    first = executors(app)
    for each in first.values():
        assert_as_restricted_as(each, app.pod("spread-0"))

    add(FEW, MANY)
    killed = min(first)
    app.kubectl("delete", "pod", killed, "--grace-period=0", "--force")
    expect(MANY)
    eventually(lambda: all_there() and killed not in executors(app), lambda: f"another one: {app.words()}", PATIENCE)
    assert app.status()["state"] == "RUNNING"
    assert [each["name"] for each in app.status()["instances"]] == ["spread-0"]

    before, uid = executors(app), app.uid("spread-0")
    kill_process(app, "spread-0")
    eventually(lambda: app.uid("spread-0") not in (None, uid), lambda: f"made again: {app.words()}", PATIENCE)
    app.reaches("RUNNING", "1/1")
    eventually(lambda: all_there() and not before.keys() & executors(app).keys(), "executors of its own", PATIENCE)
    add(MANY, MANY + FEW)
    expect(MANY + FEW)

    app.kubectl("delete", "streamsapp", "spread", "--timeout=180s", timeout=200)
    eventually(lambda: app.left() == {"service/kafka", "configmap/tiers"}, lambda: f"nothing is left: {app.left()}")


def assert_as_restricted_as(executor: dict[str, Any], instance: dict[str, Any]) -> None:
    """The same user and rights in the container, the same modules, and no token."""
    (container,), own = executor["spec"]["containers"], instance["spec"]["containers"][0]
    assert executor["spec"]["securityContext"] == instance["spec"]["securityContext"]
    assert container["securityContext"] == own["securityContext"]
    assert container["image"] == own["image"]
    mounts = {each["mountPath"] for each in container["volumeMounts"]}
    assert "/etc/streams/code" in mounts
    assert not any("serviceaccount" in each for each in mounts)
    (owner,) = executor["metadata"]["ownerReferences"]
    assert owner["uid"] == instance["metadata"]["uid"]
