"""`spec.rollback: automatic`: back to the last stable version, when, and when not."""

from __future__ import annotations

import copy
import functools
import json
from dataclasses import replace
from typing import Any

import pytest
from example_counts import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from operator_world import NAME, World, resource

from streams_operator import names
from streams_operator.plan.version import in_force
from streams_runtime.api import read_application
from streams_runtime.errors import Mistake

BAD = "runtime:2"


def topology(**sink: Any) -> dict[str, Any]:
    """The world's topology, with one sink more."""
    found: dict[str, Any] = copy.deepcopy(resource()["spec"]["topology"])
    found.setdefault("sinks", []).append(sink)
    return found


def versions(world: World) -> set[str]:
    return {pod.digest for pod in world.pods.values()}


def message(world: World, type: str = "Degraded") -> str:
    return str(next(each["message"] for each in world.status["conditions"] if each["type"] == type))


def reasons(world: World, first: int = 0) -> list[str]:
    return [event.reason for event in world.events[first:] if event.type == "Warning"]


@pytest.fixture
def world() -> World:
    found = World({"replicas": 3, "rollback": "automatic"})
    found.settle()
    return found


def change(world: World, at: str = "Pending", **spec: Any) -> None:
    """Roll out a version that does not get further than this."""
    world.change(**spec)
    world.halt(at)
    world.settle()


@pytest.mark.parametrize("at", ["Pending", "REBALANCING"])
def test_pods_go_back_to_the_stable_version_and_status_and_one_event_say_so(world: World, at: str) -> None:
    stable, told = versions(world), len(world.events)
    change(world, at, image=BAD)
    assert versions(world) == stable
    assert world.condition("Ready") == ("True", "Running")
    assert world.condition("Degraded") == ("True", "RolledBack")
    assert world.condition("Progressing") == ("False", "RolledBack")
    why = "ImagePullBackOff: no such image" if at == "Pending" else "REBALANCING"
    assert f"{NAME}-2: {why}" in message(world)
    assert "set spec.restartNonce to 1 to try it again" in message(world)
    assert reasons(world, told) == ["ProgressDeadlineExceeded", "RolledBack"]
    back = world.status["rolledBack"]
    assert back["generation"] == 2
    assert {back["to"]} == stable == {world.status["deployed"]} == {world.status["stable"]}


def test_by_default_the_rollout_stands() -> None:
    world = World({"replicas": 3})
    world.settle()
    change(world, image=BAD)
    assert len(versions(world)) == 2
    assert world.condition("Degraded") == ("True", "ProgressDeadlineExceeded")
    assert "rolledBack" not in world.status


def test_a_greater_nonce_tries_the_version_again(world: World) -> None:
    stable = versions(world)
    change(world, image=BAD)
    world.change(restartNonce=1)
    world.settle()
    assert versions(world) == stable, "it still can't be pulled"
    assert world.status["rolledBack"]["restartNonce"] == 1
    world.mend()
    world.change(restartNonce=2)
    world.settle()
    assert versions(world) == {world.status["stable"]} != stable
    assert "rolledBack" not in world.status
    assert world.condition("Degraded") == ("False", "AsExpected")


def test_a_resource_that_is_invalid_for_a_while_tries_no_version_again(world: World) -> None:
    stable = versions(world)
    change(world, image=BAD)
    record, told, uids = world.status["rolledBack"], len(world.events), {pod.uid for pod in world.pods.values()}
    world.mistakes = (Mistake("spec.replicas", "found", "give"),)
    world.settle()
    assert world.condition("Ready") == ("False", "InvalidSpec")
    assert world.status["rolledBack"] == record
    world.mistakes = ()
    world.settle()
    assert versions(world) == stable
    assert {pod.uid for pod in world.pods.values()} == uids, "no pod of the version that was given up came meanwhile"
    assert world.status["rolledBack"] == record
    assert "RolledBack" not in reasons(world, told), "the event is written once"


def test_another_version_is_rolled_out_at_once(world: World) -> None:
    change(world, image=BAD)
    world.change(image="runtime:3")
    world.settle()
    assert world.condition("Degraded") == ("False", "AsExpected")
    assert world.spec["image"] == "runtime:3"
    assert versions(world) == {world.status["stable"]}


def test_replicas_and_suspend_follow_the_resource_meanwhile(world: World) -> None:
    stable = versions(world)
    change(world, image=BAD)
    world.change(replicas=5)
    world.settle()
    assert len(world.pods) == 5
    assert versions(world) == stable
    world.change(suspend=True)
    world.settle()
    assert not world.pods
    world.change(suspend=False)
    world.settle()
    assert versions(world) == stable


