"""The resource's status as it was last written: the operator's only memory.

It is read through the models that it is written through. Whoever owns the resource may have written there too: a field
that is missing or of another type is a field that was never written.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from streams_operator.model import InitResult, Json
from streams_operator.plan.status.times import seconds_of
from streams_runtime.api.status.condition_status import ConditionStatus
from streams_runtime.api.status.instance_status import InstanceStatus
from streams_runtime.api.status.resource_status import UNSEEN, ApplicationStatus


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
    """The previous status: as it was read, and the document as it stands."""

    document: Json
    status: ApplicationStatus = field(default_factory=ApplicationStatus)
    instances: Mapping[str, PastInstance] = field(default_factory=dict)
    conditions: Mapping[str, ConditionStatus] = field(default_factory=dict)

    @classmethod
    def of(cls, resource: Json) -> Past:
        """The status of a resource; an empty one when it has none yet. Raises nothing."""
        document = resource.get("status")
        if isinstance(document, Mapping) and document.get("observedGeneration") == UNSEEN:
            document = None
        status = ApplicationStatus.read(document)
        return cls(
            document=document if isinstance(document, Mapping) else {},
            status=status,
            instances={each.name: _instance(each) for each in status.instances},
            conditions={each.type: each for each in status.conditions},
        )

    @property
    def state(self) -> str:
        """The application's state; empty when none was written yet."""
        return self.status.state

    @property
    def deployed(self) -> str:
        """The digest that pods were last made from; empty when it was never written."""
        return self.status.deployed or ""

    @property
    def stable(self) -> str:
        """The digest of the last version of which every instance served; empty when there was none yet."""
        return self.status.stable or ""

    @property
    def joined(self) -> str:
        """The digest of the last version of which a pod has come further than CREATED; empty when there was none."""
        return self.status.joined or ""

    @property
    def rolled_back(self) -> RolledBack | None:
        """The version that was given up; None: none was."""
        found = self.status.rolled_back
        if found is None or not found.version or not found.to:
            return None
        at = seconds_of(found.at) or 0.0
        return RolledBack(found.version, found.to, found.generation, found.restart_nonce, at, found.message)

    @property
    def init(self) -> InitResult | None:
        """The last explicit init() that was carried out."""
        found = self.status.internal_topics.init
        return None if found is None or found.nonce is None else InitResult(found.nonce, found.result, found.message)

    @property
    def init_nonce(self) -> int | None:
        """Its nonce."""
        return self.init.nonce if self.init is not None else None

    def lag_of(self, name: str) -> int | None:
        """The lag that an instance's entry shows."""
        found = self.instances.get(name)
        return found.lag if found is not None else None

    def condition(self, type: str) -> tuple[str, str, str]:
        """(status, reason, message) of a condition; empty texts when it was never written."""
        found = self.conditions.get(type)
        return (found.status, found.reason, found.message) if found is not None else ("", "", "")


def _instance(entry: InstanceStatus) -> PastInstance:
    crash, since = entry.last_crash, seconds_of(entry.progressed_at)
    return PastInstance(
        name=entry.name,
        state=entry.state,
        digest=entry.spec,
        nonce=entry.restart_nonce,
        error=(entry.error.exception, entry.error.message) if entry.error is not None else None,
        account=Account(
            restarts=entry.restarts,
            last=Crash(crash.uid, seconds_of(crash.at) or 0.0, crash.reason) if crash is not None else None,
            until=seconds_of(entry.backoff_until),
        ),
        shutdown_requested=entry.shutdown_requested is True,
        records_left=entry.records_left,
        wait=Wait(since, entry.least_records_left) if since is not None else None,
        lag=entry.lag,
    )
