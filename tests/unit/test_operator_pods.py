"""Which pods are made and removed, rule by rule."""

from __future__ import annotations

from typing import Any

import pytest
from operator_cases import (
    CRASH,
    ERROR,
    PENDING,
    READY,
    condition,
    digest_of,
    instance,
    made,
    observed,
    remembered,
    removed,
    status_of,
    told,
)
from operator_world import START, running

from streams_operator.model import PodState, Removal
from streams_operator.plan import plan
from streams_operator.plan.pods.backoff import delay

NOW = digest_of()
OLD = "0123456789"
DONE: dict[str, Any] = {"phase": "Succeeded", "exit_code": 0, "state": "NOT_RUNNING", "ready": False}


def test_all_pods_are_made_at_once() -> None:
    assert made(plan(observed({"replicas": 3}))) == ["orders-0", "orders-1", "orders-2"]


def test_a_pod_that_somebody_deleted_is_made_again_at_once() -> None:
    both = remembered(running(0, NOW), running(1, NOW))
    assert made(plan(observed(pods=[running(0, NOW)], status=both))) == ["orders-1"]


def test_no_pod_is_made_while_the_old_one_is_closing() -> None:
    todo = plan(observed(pods=[running(0, NOW), running(1, NOW, deleting=True)]))
    assert made(todo) == removed(todo) == []


def test_a_crashed_pod_stays_until_its_back_off_is_over_and_then_goes_by_its_uid() -> None:
    pods = [running(0, NOW), running(1, NOW, **CRASH)]
    first = plan(observed(pods=pods))
    assert removed(first) == []
    assert first.requeue_after == pytest.approx(9.0)
    assert "PodCrashed" in told(first)
    later = plan(observed(pods=pods, status=first.status, now=START + 9))
    assert later.remove == (Removal("Pod", "orders-1", "uid-1"),)
    assert made(later) == []


def test_a_crash_is_counted_once_and_is_on_record_before_the_pod_goes() -> None:
    pods = [running(0, NOW), running(1, NOW, **CRASH)]
    status = remembered(*pods)
    assert instance(status, 1)["restarts"] == 1
    assert instance(status, 1)["lastCrash"]["uid"] == "uid-1"
    assert instance(status_of(observed(pods=pods, status=status, now=START + 30)), 1)["restarts"] == 1


def test_the_ordinal_keeps_its_count_while_its_pod_is_away_and_when_it_is_back() -> None:
    status = remembered(running(0, NOW), running(1, NOW, **CRASH))
    away = status_of(observed(pods=[running(0, NOW)], status=status, now=START + 30))
    back = status_of(observed(pods=[running(0, NOW), running(1, NOW, uid="n", **PENDING)], status=away, now=START + 31))
    assert instance(away, 1)["restarts"] == instance(back, 1)["restarts"] == 1
    again = running(1, NOW, uid="n", started_at=START + 32, **{**CRASH, "ended_at": START + 40})
    assert instance(status_of(observed(pods=[running(0, NOW), again], status=back, now=START + 41)), 1)["restarts"] == 2


def test_a_pod_that_was_removed_during_its_back_off_is_waited_for_all_the_same() -> None:
    status = remembered(running(0, NOW), running(1, NOW, **CRASH))
    todo = plan(observed(pods=[running(0, NOW)], status=status, now=START + 2))
    assert made(todo) == []
    assert made(plan(observed(pods=[running(0, NOW)], status=status, now=START + 9))) == ["orders-1"]


@pytest.mark.parametrize(("restarts", "seconds"), [(0, 10), (1, 20), (4, 160), (5, 300), (5000, 300)])
def test_the_back_off_doubles_up_to_five_minutes(restarts: int, seconds: float) -> None:
    assert delay(restarts) == seconds


