"""Families of restoration and of standbys."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from streams_runtime.metrics.definitions import restoration_definitions as defined
from streams_runtime.query.metrics.families import Families
from streams_runtime.states import TaskState


def add_restoration(families: Families, description: Mapping[str, Any]) -> None:
    """All of them, from the document of `/state`."""
    rows = [((row["store"], row["partition"]), row) for row in description["restoration"]]
    families.add(defined.REMAINING, [(labels, row["remaining"]) for labels, row in rows])
    going = [(labels, row) for labels, row in rows if row["remaining"]]
    families.add(defined.ETA, [(labels, row["eta_seconds"]) for labels, row in going])  # None: nothing has come yet
    families.add(
        defined.STANDBY_LAG,
        [
            ((row["store"], row["partition"]), row["lag"])
            for standby in description["standbys"]
            for row in standby["stores"]
        ],
    )
    rates, counters = description["rates"], description["counters"]
    standbys = len(description["standbys"])
    restoring = sum(task["state"] == TaskState.RESTORING for task in description["tasks"])
    waiting = bool(description["restoration_in_all"]["stores"])
    families.add_one(defined.RESTORE_RATE, rates["restore"])
    families.add_one(defined.UPDATE_RATE, rates["update"])
    families.add_one(defined.RESTORE_RATIO, rates["restore_ratio"])
    families.add_one(defined.UPDATE_RATIO, rates["update_ratio"])
    families.add_one(defined.RESTORING, restoring)
    families.add_one(defined.UPDATING, 0 if waiting else standbys)
    families.add_one(defined.PAUSED, standbys if waiting else 0)
    families.add_one(defined.UPDATE, counters["updated_records"])
    families.add_one(defined.QUARANTINED, counters["quarantined_stores"])
    _add_snapshots(families, description["snapshots"])


def _add_snapshots(families: Families, snapshots: Mapping[str, Any] | None) -> None:
    """None: the application wants none, and there are no such families."""
    if snapshots is None:
        return
    ages: dict[str, float] = {}
    for row in snapshots["stores"]:
        ages[row["store"]] = max(ages.get(row["store"], 0.0), row["age"])
    families.add(defined.SNAPSHOT_AGE, [((store,), age) for store, age in ages.items()])
    families.add_one(defined.SNAPSHOTS, snapshots["made"])
    families.add_one(defined.SNAPSHOT_BYTES, snapshots["uploaded_bytes"])
    families.add_one(defined.SNAPSHOT_FAILURES, snapshots["failures"])
    families.add_one(defined.SNAPSHOT_PAUSE, snapshots["longest_pause"])
    families.add_one(defined.FETCHED, snapshots["fetched"])
    families.add_one(defined.FETCHED_BYTES, snapshots["downloaded_bytes"])
    families.add_one(defined.PUT_ASIDE, snapshots["put_aside"])
