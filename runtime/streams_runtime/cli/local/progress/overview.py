"""What a local run shows, as values: one row for the application, one for each instance, and their progress."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from streams_runtime.cli.local.progress.group_lag import GroupProgress
from streams_runtime.states import ClientState

CRASHED = "CRASHED"
"""An instance whose process is gone without having closed; the only state here that is not a client's."""

# The weakest first: an application is as well as its weakest instance.
_WEAKEST_FIRST = (
    ClientState.ERROR,
    ClientState.PENDING_ERROR,
    CRASHED,
    ClientState.PENDING_SHUTDOWN,
    ClientState.CREATED,
    ClientState.REBALANCING,
    ClientState.RUNNING,
    ClientState.NOT_RUNNING,
)
_SETUP_FAILURES = {
    "MissingSourceTopicException": "MissingSourceTopics",
    "MissingInternalTopicException": "MissingInternalTopics",
    "MisconfiguredInternalTopicException": "MisconfiguredInternalTopics",
}


@dataclass(frozen=True, slots=True)
class Failure:
    """Why an instance is in ERROR: the exception's class and message."""

    kind: str
    message: str


@dataclass(frozen=True, slots=True)
class ReplicaSnapshot:
    """One instance as the supervisor knows it.

    `state` is None while its process lives: then `described`, its last answer on /state, has it. `over`: it ended for
    good. `log` is the file that its present or last process printed to.
    """

    name: str
    state: str | None = None
    over: bool = False
    pid: int | None = None
    url: str | None = None
    described: Mapping[str, Any] | None = None
    restarts: int = 0
    failure: Failure | None = None
    log: str = ""


@dataclass(frozen=True, slots=True)
class Restoration:
    """How far the restorations of an instance are that go on now: changelog offsets, and offsets a second."""

    done: int
    total: int
    rate: float

    @property
    def left(self) -> int:
        """Changelog offsets still to come."""
        return self.total - self.done

    @property
    def eta(self) -> float | None:
        """Seconds until it is complete at this rate; None while nothing is restored yet."""
        return self.left / self.rate if self.rate > 0 else None


@dataclass(frozen=True, slots=True)
class InstanceRow:
    """One instance. `lag` is None until it has reported one; `stores` are its restorations, as /state has them.

    `spark_ready`: False while it is RUNNING already and Spark is still starting, which may refuse the topology yet.
    """

    name: str
    state: str
    over: bool
    pid: int | None
    url: str | None
    tasks: Mapping[str, str]
    restoration: Restoration | None
    stores: Sequence[Mapping[str, Any]]
    lag: int | None
    counters: Mapping[str, int]
    restarts: int
    failure: Failure | None
    log: str
    spark_ready: bool = True

    @property
    def restoring(self) -> int:
        """Changelog offsets still to be restored."""
        return self.restoration.left if self.restoration else 0


@dataclass(frozen=True, slots=True)
class ApplicationRow:
    """What `kubectl get streamsapps` prints. `lag` None: not known yet; `age` in seconds.

    `late`: how often a record came too late for its window.
    """

    name: str
    state: str
    ready: int
    replicas: int
    tasks: int
    restoring: int
    lag: int | None
    setup: str
    age: float
    late: int = 0


@dataclass(frozen=True, slots=True)
class Overview:
    """All that is shown at one moment; `backlog` is the longest lag so far, which `application.lag` is judged by."""

    application: ApplicationRow
    instances: tuple[InstanceRow, ...]
    topics: tuple[Mapping[str, Any], ...] = ()
    backlog: int = 0
    caught_up: bool = False


