"""What holds whatever happens to an application and to its operator, in a simulated cluster."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from example_counts import examples
from hypothesis import example, given, settings
from hypothesis import strategies as st
from operator_world import NAME, TOPICS, World, resource

from streams_operator.model import PodState

OPERATIONS = (
    "scale",
    "version",
    "nonce",
    "suspend",
    "resume",
    "crash",
    "fail",
    "ask",
    "end",
    "remove",
    "edit",
    "foreign",
    "store",
    "allow",
    "lose",
    "rotate",
    "pause",
    "go on",
    "hold",
    "release",
    "reset",
    "keep",
    "rehearse",
    "forget reset",
    "intrude",
    "withdraw",
    "refuse",
)

script = st.lists(st.tuples(st.sampled_from(OPERATIONS), st.integers(0, 3)), max_size=6)
kills = st.lists(st.integers(1, 60), max_size=6, unique=True)


def happen(world: World, operation: str, number: int) -> None:
    """One thing that people, pods or the cluster do."""
    name = f"{NAME}-{number}"
    changes: dict[str, dict[str, Any]] = {
        "scale": {"replicas": number},
        "version": {"processing": {"maxBatchRecords": 1000 + number}},
        "nonce": {"restartNonce": world.nonce + 1},
        "suspend": {"suspend": True},
        "resume": {"suspend": False},
        "pause": {"paused": True},
        "go on": {"paused": False},
        "store": {"topology": with_store(f"totals{number}")},
        "reset": {"suspend": True, "reset": reset_spec(world)},
        "keep": {"suspend": True, "reset": reset_spec(world, internalTopics="Keep")},
        "rehearse": {"reset": reset_spec(world, dryRun=True)},
        "forget reset": {"reset": None},
        "allow": {"topologyChange": "allow" if number % 2 else None},
    }
    deeds: dict[str, Callable[[str], None]] = {
        "crash": world.crash,
        "fail": world.fail,
        "ask": world.ask,
        "end": world.end,
        "remove": world.remove_pod,
        "lose": world.lose,
        "hold": lambda _: world.hold(),
        "release": lambda _: world.release(),
        "intrude": lambda _: setattr(world, "intruder", True),
        "withdraw": lambda _: setattr(world, "intruder", False),
        "refuse": lambda _: setattr(world, "refusal", f"no {number}" if number % 2 else ""),
        "rotate": lambda _: world.inputs.update({"Secret/kafka": str(number)}),
        "foreign": lambda _: world.add_pod(foreign()),
        "edit": lambda _: world.spoil_objects(number),
    }
    if operation in changes:
        world.change(**changes[operation])
    else:
        deeds[operation](name)


def reset_spec(world: World, **more: Any) -> dict[str, Any]:
    """A reset of the next nonce."""
    asked, done = (world.spec.get("reset") or {}).get("nonce", 0), world.status.get("reset", {}).get("nonce", 0)
    return {"nonce": max(asked, done) + 1, "to": "earliest", **more}


def with_store(name: str) -> dict[str, Any]:
    """The topology with its store under another name, which no other such topology can take over."""
    topology: dict[str, Any] = resource()["spec"]["topology"]
    topology["steps"][1]["store"] = name
    return topology


def foreign() -> PodState:
    return PodState(name="other", uid="foreign", ordinal=None, phase="Running", created_at=0.0)


def lived(steps: list[tuple[str, int]], killed_after: list[int], patient: bool) -> World:
    storage = {"state": {"storage": {"size": "1Gi"}}}
    world = World({"replicas": 3, "nodeLoss": {"forceDeleteAfter": "2m"}, **storage}, killed_after)
    world.settle()
    for operation, number in steps:
        happen(world, operation, number)
        if patient:
            world.settle()
        else:
            world.reconcile()
    world.release()
    world.intruder = False
    world.settle()
    return world


@settings(max_examples=examples(15), deadline=None)
@given(script, kills)
@example([("fail", 0), ("remove", 0), ("suspend", 0), ("resume", 0)], [])
def test_the_end_is_the_same_wherever_the_operator_is_killed(
    steps: list[tuple[str, int]], killed_after: list[int]
) -> None:
    assert lived(steps, killed_after, patient=True).end_state() == lived(steps, [], patient=True).end_state()


@settings(max_examples=examples(15), deadline=None)
@given(script, kills)
@example([("nonce", 0), ("fail", 0)], [17])
@example([("suspend", 0), ("ask", 2), ("resume", 0)], [17])
def test_things_that_happen_at_once_end_with_the_pods_that_were_asked_for(
    steps: list[tuple[str, int]], killed_after: list[int]
) -> None:
    world = lived(steps, killed_after, patient=False)
    wanted = 0 if world.spec.get("suspend") else world.spec["replicas"]
    entries = {each["name"]: each["state"] for each in world.status["instances"]}
    assert set(entries) == {f"{NAME}-{ordinal}" for ordinal in range(wanted)}
    assert set(entries.values()) <= {"RUNNING", "ERROR", "CREATED"}
    for name, pod in world.pods.items():
        if name in entries and pod.state == "RUNNING":
            wanted_of_it = (world.digest, world.nonce, world.inputs)
            assert (pod.digest, pod.nonce, pod.inputs) == wanted_of_it or "ERROR" in entries.values()
            assert pod.paused == world.spec.get("paused", False)


@settings(max_examples=examples(15), deadline=None)
@given(script, kills)
def test_a_settled_application_is_left_alone(steps: list[tuple[str, int]], killed_after: list[int]) -> None:
    world = lived(steps, killed_after, patient=False)
    written, told = world.writes, len(world.events)
    for _ in range(5):
        world.reconcile()
    assert (world.writes, len(world.events)) == (written, told)


resetting = st.sampled_from(
    [
        "reset",
        "keep",
        "rehearse",
        "forget reset",
        "intrude",
        "withdraw",
        "refuse",
        "resume",
        "suspend",
        "hold",
        "release",
    ]
)


@settings(max_examples=examples(25), deadline=None)
@given(st.lists(st.tuples(resetting, st.integers(0, 3)), max_size=6), kills, st.booleans())
@example([("reset", 0), ("resume", 0)], [], False)
@example([("reset", 0), ("forget reset", 0), ("resume", 0)], list(range(20, 60, 7)), False)
@example([("reset", 0), ("intrude", 0), ("keep", 0), ("withdraw", 0)], [], False)
def test_a_reset_that_has_begun_is_whole_before_anything_else_and_done_once(
    steps: list[tuple[str, int]], killed_after: list[int], patient: bool
) -> None:
    world = lived(steps, killed_after, patient)  # the world checks what a reset may do, and when
    state = world.status.get("reset", {}).get("state")
    assert state in (None, "Done", "Refused", "DryRun")
    suspended = bool(world.spec.get("suspend"))
    assert len(world.pods) == (0 if suspended else 3)
    last = world.spec.get("reset") or {}
    if last and suspended and not last.get("dryRun") and not world.refusal and state != "Refused":
        assert (state, world.status["reset"]["nonce"], world.resets[-1]) == ("Done", last["nonce"], last["nonce"])
    assert world.brokers_up


@settings(max_examples=examples(15), deadline=None)
@given(script, kills, st.booleans(), st.sampled_from(["Retain", "Delete"]))
def test_deletion_always_ends(
    steps: list[tuple[str, int]], killed_after: list[int], brokers_up: bool, policy: str
) -> None:
    world = lived(steps, killed_after, patient=False)
    world.change(internalTopics={"deletionPolicy": policy})
    world.brokers_up = brokers_up
    began = world.now
    world.delete()
    world.settle()
    assert world.resource is None
    assert world.now - began <= world.defaults.delete_deadline + 10
    assert world.on_brokers == (set() if policy == "Delete" and brokers_up else set(TOPICS))


@settings(max_examples=examples(15), deadline=None)
@given(kills, st.lists(st.sampled_from(["down", "up", "lose", "nonce", "restart"]), max_size=8))
def test_manual_set_up_calls_init_once_for_each_nonce_and_makes_nothing_else(
    killed_after: list[int], steps: list[str]
) -> None:
    world = World({"internalTopics": {"setup": "manual"}}, killed_after)
    nonce = 0
    for step in steps:
        match step:
            case "down" | "up":
                world.brokers_up = step == "up"
            case "lose":
                world.on_brokers.discard(TOPICS[0])
            case "nonce":
                nonce += 1
                world.change(internalTopics={"setup": "manual", "init": {"nonce": nonce}})
            case "restart":
                world.settle()  # one that dies between an init() and writing of it asks again, and finds it done
                world.restart_operator()
        world.reconcile()
        world.reconcile()
    world.settle()
    if not killed_after:
        assert len(set(world.inits)) == len(world.inits)
    if not nonce:
        assert not world.on_brokers
        assert not world.pods


def test_an_ordinal_that_is_scaled_away_after_an_error_and_asked_for_again_gets_a_pod() -> None:
    world = lived([("fail", 0), ("scale", 0), ("scale", 1)], [], patient=True)
    assert world.pods[f"{NAME}-0"].state == "RUNNING"


def test_a_request_for_the_end_of_the_application_ends_every_pod_of_that_version_until_a_new_nonce() -> None:
    world = World({"replicas": 3})
    world.settle()
    world.crash(f"{NAME}-2")
    world.ask(f"{NAME}-1")
    world.settle()
    assert {pod.name: pod.state for pod in world.pods.values()} == {f"{NAME}-{n}": "ERROR" for n in range(3)}
    assert [each.reason for each in world.events].count("ShutdownRequested") == 1
    assert world.status["state"] == "ERROR"
    world.change(restartNonce=1)
    world.settle()
    assert {pod.state for pod in world.pods.values()} == {"RUNNING"}
    assert not any("shutdownRequested" in each for each in world.status["instances"])
    world.fail(f"{NAME}-0")
    world.settle()
    assert [pod.state for pod in world.pods.values()].count("RUNNING") == 2, "an error that asks for nothing ends one"


def test_a_pod_that_was_told_and_has_not_read_it_yet_is_replaced_by_a_new_nonce() -> None:
    world = World({"replicas": 2})
    world.settle()
    world.ask(f"{NAME}-0")
    world.reconcile()
    assert world.pods[f"{NAME}-1"].shutdown_signaled
    world.change(restartNonce=1)
    world.settle()
    assert {pod.state for pod in world.pods.values()} == {"RUNNING"}
    assert {pod.nonce for pod in world.pods.values()} == {1}


def test_a_request_is_remembered_when_the_pod_that_made_it_has_gone() -> None:
    world = World({"replicas": 2})
    world.settle()
    world.ask(f"{NAME}-0")
    world.crash(f"{NAME}-1")
    world.reconcile()
    world.remove_pod(f"{NAME}-0")
    world.settle()
    assert [pod.state for pod in world.pods.values()] == ["ERROR"]
    assert [(each["name"], each["state"]) for each in world.status["instances"]] == [
        (f"{NAME}-0", "ERROR"),
        (f"{NAME}-1", "ERROR"),
    ]


def test_a_new_version_replaces_pods_one_by_one_from_the_last() -> None:
    world = World({"replicas": 3})
    world.settle()
    world.change(processing={"maxBatchRecords": 7})
    order = []
    for _ in range(40):
        todo = world.reconcile()
        order += [removal.name for removal in todo.remove if removal.kind == "Pod"]
        world.pods_go_on()
    assert order == [f"{NAME}-2", f"{NAME}-1", f"{NAME}-0"]
    assert {pod.digest for pod in world.pods.values()} == {world.digest}


@pytest.mark.parametrize("replicas", [1, 5])
def test_an_application_comes_up_with_all_its_pods(replicas: int) -> None:
    world = World({"replicas": replicas})
    world.settle()
    assert world.status["state"] == "RUNNING"
    assert world.status["ready"] == f"{replicas}/{replicas}"
    assert world.condition("Ready") == ("True", "Running")
    assert world.condition("Progressing") == ("False", "Settled")
