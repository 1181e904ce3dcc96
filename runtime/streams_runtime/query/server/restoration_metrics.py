"""Metrics of restoration and of standbys, by Kafka Streams' names where there is one (KIP-869)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.metrics_core import Metric

from streams_runtime.states import TaskState

COMMON_LABELS: Final = ("application_id", "client_id")
"""The labels that every series has."""
_STORE: Final = ("store", "partition")


def restoration_metrics(description: Mapping[str, Any], common: Sequence[str]) -> Iterable[Metric]:
    """Families from the document of `/state`; `common` are the values of the labels that every series has."""
    yield from _by_store(description, common)
    rates, counters = description["rates"], description["counters"]
    standbys = len(description["standbys"])
    restoring = sum(task["state"] == TaskState.RESTORING for task in description["tasks"])
    waiting = bool(description["restoration_in_all"]["stores"])
    for name, text, value in (
        ("restore_rate", "Records restored a second, over 30 s (Kafka Streams: restore-rate).", rates["restore"]),
        (
            "update_rate",
            "Records a second that standbys took, over 30 s (Kafka Streams: update-rate).",
            rates["update"],
        ),
        (
            "active_restore_ratio",
            "Part of the time, over 30 s, that went into restoring; threads are added up (active-restore-ratio).",
            rates["restore_ratio"],
        ),
        (
            "standby_update_ratio",
            "Part of the time, over 30 s, that went into updating standbys (Kafka Streams: standby-update-ratio).",
            rates["update_ratio"],
        ),
        ("active_restoring_tasks", "Active tasks that are being restored (active-restoring-tasks).", restoring),
        (
            "standby_updating_tasks",
            "Standby tasks that follow their changelogs (standby-updating-tasks).",
            0 if waiting else standbys,
        ),
        (
            "standby_paused_tasks",
            "Standby tasks that wait while active ones are being restored (standby-paused-tasks).",
            standbys if waiting else 0,
        ),
    ):
        family = gauge(name, text)
        family.add_metric(common, value)
        yield family
    for name, text, key in (
        ("update", "Records that standbys took (Kafka Streams: update-total).", "updated_records"),
        ("quarantined_stores", "Stores whose damaged files were set aside.", "quarantined_stores"),
    ):
        counter = CounterMetricFamily(f"kafka_streams_{name}", text, labels=COMMON_LABELS)
        counter.add_metric(common, counters[key])
        yield counter


def _by_store(description: Mapping[str, Any], common: Sequence[str]) -> Iterable[Metric]:
    remaining = gauge(
        "restore_remaining_records",
        "Offsets left to restore (Kafka Streams: restore-remaining-records-total).",
        *_STORE,
    )
    eta = gauge("restore_eta_seconds", "Seconds until a store is restored, at its speed so far.", *_STORE)
    for row in description["restoration"]:
        labels = [*common, str(row["store"]), str(row["partition"])]
        remaining.add_metric(labels, row["remaining"])
        if row["eta_seconds"] is not None:  # nothing has come yet, so there is no speed
            eta.add_metric(labels, row["eta_seconds"])
    yield remaining
    yield eta
    lag = gauge("standby_records_lag", "Offsets that a standby's store is behind its changelog.", *_STORE)
    for standby in description["standbys"]:
        for row in standby["stores"]:
            lag.add_metric([*common, str(row["store"]), str(row["partition"])], row["lag"])
    yield lag


def gauge(name: str, text: str, *labels: str) -> GaugeMetricFamily:
    """An empty family of this project's metrics, with `labels` beside the common ones."""
    return GaugeMetricFamily(f"kafka_streams_{name}", text, labels=[*COMMON_LABELS, *labels])
