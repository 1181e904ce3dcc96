"""The resource's status as it was last written: the operator's only memory.

What stands there is read with care: a field that is missing or of another type is a field that was never written.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from streams_operator.model import InitResult, Json
from streams_operator.plan.times import seconds_of


@dataclass(frozen=True, slots=True)
class Crash:
    """The last crash of an ordinal that was counted."""

    uid: str
    at: float
    reason: str


@dataclass(frozen=True, slots=True)
class Account:
    """Crashes of an ordinal: how many in a row, the last of them, and until when it stays down (None: not at all)."""

    restarts: int = 0
    last: Crash | None = None
    until: float | None = None


@dataclass(frozen=True, slots=True)
class Wait:
    """An instance on its way to RUNNING and restored. `since`: when it last got nearer. `least`: the fewest records
    that were left to restore on this way; None: not known.
    """

    since: float
    least: int | None = None


@dataclass(frozen=True, slots=True)
class RolledBack:
    """The `version` that was given up, and the one that pods went back to; both digests.

    `generation` and `nonce` are the resource's at that time: a greater restartNonce tries the version again.
    """

    version: str
    to: str
    generation: int
    nonce: int
    at: float
    why: str


@dataclass(frozen=True, slots=True)
class PastInstance:
    """One entry of status.instances. `digest` and `nonce` are what its pod was made from and answers to."""

    name: str
    state: str
    digest: str
    nonce: int
    error: tuple[str, str] | None
    account: Account
    shutdown_requested: bool = False
    records_left: int | None = None
    wait: Wait | None = None
    lag: int | None = None


@dataclass(frozen=True, slots=True)
class Past:
    """The previous status."""

    status: Json
    instances: Mapping[str, PastInstance] = field(default_factory=dict)
    conditions: Mapping[str, Json] = field(default_factory=dict)

    @classmethod
    def of(cls, resource: Json) -> Past:
        """The status of a resource; an empty one when it has none yet."""
        status = _fields(resource.get("status"))
        instances = [_instance(_fields(each)) for each in _entries(status.get("instances"))]
        conditions = [_fields(each) for each in _entries(status.get("conditions"))]
        return cls(
            status=status,
            instances={each.name: each for each in instances},
            conditions={_text(each.get("type")): each for each in conditions},
        )

    @property
    def state(self) -> str:
        """The application's state; empty when none was written yet."""
        return _text(self.status.get("state"))

    @property
    def deployed(self) -> str:
        """The digest that pods were last made from; empty when it was never written."""
        return _text(self.status.get("deployed"))

    @property
    def stable(self) -> str:
        """The digest of the last version of which every instance served; empty when there was none yet."""
        return _text(self.status.get("stable"))

    @property
    def joined(self) -> str:
        """The digest of the last version of which a pod has come further than CREATED; empty when there was none."""
        return _text(self.status.get("joined"))

    @property
    def rolled_back(self) -> RolledBack | None:
        """The version that was given up; None: none was."""
        found = _fields(self.status.get("rolledBack"))
        if not _text(found.get("version")) or not _text(found.get("to")):
            return None
        return RolledBack(
            version=_text(found["version"]),
            to=_text(found["to"]),
            generation=_number(found.get("generation")) or 0,
            nonce=_number(found.get("restartNonce")) or 0,
            at=seconds_of(found.get("at")) or 0.0,
            why=_text(found.get("message")),
        )

    @property
    def topics(self) -> Json:
        """status.internalTopics."""
        return _fields(self.status.get("internalTopics"))

    @property
    def init(self) -> InitResult | None:
        """The last explicit init() that was carried out."""
        found = _fields(self.topics.get("init"))
        nonce = _number(found.get("nonce"))
        return InitResult(nonce, _text(found.get("result")), _text(found.get("message"))) if nonce is not None else None

    @property
    def init_nonce(self) -> int | None:
        """Its nonce."""
        return self.init.nonce if self.init is not None else None

    def lag_of(self, name: str) -> int | None:
        """The lag that an instance's entry shows."""
        found = self.instances.get(name)
        return found.lag if found is not None else None

    def topic_names(self, field: str) -> list[str]:
        """status.internalTopics.existing, or .missing."""
        return [name for name in _entries(self.topics.get(field)) if isinstance(name, str)]

    def condition(self, type: str) -> tuple[str, str, str]:
        """(status, reason, message) of a condition; empty texts when it was never written."""
        found = self.conditions.get(type, {})
        return _text(found.get("status")), _text(found.get("reason")), _text(found.get("message"))


def _instance(entry: Json) -> PastInstance:
    error, crash = _fields(entry.get("error")), _fields(entry.get("lastCrash"))
    return PastInstance(
        name=_text(entry.get("name")),
        state=_text(entry.get("state")),
        digest=_text(entry.get("spec")),
        nonce=_number(entry.get("restartNonce")) or 0,
        error=(_text(error.get("class")), _text(error.get("message"))) if error else None,
        account=Account(
            restarts=_number(entry.get("restarts")) or 0,
            last=Crash(_text(crash.get("uid")), seconds_of(crash.get("at")) or 0.0, _text(crash.get("reason")))
            if crash
            else None,
            until=seconds_of(entry.get("backoffUntil")),
        ),
        shutdown_requested=entry.get("shutdownRequested") is True,
        records_left=_number(entry.get("recordsLeft")),
        wait=Wait(since, _number(entry.get("leastRecordsLeft")))
        if (since := seconds_of(entry.get("progressedAt"))) is not None
        else None,
        lag=_number(entry.get("lag")),
    )


def _fields(value: Any) -> Json:
    return value if isinstance(value, Mapping) else {}


def _entries(value: Any) -> Iterable[Any]:
    return value if isinstance(value, list | tuple) else ()


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _number(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None
