"""Prometheus metrics of an instance, read from its description at each scrape.

Names: `kafka_streams_` and then Kafka Streams' own name of the metric with underscores (`process-total` is
`kafka_streams_process_total`), where it has one; the consumer's `records-lag` likewise. Every series has the
labels `application_id` and `client_id` (the instance; Prometheus keeps the label `instance` for itself).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily, SummaryMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from streams_runtime.query.server.restoration_metrics import COMMON_LABELS, gauge, restoration_metrics
from streams_runtime.states import ClientState, TaskState, ThreadState

_COUNTERS: Final = {  # key in the description's counters: (metric, help); prometheus-client appends _total
    "records_processed": ("process", "Records that were processed (Kafka Streams: process-total)."),
    "records_dropped": (
        "dropped_records",
        "Records that were skipped, duplicates of a dedupe among them (Kafka Streams: dropped-records-total).",
    ),
    "late_records": (
        "late_records",
        "Times that a record was too late for a window or a dedupe (Kafka Streams: in dropped-records-total).",
    ),
    "restored_records": ("restore", "Records restored into stores (Kafka Streams: restore-total)."),
    "batches": ("batches", "Batches that were committed."),
    "deserialization_errors": ("deserialization_errors", "Records that could not be read with their format."),
    "dead_letters": ("dead_letters", "Records that were sent to the dead letter topic."),
}

Description = Mapping[str, Any]


class StreamsCollector(Collector):
    """Turns `describe()` (the document of `/state`) into metric families."""

    def __init__(self, describe: Callable[[], Description]) -> None:
        self._describe = describe

    def describe(self) -> Iterable[Metric]:
        """Nothing: registering must not ask a client that has not started."""
        return ()

    def collect(self) -> Iterable[Metric]:
        """One family after the other, all from one description."""
        description = self._describe()
        common = (str(description["application_id"]), str(description["instance"]))
        yield from _states(description, common)
        yield from restoration_metrics(description, common)
        yield from _lag(description["lag"], common)
        yield from _counters(description["counters"], common)
        yield _peeks(description["peeks"], common)


def create_registry(describe: Callable[[], Description]) -> CollectorRegistry:
    """A registry that holds a StreamsCollector over `describe` and nothing else."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(StreamsCollector(describe))
    return registry


def _states(description: Description, common: Sequence[str]) -> Iterable[Metric]:
    client = gauge("client_state", "1 for the state that the client is in, 0 for the others.", "state")
    for client_state in ClientState:
        client.add_metric([*common, client_state], float(description["state"] == client_state))
    yield client

    threads = Counter(str(thread["state"]) for thread in description["threads"])
    by_state = gauge("threads", "Stream threads by state.", "state")
    for thread_state in ThreadState:
        by_state.add_metric([*common, thread_state], threads[thread_state])
    yield by_state
    alive = gauge("alive_stream_threads", "Threads that are not DEAD (Kafka Streams: alive-stream-threads).")
    alive.add_metric(common, threads.total() - threads[ThreadState.DEAD])
    yield alive

    tasks = Counter(str(task["state"]) for task in description["tasks"])
    by_task_state = gauge("tasks", "Tasks of this instance by state.", "state")
    for task_state in TaskState:
        by_task_state.add_metric([*common, task_state], tasks[task_state])
    yield by_task_state


def _lag(rows: Iterable[Mapping[str, Any]], common: Sequence[str]) -> Iterable[Metric]:
    lag = gauge("records_lag", "Records not processed yet (the consumer's records-lag).", "topic", "partition")
    for row in rows:
        if row["lag"] is not None:  # unknown until the broker has reported the end of the partition
            lag.add_metric([*common, str(row["topic"]), str(row["partition"])], row["lag"])
    yield lag


def _counters(counters: Mapping[str, Any], common: Sequence[str]) -> Iterable[Metric]:
    for key, (name, text) in _COUNTERS.items():
        family = CounterMetricFamily(f"kafka_streams_{name}", text, labels=COMMON_LABELS)
        family.add_metric(common, counters[key])
        yield family


def _peeks(rows: Iterable[Mapping[str, Any]], common: Sequence[str]) -> Metric:
    text = "Records that passed a peek step with a metric, and the sum of its value over them."
    family = SummaryMetricFamily("kafka_streams_peek", text, labels=[*COMMON_LABELS, "step", "metric"])
    for row in rows:
        family.add_metric([*common, str(row["step"]), str(row["metric"])], row["records"], row["sum"])
    return family
