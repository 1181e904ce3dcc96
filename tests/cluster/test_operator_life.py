"""The life of an application on a real API server and a real broker: created, run, changed, ended."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from operator_kit import IMAGE, OperatorProcess, operator
from operator_stage import Stage
from waiting import eventually

from streams_operator import names
from streams_runtime.kafka.admin.kafka_admin import Admin

pytestmark = [pytest.mark.cluster, pytest.mark.usefixtures("crd")]


@pytest.mark.usefixtures("running")
def test_an_applied_resource_becomes_topics_objects_and_pods_and_shows_its_state(stage: Stage):
    stage.apply(replicas=2)
    status = stage.reaches("RUNNING", "2/2")
    assert stage.topics() == [f"{stage.namespace}-app-totals-changelog"]
    assert stage.pods() == ["app-0", "app-1"]
    assert stage.kinds("service") == ["app"]
    assert stage.kinds("serviceaccount") == stage.kinds("role") == stage.kinds("rolebinding") == ["app-streams"]
    assert stage.kinds("poddisruptionbudget") == ["app"]
    assert len(stage.kinds("configmap")) == 1
    assert status["tasks"] == 2
    assert status["internalTopics"]["setup"] == "Ready"
    assert stage.condition("Ready")[0] == "True"
    pod = stage.kubelet.pods()["app-0"]
    assert pod["spec"]["containers"][0]["image"] == IMAGE
    assert pod["spec"]["restartPolicy"] == "Never"
    assert pod["metadata"]["ownerReferences"][0]["name"] == "app"
    columns = stage.cluster.kubectl("get", "streamsapps", f"--namespace={stage.namespace}").stdout.splitlines()
    assert columns[0].split() == ["NAME", "STATE", "READY", "TASKS", "RESTORING", "LAG", "SETUP", "AGE"]
    assert columns[1].split()[:4] == ["app", "RUNNING", "2/2", "2"]
    eventually(lambda: ("PodsCreated", "made app-0, app-1") in stage.events(), "the event of a pod")


@pytest.mark.usefixtures("running")
def test_a_pod_in_error_stays_until_a_new_restart_nonce(stage: Stage):
    stage.apply(replicas=2)
    stage.reaches("RUNNING", "2/2")
    before = stage.uids()
    stage.kubelet.end("app-1", 70, {"state": "ERROR", "class": "ProcessorStateException", "message": "disk full"})
    status = stage.reaches("ERROR", "1/2")
    assert next(each for each in status["instances"] if each["name"] == "app-1")["error"] == {
        "class": "ProcessorStateException",
        "message": "disk full",
    }
    assert stage.condition("Degraded")[0] == "True"
    assert "disk full" in stage.condition("Degraded")[2]
    # A round that only a change can have caused, so that the operator has had its chance to do wrong.
    stage.merge('{"metadata": {"annotations": {"touched": "yes"}}, "spec": {"replicas": 3}}')
    stage.reaches("ERROR", "2/3")
    assert stage.uids()["app-1"] == before["app-1"]
    stage.kubelet.hold("app-1", "REBALANCING")
    stage.merge('{"spec": {"restartNonce": 1}}')
    eventually(lambda: stage.uids().get("app-1", before["app-1"]) != before["app-1"], "it is made again")
    eventually(lambda: stage.condition("Progressing")[1] == "RollingOut", "the others wait for it")
    assert stage.uids()["app-0"] == before["app-0"]
    stage.kubelet.let("app-1")
    eventually(lambda: stage.uids().get("app-0", before["app-0"]) != before["app-0"], "running ones are replaced too")
    stage.reaches("RUNNING", "3/3")
    eventually(lambda: stage.condition("Progressing")[1] == "Settled", "all are replaced")


@pytest.mark.usefixtures("running")
def test_a_pod_that_asks_for_the_end_of_the_application_ends_all_until_a_new_restart_nonce(stage: Stage):
    stage.apply(replicas=3)
    stage.reaches("RUNNING", "3/3")
    before = stage.uids()
    words = {"state": "ERROR", "class": "LockException", "message": "in use", "shutdown": "application"}
    stage.kubelet.end("app-1", 70, words)
    for name in ("app-0", "app-2"):
        eventually(lambda name=name: _told(stage, name), f"{name} is told")
        assert json.loads(_told(stage, name)) == {"instance": "app-1", "class": "LockException", "message": "in use"}
    assert _told(stage, "app-1") == "", "who asks is not told"
    assert stage.status()["instances"][1]["shutdownRequested"] is True
    eventually(
        lambda: ("ShutdownSignaled", "asked app-0 to end with the application") in stage.events(), "an event tells"
    )
    told = {"state": "ERROR", "class": "ShutdownRequestedException", "message": "asked for by app-1"}
    stage.kubelet.end("app-0", 70, told)
    # A crash before it has read the word: the next pod of this number finds it from its start.
    stage.kubelet.end("app-2", 137, reason="OOMKilled")
    eventually(lambda: stage.uids().get("app-2", before["app-2"]) != before["app-2"], "it is made again")
    assert _told(stage, "app-2")
    stage.kubelet.end("app-2", 70, told)
    stage.reaches("ERROR", "0/3")
    assert stage.uids()["app-0"] == before["app-0"], "nobody starts it again"
    stage.merge('{"spec": {"restartNonce": 1}}')
    stage.reaches("RUNNING", "3/3")
    assert not any(_told(stage, name) for name in ("app-0", "app-1", "app-2"))
    assert not any("shutdownRequested" in each for each in stage.status()["instances"])


def _told(stage: Stage, pod: str) -> str:
    found = stage.kubelet.pods().get(pod, {"metadata": {}})
    return str((found["metadata"].get("annotations") or {}).get(names.ANNOTATION_SHUTDOWN, ""))


@pytest.mark.usefixtures("running")
def test_a_crashed_pod_is_made_again_after_its_back_off(stage: Stage):
    stage.apply(replicas=1)
    stage.reaches("RUNNING", "1/1")
    before = stage.uids()["app-0"]
    stage.kubelet.end("app-0", 137, reason="OOMKilled")
    eventually(lambda: stage.status()["instances"][0].get("restarts") == 1, "the crash is on record")
    instance = stage.status()["instances"][0]
    assert instance["lastCrash"]["uid"] == before
    assert "OOMKilled" in instance["lastCrash"]["reason"]
    assert instance["backoffUntil"]
    stage.reaches("RUNNING", "1/1")
    assert stage.uids()["app-0"] != before
    assert stage.status()["instances"][0]["restarts"] == 1


@pytest.mark.usefixtures("running")
def test_a_new_spec_replaces_pods_one_at_a_time_from_the_highest(stage: Stage):
    stage.apply(replicas=3)
    stage.reaches("RUNNING", "3/3")
    before = stage.uids()
    stage.kubelet.hold("app-2", "REBALANCING")
    stage.apply(replicas=3, image="registry.example/another:1")
    eventually(lambda: stage.uids().get("app-2", before["app-2"]) != before["app-2"], "the highest is replaced")
    stage.reaches("REBALANCING", "2/3")
    assert {name: stage.uids()[name] for name in ("app-0", "app-1")} == {n: before[n] for n in ("app-0", "app-1")}
    stage.kubelet.let("app-2")
    eventually(lambda: not set(stage.uids().values()) & set(before.values()), "all are replaced")
    stage.reaches("RUNNING", "3/3")
    images = {pod["spec"]["containers"][0]["image"] for pod in stage.kubelet.pods().values()}
    assert images == {"registry.example/another:1"}
    eventually(lambda: len(stage.kinds("configmap")) == 1, "the old version's ConfigMap has gone")


@pytest.mark.usefixtures("running")
def test_the_scale_subresource_scales_and_claims_outlive_their_pods(stage: Stage):
    stage.apply(replicas=1, state={"storage": {"size": "1Gi"}})
    stage.reaches("RUNNING", "1/1")
    scale = ("scale", "streamsapp/app", f"--namespace={stage.namespace}")
    stage.cluster.kubectl(*scale, "--replicas=3")
    stage.reaches("RUNNING", "3/3")
    assert stage.kinds("pvc") == ["state-app-0", "state-app-1", "state-app-2"]
    stage.cluster.kubectl(*scale, "--replicas=1")
    stage.reaches("RUNNING", "1/1")
    assert stage.pods() == ["app-0"]
    assert stage.kinds("pvc") == ["state-app-0", "state-app-1", "state-app-2"]


@pytest.mark.usefixtures("running")
def test_a_suspended_application_has_no_pods_and_keeps_everything_else(stage: Stage):
    stage.apply(replicas=2)
    stage.reaches("RUNNING", "2/2")
    stage.merge('{"spec": {"suspend": true}}')
    stage.reaches("SUSPENDED")
    eventually(lambda: stage.pods() == [], "all pods have gone")
    assert stage.condition("Suspended")[0] == "True"
    assert stage.topics()
    stage.merge('{"spec": {"suspend": false}}')
    stage.reaches("RUNNING", "2/2")


@pytest.mark.usefixtures("running")
@pytest.mark.parametrize(("policy", "left"), [("Retain", True), ("Delete", False)])
def test_deletion_treats_the_internal_topics_as_the_policy_says(stage: Stage, policy: str, left: bool):
    stage.apply(replicas=2, internalTopics={"deletionPolicy": policy})
    stage.reaches("RUNNING", "2/2")
    stage.delete("--timeout=60s")
    assert stage.get() is None
    assert stage.pods() == []
    assert bool(stage.topics()) == left


def test_deletion_with_a_dead_broker_ends_and_names_the_topics_that_stay(stage: Stage, tmp_path: Path):
    # Never sooner than pods have to close.
    spec = {"internalTopics": {"deletionPolicy": "Delete"}, "template": {"terminationGracePeriodSeconds": 5}}
    with operator(stage.cluster, stage.namespace, tmp_path, delete_deadline="5"):
        stage.apply(replicas=1, **spec)
        stage.reaches("RUNNING", "1/1")
        stage.bootstrap, alive = "127.0.0.1:9", stage.bootstrap
        stage.apply(replicas=1, **spec)
        stage.delete("--timeout=60s")
        left = [message for reason, message in stage.events() if reason == "InternalTopicsLeft"]
        assert len(left) == 1
        assert f"{stage.namespace}-app-totals-changelog" in left[0]
        stage.bootstrap = alive
        assert stage.topics()


@pytest.mark.usefixtures("running")
def test_what_is_deleted_or_edited_by_others_is_put_right(stage: Stage):
    stage.apply(replicas=1)
    stage.reaches("RUNNING", "1/1")
    inside, before = f"--namespace={stage.namespace}", stage.uids()["app-0"]
    stage.cluster.kubectl("delete", "service/app", "pdb/app", "rolebinding/app-streams", inside)
    stage.cluster.kubectl(
        "patch", "role/app-streams", inside, "--type=json", '--patch=[{"op":"remove","path":"/rules/0"}]'
    )
    eventually(lambda: stage.kinds("service") == stage.kinds("pdb") == ["app"], "the objects are back")
    eventually(lambda: stage.kinds("rolebinding") == ["app-streams"], "the binding is back")
    eventually(lambda: len(_rules(stage)) == 2, "the role has its rules again")
    stage.cluster.kubectl("delete", "pod/app-0", inside, "--grace-period=0", "--force")
    eventually(lambda: stage.uids().get("app-0", before) != before, "the pod is made again")
    stage.reaches("RUNNING", "1/1")


def _rules(stage: Stage) -> list[Any]:
    rules: list[Any] = stage.cluster.get("role", "app-streams", namespace=stage.namespace)["rules"]
    return rules


@pytest.mark.usefixtures("running")
def test_a_service_of_the_same_name_that_is_somebody_s_is_not_taken_over(stage: Stage):
    metadata = {"name": "app", "namespace": stage.namespace, "labels": {"of": "somebody"}}
    service = {"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": {"ports": [{"port": 9092}]}}
    stage.cluster.apply(service)
    stage.apply(replicas=1)
    eventually(
        lambda: any(
            reason == "ApplyFailed" and "Service app is there already" in text for reason, text in stage.events()
        ),
        "the event that says why",
    )
    found = stage.cluster.get("service", "app", namespace=stage.namespace)
    assert [port["port"] for port in found["spec"]["ports"]] == [9092]
    assert found["metadata"]["labels"] == {"of": "somebody"}
    stage.cluster.kubectl("delete", "service", "app", f"--namespace={stage.namespace}")
    stage.reaches("RUNNING", "1/1")
    found = stage.cluster.get("service", "app", namespace=stage.namespace)
    assert found["metadata"]["ownerReferences"][0]["name"] == "app"


@pytest.mark.usefixtures("running")
def test_a_foreign_pod_with_the_label_is_told_and_left_alone(stage: Stage):
    stage.apply(replicas=1)
    stage.reaches("RUNNING", "1/1")
    stage.kubelet.hold("intruder")
    stage.cluster.apply(
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {
                "name": "intruder",
                "namespace": stage.namespace,
                "labels": {names.LABEL_APPLICATION: "app"},
            },
            "spec": {"containers": [{"name": "c", "image": "c"}]},
        }
    )
    eventually(lambda: any("intruder" in text for _, text in stage.events()), "an event tells of it")
    assert "intruder" in stage.pods()


@pytest.mark.usefixtures("running")
def test_manual_topics_wait_for_a_nonce_and_are_never_made_again_silently(stage: Stage):
    stage.apply(replicas=1, internalTopics={"setup": "manual"})
    eventually(lambda: stage.condition("InternalTopicsReady")[:2] == ("False", "InitRequired"), "init is asked for")
    assert stage.pods() == []
    assert stage.topics() == []
    stage.merge('{"spec": {"internalTopics": {"init": {"nonce": 1}}}}')
    stage.reaches("RUNNING", "1/1")
    init = stage.status()["internalTopics"]["init"]
    assert (init["nonce"], init["result"]) == (1, "Created")
    assert stage.topics()
    admin = Admin({"bootstrap.servers": stage.bootstrap})
    admin.delete_topics(stage.topics())
    admin.close()
    error = {"state": "ERROR", "class": "MissingInternalTopicException", "message": "it has gone"}
    stage.kubelet.end("app-0", 70, error)
    stage.reaches("ERROR", "0/1")
    eventually(lambda: stage.condition("InternalTopicsReady")[0] == "False", "the missing topic is told")
    assert stage.topics() == []
    before = stage.uids()["app-0"]
    stage.merge('{"spec": {"restartNonce": 1, "internalTopics": {"init": {"nonce": 2}}}}')
    stage.reaches("RUNNING", "1/1")
    assert stage.uids()["app-0"] != before
    assert stage.topics()


def test_a_secret_that_is_missing_is_told_by_its_field(stage: Stage, running: OperatorProcess):
    stage.apply(kafka={"bootstrapServers": stage.bootstrap, "secretRef": {"name": "absent"}})
    eventually(lambda: "absent" in stage.condition("InternalTopicsReady")[2], "the condition names the Secret")
    assert "spec.kafka.secretRef" in stage.condition("InternalTopicsReady")[2]
    assert stage.pods() == []
    eventually(running.ready, "the operator is ready")
    metrics = running.metrics()
    assert "streams_operator_leader 1.0" in metrics
    assert f'application="app",namespace="{stage.namespace}",state="WAITING"' in metrics
    assert (
        f'streams_operator_application_ready_instances{{application="app",namespace="{stage.namespace}"}} 0.0'
        in metrics
    )
    assert 'streams_operator_api_requests_total{code="200",resource="streamsapplications"' in metrics


@pytest.mark.usefixtures("running")
def test_what_a_quota_refuses_is_told_and_made_when_it_allows(stage: Stage):
    inside = f"--namespace={stage.namespace}"
    stage.no_more("services", 0)
    stage.apply(replicas=1)
    eventually(
        lambda: any(reason == "ApplyFailed" and "quota" in text for reason, text in stage.events()), "it is told"
    )
    stage.reaches("RUNNING", "1/1")
    assert stage.kinds("service") == []
    stage.cluster.kubectl("delete", "quota/none", inside)
    eventually(lambda: stage.kinds("service") == ["app"], "the service is made")
