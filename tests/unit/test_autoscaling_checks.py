"""What `spec.autoscaling` may say, and `spec.replicas` beside it."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from operator_world import resource

from streams_runtime.api import read_application


def mistakes(autoscaling: Any, replicas: Any = 1) -> list[str]:
    given = resource({"autoscaling": autoscaling, "replicas": replicas})
    return [str(each) for each in read_application(given, "here").mistakes]


def test_what_is_not_said_is_as_by_default() -> None:
    application = read_application(resource({"autoscaling": {"maxReplicas": 4}}), "here").application
    assert application is not None
    found = application.spec.autoscaling
    assert found is not None
    assert (found.min_replicas, found.max_replicas) == (1, 4)
    assert (found.target_catch_up, found.stabilization) == (timedelta(minutes=2), timedelta(minutes=5))


@pytest.mark.parametrize(
    ("given", "where", "remedy"),
    [
        ({}, "spec.autoscaling.maxReplicas", "missing"),
        ({"maxReplicas": 0}, "spec.autoscaling.maxReplicas", "found 0"),
        ({"maxReplicas": 4, "minReplicas": 0}, "spec.autoscaling.minReplicas", "found 0"),
        ({"maxReplicas": 4, "minReplicas": 5}, "spec.autoscaling.minReplicas", "give at most 4, or a greater"),
        ({"maxReplicas": 4, "targetCatchUp": "5s"}, "spec.autoscaling.targetCatchUp", "give 10s to 1d"),
        ({"maxReplicas": 4, "targetCatchUp": 120}, "spec.autoscaling.targetCatchUp", "write numbers with their units"),
        ({"maxReplicas": 4, "stabilization": "2d"}, "spec.autoscaling.stabilization", "give 10s to 1d"),
        ({"maxReplicas": 4, "stabilisation": "5m"}, "spec.autoscaling.stabilisation", "did you mean 'stabilization'"),
        ({"maxReplicas": 4, "maxreplicas": 5}, "spec.autoscaling.maxreplicas", "did you mean 'maxReplicas'"),
    ],
)
def test_a_mistake_is_refused_at_its_field(given: Any, where: str, remedy: str) -> None:
    (mistake,) = mistakes(given)
    assert mistake.startswith(f"{where}: ")
    assert remedy in mistake


@pytest.mark.parametrize(("replicas", "remedy"), [(0, "suspend: true"), (5, "leave it out"), (2, "leave it out")])
def test_a_start_outside_of_the_range_is_refused(replicas: int, remedy: str) -> None:
    (mistake,) = mistakes({"minReplicas": 3, "maxReplicas": 4}, replicas)
    assert mistake.startswith(f"spec.replicas: found {replicas}, and spec.autoscaling goes from 3 to 4")
    assert remedy in mistake


@pytest.mark.parametrize("replicas", [1, 3, 4])
def test_a_start_in_the_range_or_none_is_right(replicas: int) -> None:
    assert mistakes({"minReplicas": 3, "maxReplicas": 4}, replicas) == []


def test_null_is_no_autoscaling() -> None:
    assert mistakes(None, 7) == []