def test_crashes_are_forgotten_after_ten_minutes_of_uptime() -> None:
    status = remembered(running(0, NOW), running(1, NOW, **CRASH))
    new = running(1, NOW, uid="n", started_at=START)
    early = status_of(observed(pods=[running(0, NOW), new], status=status, now=START + 599))
    assert instance(early, 1)["restarts"] == 1
    assert instance(status_of(observed(pods=[running(0, NOW), new], status=early, now=START + 600)), 1)["restarts"] == 0
    crash = {**CRASH, "ended_at": START + 601}
    late = running(1, NOW, uid="n", started_at=START, **crash)
    counted = instance(status_of(observed(pods=[running(0, NOW), late], status=early, now=START + 602)), 1)
    assert counted["restarts"] == 1


@pytest.mark.parametrize("code", [1, 75, 137, 143, None])
def test_every_other_end_than_the_client_s_own_is_a_crash(code: int | None) -> None:
    status = remembered(running(0, NOW), running(1, NOW, **{**CRASH, "exit_code": code}))
    assert instance(status, 1)["restarts"] == 1
    assert condition(status, "Degraded")["reason"] == "PodsCrashed"


def test_a_pod_that_ended_in_order_unasked_is_made_again_at_most_every_ten_seconds() -> None:
    pods = [running(0, NOW), running(1, NOW, **DONE, created_at=START - 4)]
    first = plan(observed(pods=pods))
    assert removed(first) == []
    assert first.requeue_after == pytest.approx(6.0)
    assert removed(plan(observed(pods=pods, now=START + 6))) == ["orders-1"]
    assert instance(status_of(observed(pods=pods)), 1)["restarts"] == 0


@pytest.mark.parametrize(
    "end",
    [
        ERROR,
        {"phase": "Failed", "exit_code": 70},
        {"phase": "Failed", "exit_code": 64},
        {"phase": "Failed", "exit_code": 137, "restartable": False, "state": "PENDING_ERROR"},
        {"restartable": False, "state": "PENDING_ERROR"},
        {"restartable": False, "state": "ERROR"},
    ],
)
def test_a_pod_in_error_is_kept_for_ever(end: dict[str, Any]) -> None:
    pods = [running(0, NOW), running(1, NOW, **end)]
    todo = plan(observed(pods=pods, status=remembered(*pods), now=START + 100_000, topics=READY))
    assert made(todo) == removed(todo) == []


def test_an_application_with_a_pod_in_error_is_degraded_with_class_and_message() -> None:
    status = remembered(running(0, NOW), running(1, NOW, **ERROR))
    degraded = condition(status, "Degraded")
    assert (degraded["status"], degraded["reason"]) == ("True", "PodsInError")
    assert "orders-1 ended in ERROR: LockException: held by 7" in degraded["message"]
    assert "spec.restartNonce to 1" in degraded["message"]
    assert status["state"] == instance(status, 1)["state"] == "ERROR"
    assert instance(status, 1)["error"] == {"class": "LockException", "message": "held by 7"}


def test_a_new_nonce_replaces_the_pods_in_error_at_once_and_running_ones_after_them_one_by_one() -> None:
    spec = {"replicas": 4, "restartNonce": 1}
    pods = [running(0, NOW, **ERROR), running(1, NOW), running(2, NOW), running(3, NOW, **ERROR)]
    assert removed(plan(observed(spec, pods))) == ["orders-0", "orders-3"]
    new = {"nonce": 1}
    pods = [running(0, NOW, **new), running(1, NOW), running(2, NOW), running(3, NOW, **new, restored=False)]
    assert removed(plan(observed(spec, pods))) == []
    pods[3] = running(3, NOW, **new)
    todo = plan(observed(spec, pods))
    assert removed(todo) == ["orders-2"]
    assert [each.message for each in todo.events if each.reason == "PodRemoved"] == [
        "removed orders-2: replaced by one of the new restartNonce; 1 of the old left"
    ]
    pods[1:3] = [running(1, NOW, **new), running(2, NOW, **new)]
    assert removed(plan(observed(spec, pods))) == []


