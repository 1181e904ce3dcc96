"""spec.autoscaling on a real API server: what it refuses, and an operator that scales played pods by their load."""

from __future__ import annotations

import json
import subprocess

import pytest
from kube_cluster import Cluster
from operator_kit import resource
from operator_stage import Stage
from played_load import played_load
from waiting import eventually

pytestmark = [pytest.mark.cluster, pytest.mark.usefixtures("crd")]

SPEC = {"replicas": 1, "autoscaling": {"maxReplicas": 2, "targetCatchUp": "10s", "stabilization": "10s"}}


def scale(cluster: Cluster, namespace: str, replicas: int) -> subprocess.CompletedProcess[str]:
    return cluster.kubectl(
        "scale", "streamsapp", "app", f"--namespace={namespace}", f"--replicas={replicas}", check=False
    )


@pytest.mark.timeout(400)
@pytest.mark.usefixtures("running")
def test_load_adds_an_instance_and_its_end_takes_it_away(stage: Stage) -> None:
    with played_load(stage.kubelet, "app", pods=2, arrival=1500.0, rate=1000.0) as load:
        stage.apply(**SPEC)
        stage.reaches("RUNNING", "1/1")
        assert stage.status()["autoscaling"]["replicas"] == 1
        eventually(lambda: stage.status()["autoscaling"]["replicas"] == 2, "one is added", 150)
        stage.reaches("RUNNING", "2/2")
        said = stage.status()["autoscaling"]
        assert said["lastScaleMessage"].startswith("from 1 to 2, as it takes ")
        assert 500 <= said["instanceRate"] <= 1500
        eventually(lambda: ("ScaledUp", said["lastScaleMessage"]) in stage.events(), "an event says so")
        eventually(lambda: stage.status()["autoscaling"]["reason"] == "Observing", "it is measured anew")
        refused = scale(stage.cluster, stage.namespace, 2)
        assert refused.returncode != 0
        assert "spec.autoscaling chooses the number of instances" in refused.stderr
        assert (stage.get() or {})["spec"]["replicas"] == 1, "the operator never writes the spec"
        load.arrival = 100.0
        eventually(lambda: stage.status()["autoscaling"]["replicas"] == 1, "one is taken away", 150)
        eventually(lambda: stage.pods() == ["app-0"], "the last one has gone")
        stage.reaches("RUNNING", "1/1")
        assert "ScaledDown" in [reason for reason, _ in stage.events()]
        stage.merge('{"spec": {"autoscaling": null, "replicas": 2}}')
        stage.reaches("RUNNING", "2/2")
        eventually(lambda: "autoscaling" not in stage.status(), "nothing is said of it any more")
        assert scale(stage.cluster, stage.namespace, 1).returncode == 0
        stage.reaches("RUNNING", "1/1")


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ({"autoscaling": {"minReplicas": 2}}, "maxReplicas"),
        ({"autoscaling": {"minReplicas": 0, "maxReplicas": 2}}, "greater than or equal to 1"),
        ({"autoscaling": {"minReplicas": 3, "maxReplicas": 2}}, "more than maxReplicas"),
        ({"autoscaling": {"maxReplicas": 2}, "replicas": 3}, "replicas outside of what spec.autoscaling allows"),
        ({"autoscaling": {"maxReplicas": 2}, "replicas": 0}, "replicas outside of what spec.autoscaling allows"),
        ({"autoscaling": {"maxReplicas": 2, "targetCatchUp": "soon"}}, "targetCatchUp"),
    ],
)
def test_what_can_t_be_meant_is_refused(
    api_server: Cluster, kube_namespace: str, spec: dict[str, object], words: str
) -> None:
    document = json.dumps(resource(kube_namespace, "kafka:9092", **spec))
    answer = api_server.kubectl("create", "--filename=-", "--dry-run=server", input=document, check=False)
    assert answer.returncode != 0
    assert words in answer.stderr


def test_replicas_change_with_autoscaling_and_not_beside_it(api_server: Cluster, kube_namespace: str) -> None:
    def changes(**spec: object) -> bool:
        patch = json.dumps({"spec": spec})
        where = f"--namespace={kube_namespace}"
        return not api_server.kubectl(
            "patch", "streamsapp", "app", where, "--type=merge", f"--patch={patch}", check=False
        ).returncode

    api_server.apply(resource(kube_namespace, "kafka:9092", replicas=3))
    assert scale(api_server, kube_namespace, 4).returncode == 0, "without autoscaling kubectl scale counts"
    assert changes(autoscaling={"minReplicas": 2, "maxReplicas": 6}), "it starts with the four that there are"
    assert scale(api_server, kube_namespace, 5).returncode != 0
    assert not changes(replicas=5)
    assert changes(replicas=5, autoscaling={"maxReplicas": 7}), "both at once"
    assert changes(replicas=None), "what a file leaves out"
    assert changes(autoscaling=None, replicas=5)
    assert scale(api_server, kube_namespace, 4).returncode == 0
