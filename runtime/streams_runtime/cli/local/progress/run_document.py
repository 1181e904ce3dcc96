"""The JSON of a local run: what one moment's overview is as an object, and what a change is called."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from streams_runtime.cli.local.progress.overview import InstanceRow, Overview

Document = dict[str, Any]

# Which change gives an event its name when several came together: the one that a reader waits for most.
_INSTANCE_FIELDS = ("state", "pid", "url", "restarts", "error")


def document_of(overview: Overview) -> Document:
    """The overview as one JSON object, without the times that change by themselves."""
    application = overview.application
    return {
        "application": {
            "name": application.name,
            "state": application.state,
            "ready": application.ready,
            "replicas": application.replicas,
            "tasks": application.tasks,
            "restoring": application.restoring,
            "lag": application.lag,
            "setup": application.setup,
            "caught_up": overview.caught_up,
        },
        "topics": [dict(each) for each in overview.topics],
        "instances": [_instance(each) for each in overview.instances],
    }


def change(before: Document | None, after: Document) -> str | None:
    """The event that turns `before` into `after`: `state`, `instance`, `restoration` or `progress`; None: nothing."""
    if before == after:
        return None
    if before is None or _application_state(before) != _application_state(after):
        return "state"
    if _instances(before) != _instances(after):
        return "instance"
    if _restorations(before) != _restorations(after):
        return "restoration"
    return "progress"


def _instance(row: InstanceRow) -> Document:
    failure = row.failure
    return {
        "name": row.name,
        "state": row.state,
        "pid": row.pid,
        "url": row.url,
        "tasks": [{"id": task, "state": state} for task, state in row.tasks.items()],
        "restoring": row.restoring,
        "restoration": [dict(each) for each in row.stores],
        "lag": row.lag,
        "counters": dict(row.counters),
        "restarts": row.restarts,
        "error": {"class": failure.kind, "message": failure.message} if failure else None,
        "log": row.log,
    }


def _application_state(document: Mapping[str, Any]) -> tuple[Any, ...]:
    application = document["application"]
    return application["state"], application["ready"], application["setup"]


def _instances(document: Mapping[str, Any]) -> list[tuple[Any, ...]]:
    return [(*(each[name] for name in _INSTANCE_FIELDS), each["tasks"]) for each in document["instances"]]


def _restorations(document: Mapping[str, Any]) -> list[Any]:
    return [each["restoration"] for each in document["instances"]]
