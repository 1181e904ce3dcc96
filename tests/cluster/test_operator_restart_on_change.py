"""A Secret that is rotated, and a ConfigMap that changes, replace running pods; on a real API server."""

from __future__ import annotations

import json
import time

import pytest
from operator_stage import Stage
from waiting import eventually

from streams_operator import names

pytestmark = [pytest.mark.cluster, pytest.mark.usefixtures("crd")]


def put(stage: Stage, kind: str, name: str, **data: str) -> None:
    content = {"stringData" if kind == "Secret" else "data": data}
    metadata = {"name": name, "namespace": stage.namespace}
    stage.cluster.apply({"apiVersion": "v1", "kind": kind, "metadata": metadata, **content})


def inputs(stage: Stage) -> set[str]:
    """What the pods say that they were made with."""
    return {pod["metadata"]["annotations"].get(names.ANNOTATION_INPUTS, "") for pod in stage.kubelet.pods().values()}


def replaced(stage: Stage, before: str) -> bool:
    """Whether all pods were made with something else; asks for the round that would come within a minute."""
    stage.merge(json.dumps({"metadata": {"annotations": {"look": str(time.monotonic())}}}))
    return before not in inputs(stage) and len(inputs(stage)) == 1


@pytest.mark.usefixtures("running")
def test_pods_are_replaced_for_a_rotated_secret_and_a_changed_config_map_and_for_nothing_else(stage: Stage):
    put(stage, "Secret", "login", **{"client.rack": "a"})
    put(stage, "ConfigMap", "settings", size="1")
    stage.apply(
        replicas=2,
        kafka={"bootstrapServers": stage.bootstrap, "secretRef": {"name": "login"}},
        template={
            "volumes": [{"name": "settings", "configMap": {"name": "settings"}}],
            "volumeMounts": [{"name": "settings", "mountPath": "/settings"}],
        },
        restartOnChange=["secrets", "code"],
    )
    stage.reaches("RUNNING", "2/2")
    digest = stage.status()["stable"]
    (first,) = inputs(stage)
    assert json.loads(first).keys() == {"Secret/login", "ConfigMap/settings"}
    before = stage.uids()
    stage.cluster.kubectl("label", "secret/login", "a=b", f"--namespace={stage.namespace}")
    put(stage, "ConfigMap", "settings", size="2")
    eventually(lambda: replaced(stage, first), "both are replaced", every=2.0)
    stage.reaches("RUNNING", "2/2")
    assert not set(before.values()) & set(stage.uids().values())
    (second,) = inputs(stage)
    assert json.loads(second)["Secret/login"] == json.loads(first)["Secret/login"], "a label is no content"
    put(stage, "Secret", "login", **{"client.rack": "b"})
    eventually(lambda: replaced(stage, second), "both are replaced again", every=2.0)
    stage.reaches("RUNNING", "2/2")
    assert stage.status()["stable"] == digest, "it is the same version"
    whys = [message for reason, message in stage.events() if reason == "PodRemoved"]
    assert {why.partition("changed ")[2].partition(";")[0] for why in whys} == {"ConfigMap/settings", "Secret/login"}
