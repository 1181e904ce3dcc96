"""One pod as Kubernetes and the runtime describe it, and what the operator reads of that."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime

import orjson

from streams_operator.model import Json, PodState
from streams_operator.names import (
    ANNOTATION_IMAGE,
    ANNOTATION_INPUTS,
    ANNOTATION_LEAVE,
    ANNOTATION_NONCE,
    ANNOTATION_PAUSED,
    ANNOTATION_SHUTDOWN,
    ANNOTATION_SPEC,
    CONDITION_PAUSED,
    CONDITION_RESTARTABLE,
    CONDITION_RESTORED,
    CONDITION_RUNNING,
    CONDITION_SHUTDOWN_REQUESTED,
    CONDITION_SPARK_READY,
    CONTAINER,
    LEAVING,
    PAUSED,
    ordinal,
)

_LEFT = re.compile(r"\b(\d{1,18}) records? left")  # of a pod's own words; an answer holds 64 bits
_WAITING_IS_USUAL = frozenset({"", "ContainerCreating", "PodInitializing"})


def pod_state(pod: Json, application: str) -> PodState:
    """One pod, from its metadata, its conditions and its container."""
    metadata, status = pod["metadata"], pod.get("status") or {}
    conditions = {each["type"]: each for each in status.get("conditions") or ()}
    running = conditions.get(CONDITION_RUNNING, {})
    restored = conditions.get(CONDITION_RESTORED, {})
    restartable = conditions.get(CONDITION_RESTARTABLE, {})
    container = _container(status)
    state = container.get("state") or {}
    ended = state.get("terminated")
    left = _LEFT.search(restored.get("message") or "")
    annotations = metadata.get("annotations") or {}
    final = _termination_message(ended)
    reason, message = _reason(status, state, conditions)
    return PodState(
        name=metadata["name"],
        uid=metadata["uid"],
        ordinal=ordinal(metadata["name"], application),
        phase=status.get("phase") or "Unknown",
        created_at=seconds(metadata.get("creationTimestamp")) or 0.0,
        deleting="deletionTimestamp" in metadata,
        gone_by=seconds(metadata.get("deletionTimestamp")),
        forced=metadata.get("deletionGracePeriodSeconds") == 0,
        node=(pod.get("spec") or {}).get("nodeName") or "",
        digest=annotations.get(ANNOTATION_SPEC, ""),
        nonce=_number(annotations.get(ANNOTATION_NONCE)),
        inputs=_texts(annotations.get(ANNOTATION_INPUTS)),
        ready=_is(conditions.get("Ready", {}), "True"),
        state=running.get("reason") or final.get("state"),
        restored=_is(restored, "True"),
        records_left=int(left[1]) if left else 0,
        spark_ready=not _is(conditions.get(CONDITION_SPARK_READY, {}), "False"),
        restartable=not _is(restartable, "False"),
        shutdown_requested=_is(conditions.get(CONDITION_SHUTDOWN_REQUESTED, {}), "True")
        or final.get("shutdown") == "application",
        shutdown_signaled=bool((annotations.get(ANNOTATION_SHUTDOWN) or "").strip()),
        leave_signaled=annotations.get(ANNOTATION_LEAVE) == LEAVING,
        pause_signaled=(annotations.get(ANNOTATION_PAUSED) or "").strip() == PAUSED,
        paused=_is(conditions.get(CONDITION_PAUSED, {}), "True"),
        error=_error(restartable, final),
        exit_code=ended.get("exitCode") if ended else None,
        ended_at=_ended_at(ended, status, conditions),
        started_at=seconds((state.get("running") or ended or {}).get("startedAt")),
        ip=status.get("podIP"),
        tls=_answers_by_tls(pod),
        image=annotations.get(ANNOTATION_IMAGE, ""),
        reason=reason,
        message=message,
    )


def seconds(text: str | None) -> float | None:
    """A Kubernetes time as seconds since 1970."""
    return None if text is None else datetime.fromisoformat(text).timestamp()


def _answers_by_tls(pod: Json) -> bool:
    """By its own probe: in a change from HTTP to HTTPS pods differ."""
    containers = (pod.get("spec") or {}).get("containers") or ()
    probes = (each.get("readinessProbe") or {} for each in containers if each.get("name") == CONTAINER)
    return any((probe.get("httpGet") or {}).get("scheme") == "HTTPS" for probe in probes)


def _container(status: Json) -> Json:
    for each in status.get("containerStatuses") or ():
        if each.get("name") == CONTAINER:
            found: Json = each
            return found
    return {}


def _termination_message(ended: Json | None) -> dict[str, str]:
    """The last words of the runtime: state, class and message. Another program's are not JSON, and none."""
    return _texts((ended or {}).get("message"))


def _texts(text: str | None) -> dict[str, str]:
    """A JSON object's members as text, without empty ones; none of anything else."""
    try:
        found = orjson.loads(text or "{}")
    except orjson.JSONDecodeError:
        return {}
    return {str(name): str(each) for name, each in found.items() if each} if isinstance(found, dict) else {}


def _error(restartable: Json, final: Mapping[str, str]) -> tuple[str, str] | None:
    if _is(restartable, "False"):
        return restartable.get("reason") or "", restartable.get("message") or ""
    if final.get("class"):
        return final["class"], final.get("message", "")
    return None


def _ended_at(ended: Json | None, status: Json, conditions: Mapping[str, Json]) -> float | None:
    """When it ended. A pod that never had a container, or whose node is lost, ended when Kubernetes said so."""
    if ended and (at := seconds(ended.get("finishedAt"))) is not None:
        return at
    if status.get("phase") in ("Failed", "Succeeded"):
        said = [seconds(each.get("lastTransitionTime")) for each in conditions.values()]
        return max((at for at in said if at is not None), default=None)
    return None


def _reason(status: Json, state: Json, conditions: Mapping[str, Json]) -> tuple[str, str]:
    """Why the pod ended or does not start: (reason, message)."""
    if status.get("reason"):
        return _words(status)
    ended, waiting = state.get("terminated") or {}, state.get("waiting") or {}
    if ended:
        return str(ended.get("reason") or ""), ""  # its message is the runtime's own
    if waiting.get("reason", "") not in _WAITING_IS_USUAL:
        return _words(waiting)
    scheduled = conditions.get("PodScheduled", {})
    return _words(scheduled) if _is(scheduled, "False") else ("", "")


def _words(said: Json) -> tuple[str, str]:
    return str(said.get("reason") or ""), str(said.get("message") or "")


def _is(condition: Json, value: str) -> bool:
    return condition.get("status") == value


def _number(text: str | None) -> int:
    return int(text) if text and re.fullmatch(r"[0-9]{1,18}", text) else 0