def test_a_pod_that_is_on_record_as_answering_to_a_nonce_is_not_replaced_for_it_though_made_earlier() -> None:
    spec = {"restartNonce": 3}
    status = remembered(running(0, NOW, nonce=3), running(1, NOW, nonce=3), spec=spec)
    pods = [running(0, NOW, nonce=1), running(1, NOW)]
    assert removed(plan(observed(spec, pods, status=status))) == []
    assert removed(plan(observed({"restartNonce": 4}, pods, status=status))) == ["orders-1"]


def test_a_pod_that_fails_after_it_was_made_for_a_nonce_waits_for_the_next_one() -> None:
    pods = [running(0, NOW, nonce=1, **ERROR), running(1, NOW, nonce=1)]
    given = remembered(*pods, spec={"restartNonce": 1})
    assert removed(plan(observed({"restartNonce": 1}, pods, status=given))) == []
    assert removed(plan(observed({"restartNonce": 2}, pods, status=given))) == ["orders-0"]


def test_a_pod_in_error_whose_application_changed_is_replaced_at_once() -> None:
    assert removed(plan(observed(pods=[running(0, NOW), running(1, OLD, **ERROR)]))) == ["orders-1"]


def test_a_pod_in_error_that_has_gone_is_not_made_again_until_somebody_says_so() -> None:
    status = remembered(running(0, NOW), running(1, NOW, **ERROR))
    left = [running(0, NOW)]
    todo = plan(observed(pods=left, status=status))
    assert made(todo) == []
    assert status_of(observed(pods=left, status=status))["state"] == "ERROR"
    assert made(plan(observed({"restartNonce": 1}, left, status=status))) == ["orders-1"]
    assert made(plan(observed({"image": "other"}, left, status=status))) == ["orders-1"]


def test_running_pods_of_an_old_version_are_replaced_from_the_last_on_one_at_a_time() -> None:
    assert removed(plan(observed({"replicas": 3}, [running(i, OLD) for i in range(3)]))) == ["orders-2"]
    assert removed(plan(observed({"replicas": 3}, [running(0, OLD), running(1, OLD), running(2, NOW)]))) == ["orders-1"]


@pytest.mark.parametrize(
    "arriving",
    [
        {"state": "REBALANCING", "ready": False},
        {"restored": False},
        {"spark_ready": False},
        {"deleting": True},
        PENDING,
        ERROR,
        CRASH,
    ],
)
def test_the_next_is_replaced_only_when_the_one_before_is_running_and_restored(arriving: dict[str, Any]) -> None:
    pods = [running(0, OLD), running(1, OLD), running(2, NOW, **arriving)]
    todo = plan(observed({"replicas": 3}, pods))
    assert removed(todo) == []
    assert condition(status_of(observed({"replicas": 3}, pods)), "Progressing")["reason"] == "RollingOut"


def test_an_instance_that_runs_without_spark_yet_is_not_ready_and_is_waited_for() -> None:
    status = status_of(observed({"replicas": 1}, [running(0, NOW, spark_ready=False)]))
    assert status["readyReplicas"] == 0
    assert (condition(status, "Ready")["status"], condition(status, "Ready")["reason"]) == ("False", "PodsNotReady")
    assert "RUNNING, and Spark is still starting" in condition(status, "Progressing")["message"]


def test_the_next_is_not_replaced_before_the_one_before_is_made() -> None:
    todo = plan(observed({"replicas": 3}, [running(0, OLD), running(1, OLD)]))
    assert removed(todo) == []
    assert made(todo) == ["orders-2"]


@pytest.mark.parametrize("end", [ERROR, CRASH, DONE, PENDING])
def test_pods_of_an_old_version_that_do_not_run_are_replaced_at_once(end: dict[str, Any]) -> None:
    pods = [running(0, OLD, **end), running(1, OLD, **end), running(2, NOW, state="REBALANCING")]
    assert removed(plan(observed({"replicas": 3}, pods))) == ["orders-0", "orders-1"]


