"""A change of topology that would lose state, on a real API server and a real broker."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from operator_kit import operator, resource
from operator_stage import Stage
from waiting import eventually

from streams_operator import names
from streams_runtime.kafka.admin.kafka_admin import Admin

pytestmark = [pytest.mark.cluster, pytest.mark.usefixtures("crd")]


def with_store(stage: Stage, name: str) -> str:
    """A patch that gives the store another name."""
    topology = resource(stage.namespace, stage.bootstrap)["spec"]["topology"]
    topology["steps"][0]["store"] = name
    return json.dumps({"spec": {"topology": topology}})


def on_brokers(stage: Stage, store: str) -> bool:
    admin = Admin({"bootstrap.servers": stage.bootstrap})
    try:
        return bool(admin.describe_topics([f"{stage.namespace}-app-{store}-changelog"], config=False))
    finally:
        admin.close()


def deployed(stage: Stage) -> set[str]:
    """The stores in the ConfigMaps that the pods mount."""
    found = set()
    for pod in stage.kubelet.pods().values():
        version = pod["metadata"]["annotations"][names.ANNOTATION_SPEC]
        config_map = stage.cluster.get("configmap", names.config("app", version), stage.namespace) or {}
        application = json.loads(config_map["data"][names.CONFIG_FILE])
        found |= {step["store"] for step in application["spec"]["topology"]["steps"]}
    return found


def test_it_is_refused_also_by_an_operator_that_was_not_there_and_goes_out_once_it_is_allowed(
    stage: Stage, tmp_path: Path
):
    with operator(stage.cluster, stage.namespace, tmp_path) as first:
        stage.apply(replicas=2)
        stage.reaches("RUNNING", "2/2")
        before = stage.uids()
        stage.kill(first)
    stage.merge(with_store(stage, "sums"))
    with operator(stage.cluster, stage.namespace, tmp_path) as second:
        eventually(lambda: stage.condition("Degraded")[1] == "TopologyChangeRefused", "the refusal is told")
        message = stage.condition("Degraded")[2]
        assert "store totals: only the old topology has it" in message
        assert "spec.topologyChange is allow" in message
        assert stage.condition("Ready")[:2] == ("True", "Running")
        assert stage.condition("Progressing")[:2] == ("False", "TopologyChangeRefused")
        eventually(lambda: "TopologyChangeRefused" in dict(stage.events()), "the event is written")
        # A pod that is lost meanwhile is of the deployed version.
        stage.cluster.kubectl("delete", "pod", "app-1", f"--namespace={stage.namespace}", "--wait=false")
        eventually(lambda: stage.uids().get("app-1") not in (None, before["app-1"]), "the pod is made again")
        stage.reaches("RUNNING", "2/2")
        assert stage.uids()["app-0"] == before["app-0"]
        assert deployed(stage) == {"totals"}
        assert not on_brokers(stage, "sums")
        stage.kill(second)
    with operator(stage.cluster, stage.namespace, tmp_path):
        stage.merge('{"spec": {"topologyChange": "allow"}}')
        eventually(lambda: deployed(stage) == {"sums"}, "the new version is rolled out")
        stage.reaches("RUNNING", "2/2")
        assert stage.condition("Degraded")[0] == "False"
        assert on_brokers(stage, "sums")
        assert on_brokers(stage, "totals")
