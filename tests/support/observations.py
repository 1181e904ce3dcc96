"""What an operator may see of a resource, whoever wrote it and its status: made from a seed."""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from operator_cases import DEFAULTS
from operator_world import NAME, START
from resource_mutations import any_value

from streams_operator.model import (
    AwaitedImage,
    InitResult,
    InstanceAccount,
    Observed,
    ObservedResource,
    PodState,
    TopicsState,
)
from streams_operator.plan import in_force, plan
from streams_operator.plan.objects.document import digest
from streams_operator.reconcile.readings import without_nones
from streams_runtime.api import read_application
from streams_runtime.states import ClientState

_PHASES = ("Pending", "Running", "Succeeded", "Failed", "Unknown", "")
_STATES = (None, *(state.value for state in ClientState), "?")
_TIMES = (0.0, START - 1e6, START - 1, START, START + 60)
_INPUTS: tuple[Mapping[str, str], ...] = ({}, {"Secret/kafka": "1"}, {"Secret/kafka": "2", "ConfigMap/code": "1"})
_FAILURES = (
    None,
    ("BrokerNotAvailable", "no broker"),
    ("MissingSourceTopics", "orders"),
    ("MissingInternalTopics", "t"),
)


def observation(chance: random.Random, document: Mapping[str, Any]) -> Observed:
    """A resource with this spec, as an API server keeps it, among pods and topics."""
    given = {
        **document,
        "metadata": {"name": NAME, "namespace": "shop", "uid": "u", "generation": 1, **_deleted(chance)},
    }
    if chance.random() < 0.5:
        given["status"] = as_kept(_status(chance))
    reading = read_application(without_nones(given), "the resource")
    made_from = digest(reading.application, "shop", DEFAULTS) if reading.application is not None else "old"
    pods = tuple(_pod(chance, at, made_from) for at in range(chance.choice((0, 1, 2, 5))))
    version = in_force(ObservedResource(given, reading, pods), DEFAULTS)
    return Observed(
        given,
        version.application,
        version.mistakes,
        START,
        pods,
        accounts={pod.name: InstanceAccount(("0_0",), 5, chance.choice((0, 7)), 0.5) for pod in pods[:1]},
        refused=version.refused,
        rolled_back=version.rolled_back,
        rollback_target=version.rollback_target,
        inputs=chance.choice(_INPUTS),
        awaited=chance.choice((None, AwaitedImage("new", 1, False), AwaitedImage("new", 1, True))),
        topics=_topics(chance),
        init=chance.choice((None, InitResult(1, "Created"), InitResult(2**63, "MissingSourceTopics", "x" * 9_999))),
        topics_deleted=chance.random() < 0.2,
        defaults=DEFAULTS,
    )


def later(seen: Observed) -> Observed:
    """The same once the plan's status is written."""
    status = plan(seen).status
    given = copy.deepcopy(dict(seen.resource))
    if status is not None:
        given["status"] = status
    return replace(seen, resource=given)


def as_kept(value: Any) -> Any:
    """A value as an API server gives it back: whole numbers of 64 bits, texts in UTF-8, names that are texts."""
    text = json.dumps(value, skipkeys=True, ensure_ascii=False, default=str).encode(errors="replace")
    return json.loads(text, parse_int=_number, parse_constant=lambda _: None)


def _number(text: str) -> int | float | None:
    if len(text) < 20 and -(2**63) <= int(text) < 2**63:
        return int(text)
    return float(text) if float(text) not in (float("inf"), float("-inf")) else None


def _deleted(chance: random.Random) -> dict[str, Any]:
    return {"deletionTimestamp": "2027-01-15T08:00:00Z"} if chance.random() < 0.2 else {}


def _topics(chance: random.Random) -> TopicsState | None:
    if chance.random() < 0.2:
        return None
    return TopicsState(
        chance.choice(_TIMES),
        chance.random() < 0.5,
        ("t",),
        ("u",),
        chance.choice((None, 0, 4)),
        chance.choice(_FAILURES),
    )


def _pod(chance: random.Random, ordinal: int, made_from: str) -> PodState:
    ended = chance.random() < 0.4
    return PodState(
        name=f"{NAME}-{ordinal}",
        uid=f"uid-{ordinal}",
        ordinal=chance.choice((ordinal, ordinal, None)),
        phase=chance.choice(_PHASES),
        created_at=chance.choice(_TIMES),
        deleting=chance.random() < 0.2,
        digest=chance.choice((made_from, "old", "")),
        nonce=chance.choice((0, 0, 1)),
        ready=chance.random() < 0.5,
        state=chance.choice(_STATES),
        restored=chance.random() < 0.5,
        records_left=chance.choice((0, 10**15)),
        restartable=chance.random() < 0.8,
        shutdown_requested=chance.random() < 0.2,
        shutdown_signaled=chance.random() < 0.2,
        error=chance.choice((None, ("", ""), ("UserCodeException", "x" * 40_000))),
        exit_code=chance.choice((0, 1, 137, None)) if ended else None,
        ended_at=chance.choice((None, *_TIMES)) if ended else None,
        started_at=chance.choice((None, *_TIMES)),
        ip=chance.choice((None, "10.0.0.1")),
        reason=chance.choice(("", "OOMKilled", "ImagePullBackOff")),
        inputs=chance.choice(_INPUTS),
    )


def _status(chance: random.Random) -> Any:
    """A status of which any field may be what nobody wrote, since the resource's owner can write it."""

    def field(*usual: Any) -> Any:
        return any_value(chance) if chance.random() < 0.3 else chance.choice(usual)

    instances = [
        {
            "name": field(f"{NAME}-{at}"),
            "state": field("RUNNING", "ERROR"),
            "spec": field("old"),
            "restartNonce": field(0, 1),
            "restarts": field(0, 3, 10**9),
            "error": field({"class": "E", "message": "m"}),
            "lastCrash": field({"uid": f"uid-{at}", "at": field("2027-01-15T07:59:00Z"), "reason": "OOMKilled"}),
            "backoffUntil": field("2027-01-15T08:01:00Z", "9999-12-31T23:59:59Z", "0001-01-01T00:00:00"),
        }
        for at in range(2)
    ]
    found = {
        "state": field("RUNNING"),
        "deployed": field("old", ""),
        "instances": field(instances),
        "conditions": field(
            [{"type": field("Ready"), "status": "True", "lastTransitionTime": field("2027-01-15T08:00:00Z")}]
        ),
        "internalTopics": field(
            {"setup": field("Created"), "existing": field(["t"]), "init": field({"nonce": field(1)})}
        ),
        "restoration": field({"recordsLeft": field(1)}),
    }
    return found if chance.random() < 0.9 else any_value(chance)
