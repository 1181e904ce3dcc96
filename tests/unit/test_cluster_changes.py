"""What the verbs of `kubectl streamsapp` write, and when what they wait for has come."""

from __future__ import annotations

from typing import Any

import pytest

from streams_runtime.cli.cluster import changes
from streams_runtime.cli.cluster.changes import Change, ConditionsGoal
from streams_runtime.errors import ConfigException


def resource(status: dict[str, Any] | None = None, **spec: Any) -> dict[str, Any]:
    metadata = {"name": "orders", "namespace": "shop", "resourceVersion": "17", "generation": 4}
    return {"metadata": metadata, "spec": spec, **({} if status is None else {"status": status})}


def conditions(generation: int = 4, **states: str) -> dict[str, Any]:
    rows = [{"type": kind, "status": state} for kind, state in states.items()]
    return {"observedGeneration": generation, "conditions": rows}


@pytest.mark.parametrize(
    ("change", "written"),
    [
        (changes.restart(resource()), {"restartNonce": 1}),
        (changes.restart(resource(restartNonce=7)), {"restartNonce": 8}),
        (changes.suspend(resource()), {"suspend": True}),
        (changes.suspend(resource(suspend=True)), None),
        (changes.pause(resource(paused=False)), {"paused": True}),
        (changes.pause(resource(paused=True)), None),
        (changes.resume(resource(paused=True)), {"paused": False}),
        (changes.resume(resource(suspend=True, paused=True)), {"suspend": False, "paused": False}),
        (changes.resume(resource(suspend=False)), None),
        (changes.scale(resource(replicas=2), 5), {"replicas": 5}),
        (changes.scale(resource(), 1), None),
        (changes.scale(resource(replicas=2), 0), {"replicas": 0}),
    ],
)
def test_a_verb_writes_the_fields_that_it_changes_and_none_where_they_are_so(
    change: Change, written: dict[str, Any] | None
) -> None:
    assert change.spec == written


def test_a_patch_holds_the_version_that_it_was_decided_for() -> None:
    assert changes.restart(resource()).patch(resource()) == {
        "metadata": {"resourceVersion": "17"},
        "spec": {"restartNonce": 1},
    }


def test_more_instances_than_tasks_are_said_to_stand_idle() -> None:
    text = changes.scale(resource({"tasks": 4}, replicas=2), 6).text
    assert "it has 4 tasks, so that 2 of them stand idle" in text


def test_a_resource_that_is_being_deleted_takes_no_changes() -> None:
    gone = resource()
    gone["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    with pytest.raises(ConfigException, match="orders is being deleted"):
        changes.restart(gone)


@pytest.mark.parametrize(
    ("status", "reached"),
    [
        (None, False),
        (conditions(3, Ready="True", Progressing="False"), False),
        (conditions(4, Ready="True", Progressing="True"), False),
        (conditions(4, Ready="False", Progressing="False"), False),
        (conditions(4, Progressing="False"), False),
        (conditions(4, Ready="True", Progressing="False"), True),
    ],
)
def test_a_restart_is_over_when_the_operator_has_seen_it_and_all_is_ready(
    status: dict[str, Any] | None, reached: bool
) -> None:
    assert changes.restart(resource()).goal.is_reached(resource(status)) is reached


def test_a_condition_that_is_not_there_counts_as_false() -> None:
    assert ConditionsGoal({"Paused": "False"}).is_reached(resource(conditions()))
    assert not ConditionsGoal({"Paused": "True"}).is_reached(resource(conditions()))


def test_no_replicas_are_reached_without_being_ready() -> None:
    over = resource(conditions(4, Ready="False", Progressing="False"))
    assert changes.scale(resource(replicas=2), 0).goal.is_reached(over)


def test_an_application_that_scales_itself_is_not_scaled_by_hand() -> None:
    with pytest.raises(ConfigException, match=r"spec\.autoscaling chooses the number"):
        changes.scale(resource(autoscaling={"maxReplicas": 4}), 3)


def test_a_reset_has_a_nonce_that_no_reset_had_and_nothing_of_the_one_before() -> None:
    before = {"nonce": 3, "to": {"offsets": {"users": {"0": 1}, "orders": {"0": 5, "1": 6}}}, "sources": ["users"]}
    past = {"reset": {"nonce": 7, "state": "Done"}}
    target = {"offsets": {"orders": {"1": 9}}}
    change = changes.reset(resource(past, suspend=True, reset=before), target, (), keeps=True, dry_run=False)
    assert change.spec == {
        "reset": {
            "nonce": 8,
            "to": {"offsets": {"users": None, "orders": {"0": None, "1": 9}}},
            "sources": None,
            "internalTopics": "Keep",
            "dryRun": False,
        }
    }
    assert changes.reset(resource(suspend=True), "earliest", ["a"], keeps=False, dry_run=False).spec == {
        "reset": {"nonce": 1, "to": "earliest", "sources": ["a"], "internalTopics": "Delete", "dryRun": False}
    }


def test_only_a_dry_run_is_asked_of_an_application_that_runs() -> None:
    with pytest.raises(ConfigException, match=r"kubectl streamsapp suspend orders --wait"):
        changes.reset(resource(), "latest", (), keeps=False, dry_run=False)
    assert changes.reset(resource(), "latest", (), keeps=False, dry_run=True).spec is not None


@pytest.mark.parametrize(
    ("status", "reached"),
    [
        ({}, False),
        ({"reset": {"nonce": 1, "state": "Running"}}, False),
        ({"reset": {"nonce": 0, "state": "Done"}}, False),
        ({"reset": {"nonce": 1, "state": "Done"}}, True),
        ({"reset": {"nonce": 1, "state": "Refused"}}, True),
        ({"reset": {"nonce": 1, "state": "DryRun"}}, True),
    ],
)
def test_a_reset_is_over_when_the_status_says_so_of_its_nonce(status: dict[str, Any], reached: bool) -> None:
    change = changes.reset(resource(suspend=True), "latest", (), keeps=False, dry_run=False)
    assert change.goal.is_reached(resource(status)) is reached
