"""spec.autoscaling in the plan: what freezes the number, what status and events say, and what the bounds do."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from operator_cases import CRASH, ERROR, PENDING, digest_of, made, observed, remembered, removed, status_of, told
from operator_world import START, World, ready_topics, running

from streams_operator.application_load import Learned, Load, LoadSample
from streams_operator.model import InstanceAccount, Observed, PodState
from streams_operator.names import ANNOTATION_HOLD
from streams_operator.plan import plan
from streams_operator.plan.scaling.replica_decision import _spare
from streams_operator.plan.scaling.scaling_policy import Policy

SPEC: dict[str, Any] = {"autoscaling": {"maxReplicas": 4}, "replicas": 1}
NOW = digest_of()
OLD = "0123456789"


def load(arrival: float, lag: int, rate: float | None = 1000.0, count: int = 30, **learned: Any) -> Load:
    """So many samples of the same load."""
    samples = tuple(
        LoadSample(15.0 * number, 15.0 * (number + 1), arrival, lag, furthest=lag, peak=min(arrival, 1000.0))
        for number in range(count)
    )
    return Load(now=15.0 * count, heard=15.0 * count, samples=samples, learned=Learned(rate=rate, **learned))


def pods(count: int, **last: Any) -> list[PodState]:
    return [running(ordinal, NOW, **(last if ordinal == count - 1 else {})) for ordinal in range(count)]


def known(count: int, **autoscaling: Any) -> dict[str, Any]:
    """The status of an application with so many instances."""
    status = remembered(*pods(count), spec={**SPEC, "replicas": count})
    return {**status, "autoscaling": {"replicas": count, "reason": "Steady", "message": "", **autoscaling}}


def seen(count: int, given: Load, spec: Mapping[str, Any] = SPEC, **more: Any) -> Observed:
    return observed(spec, more.pop("pods", pods(count)), status=more.pop("status", known(count)), load=given, **more)


def scaling(found: Observed) -> dict[str, Any]:
    said: dict[str, Any] = status_of(found)["autoscaling"]
    return said


def test_a_change_of_autoscaling_replaces_no_pod() -> None:
    assert digest_of(SPEC) == NOW
    assert removed(plan(seen(2, load(1900.0, 0)))) == []


def test_more_load_than_the_instances_process_adds_one_that_is_on_record_before_it_is_made() -> None:
    found = seen(2, load(2500.0, 90_000))
    todo = plan(found)
    assert todo.status is not None
    said = todo.status["autoscaling"]
    assert (said["replicas"], said["reason"], said["instanceRate"]) == (3, "ScaledUp", 1000)
    assert said["lastScaleMessage"] == (
        "from 2 to 3, as it takes 4 instances: 2500 records a second come in, 90000 wait, and one instance processes"
        " 1000 a second"
    )
    assert ("ScaledUp", said["lastScaleMessage"]) in [(each.reason, each.message) for each in todo.events]
    assert made(todo) == []
    assert todo.load is not None
    assert todo.load.window == 0, "the next step rests on new samples"
    assert todo.requeue_after == 1.0
    after = plan(seen(2, load(2500.0, 90_000), status=todo.status))
    assert made(after) == ["orders-2"]
    assert status_of(seen(2, load(2500.0, 90_000), status=todo.status))["autoscaling"]["reason"] == "Moving"


def test_fewer_that_are_enough_take_one_away_which_leaves_the_group() -> None:
    found = seen(3, load(900.0, 0))
    todo = plan(found)
    assert todo.status is not None
    assert (todo.status["autoscaling"]["replicas"], todo.status["autoscaling"]["reason"]) == (2, "ScaledDown")
    assert "ScaledDown" in told(todo)
    after = plan(seen(3, load(900.0, 0), status=todo.status))
    assert removed(after) == ["orders-2"]
    assert [(each.pod, each.text) for each in after.signals] == [("orders-2", "true")]


def test_fewer_have_to_be_enough_all_the_time() -> None:
    quiet = load(900.0, 0)
    busier = replace(quiet.samples[20], arrival=2700.0)
    samples = (*quiet.samples[:20], busier, *quiet.samples[21:])
    assert scaling(seen(3, replace(quiet, samples=samples)))["replicas"] == 3
    assert scaling(seen(3, load(900.0, 0, count=20)))["replicas"] == 3, "five minutes have not passed"
    assert scaling(seen(3, load(900.0, 20_000)))["replicas"] == 3, "a backlog waits"


def test_one_sample_that_asks_for_more_is_not_enough() -> None:
    calm, storm = load(1500.0, 0), load(2500.0, 90_000)
    mixed = replace(calm, samples=(*calm.samples[:-2], *storm.samples[-2:]))
    assert scaling(seen(2, mixed))["replicas"] == 2
    assert scaling(seen(2, replace(calm, samples=(*calm.samples[:-3], *storm.samples[-3:]))))["replicas"] == 3


FREEZES: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "Moving": ({"pods": pods(2, deleting=True, ready=False)}, {}),
    "Restoring": ({"pods": pods(2, state="REBALANCING", ready=False, restored=False, records_left=7)}, {}),
    "InError": ({"pods": pods(2, **ERROR)}, {}),
    "PodsNotReady": ({"pods": pods(2, **CRASH)}, {}),
    "RollingOut": ({"pods": [running(0, OLD), running(1, OLD)]}, {}),
    "Paused": ({"pods": pods(2, paused=True)}, {}),
    "WaitingForTopics": ({"topics": replace(ready_topics(), ready=False, missing=("t",))}, {}),
    "Suspended": ({}, {"suspend": True}),
    "RolledBack": ({"rolled_back": True}, {}),
    "ReconciliationPaused": ({"metadata": {"annotations": {ANNOTATION_HOLD: "true"}}}, {}),
    "StandbysWarmingUp": ({"accounts": {"orders-0": InstanceAccount(standby_lag=20_001)}}, {}),
}


@pytest.mark.parametrize("reason", FREEZES)
def test_the_number_stays_while_something_is_under_way(reason: str) -> None:
    more, spec = FREEZES[reason]
    found = seen(2, load(2500.0, 90_000), {**SPEC, **spec}, **dict(more))
    todo = plan(found)
    assert todo.status is not None
    said = todo.status["autoscaling"]
    assert (said["replicas"], said["reason"]) == (2, reason)
    assert said["message"]
    assert todo.load is not None
    assert todo.load.window == 0
    assert (todo.load.learned.rate is None) is (reason == "RollingOut"), "new versions are measured anew"
    again = plan(replace(found, resource={**found.resource, "status": todo.status}, now=START + 5))
    assert again.status is None or again.status["autoscaling"] == said, "status says it once"


def test_a_pod_that_starts_freezes_the_number() -> None:
    assert scaling(seen(2, load(2500.0, 90_000), pods=pods(2, **PENDING)))["reason"] == "Moving"
    unready = seen(2, load(2500.0, 90_000), pods=pods(2, ready=False))
    assert scaling(unready)["reason"] == "PodsNotReady"
    standby = seen(2, load(2500.0, 90_000), accounts={"orders-0": InstanceAccount(standby_lag=None)})
    assert scaling(standby)["reason"] == "StandbysWarmingUp"
    behind = seen(2, load(2500.0, 90_000, rate=1e6), accounts={"orders-0": InstanceAccount(standby_lag=20_001)})
    assert scaling(behind)["reason"] != "StandbysWarmingUp", "as much is under way in a fast application"


def test_a_load_that_nobody_reports_is_unknown_and_a_new_operator_observes_first() -> None:
    silent = replace(load(2500.0, 90_000), now=30 * 15.0 + 91)
    assert scaling(seen(2, silent))["reason"] == "LagUnknown"
    assert "ScalingFrozen" in told(plan(seen(2, silent)))
    said = scaling(seen(2, Load(), status=known(2, instanceRate=1000)))
    assert (said["replicas"], said["reason"], said["instanceRate"]) == (2, "Observing", 1000)


def test_a_new_operator_knows_the_rate_that_status_has() -> None:
    found = seen(2, load(2500.0, 90_000, rate=None), status=known(2, instanceRate=1000))
    assert scaling(found)["replicas"] == 3
    assert scaling(seen(2, load(2500.0, 90_000, rate=None)))["reason"] == "RateUnknown"


@pytest.mark.parametrize(
    ("spec", "given", "count", "reason"),
    [
        ({"maxReplicas": 2}, load(2500.0, 90_000), 2, "AtMaximum"),
        ({"maxReplicas": 9}, load(4500.0, 90_000), 4, "AtTasks"),
        ({"maxReplicas": 4, "minReplicas": 2}, load(0.0, 0), 2, "AtMinimum"),
        ({"maxReplicas": 4}, load(1500.0, 0), 2, "Steady"),
    ],
)
def test_status_says_why_the_number_stays(spec: dict[str, Any], given: Load, count: int, reason: str) -> None:
    found = seen(count, given, {"autoscaling": spec, "replicas": 1})
    said = scaling(found)
    assert (said["replicas"], said["reason"]) == (count, reason)
    limited = "ScalingLimited" in told(plan(found))
    assert limited is (reason in ("AtMaximum", "AtTasks"))


def test_what_one_task_can_t_do_no_instance_is_added_for() -> None:
    alone = load(1500.0, 90_000)
    alone = replace(alone, samples=tuple(replace(each, one_task_behind=True) for each in alone.samples))
    assert scaling(seen(2, alone))["reason"] == "OneTaskBehind"
    stuck = load(100.0, 90_000)
    stuck = replace(stuck, samples=tuple(replace(each, busy_records=0.0, busy_seconds=30.0) for each in stuck.samples))
    assert scaling(seen(2, stuck))["reason"] == "NoProgress"


def test_a_steady_application_writes_nothing() -> None:
    found = seen(2, load(1500.0, 0))
    before = plan(found).status
    assert before is not None
    for number, arrival in enumerate((1501.0, 1490.0, 1510.0)):
        todo = plan(seen(2, load(arrival, number, rate=1000.0 + number), status=before, now=START + 60))
        assert todo.status is None, todo.status
        assert not todo.events
        assert todo.requeue_after == 15.0


def test_the_start_is_what_replicas_says_and_later_changes_of_it_do_not_count() -> None:
    start = status_of(observed({"replicas": 3, "autoscaling": {"maxReplicas": 4}}))
    assert start["autoscaling"]["replicas"] == 3
    assert "lastScaleTime" not in start["autoscaling"]
    later = seen(2, Load(), {"replicas": 3, "autoscaling": {"maxReplicas": 4}})
    assert scaling(later)["replicas"] == 2
    assert made(plan(later)) == []


def test_whoever_takes_replicas_out_with_the_same_change_loses_no_instance() -> None:
    before = remembered(*pods(3), spec={"replicas": 3})
    todo = plan(observed(SPEC, pods(3), status=before))
    assert removed(todo) == []
    assert todo.status is not None
    assert todo.status["autoscaling"]["replicas"] == 3


@pytest.mark.parametrize(
    ("bounds", "wanted"),
    [({"maxReplicas": 2}, 2), ({"minReplicas": 4, "maxReplicas": 6}, 4), ({"minReplicas": 6, "maxReplicas": 9}, 4)],
)
def test_other_bounds_count_at_once(bounds: dict[str, Any], wanted: int) -> None:
    todo = plan(seen(3, load(2500.0, 0), {"autoscaling": bounds, "replicas": 1}))
    assert todo.status is not None
    said = todo.status["autoscaling"]
    assert said["replicas"] == wanted
    assert said["lastScaleMessage"].startswith(f"from 3 to {wanted}, which minReplicas, maxReplicas")
    assert ("ScaledDown" if wanted < 3 else "ScaledUp") in told(todo)


def test_without_autoscaling_replicas_counts_and_nothing_is_remembered() -> None:
    todo = plan(seen(2, load(2500.0, 90_000), {"replicas": 2}))
    assert todo.load is None
    assert todo.status is not None
    assert "autoscaling" not in todo.status
    assert made(plan(seen(2, Load(), {"replicas": 3}))) == ["orders-2"]


def test_an_invalid_spec_keeps_what_was_chosen() -> None:
    found = seen(3, Load())
    todo = plan(replace(found, application=None, mistakes=()))
    kept = todo.status["autoscaling"] if todo.status is not None else found.resource["status"]["autoscaling"]
    assert kept["replicas"] == 3
    assert removed(todo) == []


def test_a_status_that_somebody_wrote_is_no_reason_to_fail() -> None:
    for strange in ({"replicas": "many"}, {"replicas": -3}, {"replicas": 10**9}, "x", {}):
        status = {**known(2), "autoscaling": strange}
        assert 2 <= scaling(seen(2, Load(), status=status))["replicas"] <= 4


def test_an_application_lives_by_the_number_that_was_chosen() -> None:
    world = World({"replicas": 1, "autoscaling": {"minReplicas": 2, "maxReplicas": 3}})
    world.settle()
    assert sorted(world.pods) == ["orders-0", "orders-1"]
    assert world.status["ready"] == "2/2"
    world.change(autoscaling={"minReplicas": 3, "maxReplicas": 3})
    world.settle()
    assert sorted(world.pods) == ["orders-0", "orders-1", "orders-2"]


def test_an_application_that_was_scaled_rolls_and_goes_back_to_fewer_in_order() -> None:
    world = World({"replicas": 3, "autoscaling": {"maxReplicas": 3}})
    world.settle()
    world.change(processing={"commitInterval": "200ms"})
    world.settle()
    assert {pod.digest for pod in world.pods.values()} == {world.digest}
    world.change(autoscaling={"maxReplicas": 1})
    world.restart_operator()
    world.settle()
    assert sorted(world.pods) == ["orders-0"]
    world.change(autoscaling=None, replicas=2)
    world.settle()
    assert sorted(world.pods) == ["orders-0", "orders-1"]
    assert "autoscaling" not in world.status


@given(st.integers(2, 9), st.integers(1, 40), st.floats(1, 1e6), st.tuples(st.floats(0, 1e7), st.floats(0, 1e7)))
def test_fewer_instances_that_are_enough_for_a_load_are_enough_for_a_smaller_one(
    current: int, tasks: int, rate: float, loads: tuple[float, float]
) -> None:
    """So that of many samples only the greatest has to be looked at."""
    policy = Policy(1, 9, 9, tasks)
    assert _spare(policy, min(loads), current, rate) >= _spare(policy, max(loads), current, rate)
