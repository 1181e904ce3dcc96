"""The status, the conditions and the events."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from operator_cases import READY, condition, digest_of, instance, made, observed, remembered, status_of, told
from operator_world import START, ready_topics, running

from streams_operator.model import InstanceAccount, Plan, PodState, TopicsState
from streams_operator.plan import plan
from streams_operator.plan.status.application_status import shown_lag
from streams_operator.plan.status.times import seconds_of, text_not_before, text_of

NOW = digest_of()
PODS = [running(0, NOW), running(1, NOW)]


def in_state(ordinal: int, state: str | None) -> PodState:
    return running(ordinal, NOW, state=state, ready=state == "RUNNING")


@pytest.mark.parametrize(
    ("states", "weakest"),
    [
        (["RUNNING", "RUNNING"], "RUNNING"),
        (["RUNNING", "REBALANCING"], "REBALANCING"),
        (["REBALANCING", "CREATED"], "CREATED"),
        (["CREATED", "PENDING_SHUTDOWN"], "PENDING_SHUTDOWN"),
        (["PENDING_SHUTDOWN", "PENDING_ERROR"], "PENDING_ERROR"),
        (["PENDING_ERROR", "ERROR"], "ERROR"),
        (["RUNNING", None], "CREATED"),
        (["RUNNING", "SOMETHING_NEWER"], "CREATED"),
    ],
)
def test_the_state_is_the_weakest_of_the_pods(states: list[str | None], weakest: str) -> None:
    assert status_of(observed(pods=[in_state(i, state) for i, state in enumerate(states)]))["state"] == weakest


def test_the_status_of_an_application_that_runs() -> None:
    accounts = {
        "orders-0": InstanceAccount(("0_0", "1_0"), lag=5),
        "orders-1": InstanceAccount(("0_1",), lag=2, records_left=100, records_per_second=30.0),
    }
    status = status_of(observed(pods=PODS, accounts=accounts, metadata={"generation": 7}))
    assert status["observedGeneration"] == 7
    assert (status["state"], status["ready"], status["replicas"], status["readyReplicas"]) == ("RUNNING", "2/2", 2, 2)
    assert status["selector"] == "streamsoperator.io/application=orders"
    assert (status["tasks"], status["lag"]) == (4, 7)
    assert status["restoration"] == {"recordsLeft": 100, "etaSeconds": 4}
    assert instance(status, 0) == {
        "name": "orders-0",
        "state": "RUNNING",
        "ready": True,
        "spec": NOW,
        "restartNonce": 0,
        "restarts": 0,
        "recordsLeft": 0,
        "tasks": ["0_0", "1_0"],
        "lag": 5,
    }
    conditions = {each["type"]: (each["status"], each["reason"]) for each in status["conditions"]}
    assert conditions == {
        "Ready": ("True", "Running"),
        "InternalTopicsReady": ("True", "Ready"),
        "Progressing": ("False", "Settled"),
        "Degraded": ("False", "AsExpected"),
        "Suspended": ("False", "NotSuspended"),
    }
    assert all(each["observedGeneration"] == 7 and each["message"] for each in status["conditions"])


def test_missing_answers_leave_the_figures_out() -> None:
    status = status_of(observed(pods=PODS, accounts={"orders-0": InstanceAccount(("0_0",), lag=5)}))
    assert "lag" not in status
    assert "tasks" not in instance(status, 1)
    left = status_of(observed(pods=[PODS[0], replace(PODS[1], records_left=9)]))
    assert left["restoration"] == {"recordsLeft": 9}


def test_more_instances_than_tasks_are_told() -> None:
    pods = [running(i, NOW) for i in range(6)]
    message = condition(status_of(observed({"replicas": 6}, pods)), "Ready")["message"]
    assert message == "6 of 6 instances are ready; there are 4 tasks, so 2 stand idle"


def test_no_replicas_is_no_failure() -> None:
    status = status_of(observed({"replicas": 0}))
    assert (status["state"], status["ready"]) == ("WAITING", "0/0")
    assert condition(status, "Ready")["reason"] == "NoReplicas"


def test_a_transition_s_time_changes_with_the_condition_s_status_alone() -> None:
    before = remembered(*PODS)
    later = {"pods": [PODS[0], in_state(1, "REBALANCING")], "status": before, "now": START + 60}
    status = status_of(observed(**later))
    assert condition(status, "Ready")["lastTransitionTime"] == text_of(START + 60)
    assert condition(status, "Degraded")["lastTransitionTime"] == text_of(START)
    still = status_of(observed(pods=[PODS[0], in_state(1, "CREATED")], status=status, now=START + 90))
    assert condition(still, "Ready")["reason"] != condition(status, "Ready")["reason"]
    assert condition(still, "Ready")["lastTransitionTime"] == text_of(START + 60)


def test_a_status_that_is_as_it_should_be_is_left_alone() -> None:
    todo = plan(observed(pods=PODS, status=remembered(*PODS), now=START + 60, topics=ready_topics(START + 60)))
    assert todo.status is None
    assert todo.events == ()
    assert todo.kafka is None
    assert todo.requeue_after == 60.0


def test_a_pod_that_can_t_start_says_why() -> None:
    waits = running(1, NOW, phase="Pending", state=None, started_at=None, ready=False, reason="ImagePullBackOff")
    status = status_of(observed(pods=[PODS[0], waits]))
    assert instance(status, 1)["reason"] == "ImagePullBackOff"
    assert "orders-1 (ImagePullBackOff)" in condition(status, "Progressing")["message"]


def test_every_change_of_state_is_an_event_once() -> None:
    before = remembered(*PODS)
    moved = plan(observed(pods=[PODS[0], in_state(1, "REBALANCING")], status=before))
    assert [each.message for each in moved.events] == ["RUNNING → REBALANCING"]
    assert moved.status is not None
    assert plan(observed(pods=[PODS[0], in_state(1, "REBALANCING")], status=moved.status)).events == ()


def test_topics_that_are_there_from_the_beginning_are_no_event() -> None:
    assert [each.reason for each in plan(observed()).events] == ["PodsCreated"]
    missing = TopicsState(START, False, failure=("MissingSourceTopics", "orders is missing"))
    before = status_of(observed(topics=missing))
    assert "InternalTopicsReady" in told(plan(observed(status=before)))


def new_one(age: float, **more: Any) -> Plan:
    metadata = {"creationTimestamp": text_of(START - age)}
    return plan(observed(metadata=metadata, topics=more.pop("topics", None), **more))


def test_a_new_application_has_no_status_until_the_brokers_have_answered() -> None:
    todo = new_one(5.0)
    assert (todo.status, todo.events) == (None, ())
    assert todo.kafka is not None
    assert made(todo, "Service") == ["orders"]
    assert todo.requeue_after == 55.0
    assert new_one(5.0, topics=READY).status is not None


def test_brokers_that_do_not_answer_keep_no_status_from_being_written() -> None:
    status = new_one(60.0).status
    assert status is not None
    assert condition(status, "InternalTopicsReady")["reason"] == "NotChecked"


def test_what_was_said_once_goes_on_being_said_while_the_brokers_are_asked() -> None:
    before = status_of(observed())
    assert new_one(5.0, status=before, spec={"replicas": 3}).status is not None


@pytest.mark.parametrize(
    ("before", "lag", "shown"),
    [
        (None, 7, 7),
        (1000, 1900, 1000),
        (1000, 500, 1000),
        (1000, 2001, 2001),
        (1000, 499, 499),
        (1000, 0, 0),
        (0, 99, 0),
        (0, 100, 100),
        (True, 7, 7),
    ],
)
def test_a_status_shows_a_lag_until_it_is_another_by_a_factor_of_two(before: Any, lag: int, shown: int) -> None:
    assert shown_lag(before, lag) == shown


def test_a_lag_that_moves_a_little_is_no_write_and_is_exact_in_the_plan() -> None:
    def accounts(lag: int) -> dict[str, InstanceAccount]:
        return {f"orders-{number}": InstanceAccount(("0_0",), lag=lag) for number in range(2)}

    topics = ready_topics(START + 60)
    before = remembered(*PODS, accounts=accounts(1000))
    todo = plan(observed(pods=PODS, status=before, accounts=accounts(1400), now=START + 60, topics=topics))
    assert (todo.status, todo.lag) == (None, 2800)
    far = plan(observed(pods=PODS, status=before, accounts=accounts(0), now=START + 60, topics=topics))
    assert far.status is not None
    assert (far.status["lag"], instance(far.status, 0)["lag"]) == (0, 0)


def test_an_end_in_error_is_an_event_with_class_and_message() -> None:
    pods = [PODS[0], running(1, NOW, phase="Failed", exit_code=70, error=("LockException", "held"), ready=False)]
    todo = plan(observed(pods=pods, status=remembered(*PODS)))
    (event,) = [each for each in todo.events if each.reason == "PodInError"]
    assert event.type == "Warning"
    assert event.message == "orders-1 ended in ERROR and is not started again: LockException: held"


def test_pods_that_are_made_and_removed_are_events() -> None:
    (event,) = [each for each in plan(observed()).events if each.reason == "PodsCreated"]
    assert event.message == "made orders-0, orders-1"
    rolled = plan(observed({"image": "other"}, PODS, status=remembered(*PODS)))
    (event,) = [each for each in rolled.events if each.reason == "PodRemoved"]
    assert event.message == "removed orders-1: replaced by one of the new version; 1 of the old left"


def test_messages_of_any_length_fit_into_an_event() -> None:
    error = ("LockException", "ü" * 5000)
    pods = [PODS[0], running(1, NOW, phase="Failed", exit_code=70, error=error, ready=False)]
    todo = plan(observed(pods=pods))
    assert max(len(each.message.encode()) for each in todo.events) <= 1000
    assert todo.status is not None
    assert len(instance(todo.status, 1)["error"]["message"].encode()) <= 2000


@pytest.mark.parametrize(
    "status",
    [
        {"instances": "none"},
        {"instances": [{"name": 7, "restarts": "x", "lastCrash": [], "backoffUntil": "soon", "error": "e"}]},
        {"conditions": [{"type": "Ready"}, 3], "internalTopics": None, "tasks": "4", "state": 1},
        {"internalTopics": {"init": {"nonce": True}, "existing": None}},
    ],
)
@pytest.mark.parametrize("topics", [None, ready_topics()])
def test_a_status_that_somebody_spoilt_is_written_anew(status: dict[str, Any], topics: Any) -> None:
    found = plan(observed(pods=PODS, status=status, topics=topics)).status
    assert found is not None
    assert found["state"] == "RUNNING"


def test_times_are_whole_seconds_and_nobody_who_waits_is_early() -> None:
    assert text_of(0.9) == "1970-01-01T00:00:00Z"
    assert seconds_of(text_not_before(0.1)) == 1.0
    assert seconds_of("soon") is None
    assert seconds_of(None) is None
