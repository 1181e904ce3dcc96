"""What happens to single pods: killed, kept from their state, met by a poisoned record."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from clients import make_topics, read, send
from e2e_kit import PATIENCE, Application, kill_process, states_of
from e2e_orders import expect, orders, totals
from kube_kafka import KafkaInCluster
from waiting import eventually

from streams_runtime.kafka.admin.kafka_admin import Admin
from streams_runtime.kafka.types import TopicPartition

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(1500, func_only=True)]

Make = Callable[[str], Application]
STAYS = 180.0
"""Seconds for which a pod in ERROR is watched: longer than all but the longest back-off after a crash."""


def restored_by(app: Application, pod: str) -> int:
    """Records that the pod has restored since its process started, by its own account."""
    path = f"/api/v1/namespaces/{app.namespace}/pods/{pod}:8080/proxy/state"
    return int(json.loads(app.cluster.kubectl("get", "--raw", path).stdout)["counters"]["restored_records"])


def test_a_killed_pod_comes_back_with_its_volume_and_restores_only_the_tail(
    application: Make, kafka_in_cluster: KafkaInCluster, node_namespace: str
):
    address, users = kafka_in_cluster.outside, 2000
    make_topics(address, **{f"{node_namespace}-orders": 2, f"{node_namespace}-totals": 2})
    app = application("kept")
    app.apply(document=totals("kept", node_namespace, state={"storage": {"size": "1Gi"}}))
    app.reaches("RUNNING", "2/2")
    orders(address, node_namespace, users, 5)
    expect(address, node_namespace, users, 5)
    claim, uid = app.pod("kept-1")["spec"]["volumes"], app.uid("kept-1")
    written = len(read(address, f"{node_namespace}-totals-changelog"))
    kill_process(app, "kept-1")
    eventually(lambda: app.instance("kept-1").get("restarts") == 1, "the crash is on record", PATIENCE)
    eventually(
        lambda: (app.pod("kept-1") or {"metadata": {"uid": uid}})["metadata"]["uid"] != uid, "made again", PATIENCE
    )
    app.reaches("RUNNING", "2/2")
    assert [each for each in app.pod("kept-1")["spec"]["volumes"] if each["name"] == "state"] == [
        each for each in claim if each["name"] == "state"
    ]
    assert written >= users
    assert restored_by(app, "kept-1") < written / 10, "all was committed before the kill: at most a tail is replayed"
    orders(address, node_namespace, users, 1)
    expect(address, node_namespace, users, 6)


def test_a_pod_that_can_t_read_its_state_ends_in_error_and_stays_until_somebody_says_so(
    application: Make, kafka_in_cluster: KafkaInCluster, node_namespace: str, tmp_path: Path
):
    address, users = kafka_in_cluster.outside, 50
    make_topics(address, **{f"{node_namespace}-orders": 2, f"{node_namespace}-totals": 2})
    app = application("barred")
    app.apply(document=totals("barred", node_namespace, state={"storage": {"size": "1Gi"}}))
    app.reaches("RUNNING", "2/2")
    orders(address, node_namespace, users, 1)
    expect(address, node_namespace, users, 1)
    app.kubectl("exec", "barred-1", "--", "sh", "-c", "chmod 000 /var/lib/streams/*")
    with states_of(app, "barred-1", tmp_path) as states:
        kill_process(app, "barred-1")
        app.reaches("ERROR", "1/2")
        eventually(lambda: states()[-2:] == ["PENDING_ERROR", "ERROR"], f"both states were seen: {states()}")
    pod = app.pod("barred-1")
    conditions = {each["type"]: each for each in pod["status"]["conditions"]}
    assert conditions["streamsoperator.io/Running"]["reason"] == "ERROR"
    restartable = conditions["streamsoperator.io/Restartable"]
    assert restartable["status"] == "False"
    assert restartable["reason"] in ("ProcessorStateException", "LockException")
    degraded = app.condition("Degraded")
    assert degraded[:2] == ("True", "PodsInError")
    assert restartable["reason"] in degraded[2]
    assert restartable["message"] in degraded[2]
    # The other pod takes the tasks and goes on.
    for total in (2, 3):
        orders(address, node_namespace, users, 1)
        expect(address, node_namespace, users, total)
    noticed, uid = time.monotonic(), pod["metadata"]["uid"]

    def stayed() -> bool:
        assert app.uid("barred-1") == uid
        assert app.instance("barred-1")["restarts"] == 1, "only the kill counts as a crash"
        return time.monotonic() - noticed > STAYS

    eventually(stayed, "nobody restarts it", STAYS + PATIENCE)
    mend(app)
    app.merge(restartNonce=1)
    app.reaches("RUNNING", "2/2")
    assert app.uid("barred-1") != uid


def mend(app: Application) -> None:
    """Make the state of `barred-1` readable again, by a pod that has its volume."""
    pod = app.pod("barred-1")
    container = pod["spec"]["containers"][0]
    claim = next(each for each in pod["spec"]["volumes"] if each["name"] == "state")
    mount = {"name": "state", "mountPath": "/state"}
    context = container["securityContext"]
    app.cluster.apply(
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "mends", "namespace": app.namespace},
            "spec": {
                "restartPolicy": "Never",
                "securityContext": pod["spec"]["securityContext"],
                "volumes": [claim],
                "containers": [
                    {
                        "name": "main",
                        "image": container["image"],
                        "imagePullPolicy": container["imagePullPolicy"],
                        "command": ["sh", "-c", "chmod 755 /state/*"],
                        "securityContext": context,
                        "volumeMounts": [mount],
                    }
                ],
            },
        }
    )
    app.kubectl("wait", "--for=jsonpath={.status.phase}=Succeeded", "pod/mends", "--timeout=60s", timeout=80)


@pytest.mark.long
def test_one_pod_that_asks_for_the_end_of_the_application_ends_all_of_its_pods(
    application: Make, kafka_in_cluster: KafkaInCluster, node_namespace: str
):
    address, users = kafka_in_cluster.outside, 50
    make_topics(address, **{f"{node_namespace}-orders": 1, f"{node_namespace}-totals": 1})
    app = application("together")
    policy = {"onUncaughtException": "shutdownApplication"}
    app.apply(document=totals("together", node_namespace, replicas=3, processing=policy))
    app.reaches("RUNNING", "3/3")
    orders(address, node_namespace, users, 1)
    expect(address, node_namespace, users, 1)
    # One partition: one pod meets the record, and hands the other two nothing but its request.
    send(address, f"{node_namespace}-orders", [("u0", b"{oops")])
    app.reaches("ERROR", "0/3")
    # The resource is in ERROR with the first of them; the others say so when their threads have stopped.
    for number in range(3):
        name = f"together-{number}"
        eventually(lambda name=name: "error" in app.instance(name), f"{name} ended in ERROR", PATIENCE)
    kinds = [app.instance(f"together-{number}")["error"]["class"] for number in range(3)]
    asking = kinds.index("DeserializationException")
    assert app.instance(f"together-{asking}")["shutdownRequested"] is True
    assert "ShutdownRequestedException" in kinds
    for number, kind in enumerate(kinds):
        if kind == "ShutdownRequestedException":
            message = app.instance(f"together-{number}")["error"]["message"]
            assert f"{node_namespace}-orders-0@{users}" in message
            assert "asked for by together-" in message
        assert app.instance(f"together-{number}").get("restarts", 0) == 0
    # A new spec is for all of them, and nobody of the new version is told.
    app.merge(processing={**policy, "onDeserializationError": "continue"})
    app.reaches("RUNNING", "3/3")
    orders(address, node_namespace, users, 1)
    expect(address, node_namespace, users, 2)


def test_a_poisoned_record_ends_each_pod_that_meets_it_and_a_new_spec_goes_past_it(
    application: Make, kafka_in_cluster: KafkaInCluster, node_namespace: str
):
    address, users = kafka_in_cluster.outside, 50
    names = {f"{node_namespace}-orders": 1, f"{node_namespace}-totals": 1, f"{node_namespace}-letters": 1}
    make_topics(address, **names)
    app = application("poisoned")
    app.apply(document=totals("poisoned", node_namespace))
    app.reaches("RUNNING", "2/2")
    orders(address, node_namespace, users, 1)
    expect(address, node_namespace, users, 1)
    send(address, f"{node_namespace}-orders", [("u0", b"{oops")])
    orders(address, node_namespace, users, 1)
    app.reaches("ERROR", "0/2")
    for name in ("poisoned-0", "poisoned-1"):
        # The second one meets the record when the first one's session in the group has ended.
        eventually(lambda name=name: "error" in app.instance(name), f"{name} ended in ERROR", PATIENCE)
        error = app.instance(name)["error"]
        assert error["class"] == "DeserializationException"
        assert f"{node_namespace}-orders-0@{users}" in error["message"]
        assert app.instance(name).get("restarts", 0) == 0
    app.merge(processing={"onDeserializationError": {"deadLetter": {"topic": f"{node_namespace}-letters"}}})
    expect(address, node_namespace, users, 2)
    app.reaches("RUNNING", "2/2")
    assert [each.value() for each in read(address, f"{node_namespace}-letters")] == [b"{oops"]
    admin = Admin({"bootstrap.servers": address})
    end = TopicPartition(f"{node_namespace}-orders", 0)
    eventually(lambda: admin.committed_offsets(node_namespace, [end]) == admin.end_offsets([end]), "all is committed")
    admin.close()
