"""Internal topics first, and what is asked of the brokers."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from operator_cases import READY, condition, digest_of, made, observed, remembered, removed, status_of, told
from operator_world import START, TOPICS, running

from streams_operator.model import InitResult, KafkaWork, TopicsState
from streams_operator.plan import plan

NONE = TopicsState(START, False, missing=TOPICS, tasks=4)
SOME = TopicsState(START, False, existing=TOPICS[:1], missing=TOPICS[1:], tasks=4)
UNREACHABLE = TopicsState(START, False, failure=("BrokerNotAvailable", "no broker answers"))
DONE = {"internalTopics": {"init": {"nonce": 1, "result": "Created", "message": ""}}}


def manual(nonce: int | None = None) -> dict[str, Any]:
    init = {} if nonce is None else {"init": {"nonce": nonce}}
    return {"internalTopics": {"setup": "manual", **init}}


def failed(reason: str) -> TopicsState:
    return TopicsState(START, False, existing=TOPICS, failure=(reason, f"why {reason}"))


@pytest.mark.parametrize("seen", [None, NONE, SOME, UNREACHABLE, failed("MissingSourceTopics")])
@pytest.mark.parametrize("spec", [{}, manual()])
def test_no_pod_is_made_before_its_topics_are_ready(seen: TopicsState | None, spec: dict[str, Any]) -> None:
    todo = plan(observed(spec, topics=seen))
    assert made(todo) == []
    assert todo.status is not None
    assert todo.status["state"] == "WAITING"
    assert todo.status["instances"] == []
    assert condition(todo.status, "Ready")["reason"] == "WaitingForTopics"


@pytest.mark.parametrize("seen", [None, NONE, UNREACHABLE, failed("MissingSourceTopics")])
def test_no_pod_is_replaced_before_the_topics_of_its_new_version_are_ready(seen: TopicsState | None) -> None:
    pods = [running(0, "old"), running(1, "old", phase="Failed", exit_code=70)]
    todo = plan(observed(pods=pods, topics=seen))
    assert made(todo) == removed(todo) == []


def test_automatic_set_up_makes_what_is_missing() -> None:
    assert plan(observed(topics=None)).kafka == KafkaWork("setup")


def test_manual_set_up_only_looks() -> None:
    assert plan(observed(manual(), topics=None)).kafka == KafkaWork("check")
    assert plan(observed(manual(), topics=replace(NONE, checked_at=START - 10))).kafka == KafkaWork("check")


@pytest.mark.parametrize(
    ("seen", "status", "reason"),
    [
        (None, "Unknown", "NotChecked"),
        (NONE, "False", "InitRequired"),
        (SOME, "False", "MissingInternalTopics"),
        (READY, "True", "Ready"),
        (UNREACHABLE, "Unknown", "BrokerNotAvailable"),
        (failed("MisconfiguredInternalTopics"), "False", "MisconfiguredInternalTopics"),
        (failed("MissingSourceTopics"), "False", "MissingSourceTopics"),
    ],
)
def test_the_condition_says_what_keeps_the_topics_from_being_ready(
    seen: TopicsState | None, status: str, reason: str
) -> None:
    found = status_of(observed(manual(), topics=seen))
    told = condition(found, "InternalTopicsReady")
    assert (told["status"], told["reason"]) == (status, reason)
    assert found["internalTopics"]["setup"] == reason


def test_missing_topics_are_named_with_the_nonce_that_asks_for_them() -> None:
    assert "init.nonce to 1 " in condition(status_of(observed(manual(), topics=NONE)), "InternalTopicsReady")["message"]
    message = condition(status_of(observed(manual(1), topics=SOME, status=DONE)), "InternalTopicsReady")["message"]
    assert TOPICS[1] in message
    assert "init.nonce to 2 " in message


def test_a_failed_look_is_repeated_after_ten_seconds_and_not_before() -> None:
    early = plan(observed(topics=UNREACHABLE, now=START + 4))
    assert early.kafka is None
    assert early.requeue_after == pytest.approx(6.0)
    assert plan(observed(topics=UNREACHABLE, now=START + 10)).kafka == KafkaWork("setup")


def test_ready_topics_are_looked_at_every_quarter_of_an_hour() -> None:
    pods = [running(0, digest_of()), running(1, digest_of())]
    assert plan(observed(pods=pods, now=START + 899)).kafka is None
    assert plan(observed(pods=pods, now=START + 900)).kafka == KafkaWork("setup")


def test_topics_are_looked_at_again_when_a_pod_ends_because_of_them() -> None:
    end = ("MissingInternalTopicException", "gone")
    pods = [running(0, digest_of(manual()), phase="Failed", exit_code=70, error=end, ended_at=START + 1)]
    assert plan(observed(manual(), pods, now=START + 2)).kafka == KafkaWork("check")
    assert plan(observed(manual(), pods, topics=replace(SOME, checked_at=START + 2), now=START + 3)).kafka is None


def test_the_second_in_which_a_pod_ended_may_have_been_that_of_the_last_look() -> None:
    end = ("MissingInternalTopicException", "gone")
    pods = [running(0, digest_of(manual()), phase="Failed", exit_code=70, error=end, ended_at=START + 1)]
    looked = replace(observed(manual(), pods).topics, checked_at=START + 1.4)
    assert plan(observed(manual(), pods, topics=looked, now=START + 2)).kafka == KafkaWork("check")
    assert plan(observed(manual(), pods, topics=replace(looked, checked_at=START + 2), now=START + 2.5)).kafka is None


def test_a_new_nonce_is_one_init() -> None:
    assert plan(observed(manual(1), topics=NONE)).kafka == KafkaWork("init", 1)
    assert plan(observed(manual(1), topics=NONE, status=DONE)).kafka is None
    assert plan(observed(manual(2), topics=NONE, status=DONE)).kafka == KafkaWork("init", 2)
    assert plan(observed(manual(0), topics=NONE)).kafka == KafkaWork("init", 0)


def test_a_new_nonce_is_an_init_also_when_all_topics_are_there() -> None:
    assert plan(observed(manual(2), status=DONE)).kafka == KafkaWork("init", 2)


@pytest.mark.parametrize(
    ("result", "type"),
    [
        ("Created", "Normal"),
        ("AlreadySetUp", "Normal"),
        ("MissingInternalTopics", "Warning"),
        ("MisconfiguredInternalTopics", "Warning"),
        ("MissingSourceTopics", "Warning"),
    ],
)
def test_the_result_of_an_init_is_in_status_and_told_once(result: str, type: str) -> None:
    found = observed(manual(1), topics=NONE, init=InitResult(1, result, "text"))
    todo = plan(found)
    assert todo.status is not None
    assert todo.status["internalTopics"]["init"] == {"nonce": 1, "result": result, "message": "text"}
    assert [each.type for each in todo.events if each.reason == "InternalTopicsInit"] == [type]
    again = plan(observed(manual(1), topics=NONE, init=InitResult(1, result, "text"), status=todo.status))
    assert again.status is None
    assert again.events == ()
    assert again.kafka is None


def test_an_init_that_no_broker_answered_is_not_done() -> None:
    nobody = InitResult(1, "BrokerNotAvailable", "no broker answers")
    todo = plan(observed(manual(1), topics=UNREACHABLE, init=nobody, now=START + 10))
    assert todo.kafka == KafkaWork("check")
    assert todo.status is not None
    assert "init" not in todo.status["internalTopics"]
    assert plan(observed(manual(1), topics=NONE, init=nobody)).kafka == KafkaWork("init", 1)


def test_a_topic_missing_from_a_running_manual_application_is_reported_and_its_pods_stay() -> None:
    made_from = digest_of(manual(1))
    pods = [running(0, made_from), running(1, made_from)]
    before = remembered(*pods, spec=manual(1), init=InitResult(1, "Created", ""))
    todo = plan(observed(manual(1), pods, topics=replace(SOME, checked_at=START), status=before))
    assert todo.kafka is None
    assert made(todo) == removed(todo) == []
    assert todo.status is not None
    assert todo.status["state"] == "RUNNING"
    assert condition(todo.status, "InternalTopicsReady")["reason"] == "MissingInternalTopics"
    assert told(todo) == ["MissingInternalTopics"]


def test_an_operator_that_has_just_started_leaves_the_condition_as_it_was() -> None:
    pods = [running(0, digest_of()), running(1, digest_of())]
    before = remembered(*pods)
    todo = plan(observed(pods=pods, status=before, topics=None))
    assert todo.status is None
    assert todo.events == ()
    assert todo.kafka == KafkaWork("setup")


def test_nothing_is_asked_of_the_brokers_while_suspended_but_a_new_init() -> None:
    assert plan(observed({"suspend": True}, topics=None)).kafka is None
    assert plan(observed({**manual(1), "suspend": True}, topics=NONE)).kafka == KafkaWork("init", 1)
