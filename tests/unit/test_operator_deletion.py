"""Deleting an application, and resources that nobody can make sense of."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from operator_cases import condition, digest_of, made, observed, remembered, removed, status_of, told
from operator_world import START, TOPICS, running

from streams_operator.model import KafkaWork, Observed, TopicsState
from streams_operator.plan import plan
from streams_operator.plan.status.times import text_of
from streams_runtime.errors import Mistake

NOW = digest_of()
PODS = [running(0, NOW), running(1, NOW)]
EXECUTORS_AS_PODS = {"master": "k8s://https://kubernetes.default.svc", "config": {"spark.executor.instances": "1"}}
DELETE = {"internalTopics": {"deletionPolicy": "Delete"}}
MISTAKES = (Mistake("spec.topology.steps[0].where", "found 'x >'", "write it out"), Mistake("spec.replicas", "a", "b"))


def deleted(spec: dict[str, Any] | None = None, after: float = 1.0, **more: Any) -> Observed:
    """An application whose deletion was asked for `after` seconds ago."""
    return observed(spec, metadata={"deletionTimestamp": text_of(START)}, now=START + after, **more)


def test_pods_close_from_the_last_on_one_at_a_time() -> None:
    todo = plan(deleted(pods=PODS))
    assert removed(todo) == ["orders-1"]
    assert todo.finalizer
    assert removed(plan(deleted(pods=[PODS[0], replace(PODS[1], deleting=True)]))) == []


def test_nothing_is_made_any_more() -> None:
    todo = plan(deleted(pods=PODS[:1], topics=None))
    assert made(todo) == []
    assert todo.apply == ()
    assert todo.kafka is None


def test_all_go_at_once_when_only_their_grace_period_is_left() -> None:
    early = plan(deleted(pods=PODS, after=44))
    assert early.requeue_after == pytest.approx(1.0)
    assert removed(early) == ["orders-1"]
    assert removed(plan(deleted(pods=PODS, after=45))) == ["orders-0", "orders-1"]


def test_a_pod_that_never_goes_does_not_hold_the_resource_beyond_the_deadline() -> None:
    stuck = [replace(PODS[0], deleting=True)]
    assert plan(deleted(pods=stuck, after=119)).finalizer
    todo = plan(deleted(DELETE, pods=stuck, after=120, status={"internalTopics": {"existing": list(TOPICS)}}))
    assert not todo.finalizer
    assert told(todo)[-1] == "InternalTopicsLeft"


def graceful(seconds: object, after: float, **more: Any) -> Observed:
    return deleted({"template": {"terminationGracePeriodSeconds": seconds}}, pods=PODS, after=after, **more)


def test_the_template_says_how_long_pods_have_to_close() -> None:
    assert removed(plan(graceful(20, 99))) == ["orders-1"]
    assert removed(plan(graceful(20, 100))) == ["orders-0", "orders-1"]


def test_the_deadline_leaves_pods_their_grace_period() -> None:
    todo = plan(graceful(600, 0))
    assert removed(todo) == ["orders-0", "orders-1"]
    assert todo.requeue_after == pytest.approx(600)
    assert plan(graceful(600, 599)).finalizer
    assert not plan(graceful(600, 600)).finalizer


def test_pods_have_their_grace_period_too_where_the_spec_is_invalid() -> None:
    def seen(after: float, given: object = 20) -> Observed:
        found = graceful(20, after)
        spec = {"replicas": 2, "template": {"terminationGracePeriodSeconds": given}}
        return replace(found, application=None, mistakes=MISTAKES, resource={**found.resource, "spec": spec})

    assert removed(plan(seen(99))) == ["orders-1"]
    assert removed(plan(seen(100))) == ["orders-0", "orders-1"]
    for strange in ("x", None, True, -1, {}):
        assert removed(plan(seen(44, strange))) == ["orders-1"], "as by default"
        assert removed(plan(seen(45, strange))) == ["orders-0", "orders-1"], "as by default"


def test_topics_are_kept_by_default() -> None:
    todo = plan(deleted())
    assert not todo.finalizer
    assert todo.kafka is None
    assert "InternalTopicsLeft" not in told(todo)


def test_topics_are_deleted_after_the_last_pod_when_the_policy_says_so() -> None:
    assert plan(deleted(DELETE, pods=PODS)).kafka is None
    todo = plan(deleted(DELETE))
    assert todo.kafka == KafkaWork("delete")
    assert todo.finalizer
    done = plan(deleted(DELETE, topics_deleted=True))
    assert not done.finalizer
    assert told(done)[-1] == "InternalTopicsDeleted"


def test_a_dead_broker_is_asked_every_ten_seconds_and_not_beyond_the_deadline() -> None:
    dead = TopicsState(START + 50, False, existing=TOPICS, failure=("BrokerNotAvailable", "no broker answers"))
    assert plan(deleted(DELETE, topics=dead, after=59)).kafka is None
    assert plan(deleted(DELETE, topics=dead, after=60)).kafka == KafkaWork("delete")
    late = plan(deleted(DELETE, topics=dead, after=120))
    assert not late.finalizer
    assert late.kafka is None
    (left,) = [each for each in late.events if each.reason == "InternalTopicsLeft"]
    assert all(topic in left.message for topic in TOPICS)
    assert "no broker answers" in left.message


def test_an_invalid_resource_can_be_deleted_and_its_topics_are_named() -> None:
    found = replace(deleted(DELETE), application=None, mistakes=MISTAKES)
    todo = plan(found)
    assert not todo.finalizer
    assert told(todo)[-1] == "InternalTopicsLeft"


def test_the_status_says_what_the_deletion_is_at() -> None:
    status = status_of(deleted(pods=PODS))
    assert status["state"] == "DELETING"
    assert condition(status, "Progressing")["message"] == "closing orders-0, orders-1"


def test_an_invalid_spec_is_told_with_every_field_and_touches_nothing() -> None:
    before = remembered(*PODS)
    pods = [PODS[0], replace(PODS[1], phase="Failed", exit_code=137, ended_at=START - 1000)]
    todo = plan(replace(observed(pods=pods, status=before), application=None, mistakes=MISTAKES))
    assert todo.apply == ()
    assert todo.remove == ()
    assert todo.kafka is None
    assert todo.finalizer
    assert todo.status is not None
    assert todo.status["state"] == "INVALID"
    ready = condition(todo.status, "Ready")
    assert (ready["status"], ready["reason"]) == ("False", "InvalidSpec")
    assert all(str(mistake) in ready["message"] for mistake in MISTAKES)
    assert {each["name"] for each in todo.status["instances"]} == {"orders-0", "orders-1"}
    assert "InvalidSpec" in told(todo)
    again = plan(replace(observed(pods=pods, status=todo.status), application=None, mistakes=MISTAKES))
    assert again.status is None
    assert again.events == ()


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        ({"kafka": {}}, "spec.kafka.bootstrapServers"),
        ({"template": {"env": [{"name": "A"}, {"name": "POD_NAME", "value": "x"}]}}, "spec.template.env[1].name"),
        ({"spark": EXECUTORS_AS_PODS}, "spec.spark.master"),
    ],
)
def test_what_is_wrong_in_a_cluster_only_is_invalid_too(spec: dict[str, Any], field: str) -> None:
    status = status_of(observed(spec))
    assert status["state"] == "INVALID"
    assert condition(status, "Ready")["message"].startswith(field)
