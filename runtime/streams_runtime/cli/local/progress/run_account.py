"""The account of a run: turns snapshots of its instances and of its group into what is shown."""

from __future__ import annotations

from collections.abc import Sequence

from streams_runtime.cli.local.progress.catch_up import CatchUp
from streams_runtime.cli.local.progress.group_lag import GroupProgress
from streams_runtime.cli.local.progress.overview import (
    Overview,
    ReplicaSnapshot,
    application_row,
    instance_row,
    on_the_way,
    setup_of,
    topic_rows,
)
from streams_runtime.cli.local.progress.run_events import RunEvent
from streams_runtime.topology.partition_counts import internal_topic_names
from streams_runtime.topology.plan import Topology


class RunAccount:
    """Holds what a snapshot lacks: when the run began, the longest backlog, what is caught up."""

    def __init__(self, name: str, topology: Topology, first: GroupProgress, started_at: float) -> None:
        """`first` was read before any instance ran; `started_at` in seconds since 1970."""
        self._name = name
        self._internal = frozenset(internal_topic_names(topology))
        self._first = first
        self._started_at = started_at
        self._catch_up = CatchUp.of(topology).advanced(first)
        self._backlog = first.lag()
        self._late: dict[str, int] = {}
        self.caught_up = False
        """Whether the backlog of the start is processed, and the instances are RUNNING that can be."""

    def overview(self, snapshots: Sequence[ReplicaSnapshot], progress: GroupProgress, now: float) -> Overview:
        """What to show; `now` in seconds since 1970."""
        rows = tuple(instance_row(each, now) for each in snapshots)
        failures = [row.failure for row in rows if row.failure]
        setup = setup_of(self._internal, self._first.topics, progress.topics, failures)
        self._backlog = max(self._backlog, progress.lag())
        self._catch_up = self._catch_up.advanced(progress)
        self.caught_up = self.caught_up or (self._catch_up.done and not on_the_way(rows))
        self._late |= {row.name: row.counters["late_records"] for row in rows if row.counters.get("late_records")}
        application = application_row(self._name, rows, progress, setup, now - self._started_at)
        return Overview(application, rows, topic_rows(progress), self._backlog, self.caught_up)

    @property
    def late(self) -> RunEvent | None:
        """How often a record came too late, by the last counters of the instances; None: not once."""
        if not self._late:
            return None
        each = ", ".join(f"{name} {count:,}" for name, count in sorted(self._late.items()))
        text = f"{sum(self._late.values()):,} times a record came too late ({each}); the logs name the steps"
        return RunEvent("late", text, {"late_records": dict(self._late)}, problem=True)
