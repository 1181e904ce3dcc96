"""A version whose pods do not arrive is given up for the last stable one, on a real API server."""

from __future__ import annotations

import pytest
from operator_stage import Stage
from waiting import eventually

pytestmark = [pytest.mark.cluster, pytest.mark.usefixtures("crd")]

SPEC = {"replicas": 2, "progressDeadline": "10s", "rollback": "automatic"}


def images(stage: Stage) -> set[str]:
    return {pod["spec"]["containers"][0]["image"] for pod in stage.kubelet.pods().values()}


@pytest.mark.usefixtures("running")
def test_an_image_that_can_t_be_pulled_is_given_up_until_somebody_asks_for_it_again(stage: Stage):
    stage.apply(**SPEC)
    stable = stage.reaches("RUNNING", "2/2")["stable"]
    before, usual = stage.uids(), images(stage)
    stage.kubelet.hold("app-1")
    stage.apply(**SPEC, image="registry.example/no-such:1")
    eventually(lambda: stage.uids().get("app-1", before["app-1"]) != before["app-1"], "the last one is replaced")
    stage.kubelet.waits("app-1", "ImagePullBackOff", "no such image")
    eventually(lambda: stage.status().get("rolledBack"), "it is given up")
    stage.kubelet.let("app-1")
    stage.reaches("RUNNING", "2/2")
    eventually(lambda: stage.condition("Progressing")[:2] == ("False", "RolledBack"), "it is settled")
    assert stage.condition("Ready")[0] == "True"
    degraded = stage.condition("Degraded")
    assert degraded[:2] == ("True", "RolledBack")
    assert "app-1: ImagePullBackOff: no such image" in degraded[2]
    assert images(stage) == usual
    assert stage.uids()["app-0"] == before["app-0"], "it was never replaced"
    assert stage.status()["rolledBack"]["to"] == stable == stage.status()["deployed"]
    assert "RolledBack" in [reason for reason, _ in stage.events()]
    stage.apply(**SPEC, image="registry.example/no-such:1", restartNonce=1)
    eventually(lambda: images(stage) == {"registry.example/no-such:1"}, "this time it can be pulled")
    stage.reaches("RUNNING", "2/2")
    eventually(lambda: "rolledBack" not in stage.status(), "nothing is given up any more")
    assert stage.condition("Degraded")[0] == "False"
