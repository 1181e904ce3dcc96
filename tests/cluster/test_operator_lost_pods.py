"""Pods that are not what they say, that do not arrive, and that do not go, on a real API server."""

from __future__ import annotations

import asyncio

import pytest
from kube_reads import connection
from operator_kit import OperatorProcess
from operator_stage import Stage
from waiting import eventually

from streams_operator.kube.api import NotThere, connect
from streams_operator.kube.kinds import POD
from streams_operator.kube.pod_state import pod_state
from streams_operator.plan.pods.standing import STUCK_AFTER, stuck

pytestmark = [pytest.mark.cluster, pytest.mark.usefixtures("crd")]


@pytest.mark.usefixtures("running")
def test_a_rolling_change_waits_for_a_new_pod_that_says_running_and_is_not_ready(stage: Stage):
    stage.apply(replicas=2)
    stage.reaches("RUNNING", "2/2")
    before = stage.uids()
    stage.kubelet.unready("app-1")
    stage.apply(replicas=2, processing={"maxBatchRecords": 7})
    eventually(lambda: stage.uids().get("app-1", before["app-1"]) != before["app-1"], "the last one is replaced")
    eventually(
        lambda: "app-1 (RUNNING, but its pod is not ready" in stage.condition("Progressing")[2], "it is waited for"
    )
    assert stage.status()["state"] == "RUNNING", "as its own condition has it"
    assert stage.condition("Ready")[:2] == ("False", "PodsNotReady")
    assert stage.uids()["app-0"] == before["app-0"]
    stage.kubelet.let("app-1")
    eventually(lambda: stage.uids().get("app-0", before["app-0"]) != before["app-0"], "the next one is replaced")
    stage.reaches("RUNNING", "2/2")


def test_an_image_and_a_quota_that_keep_pods_from_starting_are_told_when_their_time_is_over(
    stage: Stage, running: OperatorProcess
):
    stage.kubelet.hold("app-0")
    stage.apply(replicas=1, progressDeadline="10s")
    eventually(lambda: "app-0" in stage.pods(), "its pod is made")
    stage.kubelet.waits("app-0", "ImagePullBackOff", 'Back-off pulling image "registry.example/streams-runtime:test"')
    eventually(lambda: "ImagePullBackOff: Back-off" in stage.condition("Progressing")[2], "what it waits for is told")
    assert stage.condition("Degraded")[0] == "False"
    stage.no_more("pods", 1)
    stage.merge('{"spec": {"replicas": 2}}')
    eventually(lambda: stage.condition("Degraded")[1] == "ProgressDeadlineExceeded", "it is over")
    eventually(lambda: "app-1 since" in stage.condition("Degraded")[2], "for the second one too")
    message = stage.condition("Degraded")[2]
    assert "app-0 since" in message
    assert "ImagePullBackOff: Back-off pulling image" in message
    assert "its pod can't be made: POST" in message
    assert "quota" in message
    assert stage.condition("Progressing")[:2] == ("False", "ProgressDeadlineExceeded")
    eventually(lambda: "ProgressDeadlineExceeded" in [reason for reason, _ in stage.events()], "an event tells")
    figure = 'application_condition{application="app",condition="Degraded",namespace="%s",reason="%s"} 1.0'
    assert figure % (stage.namespace, "ProgressDeadlineExceeded") in running.metrics()
    stage.cluster.kubectl("delete", "quota/none", f"--namespace={stage.namespace}")
    stage.kubelet.let("app-0")
    stage.reaches("RUNNING", "2/2")
    eventually(lambda: stage.condition("Degraded")[0] == "False", "nothing is late any more")


@pytest.mark.usefixtures("running")
def test_a_pod_whose_node_is_lost_can_be_seen_to_be_stuck_and_goes_by_force(stage: Stage):
    stage.apply(replicas=1)
    stage.reaches("RUNNING", "1/1")
    before = stage.uids()["app-0"]
    binding = {
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": {"name": "app-0"},
        "target": {"apiVersion": "v1", "kind": "Node", "name": "n7"},
    }
    stage.kubelet.lose("app-0")
    with connection(stage.cluster.endpoint, stage.cluster.token) as requests:
        path = f"/api/v1/namespaces/{stage.namespace}/pods/app-0/binding"
        requests.post(path, json=binding).raise_for_status()
    stage.cluster.kubectl("delete", "pod", "app-0", f"--namespace={stage.namespace}", "--wait=false")
    eventually(lambda: "deletionTimestamp" in stage.kubelet.pods()["app-0"]["metadata"], "it is being deleted")
    seen = pod_state(stage.kubelet.pods()["app-0"], "app")
    assert seen.gone_by is not None
    assert (seen.node, seen.forced) == ("n7", False)
    assert not stuck(seen, seen.gone_by + STUCK_AFTER - 1)
    assert stuck(seen, seen.gone_by + STUCK_AFTER)

    async def force(uid: str) -> None:
        api = await connect({"KUBECONFIG": str(stage.cluster.kubeconfig)})
        try:
            await api.delete(POD, stage.namespace, "app-0", uid, force=True)
        finally:
            await api.close()

    with pytest.raises(NotThere):
        asyncio.run(force("another-pod-of-that-name"))
    assert stage.uids()["app-0"] == before
    asyncio.run(force(before))
    eventually(lambda: stage.uids().get("app-0", before) != before, "it is made again at once")