def test_a_new_version_does_not_wait_for_the_back_off_of_the_old_one() -> None:
    status = remembered(running(0, NOW), running(1, NOW, **CRASH))
    assert made(plan(observed({"image": "other"}, [running(0, NOW)], status=status))) == ["orders-1"]


def test_scaling_down_closes_the_highest_pod_and_keeps_its_claim() -> None:
    spec = {"replicas": 3, "state": {"storage": {"size": "1Gi"}}}
    pods = [running(i, digest_of(spec)) for i in range(3)]
    status = remembered(*pods, spec=spec)
    todo = plan(observed({**spec, "replicas": 1}, pods, status=status))
    assert removed(todo) == ["orders-2"]
    assert removed(todo, "PersistentVolumeClaim") == []
    closing = [*pods[:2], running(2, digest_of(spec), deleting=True)]
    assert removed(plan(observed({**spec, "replicas": 1}, closing, status=status))) == []


def test_the_role_keeps_naming_the_pods_that_are_scaled_down() -> None:
    pods = [running(i, NOW) for i in range(3)]
    todo = plan(observed({"replicas": 1}, pods, status=remembered(*pods, spec={"replicas": 3})))
    (role,) = [each for each in todo.apply if each["kind"] == "Role"]
    assert role["rules"][0]["resourceNames"] == ["orders-0", "orders-1", "orders-2"]


def test_scaling_up_makes_pods_of_the_new_version_while_others_are_replaced() -> None:
    assert made(plan(observed({"replicas": 4}, [running(0, OLD), running(1, OLD)]))) == ["orders-2", "orders-3"]


@pytest.mark.parametrize(
    "foreign",
    [
        PodState("stray", "s", None, "Running", START),
        running(7, NOW, uid="s"),
    ],
)
def test_a_pod_that_nobody_here_made_is_reported_and_not_touched(foreign: PodState) -> None:
    pods = [running(0, NOW), running(1, NOW), foreign]
    todo = plan(observed(pods=pods, status=remembered(*pods[:2])))
    assert removed(todo) == []
    assert told(todo) == ["ForeignPods"]
    assert todo.status is not None
    assert condition(todo.status, "Degraded")["reason"] == "ForeignPods"
    assert foreign.name in condition(todo.status, "Degraded")["message"]
    assert told(plan(observed(pods=pods, status=todo.status))) == []


def test_suspending_closes_pods_from_the_last_on_one_at_a_time() -> None:
    pods = [running(0, NOW), running(1, NOW)]
    assert removed(plan(observed({"suspend": True}, pods))) == ["orders-1"]
    assert removed(plan(observed({"suspend": True}, [pods[0], running(1, NOW, deleting=True)]))) == []
    status = status_of(observed({"suspend": True}))
    assert status["state"] == "SUSPENDED"
    assert condition(status, "Suspended")["status"] == "True"


def test_a_version_that_no_pod_is_of_loses_its_config_map_and_no_other_object_is_touched() -> None:
    def config_map(name: str, owner: str = "uid-of-orders") -> dict[str, Any]:
        return {"metadata": {"name": name, "uid": f"u-{name}", "ownerReferences": [{"uid": owner}]}}

    names = ["orders-aaaaaaaaaa", f"orders-{OLD}", f"orders-{NOW}", "orders-notes", "other-aaaaaaaaaa"]
    there = {("ConfigMap", name): config_map(name) for name in names}
    there["ConfigMap", "orders-bbbbbbbbbb"] = config_map("orders-bbbbbbbbbb", "somebody")
    todo = plan(observed(pods=[running(0, OLD), running(1, NOW, restored=False)], objects=there))
    assert removed(todo, "ConfigMap") == ["orders-aaaaaaaaaa"]
