"""What Prometheus is told: rounds, the queue, applications by state, pods by state, explicit inits, the leader."""

from __future__ import annotations

from collections import Counter as Count
from collections.abc import Callable, Iterator, Sequence

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from streams_operator.model import Json, PodSeen
from streams_operator.wake import Key

_BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)


class Metrics:
    """All metrics of one operator process, in a registry of its own."""

    def __init__(self, queue_length: Callable[[], int], leads: Callable[[], bool]) -> None:
        self.registry = CollectorRegistry()
        self._rounds = Counter(
            "streams_operator_reconciles",
            "Rounds by result: done, again (a conflict, to be looked at anew), failed.",
            ["result"],
            registry=self.registry,
        )
        for result in ("done", "again", "failed"):
            self._rounds.labels(result)
        self._seconds = Histogram(
            "streams_operator_reconcile_duration_seconds",
            "How long rounds take.",
            buckets=_BUCKETS,
            registry=self.registry,
        )
        self._inits = Counter(
            "streams_operator_topic_inits",
            "Explicit inits of internal topics by result.",
            ["result"],
            registry=self.registry,
        )
        queue = Gauge("streams_operator_queue_length", "Resources that are due and wait.", registry=self.registry)
        queue.set_function(queue_length)
        leader = Gauge("streams_operator_leader", "1 on the replica that acts, 0 elsewhere.", registry=self.registry)
        leader.set_function(lambda: float(leads()))
        self._applications = _Applications()
        self.registry.register(self._applications)

    def round(self, key: Key, result: str, seconds: float) -> None:
        """A round has ended."""
        del key
        self._rounds.labels(result).inc()
        self._seconds.observe(seconds)

    def init(self, result: str) -> None:
        """An explicit init() has come to its end."""
        self._inits.labels(result).inc()

    def application(self, key: Key, status: Json | None, pods: Sequence[PodSeen]) -> None:
        """An application as it was last looked at."""
        self._applications.seen[key] = (status or {}, Count(pod.state or "UNKNOWN" for pod in pods))

    def forget(self, key: Key) -> None:
        """The resource has gone."""
        self._applications.seen.pop(key, None)

    def clear(self) -> None:
        """Say nothing about applications, when another replica does."""
        self._applications.seen.clear()


class _Applications(Collector):
    """Made anew at each scrape, so that nothing of an application that has gone stays behind."""

    def __init__(self) -> None:
        self.seen: dict[Key, tuple[Json, Count[str]]] = {}

    def collect(self) -> Iterator[Metric]:
        """The metrics of all applications."""
        names = ["namespace", "application"]
        state = GaugeMetricFamily(
            "streams_operator_application_state", "1 for the state that it is in.", labels=[*names, "state"]
        )
        pods = GaugeMetricFamily(
            "streams_operator_application_pods", "Pods by the state that they report.", labels=[*names, "state"]
        )
        lag = GaugeMetricFamily(
            "streams_operator_application_lag_records", "Records that are not processed yet.", labels=names
        )
        left = GaugeMetricFamily(
            "streams_operator_application_restoration_records_left", "Changelog records to restore.", labels=names
        )
        condition = GaugeMetricFamily(
            "streams_operator_application_condition",
            "1 for each condition that is True, with its reason.",
            labels=[*names, "condition", "reason"],
        )
        for key, (status, by_state) in list(self.seen.items()):
            for each in status.get("conditions") or ():
                if each["status"] == "True":
                    condition.add_metric([*key, each["type"], each["reason"]], 1)
            if status.get("state"):
                state.add_metric([*key, str(status["state"])], 1)
            for pod_state, number in by_state.items():
                pods.add_metric([*key, pod_state], number)
            if isinstance(status.get("lag"), int):
                lag.add_metric(key, status["lag"])
            restoration = status.get("restoration") or {}
            if isinstance(restoration.get("recordsLeft"), int):
                left.add_metric(key, restoration["recordsLeft"])
        yield from (state, pods, lag, left, condition)
