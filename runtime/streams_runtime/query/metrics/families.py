"""Families for Prometheus: each is made of its definition, so that none is shown that the catalogue does not have."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, SummaryMetricFamily
from prometheus_client.metrics_core import Metric as Family

from streams_runtime.metrics.catalogue import COMMON_LABELS
from streams_runtime.metrics.metric_definition import Level, Metric

Row = tuple[Sequence[object], float | None]
"""Values of a metric's own labels, and its value; None: there is none at present."""


class Families:
    """Collects the families of one scrape, as far as the level shows them."""

    def __init__(self, common: Sequence[str], level: Level) -> None:
        """`common` are the values of the labels that every series has."""
        self.made: list[Family] = []
        self._common = common
        self._level = level

    def add(self, metric: Metric, rows: Iterable[Row]) -> None:
        """A family of a gauge or a counter."""
        if self._level.shows(metric.level):
            kind = CounterMetricFamily if metric.kind == "counter" else GaugeMetricFamily
            family = kind(metric.name, metric.meaning, labels=[*COMMON_LABELS, *metric.labels])
            for labels, value in rows:
                if value is not None:
                    family.add_metric([*self._common, *map(str, labels)], value)
            self.made.append(family)

    def add_one(self, metric: Metric, value: float | None) -> None:
        """A family without labels of its own."""
        self.add(metric, [((), value)])

    def add_summaries(self, metric: Metric, rows: Iterable[tuple[Sequence[object], int, float]]) -> None:
        """A family of a summary: labels, count and sum."""
        if self._level.shows(metric.level):
            family = SummaryMetricFamily(metric.name, metric.meaning, labels=[*COMMON_LABELS, *metric.labels])
            for labels, count, total in rows:
                family.add_metric([*self._common, *map(str, labels)], count, total)
            self.made.append(family)


def milliseconds(seconds: float | None) -> float | None:
    """Kafka Streams' unit of latencies."""
    return None if seconds is None else seconds * 1000
