"""Evictions of an application's pods, as Kubernetes' own disruption controller allows them."""

from __future__ import annotations

import json
from typing import Any

import pytest
from operator_stage import Stage
from waiting import eventually

pytestmark = [pytest.mark.cluster, pytest.mark.usefixtures("crd")]


def evict(stage: Stage, pod: str) -> str:
    """What stands against the eviction of a pod; "" when it was allowed. Nothing is evicted."""
    document = {
        "apiVersion": "policy/v1",
        "kind": "Eviction",
        "metadata": {"name": pod, "namespace": stage.namespace},
        "deleteOptions": {"dryRun": ["All"]},
    }
    path = f"/api/v1/namespaces/{stage.namespace}/pods/{pod}/eviction"
    done = stage.cluster.kubectl("create", f"--raw={path}", "--filename=-", input=json.dumps(document), check=False)
    return done.stderr


def budget(stage: Stage) -> dict[str, Any]:
    found = stage.cluster.get("poddisruptionbudget", "app", namespace=stage.namespace) or {}
    # What the controller has said of the present spec.
    told = found.get("status", {})
    return told if told.get("observedGeneration") == found.get("metadata", {}).get("generation") else {}


def allowed(stage: Stage, count: int) -> None:
    eventually(lambda: budget(stage).get("disruptionsAllowed") == count, lambda: f"{count}, not {budget(stage)}")


@pytest.mark.usefixtures("running", "controllers")
def test_a_pod_that_is_not_ready_holds_no_node_and_a_ready_one_waits_for_it(stage: Stage):
    stage.apply(replicas=2)
    stage.reaches("RUNNING", "2/2")
    allowed(stage, 1)
    assert evict(stage, "app-0") == ""
    stage.kubelet.hold("app-1", "REBALANCING")
    allowed(stage, 0)
    assert "disruption budget" in evict(stage, "app-0")
    assert evict(stage, "app-1") == ""


@pytest.mark.usefixtures("running", "controllers")
def test_a_budget_may_be_changed_and_taken_away_and_no_pod_is_replaced(stage: Stage):
    stage.apply(replicas=4)
    stage.reaches("RUNNING", "4/4")
    before = stage.uids()
    stage.merge('{"spec": {"disruptionBudget": {"maxUnavailable": "50%"}}}')
    allowed(stage, 2)
    stage.merge('{"spec": {"disruptionBudget": {"maxUnavailable": 0}}}')
    allowed(stage, 0)
    stage.merge('{"spec": {"disruptionBudget": {"enabled": false, "maxUnavailable": null}}}')
    eventually(lambda: stage.kinds("poddisruptionbudget") == [], "the budget has gone")
    stage.merge('{"spec": {"disruptionBudget": null}}')
    allowed(stage, 1)
    assert stage.uids() == before
