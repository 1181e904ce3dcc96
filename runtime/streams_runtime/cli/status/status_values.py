"""The status of an application as values: instances, tasks with their stores, restorations, problems."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from streams_runtime.cli.local.progress.overview import lag_of
from streams_runtime.states import TaskState
from streams_runtime.topology.plan import Topology


@dataclass(frozen=True, slots=True)
class RestoringStore:
    """One partition of a store on its way: offsets left, and seconds left where the speed is known."""

    store: str
    partition: int
    left: int
    eta_seconds: float | None = None


@dataclass(frozen=True, slots=True)
class TaskStatus:
    """A task, `subtopology_partition`. `state` is None where only the assignment is known."""

    id: str
    state: str | None = None
    stores: tuple[str, ...] = ()
    standby: bool = False
    lag: int | None = None
    """Of a standby: offsets that its stores are behind."""


@dataclass(frozen=True, slots=True)
class Problem:
    """Something that is wrong: where (an instance, a condition), what, and what to do where the text does not say."""

    where: str
    what: str
    remedy: str = ""


@dataclass(frozen=True, slots=True)
class InstanceStatus:
    """One instance. `restoring` are records left in all; `note` says why less is known than usual.

    `warming`: those left until it takes part in its group; None: it does. `tags`: by which standbys are kept apart.
    """

    name: str
    state: str
    ready: bool
    tasks: tuple[TaskStatus, ...] = ()
    restoring: int = 0
    restorations: tuple[RestoringStore, ...] = ()
    lag: int | None = None
    url: str | None = None
    restarts: int = 0
    note: str = ""
    warming: int | None = None
    tags: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ApplicationStatus:
    """One application. `setup` is what became of its internal topics; `lag` None: not known."""

    name: str
    state: str
    replicas: int
    instances: tuple[InstanceStatus, ...]
    tasks: int | None = None
    setup: str = ""
    lag: int | None = None
    problems: tuple[Problem, ...] = ()

    @property
    def ready(self) -> int:
        """How many instances are ready."""
        return sum(each.ready for each in self.instances)

    @property
    def restoring(self) -> int:
        """Records left to restore, in all."""
        return sum(each.restoring for each in self.instances)

    def document(self) -> dict[str, Any]:
        """All of it as a JSON object."""
        return {**asdict(self), "ready": self.ready, "restoring": self.restoring}


@dataclass(frozen=True, slots=True)
class Stores:
    """Which stores a task has, by its sub-topology; empty where the topology is not known."""

    by_subtopology: Mapping[str, tuple[str, ...]]

    @staticmethod
    def of_topology(topology: Topology) -> Stores:
        """Those of `topology`; global stores belong to no task."""
        return Stores(
            {
                str(each.id): tuple(store.name for store in each.stores if not store.global_)
                for each in topology.subtopologies
            }
        )

    def of(self, task: str) -> tuple[str, ...]:
        """The stores of the task `subtopology_partition`."""
        return self.by_subtopology.get(task.partition("_")[0], ())


NO_STORES = Stores({})


def of_description(
    instance: InstanceStatus, described: Mapping[str, Any], stores: Stores = NO_STORES
) -> InstanceStatus:
    """`instance` with what it says on `/state`, or with the part of it that `/state/figures` has."""
    active = [
        TaskStatus(str(row["id"]), str(row["state"]), tuple(row.get("stores") or stores.of(str(row["id"]))))
        for row in described.get("tasks", ())
    ]
    standbys = [
        TaskStatus(str(row["id"]), str(row["state"]), tuple(each["store"] for each in row["stores"]), True, row["lag"])
        for row in described.get("standbys", ())
        if "stores" in row  # /state/figures says of them what it is needed for
    ]
    ongoing = [row for row in described.get("restoration", ()) if row["ended_at"] is None]
    warm_up = described.get("warm_up")
    warming = None if warm_up is None else int(warm_up["remaining"])
    lag = lag_of(described)
    return replace(
        instance,
        tasks=(*active, *standbys),
        restoring=sum(max(row["end"] - row["position"], 0) for row in ongoing) + (warming or 0),
        warming=warming,
        restorations=tuple(_restorations(ongoing)),
        lag=instance.lag if lag is None else lag,
        tags=described.get("tags", {}),
    )


def error_of(row: Mapping[str, Any]) -> str | None:
    """The exception by which an instance ends or has ended, as one line: of `/state`, or of the resource's status."""
    error = row.get("error")
    return f"{error['class']}: {error['message']}" if error else None


def is_settled(task: TaskStatus) -> bool:
    """Whether nothing need be said of the task beyond its name: it runs, or it is all that is known."""
    return task.state in (None, TaskState.RUNNING)


def _restorations(rows: Iterable[Mapping[str, Any]]) -> Iterable[RestoringStore]:
    for row in rows:
        if "store" in row:  # /state/figures has no names
            left = max(row["end"] - row["position"], 0)
            yield RestoringStore(str(row["store"]), int(row["partition"]), left, row.get("eta_seconds"))