def test_to_want_no_rollback_any_more_rolls_the_version_out_again(world: World) -> None:
    stable = versions(world)
    change(world, image=BAD)
    world.change(rollback="manual")
    world.settle()
    assert not versions(world) <= stable
    assert world.condition("Degraded") == ("True", "ProgressDeadlineExceeded")


def test_a_client_in_error_waits_for_a_person_though_others_of_its_version_are_late(world: World) -> None:
    world.change(image=BAD, replicas=5)
    world.halt("REBALANCING")
    for _ in range(20):
        world.reconcile()
        world.pods_go_on()
    failed = f"{NAME}-4"
    world.fail(failed)
    uid = world.pods[failed].uid
    world.settle()
    assert world.pods[failed].uid == uid
    assert "rolledBack" not in world.status
    assert "RollbackRefused" in reasons(world)
    assert f"a client in ERROR waits for a person: {failed}" in message(world)


def test_a_pod_of_the_old_version_that_is_late_is_nothing_that_the_new_one_has_done(world: World) -> None:
    world.pods[f"{NAME}-1"] = replace(world.pods[f"{NAME}-1"], ready=False)
    world.settle()
    assert world.condition("Degraded") == ("True", "ProgressDeadlineExceeded")
    old = versions(world)
    world.change(image="runtime:3")
    world.settle()
    assert versions(world) == {world.status["stable"]} != old
    assert "RolledBack" not in reasons(world)


@pytest.mark.parametrize(("at", "goes_back"), [("Pending", True), ("REBALANCING", False)])
def test_what_has_run_with_other_topics_is_kept(world: World, at: str, goes_back: bool) -> None:
    stable = versions(world)
    name = resource()["spec"]["topology"]["steps"][-1]["name"]
    change(world, at, topology=topology(**{"from": name, "topic": "more"}))
    assert (versions(world) == stable) is goes_back
    if not goes_back:
        assert "RollbackRefused" in reasons(world)
        assert "pods of the new version have run" in message(world)
        assert "more" in message(world)


def test_a_new_default_image_can_t_be_taken_back_by_an_application(world: World) -> None:
    world.defaults = replace(world.defaults, image=BAD)
    world.halt("Pending")
    world.settle()
    assert "RollbackRefused" in reasons(world)
    assert "another default image" in message(world)


def test_without_the_stable_version_s_config_map_there_is_no_way_back(world: World) -> None:
    (stable,) = versions(world)
    world.change(image=BAD, topologyChange="allow")
    world.halt("Pending")
    del world.objects["ConfigMap", names.config(NAME, stable)]
    world.settle()
    assert "RollbackRefused" in reasons(world)
    assert f"{stable}, the last stable version, can't be made again: the ConfigMap" in message(world)


def test_the_first_version_has_nowhere_to_go_back_to() -> None:
    world = World({"replicas": 3, "rollback": "automatic"})
    world.halt("Pending")
    world.settle()
    assert world.condition("Degraded") == ("True", "ProgressDeadlineExceeded")
    assert reasons(world) == ["ProgressDeadlineExceeded"]


def test_a_stable_version_that_fails_later_goes_nowhere(world: World) -> None:
    stable = versions(world)
    change(world, image=BAD)
    world.halt("Pending")
    world.crash(f"{NAME}-1")
    world.settle()
    assert versions(world) == stable
    assert world.condition("Progressing") == ("False", "ProgressDeadlineExceeded")


def test_a_version_is_read_from_its_config_map_once_however_many_rounds_it_takes(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[str] = []

    def noted(given: Any, source: str) -> Any:
        read.append(json.dumps(given))
        return read_application(given, source)

    in_force._application_in.cache_clear()
    monkeypatch.setattr(in_force, "read_application", noted)
    change(world, image=BAD)
    assert world.condition("Degraded") == ("True", "RolledBack")
    assert len(read) == len(set(read)) > 0


@settings(max_examples=examples(15), deadline=None)
@given(kills=st.lists(st.integers(1, 60), max_size=6), at=st.sampled_from(["Pending", "REBALANCING"]))
def test_an_operator_that_dies_in_between_comes_to_the_same_end(kills: list[int], at: str) -> None:
    assert end_of_a_bad_change(at, tuple(kills)) == end_of_a_bad_change(at, ())


@functools.cache
def end_of_a_bad_change(at: str, kills: tuple[int, ...]) -> Any:
    world = World({"replicas": 2, "rollback": "automatic"}, list(kills))
    world.settle()
    change(world, at, image=BAD)
    return world.end_state()
