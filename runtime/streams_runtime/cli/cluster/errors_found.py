"""All that is wrong with an application of a cluster, the worst first: what its resource and its events say."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from streams_runtime.cli.status.status_values import ApplicationStatus, Problem

_LATEST = 10


def errors_of(status: ApplicationStatus, warnings: Iterable[Mapping[str, Any]]) -> list[Problem]:
    """The problems of the status, and behind them the ten latest warnings among the events."""
    latest = sorted(warnings, key=_time, reverse=True)[:_LATEST]
    return [*status.problems, *(_of_event(event) for event in latest)]


def _of_event(event: Mapping[str, Any]) -> Problem:
    count = event.get("count") or (event.get("series") or {}).get("count") or 1
    often = f", {count} times" if count > 1 else ""
    return Problem(
        f"{event.get('reason')} ({_time(event)}{often})", str(event.get("message") or event.get("note") or "")
    )


def _time(event: Mapping[str, Any]) -> str:
    """RFC 3339, which sorts as text; core events and those of events.k8s.io have it under several names."""
    series = event.get("series") or {}
    found = (series.get("lastObservedTime"), event.get("lastTimestamp"), event.get("eventTime"))
    return str(next((each for each in found if each), event["metadata"].get("creationTimestamp", "")))
