"""What Prometheus reads of the operator itself: rounds, the queue, requests, work at brokers, inits, the leader."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from streams_operator import operator_catalogue as defined
from streams_operator.application_metrics import Applications
from streams_operator.model import Json, Key, PodState
from streams_runtime.metrics.metric_definition import Metric

_ROUNDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
_REQUESTS = (0.005, 0.025, 0.1, 0.5, 2.5, 15.0)
_BROKERS = (0.05, 0.25, 1.0, 5.0, 20.0, 90.0)
_KINDS = ("check", "setup", "init", "delete")


class Metrics:
    """All metrics of one operator process, in a registry of its own."""

    def __init__(
        self,
        queue_length: Callable[[], int],
        leads: Callable[[], bool],
        queue_oldest: Callable[[], float] = lambda: 0.0,
    ) -> None:
        """`queue_oldest`: for how many seconds the resource that has waited longest has been due."""
        self.registry = CollectorRegistry()
        self._rounds = self._counter(defined.ROUNDS)
        for result in ("done", "again", "failed"):
            self._rounds.labels(result)
        self._seconds = self._histogram(defined.ROUND_SECONDS, _ROUNDS)
        self._waits = self._histogram(defined.QUEUE_WAIT, _ROUNDS)
        self._inits = self._counter(defined.INITS)
        self._requests = self._counter(defined.REQUESTS)
        self._request_seconds = self._histogram(defined.REQUEST_SECONDS, _REQUESTS)
        self._broker_seconds = self._histogram(defined.BROKER_SECONDS, _BROKERS)
        for kind in _KINDS:
            for result in ("done", "failed"):
                self._broker_seconds.labels(kind, result)
        self._gauge(defined.QUEUE_LENGTH, queue_length)
        self._gauge(defined.QUEUE_OLDEST, queue_oldest)
        self._gauge(defined.LEADER, lambda: float(leads()))
        self._applications = Applications()
        self.registry.register(self._applications)

    def show_rollouts(self, waiting: Callable[[], int], stopped: Callable[[], bool]) -> None:
        """Show how far a new default image has come."""
        self._gauge(defined.WAITING, waiting)
        self._gauge(defined.STOPPED, lambda: float(stopped()))

    def round(self, key: Key, result: str, seconds: float) -> None:
        """A round has ended."""
        del key
        self._rounds.labels(result).inc()
        self._seconds.observe(seconds)

    def waited(self, seconds: float) -> None:
        """A round begins; its resource was due for so long."""
        self._waits.observe(seconds)

    def request(self, verb: str, resource: str, code: int | None, seconds: float) -> None:
        """The API server has answered with a status, or (None) has not."""
        self._requests.labels(verb, resource, "none" if code is None else str(code)).inc()
        self._request_seconds.labels(verb, resource).observe(seconds)

    def broker_work(self, kind: str, failed: bool, seconds: float) -> None:
        """Work at the brokers has ended."""
        self._broker_seconds.labels(kind, "failed" if failed else "done").observe(seconds)

    def init(self, result: str) -> None:
        """An explicit init() has come to its end."""
        self._inits.labels(result).inc()

    def application(self, key: Key, status: Json | None, pods: Sequence[PodState], lag: int | None) -> None:
        """An application as the last round found it; `lag` is exact, unlike the one in its status."""
        self._applications.take(key, status or {}, pods, lag)

    def forget(self, key: Key) -> None:
        """The resource has gone."""
        self._applications.shown.pop(key, None)

    def clear(self) -> None:
        """Say nothing about applications, when another replica does."""
        self._applications.shown.clear()

    def _counter(self, metric: Metric) -> Counter:
        return Counter(metric.name, metric.meaning, metric.labels, registry=self.registry)

    def _histogram(self, metric: Metric, buckets: Sequence[float]) -> Histogram:
        return Histogram(metric.name, metric.meaning, metric.labels, registry=self.registry, buckets=buckets)

    def _gauge(self, metric: Metric, function: Callable[[], float]) -> None:
        Gauge(metric.name, metric.meaning, metric.labels, registry=self.registry).set_function(function)
