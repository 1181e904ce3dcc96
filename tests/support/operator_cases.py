"""Observations to plan from, and what to look for in a plan."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import Any

from operator_world import IMAGE, NAME, START, application_of, ready_topics, resource

from streams_operator.model import Defaults, InstanceAccount, Observed, Plan, PodState, TopicsState
from streams_operator.plan import plan
from streams_operator.plan.objects.document import digest

DEFAULTS = Defaults(IMAGE)
READY = ready_topics()

# What makes a pod that runs one in another state, for operator_world.running.
PENDING: Mapping[str, Any] = {
    "phase": "Pending",
    "state": None,
    "started_at": None,
    "ready": False,
    "restored": False,
}
ERROR: Mapping[str, Any] = {
    "phase": "Failed",
    "exit_code": 70,
    "state": "ERROR",
    "restartable": False,
    "error": ("LockException", "held by 7"),
    "ended_at": START - 5,
    "ready": False,
}
CRASH: Mapping[str, Any] = {
    "phase": "Failed",
    "exit_code": 137,
    "ended_at": START - 1,
    "ready": False,
    "reason": "OOMKilled",
}


def digest_of(spec: Mapping[str, Any] | None = None) -> str:
    """What pods of this spec are made from."""
    return digest(application_of(resource(spec)), "shop", DEFAULTS)


def observed(
    spec: Mapping[str, Any] | None = None,
    pods: Sequence[PodState] = (),
    topics: TopicsState | None = READY,
    status: Mapping[str, Any] | None = None,
    metadata: Mapping[str, Any] | None = None,
    accounts: Mapping[str, InstanceAccount] | None = None,
    **more: Any,
) -> Observed:
    """What the operator sees of the small application."""
    given = resource(spec, **(metadata or {}))
    if status is not None:
        given["status"] = copy.deepcopy(dict(status))
    return Observed(
        given,
        more.pop("application", None) or application_of(given),
        (),
        more.pop("now", START),
        tuple(pods),
        topics=topics,
        accounts=accounts or {},
        defaults=more.pop("defaults", DEFAULTS),
        **more,
    )


def status_of(found: Observed) -> dict[str, Any]:
    """The status after a plan: the new one, or the one that stays."""
    new = plan(found).status
    return dict(new if new is not None else found.resource["status"])


def remembered(*pods: PodState, spec: Mapping[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    """The status that the operator has written when it saw these pods."""
    return status_of(observed(spec, pods, **more))


def made(todo: Plan, kind: str = "Pod") -> list[str]:
    """Names of the objects of a kind that the plan applies."""
    return [each["metadata"]["name"] for each in todo.apply if each["kind"] == kind]


def removed(todo: Plan, kind: str = "Pod") -> list[str]:
    """Names of the objects of a kind that the plan removes."""
    return [each.name for each in todo.remove if each.kind == kind]


def told(todo: Plan) -> list[str]:
    """The reasons of the plan's events."""
    return [each.reason for each in todo.events]


def condition(status: Mapping[str, Any], type: str) -> dict[str, Any]:
    """One condition of a status."""
    found: dict[str, Any] = next(each for each in status["conditions"] if each["type"] == type)
    return found


def instance(status: Mapping[str, Any], ordinal: int) -> dict[str, Any]:
    """One entry of status.instances."""
    found: dict[str, Any] = next(each for each in status["instances"] if each["name"] == f"{NAME}-{ordinal}")
    return found
