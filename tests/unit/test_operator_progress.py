"""When an instance that does not arrive is too late, and what is said of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from operator_cases import (
    ERROR,
    PENDING,
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
from operator_world import START, resource, running

from streams_operator.model import InstanceAccount, PodState
from streams_operator.plan import plan
from streams_runtime.api import read_application

NOW = digest_of()
DEADLINE = 600.0
RESTORING: dict[str, Any] = {"state": "REBALANCING", "ready": False, "restored": False}


def pods(**changes: Any) -> list[PodState]:
    return [running(0, NOW), running(1, NOW, **changes)]


def later(seconds: float, before: Mapping[str, Any], *, spec: Mapping[str, Any] | None = None, **changes: Any) -> Any:
    """The status so many seconds after START, when the second pod is as `changes` say."""
    return status_of(observed(spec, pods(**changes), status=before, now=START + seconds))


def left(number: int) -> dict[str, Any]:
    return {**RESTORING, "records_left": number}


@pytest.mark.parametrize(
    ("held_up", "said"),
    [
        (
            {**PENDING, "reason": "ImagePullBackOff", "message": 'Back-off pulling image "runtime:1"'},
            'ImagePullBackOff: Back-off pulling image "runtime:1"',
        ),
        ({**PENDING, "reason": "Unschedulable", "message": "0/3 nodes: too little memory"}, "0/3 nodes"),
        ({**PENDING}, "orders-1 since 2027-01-15T08:00:00Z: CREATED"),
        ({"ready": False, "node": "n7"}, "its pod is not ready; node n7"),
        ({"silent": True, "node": "n7"}, "does not answer the operator; node n7"),
        ({**RESTORING, "records_left": 17}, "REBALANCING, 17 records left"),
    ],
)
def test_a_pod_that_does_not_arrive_in_time_degrades_the_application_with_the_cause(
    held_up: dict[str, Any], said: str
) -> None:
    first = remembered(*pods(**held_up))
    early = later(DEADLINE - 1, first, **held_up)
    assert condition(early, "Degraded")["status"] == "False"
    assert condition(early, "Progressing")["status"] == "True"
    todo = plan(observed(pods=pods(**held_up), status=early, now=START + DEADLINE - 1))
    assert todo.requeue_after == pytest.approx(1.0)
    late = later(DEADLINE, early, **held_up)
    degraded, progressing = condition(late, "Degraded"), condition(late, "Progressing")
    assert (degraded["status"], degraded["reason"]) == ("True", "ProgressDeadlineExceeded")
    assert said in degraded["message"]
    assert (progressing["status"], progressing["reason"]) == ("False", "ProgressDeadlineExceeded")
    assert told(plan(observed(pods=pods(**held_up), status=early, now=START + DEADLINE))) == [
        "ProgressDeadlineExceeded"
    ]
    again = plan(observed(pods=pods(**held_up), status=late, now=START + DEADLINE + 500))
    assert again.status is None
    assert told(again) == []


def test_the_deadline_is_the_application_s_own() -> None:
    spec = {"progressDeadline": "1m"}
    first = remembered(*pods(**PENDING), spec=spec)
    assert condition(later(59, first, spec=spec, **PENDING), "Degraded")["status"] == "False"
    assert condition(later(60, first, spec=spec, **PENDING), "Degraded")["reason"] == "ProgressDeadlineExceeded"


def test_who_arrives_after_all_is_no_longer_late() -> None:
    late = later(DEADLINE, remembered(*pods(**PENDING)), **PENDING)
    there = later(DEADLINE + 1, late)
    assert condition(there, "Degraded")["status"] == "False"
    assert condition(there, "Progressing")["reason"] == "Settled"
    assert "progressedAt" not in instance(there, 1)


def test_a_restoration_that_goes_on_is_never_too_long_and_one_that_stands_still_is() -> None:
    status = remembered(*pods(**left(1_000_000)))
    for step in range(1, 20):
        status = later(step * 300, status, **left(1_000_000 - step))
        assert condition(status, "Degraded")["status"] == "False"
    still = later(19 * 300 + DEADLINE - 1, status, **left(999_981))
    assert condition(still, "Degraded")["status"] == "False"
    assert condition(later(19 * 300 + DEADLINE, still, **left(999_981)), "Degraded")["status"] == "True"


def test_the_pod_s_own_figures_count_where_they_are_known() -> None:
    def told_of(number: int, at: float, status: Any) -> Any:
        accounts = {"orders-1": InstanceAccount(records_left=number)}
        return status_of(observed(pods=pods(**left(500)), status=status, now=START + at, accounts=accounts))

    status = told_of(400, 0, None)
    for step in range(1, 5):
        status = told_of(400 - step, step * 500, status)
    assert condition(status, "Degraded")["status"] == "False"


def test_a_pod_that_crashes_and_restores_from_the_start_again_and_again_does_not_get_nearer() -> None:
    status = remembered(*pods(**left(100)))
    status = later(100, status, **left(50))
    for life in range(3):
        at = 200 + life * 200
        crash = {"phase": "Failed", "exit_code": 137, "ended_at": START + at, "ready": False, "reason": "OOMKilled"}
        status = later(at, status, uid=f"life-{life}", **crash)
        status = status_of(observed(pods=[running(0, NOW)], status=status, now=START + at + 50))
        status = later(at + 60, status, uid=f"life-{life + 1}", **PENDING)
        status = later(at + 70, status, uid=f"life-{life + 1}", **left(100))
        status = later(at + 99, status, uid=f"life-{life + 1}", **left(60))
    assert condition(status, "Progressing")["status"] == "True"
    status = later(100 + DEADLINE, status, uid="life-3", **left(55))
    assert condition(status, "Degraded")["reason"] == "ProgressDeadlineExceeded"
    assert condition(later(101 + DEADLINE, status, uid="life-3", **left(49)), "Degraded")["status"] == "False"


def test_a_pod_that_is_given_more_to_restore_is_measured_by_that() -> None:
    status = remembered(*pods(**left(10)))
    status = later(10, status, **left(1000))
    status = later(DEADLINE - 10, status, **left(900))
    assert condition(later(DEADLINE + 100, status, **left(800)), "Degraded")["status"] == "False"


def test_another_version_or_nonce_begins_the_wait_anew() -> None:
    late = later(DEADLINE, remembered(*pods(**PENDING)), **PENDING)
    for spec in ({"image": "runtime:2"}, {"restartNonce": 1}):
        at = START + DEADLINE + 1
        todo = plan(observed(spec, pods(**PENDING), status=late, now=at))
        assert removed(todo)[0] == "orders-1"
        gone = plan(observed(spec, [running(0, NOW)], status=todo.status or late, now=at + 1))
        assert made(gone) == ["orders-1"]
        assert gone.status is not None
        assert condition(gone.status, "Degraded")["status"] == "False"
        assert instance(gone.status, 1)["progressedAt"] == "2027-01-15T08:10:02Z"


def test_a_pod_that_the_api_server_refuses_says_why() -> None:
    refusals = {"orders-1": "POST /pods: exceeded quota: pods (403)"}
    status = remembered(running(0, NOW), spec=None)
    late = status_of(observed(pods=[running(0, NOW)], status=status, now=START + DEADLINE, refusals=refusals))
    assert "its pod can't be made: POST /pods: exceeded quota: pods (403)" in condition(late, "Degraded")["message"]


def test_a_pod_whose_volume_is_elsewhere_says_which_claim_and_what_becomes_of_the_stores() -> None:
    spec = {"state": {"storage": {"size": "1Gi"}}}
    found = {
        **PENDING,
        "reason": "Unschedulable",
        "message": "0/3 nodes are available: 3 node(s) had volume node affinity conflict.",
    }
    made_from = digest_of(spec)
    status = status_of(observed(spec, [running(0, made_from), running(1, made_from, **found)]))
    message = condition(status, "Progressing")["message"]
    assert "volume node affinity conflict" in message
    assert "delete the PersistentVolumeClaim state-orders-1" in message


def test_whoever_is_in_error_closing_or_suspended_is_not_late() -> None:
    first = remembered(*pods(**ERROR))
    assert condition(later(10 * DEADLINE, first, **ERROR), "Degraded")["reason"] == "PodsInError"
    waiting = remembered(*pods(**PENDING))
    suspended = observed({"suspend": True}, pods(**PENDING), status=waiting, now=START + 10 * DEADLINE)
    assert condition(status_of(suspended), "Degraded")["status"] == "False"


@pytest.mark.parametrize("spec", [{"progressDeadline": "5s"}, {"nodeLoss": {"forceDeleteAfter": "30s"}}])
def test_times_that_are_too_short_are_refused_with_the_least(spec: dict[str, Any]) -> None:
    (mistake,) = read_application(resource(spec), "the resource").mistakes
    assert str(mistake).startswith(f"spec.{next(iter(spec))}")
    assert "give at least" in str(mistake)
