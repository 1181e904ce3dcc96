"""What each verb of the plugin writes into a resource, and what that comes to; pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from streams_runtime.errors import ConfigException

Resource = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Change:
    """Fields of `spec` and their values (None: nothing is to be done), and a sentence about it.

    `goal`: what `--wait` waits for.
    """

    spec: Mapping[str, Any] | None
    text: str
    goal: Goal

    def patch(self, resource: Resource) -> dict[str, Any]:
        """The merge patch. It is refused where somebody has changed the resource since it was read."""
        return {"metadata": {"resourceVersion": resource["metadata"]["resourceVersion"]}, "spec": self.spec}


class Goal(Protocol):
    """What a change is for."""

    def is_reached(self, resource: Resource) -> bool:
        """Whether the operator has seen the change, and it has come to that."""


@dataclass(frozen=True, slots=True)
class ConditionsGoal:
    """Conditions, by type the status that they come to."""

    conditions: Mapping[str, str]

    def is_reached(self, resource: Resource) -> bool:
        """See Goal."""
        status = resource.get("status") or {}
        if status.get("observedGeneration", 0) < resource["metadata"]["generation"]:
            return False
        # `Paused` is not there where an application never was.
        found = {each["type"]: each["status"] for each in status.get("conditions") or ()}
        return all(found.get(kind, "False") == wanted for kind, wanted in self.conditions.items())


_RUNS = {"Ready": "True", "Progressing": "False"}


def restart(resource: Resource) -> Change:
    """Replace every pod once."""
    nonce = int(_spec(resource).get("restartNonce", 0)) + 1
    text = "every pod is replaced once: those in ERROR at once, running ones one by one"
    return Change({"restartNonce": nonce}, f"{text} (spec.restartNonce: {nonce})", ConditionsGoal(_RUNS))


def suspend(resource: Resource) -> Change:
    """Close all pods."""
    goal = ConditionsGoal({"Suspended": "True"})
    if _spec(resource).get("suspend"):
        return Change(None, "it is suspended already", goal)
    return Change({"suspend": True}, "all pods are closed; volumes and topics stay (spec.suspend: true)", goal)


def pause(resource: Resource) -> Change:
    """Process nothing."""
    goal = ConditionsGoal({"Paused": "True"})
    if _spec(resource).get("paused"):
        return Change(None, "it is paused already", goal)
    text = "pods stay and answer queries, and process nothing (spec.paused: true)"
    return Change({"paused": True}, text, goal)


def resume(resource: Resource) -> Change:
    """Go on after a suspension or a pause."""
    spec = _spec(resource)
    ended = [field for field in ("suspend", "paused") if spec.get(field)]
    goal = ConditionsGoal({**_RUNS, "Suspended": "False", "Paused": "False"})
    if not ended:
        return Change(None, "it is neither suspended nor paused", goal)
    fields = ", ".join(f"spec.{field}: false" for field in ended)
    return Change(dict.fromkeys(ended, False), f"it goes on ({fields})", goal)


def scale(resource: Resource, replicas: int) -> Change:
    """Run so many instances."""
    spec = _spec(resource)
    goal = ConditionsGoal(_RUNS if replicas else {"Progressing": "False"})
    if spec.get("autoscaling"):
        raise ConfigException(
            "spec.autoscaling chooses the number. Change its minReplicas and maxReplicas, or take it out"
        )
    present = int(spec.get("replicas", 1))
    if replicas == present:
        return Change(None, f"spec.replicas is {replicas} already", goal)
    tasks = (resource.get("status") or {}).get("tasks")
    text = f"instances: {present} -> {replicas} (spec.replicas: {replicas})"
    if tasks is not None and replicas > tasks:
        text += f"; it has {tasks} tasks, so that {replicas - tasks} of them stand idle"
    return Change({"replicas": replicas}, text, goal)


@dataclass(frozen=True, slots=True)
class ResetGoal:
    """The reset of that nonce has come to its end, or is refused."""

    nonce: int

    def is_reached(self, resource: Resource) -> bool:
        """See Goal."""
        found = reset_status(resource)
        return found.get("nonce") == self.nonce and found.get("state") in ("Done", "Refused", "DryRun")


def reset_status(resource: Resource) -> Mapping[str, Any]:
    """What the operator says of the last reset."""
    found: Mapping[str, Any] = (resource.get("status") or {}).get("reset") or {}
    return found


def reset(resource: Resource, to: Any, sources: Sequence[str], keeps: bool, dry_run: bool) -> Change:
    """Ask for a reset; `to` as in `spec.reset.to`, `keeps`: internal topics and volumes stay."""
    spec = _spec(resource)
    if not dry_run and not spec.get("suspend"):
        name = resource["metadata"]["name"]
        raise ConfigException(f"a reset needs a suspended application: kubectl streamsapp suspend {name} --wait")
    past: Mapping[str, Any] = spec.get("reset") or {}
    nonce = max(int(past.get("nonce", 0)), int(reset_status(resource).get("nonce") or 0)) + 1
    asked = {
        "nonce": nonce,
        "to": _replacing(past.get("to"), to),
        "sources": list(sources) or None,
        "internalTopics": "Keep" if keeps else "Delete",
        "dryRun": dry_run,
    }
    what = "says what it would do" if dry_run else "carries it out"
    return Change({"reset": asked}, f"the operator {what} (spec.reset.nonce: {nonce})", ResetGoal(nonce))


def _replacing(before: Any, after: Any) -> Any:
    """`after`, with a null for what only `before` has: a merge patch would keep it."""
    if not isinstance(before, Mapping) or not isinstance(after, Mapping):
        return after
    gone = dict.fromkeys(before.keys() - after.keys())
    return {**gone, **{name: _replacing(before.get(name), value) for name, value in after.items()}}


def _spec(resource: Resource) -> Mapping[str, Any]:
    if (resource["metadata"]).get("deletionTimestamp"):
        raise ConfigException(f"{resource['metadata']['name']} is being deleted, and takes no changes")
    spec: Mapping[str, Any] = resource["spec"]
    return spec
