"""What Prometheus reads: rounds, the queue, applications by state, pods by state, explicit inits, the leader."""

from __future__ import annotations

import sys
from collections import Counter as Count
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from streams_operator.model import Json, Key, PodState

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

    def show_rollouts(self, waiting: Callable[[], int], stopped: Callable[[], bool]) -> None:
        """Show how far a new default image has come."""
        left = Gauge(
            "streams_operator_image_waiting_applications",
            "Applications that have not had their turn for the default image.",
            registry=self.registry,
        )
        left.set_function(waiting)
        stands = Gauge(
            "streams_operator_image_rollout_stopped",
            "1 while no further application gets the default image, as one that has it is Degraded.",
            registry=self.registry,
        )
        stands.set_function(lambda: float(stopped()))

    def round(self, key: Key, result: str, seconds: float) -> None:
        """A round has ended."""
        del key
        self._rounds.labels(result).inc()
        self._seconds.observe(seconds)

    def init(self, result: str) -> None:
        """An explicit init() has come to its end."""
        self._inits.labels(result).inc()

    def application(self, key: Key, status: Json | None, pods: Sequence[PodState], lag: int | None) -> None:
        """An application as the last round found it; `lag` is exact, unlike the one in its status."""
        states = Count(pod.state or "UNKNOWN" for pod in pods)
        self._applications.shown[key] = _Shown.of(status or {}, states, lag)

    def forget(self, key: Key) -> None:
        """The resource has gone."""
        self._applications.shown.pop(key, None)

    def clear(self) -> None:
        """Say nothing about applications, when another replica does."""
        self._applications.shown.clear()


@dataclass(frozen=True, slots=True)
class _Shown:
    """What is shown of one application, and no more: there may be thousands."""

    state: str
    pods: Mapping[str, int]
    lag: int | None
    records_left: int | None
    conditions: tuple[tuple[str, str], ...]  # those that are True: type, reason

    @classmethod
    def of(cls, status: Json, pods: Mapping[str, int], lag: int | None) -> _Shown:
        left = (status.get("restoration") or {}).get("recordsLeft")
        true = [each for each in status.get("conditions") or () if each["status"] == "True"]
        return cls(
            state=sys.intern(str(status.get("state") or "")),
            pods=pods,
            lag=lag,
            records_left=left if isinstance(left, int) else None,
            conditions=tuple((sys.intern(each["type"]), sys.intern(each["reason"])) for each in true),
        )


class _Applications(Collector):
    """Made anew at each scrape, so that nothing of an application that has gone stays behind."""

    def __init__(self) -> None:
        self.shown: dict[Key, _Shown] = {}

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
        for key, shown in list(self.shown.items()):
            for name, reason in shown.conditions:
                condition.add_metric([*key, name, reason], 1)
            if shown.state:
                state.add_metric([*key, shown.state], 1)
            for pod_state, number in shown.pods.items():
                pods.add_metric([*key, pod_state], number)
            if shown.lag is not None:
                lag.add_metric(key, shown.lag)
            if shown.records_left is not None:
                left.add_metric(key, shown.records_left)
        yield from (state, pods, lag, left, condition)
