"""What each verb of the plugin writes into a resource, and what that comes to; pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from streams_runtime.errors import ConfigException

Resource = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Change:
    """Fields of `spec` and their values (None: nothing is to be done), and a sentence about it.

    `reached`: what `--wait` waits for.
    """

    spec: Mapping[str, Any] | None
    text: str
    reached: Reached

    def patch(self, resource: Resource) -> dict[str, Any]:
        """The merge patch. It is refused where somebody has changed the resource since it was read."""
        return {"metadata": {"resourceVersion": resource["metadata"]["resourceVersion"]}, "spec": self.spec}


@dataclass(frozen=True, slots=True)
class Reached:
    """Conditions, by type the status that they come to."""

    conditions: Mapping[str, str]

    def is_so(self, resource: Resource) -> bool:
        """Whether the operator has seen the change, and the conditions are as they should be."""
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
    return Change({"restartNonce": nonce}, f"{text} (spec.restartNonce: {nonce})", Reached(_RUNS))


def suspend(resource: Resource) -> Change:
    """Close all pods."""
    reached = Reached({"Suspended": "True"})
    if _spec(resource).get("suspend"):
        return Change(None, "it is suspended already", reached)
    return Change({"suspend": True}, "all pods are closed; volumes and topics stay (spec.suspend: true)", reached)


def pause(resource: Resource) -> Change:
    """Process nothing."""
    reached = Reached({"Paused": "True"})
    if _spec(resource).get("paused"):
        return Change(None, "it is paused already", reached)
    text = "pods stay and answer queries, and process nothing (spec.paused: true)"
    return Change({"paused": True}, text, reached)


def resume(resource: Resource) -> Change:
    """Go on after a suspension or a pause."""
    spec = _spec(resource)
    ended = [field for field in ("suspend", "paused") if spec.get(field)]
    reached = Reached({**_RUNS, "Suspended": "False", "Paused": "False"})
    if not ended:
        return Change(None, "it is neither suspended nor paused", reached)
    fields = ", ".join(f"spec.{field}: false" for field in ended)
    return Change(dict.fromkeys(ended, False), f"it goes on ({fields})", reached)


def scale(resource: Resource, replicas: int) -> Change:
    """Run so many instances."""
    spec = _spec(resource)
    reached = Reached(_RUNS if replicas else {"Progressing": "False"})
    present = int(spec.get("replicas", 1))
    if replicas == present:
        return Change(None, f"spec.replicas is {replicas} already", reached)
    tasks = (resource.get("status") or {}).get("tasks")
    text = f"instances: {present} -> {replicas} (spec.replicas: {replicas})"
    if tasks is not None and replicas > tasks:
        text += f"; it has {tasks} tasks, so that {replicas - tasks} of them stand idle"
    return Change({"replicas": replicas}, text, reached)


def _spec(resource: Resource) -> Mapping[str, Any]:
    if (resource["metadata"]).get("deletionTimestamp"):
        raise ConfigException(f"{resource['metadata']['name']} is being deleted, and takes no changes")
    spec: Mapping[str, Any] = resource["spec"]
    return spec