def instance_row(snapshot: ReplicaSnapshot, now: float) -> InstanceRow:
    """The row of one instance; `now` in seconds since 1970, as the instance's own times are."""
    alive = snapshot.state is None
    described_now: Mapping[str, Any] = (snapshot.described or {}) if alive else {}
    error = described_now.get("error")
    return InstanceRow(
        name=snapshot.name,
        state=str(described_now.get("state", ClientState.CREATED)) if snapshot.state is None else snapshot.state,
        over=snapshot.over,
        pid=snapshot.pid if alive else None,
        url=snapshot.url if alive else None,
        tasks={each["id"]: each["state"] for each in described_now.get("tasks", ())},
        restoration=restoration_of(described_now.get("restoration", ()), now),
        stores=tuple(described_now.get("restoration", ())),
        lag=lag_of(described_now),
        counters=dict((snapshot.described or {}).get("counters", {})),
        restarts=snapshot.restarts,
        failure=snapshot.failure or (Failure(error["class"], error["message"]) if error else None),
        log=snapshot.log,
        spark_ready=bool(described_now.get("spark_ready", True)),
    )


def lag_of(described: Mapping[str, Any]) -> int | None:
    """Records that an instance has not processed yet, by its `/state`; None until it has reported any."""
    lags = [each["lag"] for each in described.get("lag", ()) if each["lag"] is not None]
    return sum(lags) if lags else None


def restoration_of(stores: Sequence[Mapping[str, Any]], now: float) -> Restoration | None:
    """The restorations that go on, with those that have ended since the first of them began; None when none does."""
    ongoing = [each for each in stores if each["ended_at"] is None]
    if not ongoing:
        return None
    since = min(each["started_at"] for each in ongoing)
    wave = [each for each in stores if each["ended_at"] is None or each["ended_at"] >= since]
    total = sum(each["end"] - each["start"] for each in wave)
    done = sum(each["position"] - each["start"] for each in wave)
    return Restoration(done, total, done / max(now - since, 1e-3))


def weakest(states: Collection[str]) -> str:
    """The state of an application whose instances are in these states."""
    return str(min(states, key=_WEAKEST_FIRST.index, default=ClientState.CREATED))


def setup_of(
    internal: Collection[str],
    before: Collection[str],
    present: Collection[str],
    failures: Collection[Failure],
) -> str:
    """What became of the internal topics; `before` existed when the run began, `present` exist now."""
    for failure in failures:
        if failure.kind in _SETUP_FAILURES:
            return _SETUP_FAILURES[failure.kind]
    if set(internal) <= set(before):
        return "AlreadySetUp"
    return "Created" if set(internal) <= set(present) else "Pending"


def application_row(
    name: str, instances: Sequence[InstanceRow], progress: GroupProgress | None, setup: str, age: float
) -> ApplicationRow:
    """The application's row over those of its instances."""
    return ApplicationRow(
        name=name,
        state=weakest([each.state for each in instances]),
        ready=sum(each.state == ClientState.RUNNING for each in instances),
        replicas=len(instances),
        tasks=sum(len(each.tasks) for each in instances),
        restoring=sum(each.restoring for each in instances),
        lag=progress.lag() if progress else None,
        setup=setup,
        age=age,
        late=sum(each.counters.get("late_records", 0) for each in instances),
    )


def topic_rows(progress: GroupProgress | None) -> tuple[Mapping[str, Any], ...]:
    """Each topic that is read: records that were ever in it, that are processed, and that wait."""
    if progress is None:
        return ()
    rows = []
    for topic in sorted({each.topic for each in progress.ends}):
        mine = [each for each in progress.ends if each.topic == topic]
        rows.append(
            {
                "topic": topic,
                "end": sum(progress.ends[each] for each in mine),
                "committed": sum(progress.position(each) for each in mine),
                "lag": progress.lag(topic),
            }
        )
    return tuple(rows)


def on_the_way(instances: Sequence[InstanceRow]) -> bool:
    """Whether an instance that may still come to RUNNING, with Spark, is not there yet, or none is there at all."""
    coming = (ClientState.CREATED, ClientState.REBALANCING, CRASHED)
    running = [each for each in instances if each.state == ClientState.RUNNING]
    if not all(each.spark_ready for each in running):
        return True
    return not running or any(each.state in coming and not each.over for each in instances)
