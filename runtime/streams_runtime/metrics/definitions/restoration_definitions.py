"""Metrics of restoration and of standbys."""

from __future__ import annotations

from streams_runtime.metrics.metric_definition import Kind, Metric

_PARTITION = ("store", "partition")


def _updater(name: str, kind: Kind, unit: str, meaning: str, kafka: str, group: str = "state-updater") -> Metric:
    theirs = f"stream-{group}-metrics: {kafka} (KIP-869)"
    return Metric(f"kafka_streams_{name}", kind, unit, meaning, (), theirs)


REMAINING = Metric(
    "kafka_streams_restore_remaining_records",
    "gauge",
    "offsets",
    "Left to restore of a store's partition.",
    _PARTITION,
    "stream-task-metrics: restore-remaining-records-total (KIP-869)",
)
ETA = Metric(
    "kafka_streams_restore_eta_seconds",
    "gauge",
    "s",
    "Until a store's partition is restored, at its speed so far.",
    _PARTITION,
)
STANDBY_LAG = Metric(
    "kafka_streams_standby_records_lag",
    "gauge",
    "offsets",
    "That a standby's store is behind its changelog.",
    _PARTITION,
)
RESTORE_RATE = _updater("restore_rate", "gauge", "records/s", "Restored, over 30 s.", "restore-rate", "task")
UPDATE_RATE = _updater("update_rate", "gauge", "records/s", "Taken by standbys, over 30 s.", "update-rate", "task")
RESTORE_RATIO = _updater(
    "active_restore_ratio",
    "gauge",
    "part of the time",
    "What restoring takes, over 30 s; threads are added up.",
    "active-restore-ratio",
)
UPDATE_RATIO = _updater(
    "standby_update_ratio",
    "gauge",
    "part of the time",
    "What updating standbys takes, over 30 s.",
    "standby-update-ratio",
)
RESTORING = _updater(
    "active_restoring_tasks", "gauge", "tasks", "Active tasks that are being restored.", "active-restoring-tasks"
)
UPDATING = _updater(
    "standby_updating_tasks", "gauge", "tasks", "Standbys that follow their changelogs.", "standby-updating-tasks"
)
PAUSED = _updater(
    "standby_paused_tasks",
    "gauge",
    "tasks",
    "Standbys that wait while active tasks are being restored.",
    "standby-paused-tasks",
)
UPDATE = _updater("update", "counter", "records", "Records that standbys took.", "update-total", "task")
QUARANTINED = Metric(
    "kafka_streams_quarantined_stores", "counter", "stores", "Stores whose damaged files were set aside."
)
_MADE = "kafka_streams_snapshot"
SNAPSHOT_AGE = Metric(
    f"{_MADE}_age_seconds",
    "gauge",
    "s",
    "Since the newest snapshot of a store's partition, of the partition for which that is longest.",
    ("store",),
)
SNAPSHOTS = Metric(f"{_MADE}s_made", "counter", "snapshots", "Snapshots that went to the bucket.")
SNAPSHOT_BYTES = Metric(f"{_MADE}_uploaded_bytes", "counter", "bytes", "Files that went up for snapshots.")
SNAPSHOT_FAILURES = Metric(f"{_MADE}_failures", "counter", "attempts", "Snapshots that failed; each is tried again.")
SNAPSHOT_PAUSE = Metric(
    f"{_MADE}_longest_pause_seconds", "gauge", "s", "The longest that processing may have waited for a checkpoint."
)
FETCHED = Metric(f"{_MADE}s_fetched", "counter", "snapshots", "Snapshots that stores began with.")
FETCHED_BYTES = Metric(f"{_MADE}_downloaded_bytes", "counter", "bytes", "Files that came down for stores.")
PUT_ASIDE = Metric(
    f"{_MADE}s_put_aside", "counter", "snapshots", "Snapshots that no store could begin with: damaged, or too old."
)
RESTORATION = (
    REMAINING,
    ETA,
    STANDBY_LAG,
    RESTORE_RATE,
    UPDATE_RATE,
    RESTORE_RATIO,
    UPDATE_RATIO,
    RESTORING,
    UPDATING,
    PAUSED,
    UPDATE,
    QUARANTINED,
    SNAPSHOT_AGE,
    SNAPSHOTS,
    SNAPSHOT_BYTES,
    SNAPSHOT_FAILURES,
    SNAPSHOT_PAUSE,
    FETCHED,
    FETCHED_BYTES,
    PUT_ASIDE,
)
