"""Metrics of applications, made anew at each scrape, so that nothing of one that has gone stays behind."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from prometheus_client.core import GaugeMetricFamily
from prometheus_client.core import Metric as Family
from prometheus_client.registry import Collector

from streams_operator import operator_catalogue as defined
from streams_operator.model import Json, Key, PodState
from streams_runtime.metrics.metric_definition import Metric


@dataclass(frozen=True, slots=True)
class Shown:
    """What is shown of one application, and no more: there may be thousands."""

    state: str
    pods: Mapping[str, int]
    lag: int | None
    records_left: int | None
    ready: int | None
    wanted: int | None
    conditions: tuple[tuple[str, str], ...]  # those that are True: type, reason

    @classmethod
    def of(cls, status: Json, pods: Mapping[str, int], lag: int | None) -> Shown:
        """Of a status, which anybody may have written."""
        left = (status.get("restoration") or {}).get("recordsLeft")
        true = [each for each in status.get("conditions") or () if each["status"] == "True"]
        ready, _, wanted = str(status.get("ready") or "").partition("/")
        return cls(
            state=sys.intern(str(status.get("state") or "")),
            pods=pods,
            lag=lag,
            records_left=left if isinstance(left, int) else None,
            ready=int(ready) if ready.isdecimal() else None,
            wanted=int(wanted) if wanted.isdecimal() else None,
            conditions=tuple((sys.intern(each["type"]), sys.intern(each["reason"])) for each in true),
        )


class Applications(Collector):
    """What the last round of each application has found."""

    def __init__(self) -> None:
        self.shown: dict[Key, Shown] = {}

    def take(self, key: Key, status: Json, pods: Sequence[PodState], lag: int | None) -> None:
        """An application as a round has found it."""
        self.shown[key] = Shown.of(status, Counter(pod.state or "UNKNOWN" for pod in pods), lag)

    def collect(self) -> Iterator[Family]:
        """The metrics of all applications."""
        state, pods, condition = _family(defined.STATE), _family(defined.PODS), _family(defined.CONDITION)
        numbers = {
            "wanted": _family(defined.WANTED),
            "ready": _family(defined.READY),
            "lag": _family(defined.LAG),
            "records_left": _family(defined.LEFT),
        }
        for key, shown in list(self.shown.items()):
            for name, reason in shown.conditions:
                condition.add_metric([*key, name, reason], 1)
            if shown.state:
                state.add_metric([*key, shown.state], 1)
            for pod_state, number in shown.pods.items():
                pods.add_metric([*key, pod_state], number)
            for field, family in numbers.items():
                value: int | None = getattr(shown, field)
                if value is not None:
                    family.add_metric(key, value)
        yield from (state, pods, condition, *numbers.values())


def _family(metric: Metric) -> GaugeMetricFamily:
    return GaugeMetricFamily(metric.name, metric.meaning, labels=metric.labels)
