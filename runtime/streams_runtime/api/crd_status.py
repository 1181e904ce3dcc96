"""The schema of the resource's status, which the operator writes and no model reads."""

from __future__ import annotations

from typing import Any

Schema = dict[str, Any]


def _text(description: str) -> Schema:
    return {"type": "string", "description": description}


def _number(description: str) -> Schema:
    return {"type": "integer", "format": "int64", "description": description}


def _flag(description: str) -> Schema:
    return {"type": "boolean", "description": description}


def _texts(description: str) -> Schema:
    return {
        "type": "array",
        "items": {"type": "string"},
        "x-kubernetes-list-type": "atomic",
        "description": description,
    }


def _object(description: str, **fields: Schema) -> Schema:
    # Open: an operator that is newer than the definition loses nothing of what it writes.
    return {
        "type": "object",
        "description": description,
        "properties": fields,
        "x-kubernetes-preserve-unknown-fields": True,
    }


def _list(description: str, key: str, item: Schema) -> Schema:
    return {
        "type": "array",
        "description": description,
        "items": item | {"required": [key]},
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": [key],
    }


_CONDITION: Schema = {
    "type": "object",
    "required": ["type", "status", "lastTransitionTime", "reason", "message"],
    "properties": {
        "type": _text("Ready, InternalTopicsReady, Progressing, Degraded or Suspended."),
        "status": {"type": "string", "enum": ["True", "False", "Unknown"], "description": "Whether it holds."},
        "reason": _text("One word for why."),
        "message": _text("The same for people, with what to do next."),
        "lastTransitionTime": {"type": "string", "format": "date-time", "description": "When status last changed."},
        "observedGeneration": _number("The metadata.generation that it was found for."),
    },
}

_INSTANCE = _object(
    "One instance.",
    name=_text("Its pod."),
    spec=_text("Digest of what its pod was made of."),
    restartNonce=_number("spec.restartNonce when its pod was made."),
    state=_text("Its client's state."),
    ready=_flag("Whether its pod is ready and answers."),
    tasks=_texts("Its tasks, subtopology_partition."),
    lag=_number("Records that its tasks have not processed yet."),
    recordsLeft=_number("Records that it has to restore."),
    error=_object(
        "Why it is in PENDING_ERROR or ERROR.",
        **{"class": _text("Class of the exception."), "message": _text("Its text.")},
    ),
    shutdownRequested=_flag("Whether it asks all other instances to end too (SHUTDOWN_APPLICATION)."),
    reason=_text("Why its pod does not start, in Kubernetes' words."),
    progressedAt=_text("On its way to RUNNING and restored: when it last got nearer."),
    leastRecordsLeft=_number("On that way: the fewest records that were left to restore."),
    restarts=_number("Crashes in a row."),
    lastCrash=_object(
        "The last of them.",
        uid=_text("Of the pod."),
        at=_text("When the pod ended."),
        reason=_text("In Kubernetes' words."),
    ),
    backoffUntil=_text("Not made again before."),
)

STATUS: Schema = _object(
    "What the operator sees. Written by the operator only.",
    observedGeneration=_number("The metadata.generation that the rest was found for."),
    state=_text(
        "The weakest of the instances' states (CREATED, REBALANCING, RUNNING, PENDING_SHUTDOWN, PENDING_ERROR,"
        " ERROR), or WAITING (no pods yet), SUSPENDED, INVALID, DELETING."
    ),
    replicas=_number("Pods that are there."),
    readyReplicas=_number("Pods that are ready: RUNNING, and answering."),
    ready=_text("readyReplicas of spec.replicas."),
    selector=_text("Label selector of the pods, for the scale subresource."),
    tasks=_number("Tasks of the application."),
    lag=_number("Records that are not processed yet."),
    restoration=_object(
        "Stores being restored.",
        recordsLeft=_number("Records left."),
        etaSeconds=_number("Seconds left at the present rate."),
    ),
    internalTopics=_object(
        "The internal topics, against what the application needs.",
        setup=_text("Ready, or why they are not."),
        existing=_texts("Those that exist."),
        missing=_texts("Those that do not."),
        init=_object(
            "The last explicit init().",
            nonce=_number("Its nonce."),
            result=_text("Created, AlreadySetUp, or why nothing was done."),
            message=_text("What it came to."),
        ),
    ),
    deployed=_text(
        "Digest of the version that pods are made from. The ConfigMap NAME-DIGEST holds it; a change of topology is"
        " compared with it."
    ),
    stable=_text("Digest of the last version of which every instance was RUNNING, restored and ready."),
    joined=_text("Digest of the last version of which a pod has joined the group: it may have written."),
    rolledBack=_object(
        "The version that spec.rollback has given up.",
        version=_text("Its digest. As long as the spec makes this version, the other one is in force."),
        to=_text("Digest of the version that pods went back to."),
        generation=_number("metadata.generation at that time."),
        restartNonce=_number("spec.restartNonce at that time; a greater one tries the version again."),
        at=_text("When."),
        message=_text("What held it up."),
    ),
    instances=_list("The instances, one a pod.", "name", _INSTANCE),
    conditions=_list("Standard conditions.", "type", _CONDITION),
)
"""Values are nullable nowhere: what is not known is left out."""
