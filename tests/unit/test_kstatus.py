"""Tools that wait by kstatus (Flux, Helm) go on when an application is done, and neither sooner nor never."""

from __future__ import annotations

from typing import Any

import argo_lua
import pytest
from hypothesis import given
from hypothesis import strategies as st
from kstatus_oracle import kstatus
from operator_cases import ERROR, condition, digest_of, observed, remembered, status_of
from operator_situations import SITUATIONS, as_served
from operator_world import START, World, ready_topics, resource, running

from streams_operator.model import PodState
from streams_operator.plan import plan
from streams_operator.plan.status.times import text_of
from streams_runtime.api.crd.definition import definition

BY_NAME = dict(SITUATIONS)
DEFAULT = definition()["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["status"]["default"]


def test_a_resource_that_nobody_has_seen_is_in_progress_because_of_the_definitions_default():
    assert kstatus(resource()) == "Current", "without a status kstatus takes a resource for one that is done"
    assert kstatus({**resource(), "status": DEFAULT}) == "InProgress"


def test_the_default_is_no_status_that_the_operator_has_written():
    metadata = {"creationTimestamp": text_of(START - 5)}
    fresh = plan(observed(topics=None, metadata=metadata))
    assert fresh.status is None, "a new application's first status waits for the brokers"
    assert plan(observed(topics=None, metadata=metadata, status=DEFAULT)) == fresh
    assert plan(observed(status=DEFAULT)).status == plan(observed()).status


@pytest.mark.parametrize("situation", BY_NAME)
def test_a_condition_for_kstatus_repeats_the_one_that_people_read(situation: str):
    status = status_of(BY_NAME[situation]())
    for name, source in (("Reconciling", "Progressing"), ("Stalled", "Degraded")):
        for each in (each for each in status["conditions"] if each["type"] == name):
            assert each["status"] == "True", "it is there only while it is True"
            if each["reason"] not in ("Pausing", "Resuming"):
                read = condition(status, source)
                assert (each["reason"], each["message"]) == (read["reason"], read["message"])


def test_a_long_complaint_stands_in_the_status_once():
    pods = [running(ordinal, digest_of(), **{**ERROR, "error": ("Broken", "x" * 1500)}) for ordinal in range(2)]
    status = status_of(observed(pods=pods))
    assert len(condition(status, "Degraded")["message"]) > 3000
    assert len(condition(status, "Stalled")["message"].encode()) <= 1000


def test_a_settled_application_has_neither_condition_and_no_write():
    world = World()
    world.settle()
    assert kstatus(world.resource or {}) == "Current"
    assert not {"Reconciling", "Stalled"} & {each["type"] for each in world.status["conditions"]}
    writes = world.writes
    world.settle()
    assert world.writes == writes


@pytest.mark.parametrize(
    "change", [{"replicas": 3}, {"replicas": 1}, {"replicas": 0}, {"suspend": True}, {"restartNonce": 1}]
)
def test_on_the_way_to_a_change_no_status_says_that_it_is_done(change: dict[str, Any]):
    pods = [running(0, digest_of()), running(1, digest_of())]
    found = observed(change, pods, status=remembered(*pods))
    assert kstatus(as_served(found)) == "InProgress"


CHANGES: list[dict[str, Any]] = [
    {"replicas": 3},
    {"replicas": 1},
    {"replicas": 0},
    {"replicas": 2},
    {"suspend": True},
    {"suspend": False},
    {"paused": True},
    {"paused": False},
    {"image": "runtime:2"},
    {"restartNonce": 1},
]


def wanted_is_there(world: World) -> bool:
    """Whether the pods of the simulated cluster are those that the resource asks for."""
    spec = world.spec
    wanted = 0 if spec.get("suspend") else spec["replicas"]
    pods = [pod for pod in world.pods.values() if not pod.deleting]
    fits = [
        pod.state == "RUNNING"
        and pod.ready
        and pod.digest == world.digest
        and pod.nonce >= world.nonce
        and pod.paused == bool(spec.get("paused"))
        for pod in pods
    ]
    return len(pods) == len(world.pods) == wanted and all(fits)


@given(st.lists(st.sampled_from(CHANGES), min_size=1, max_size=5), st.lists(st.integers(1, 6), min_size=5, max_size=5))
def test_whenever_tools_go_on_what_was_asked_for_is_there(changes: list[dict[str, Any]], rounds: list[int]):
    """Changes come while others are under way; after each round the status is read as a tool reads it."""
    world = World()
    for change, count in zip(changes, rounds, strict=False):
        world.change(**change)
        assert kstatus(world.resource or {}) in ("InProgress", "Current")
        for _ in range(count):
            world.reconcile()
            if kstatus(world.resource or {}) == "Current":
                assert wanted_is_there(world)
            world.pods_go_on()
            world.now += 1.0
    world.settle()
    assert kstatus(world.resource or {}) == "Current"
    assert wanted_is_there(world)


def test_a_suspended_application_is_done_even_when_somebody_has_to_look_at_it():
    foreign = PodState("stray", "s", None, "Running", START)
    found = as_served(observed({"suspend": True}, [foreign]))
    assert condition(found["status"], "Degraded")["reason"] == "ForeignPods"
    assert kstatus(found) == "Current"
    assert argo_lua.health(found)[0] == "Suspended"


def test_a_failure_of_topics_is_failed_only_when_the_deadline_is_over():
    def said(at: float) -> str:
        manual = {"internalTopics": {"setup": "manual"}}
        lost = ready_topics()
        lost = type(lost)(START, False, missing=("t",), tasks=4)
        first = status_of(observed(manual, topics=lost))
        return kstatus(as_served(observed(manual, topics=lost, status=first, now=START + at)))

    assert said(60) == "InProgress"
    assert said(3600) == "Failed"
