"""Pods as Kubernetes and the runtime describe them, and what the operator makes of that."""

from __future__ import annotations

import json

import pytest

from streams_operator import names
from streams_operator.kube.pod_state import pod_state, seconds
from streams_operator.names import ordinal
from streams_operator.reconcile.readings import without_nones

NAME = "app-1"
AT = "2026-03-01T10:00:00Z"
LATER = "2026-03-01T10:05:00Z"


def pod(status=None, **metadata):
    return {
        "metadata": {
            "name": NAME,
            "uid": "u",
            "creationTimestamp": AT,
            "annotations": {names.ANNOTATION_SPEC: "abc", names.ANNOTATION_NONCE: "3"},
            **metadata,
        },
        "status": status or {},
    }


def condition(type, status, reason="", message="", at=AT):
    return {"type": type, "status": status, "reason": reason, "message": message, "lastTransitionTime": at}


def ended(code, message="", reason="Error"):
    terminated = {"exitCode": code, "reason": reason, "message": message, "startedAt": AT, "finishedAt": LATER}
    return {
        "phase": "Succeeded" if code == 0 else "Failed",
        "containerStatuses": [{"name": names.CONTAINER, "state": {"terminated": terminated}}],
    }


def test_a_pod_that_has_just_been_made_has_said_nothing():
    seen = pod_state(pod(), "app")
    assert (seen.name, seen.uid, seen.ordinal, seen.digest, seen.nonce) == (NAME, "u", 1, "abc", 3)
    assert (seen.phase, seen.state, seen.ready, seen.restored, seen.restartable) == (
        "Unknown",
        None,
        False,
        False,
        True,
    )
    assert (seen.error, seen.exit_code, seen.ended_at, seen.started_at, seen.ip) == (None, None, None, None, None)
    assert seen.created_at == seconds(AT)


def test_a_running_pod_is_what_its_conditions_say():
    status = {
        "phase": "Running",
        "podIP": "10.0.0.7",
        "conditions": [
            condition("Ready", "True"),
            condition(names.CONDITION_RUNNING, "False", "REBALANCING"),
            condition(names.CONDITION_RESTORED, "False", "Restoring", "1200 records left"),
            condition(names.CONDITION_SPARK_READY, "False", "NotReady"),
        ],
        "containerStatuses": [
            {"name": "sidecar", "state": {"terminated": {"exitCode": 1}}},
            {"name": names.CONTAINER, "state": {"running": {"startedAt": LATER}}},
        ],
    }
    seen = pod_state(pod(status), "app")
    assert (seen.state, seen.ready, seen.restored, seen.records_left) == ("REBALANCING", True, False, 1200)
    assert (seen.started_at, seen.ip, seen.exit_code) == (seconds(LATER), "10.0.0.7", None)
    assert not seen.spark_ready
    del status["conditions"][-1]
    assert pod_state(pod(status), "app").spark_ready, "a runtime that does not say it has Spark before it is RUNNING"


def test_the_last_words_of_a_pod_count_when_its_conditions_do_not_know_better():
    words = json.dumps({"state": "ERROR", "class": "ProcessorStateException", "message": "disk full"})
    seen = pod_state(pod(ended(70, words)), "app")
    assert (seen.state, seen.exit_code, seen.ended_at) == ("ERROR", 70, seconds(LATER))
    assert seen.error == ("ProcessorStateException", "disk full")


def test_the_condition_names_the_error_first():
    status = ended(70, json.dumps({"state": "ERROR", "class": "B", "message": "b"}))
    status["conditions"] = [condition(names.CONDITION_RESTARTABLE, "False", "A", "a")]
    seen = pod_state(pod(status), "app")
    assert (seen.error, seen.restartable) == (("A", "a"), False)


@pytest.mark.parametrize("words", ["Killed", "[1]", '"text"', "{", ""])
def test_last_words_of_something_else_are_none(words):
    seen = pod_state(pod(ended(137, words, "OOMKilled")), "app")
    assert (seen.state, seen.error, seen.exit_code, seen.reason) == (None, None, 137, "OOMKilled")


def test_a_pod_whose_node_was_lost_ended_when_kubernetes_said_so():
    status = {"phase": "Failed", "reason": "NodeLost", "conditions": [condition("Ready", "False", at=LATER)]}
    seen = pod_state(pod(status), "app")
    assert (seen.exit_code, seen.ended_at, seen.reason) == (None, seconds(LATER), "NodeLost")


def waits(reason):
    return {"containerStatuses": [{"name": names.CONTAINER, "state": {"waiting": {"reason": reason}}}]}


@pytest.mark.parametrize(
    ("status", "reason"),
    [
        (waits("ImagePullBackOff"), "ImagePullBackOff"),
        (waits("ContainerCreating"), ""),
        ({"conditions": [condition("PodScheduled", "False", "Unschedulable")]}, "Unschedulable"),
    ],
)
def test_why_a_pod_does_not_start(status, reason):
    assert pod_state(pod({"phase": "Pending", **status}), "app").reason == reason


def test_a_pod_that_is_being_removed():
    assert pod_state(pod(deletionTimestamp=LATER), "app").deleting


@pytest.mark.parametrize(
    ("name", "number"),
    [
        ("app-0", 0),
        ("app-17", 17),
        ("app-01", None),
        ("app-x", None),
        ("app", None),
        ("other-0", None),
        ("app--1", None),
    ],
)
def test_ordinals_are_read_from_names_that_the_operator_gives(name, number):
    assert ordinal(name, "app") == number


def test_nulls_say_nothing():
    given = {"a": None, "b": [{"c": None, "d": 0}], "e": {"f": None}, "g": False}
    assert without_nones(given) == {"b": [{"d": 0}], "e": {}, "g": False}
