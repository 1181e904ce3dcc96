"""Prometheus metrics of an instance, read from its account and its measurements at each scrape.

Names: `kafka_streams_`, the level (thread, task, processor node, topic, store, RocksDB) unless it is the client, and
then Kafka Streams' own name of the metric with underscores, where it has one, in its unit. Every series has the labels
`application_id` and `client_id` (the instance; Prometheus keeps the label `instance` for itself).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from prometheus_client import CollectorRegistry
from prometheus_client.metrics_core import Metric as Family
from prometheus_client.registry import Collector

from streams_runtime.metrics.definitions import client_definitions as defined
from streams_runtime.metrics.measurements import Measurements
from streams_runtime.query.metrics.families import Families
from streams_runtime.query.metrics.processing_families import add_processing
from streams_runtime.query.metrics.restoration_families import add_restoration
from streams_runtime.query.metrics.store_families import add_processes, add_stores
from streams_runtime.query.metrics.thread_families import add_threads
from streams_runtime.states import ClientState, TaskState, ThreadState

Description = Mapping[str, Any]


class StreamsCollector(Collector):
    """Turns `describe()` (the document of `/state`) and `measure()` into metric families."""

    def __init__(self, describe: Callable[[], Description], measure: Callable[[], Measurements]) -> None:
        self._describe = describe
        self._measure = measure

    def describe(self) -> Iterable[Family]:
        """Nothing: registering must not ask a client that has not started."""
        return ()

    def collect(self) -> Iterable[Family]:
        """One family after the other, all from one description."""
        description, measured = self._describe(), self._measure()
        common = (str(description["application_id"]), str(description["instance"]))
        families = Families(common, measured.level)
        _add_client(families, description, measured)
        add_threads(families, description["threads"], measured.threads)
        add_processing(families, measured.recorders)
        add_restoration(families, description)
        add_stores(families, measured)
        add_processes(families, measured)
        return families.made


def create_registry(
    describe: Callable[[], Description], measure: Callable[[], Measurements] = Measurements
) -> CollectorRegistry:
    """A registry that holds a StreamsCollector and nothing else."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(StreamsCollector(describe, measure))
    return registry


def _add_client(families: Families, description: Description, measured: Measurements) -> None:
    states = [((state,), float(description["state"] == state)) for state in ClientState]
    families.add(defined.STATE, states)
    families.add(defined.INFO, [((measured.version, measured.level), 1.0)])
    families.add_one(defined.PAUSED, float(description["paused"]))
    families.add_one(defined.SPARK_READY, float(description["spark_ready"]))
    threads = Counter(str(thread["state"]) for thread in description["threads"])
    families.add(defined.THREADS, [((state,), threads[state]) for state in ThreadState])
    families.add_one(defined.ALIVE, threads.total() - threads[ThreadState.DEAD])
    families.add_one(defined.FAILED, sum(each.failures for each in measured.recorders))
    tasks = Counter(str(task["state"]) for task in description["tasks"])
    families.add(defined.TASKS, [((state,), tasks[state]) for state in TaskState])
    # None: unknown until the broker has reported the end of the partition.
    families.add(defined.LAG, [((row["topic"], row["partition"]), row["lag"]) for row in description["lag"]])
    for name, metric in defined.COUNTERS.items():
        families.add_one(metric, description["counters"][name])
    peeks = [((row["step"], row["metric"]), row["records"], row["sum"]) for row in description["peeks"]]
    families.add_summaries(defined.PEEK, peeks)
