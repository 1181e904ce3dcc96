"""Pods that say that all is well and do not serve, and pods that are deleted and stay."""

from __future__ import annotations

from typing import Any

import pytest
from operator_cases import condition, digest_of, instance, made, observed, remembered, removed, status_of, told
from operator_world import NAME, START, World, running

from streams_operator.model import Removal
from streams_operator.plan import plan
from streams_operator.plan.pods.standing import STUCK_AFTER

NOW = digest_of()
OLD = "0123456789"
GONE_BY = START - 10
STUCK: dict[str, Any] = {"deleting": True, "ready": False, "gone_by": GONE_BY, "node": "n7"}
LATER = GONE_BY + STUCK_AFTER
FORCE = {"nodeLoss": {"forceDeleteAfter": "5m"}}
FORCED = GONE_BY + 300


@pytest.mark.parametrize("untrue", [{"ready": False}, {"silent": True}, {"doubted": True}])
def test_a_running_condition_is_not_believed_by_itself_when_pods_are_replaced(untrue: dict[str, Any]) -> None:
    pods = [running(0, OLD), running(1, OLD), running(2, NOW, node="n3", **untrue)]
    assert removed(plan(observed({"replicas": 3}, pods))) == []
    waits = condition(status_of(observed({"replicas": 3}, pods)), "Progressing")
    assert waits["reason"] == "RollingOut"
    assert "orders-2 (" in waits["message"]
    assert removed(plan(observed({"replicas": 3}, [*pods[:2], running(2, NOW)]))) == ["orders-1"]


@pytest.mark.parametrize("untrue", [{"ready": False}, {"silent": True}])
def test_an_application_is_not_ready_while_a_pod_does_not_serve_whatever_its_conditions_say(
    untrue: dict[str, Any],
) -> None:
    status = status_of(observed(pods=[running(0, NOW), running(1, NOW, node="n3", **untrue)]))
    ready = condition(status, "Ready")
    assert (ready["status"], ready["reason"]) == ("False", "PodsNotReady")
    assert (status["ready"], instance(status, 1)["ready"]) == ("1/2", False)
    assert "node n3" in condition(status, "Progressing")["message"]


def test_an_answer_that_is_waited_for_changes_nothing_in_status() -> None:
    pods = [running(0, NOW), running(1, NOW)]
    status = remembered(*pods)
    todo = plan(observed(pods=[pods[0], running(1, NOW, doubted=True)], status=status))
    assert todo.status is None
    assert todo.requeue_after is not None
    assert todo.requeue_after <= 5.0, "it is looked at again soon"


def test_a_pod_that_is_closing_is_no_trouble_until_it_should_have_gone() -> None:
    pods = [running(0, NOW), running(1, NOW, **STUCK)]
    status = remembered(*pods, now=LATER - 1)
    assert condition(status, "Degraded")["status"] == "False"
    todo = plan(observed(pods=pods, status=status, now=LATER - 1))
    assert todo.requeue_after == pytest.approx(1.0)


def test_a_pod_that_stays_though_it_was_deleted_is_reported_with_its_node_and_the_way_out() -> None:
    pods = [running(0, NOW), running(1, NOW, **STUCK)]
    status = remembered(*pods, now=LATER)
    degraded = condition(status, "Degraded")
    assert (degraded["status"], degraded["reason"]) == ("True", "PodStuckTerminating")
    assert "orders-1 on node n7" in degraded["message"]
    assert "kubectl delete pod --force --namespace shop orders-1" in degraded["message"]
    assert told(plan(observed(pods=pods, now=LATER, status=remembered(*pods)))).count("PodStuckTerminating") == 1
    again = plan(observed(pods=pods, now=LATER + 100, status=status))
    assert "PodStuckTerminating" not in told(again)
    assert again.status is None, "it is told once, and not anew at every look"


def test_a_stuck_pod_holds_up_neither_a_rolling_change_nor_a_scale_down_nor_a_suspension() -> None:
    pods = [running(0, OLD), running(1, OLD), running(2, OLD, **STUCK)]
    assert removed(plan(observed({"replicas": 3}, pods, now=LATER - 1))) == []
    assert removed(plan(observed({"replicas": 3}, pods, now=LATER))) == ["orders-1"]
    replaced = [running(0, OLD), running(1, NOW), running(2, NOW, **STUCK)]
    assert removed(plan(observed({"replicas": 3}, replaced, now=LATER))) == ["orders-0"]
    of_now = [running(0, NOW), running(1, NOW), running(2, NOW, **STUCK)]
    status = remembered(*of_now, spec={"replicas": 3})
    assert removed(plan(observed({"replicas": 1}, of_now, status=status, now=LATER))) == ["orders-1"]
    assert removed(plan(observed({"suspend": True}, of_now, status=status, now=LATER))) == ["orders-1"]


def test_a_surplus_pod_that_is_stuck_does_not_keep_the_others_on_an_old_version() -> None:
    pods = [running(0, OLD), running(1, OLD), running(2, OLD, **STUCK)]
    status = remembered(*pods, spec={"replicas": 3})
    assert removed(plan(observed({"replicas": 2}, pods, status=status, now=LATER))) == ["orders-1"]


def test_a_pod_is_deleted_by_force_only_when_asked_for_only_after_its_time_and_only_once() -> None:
    pods = [running(0, NOW), running(1, NOW, **STUCK)]
    assert removed(plan(observed(pods=pods, now=FORCED + 100_000))) == []
    early = plan(observed(FORCE, pods, now=FORCED - 1))
    assert removed(early) == []
    assert early.requeue_after == pytest.approx(1.0)
    due = plan(observed(FORCE, pods, now=FORCED))
    assert due.remove == (Removal("Pod", "orders-1", "uid-1", force=True),)
    assert made(due) == []
    finalized = [pods[0], running(1, NOW, **STUCK, forced=True)]
    assert removed(plan(observed(FORCE, finalized, now=FORCED + 1))) == []


def test_pods_of_a_suspended_application_are_given_up_too() -> None:
    pods = [running(0, NOW, **STUCK)]
    due = plan(observed({**FORCE, "suspend": True}, pods, status=remembered(*pods), now=FORCED))
    assert due.remove == (Removal("Pod", "orders-0", "uid-0", force=True),)


def test_force_does_not_change_what_pods_are_made_from() -> None:
    assert digest_of(FORCE) == digest_of({"progressDeadline": "1h"}) == digest_of({"rollback": "automatic"}) == NOW


def test_an_application_whose_node_is_lost_comes_back_with_all_its_pods_when_it_is_given_up() -> None:
    world = World({"replicas": 3, **FORCE})
    world.settle()
    lost = world.pods[f"{NAME}-1"]
    world.lose(f"{NAME}-1")
    world.settle()
    assert world.pods[f"{NAME}-1"].uid != lost.uid
    assert world.condition("Ready") == ("True", "Running")
    assert world.condition("Degraded") == ("False", "AsExpected")


def test_without_being_asked_the_operator_waits_for_the_node_and_goes_on_with_the_rest() -> None:
    world = World({"replicas": 3})
    world.settle()
    world.lose(f"{NAME}-2")
    world.change(image="runtime:2")
    world.settle()
    assert world.pods[f"{NAME}-2"].deleting
    assert {world.pods[f"{NAME}-{ordinal}"].digest for ordinal in (0, 1)} == {world.digest}
    assert world.condition("Degraded") == ("True", "PodStuckTerminating")
