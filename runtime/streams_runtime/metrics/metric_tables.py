"""Tables of metrics for pages, in Markdown."""

from __future__ import annotations

from collections.abc import Iterable

from streams_runtime.metrics.metric_definition import Level, Metric, Section

_HEAD = ("name", "labels", "unit", "level", "meaning", "Kafka Streams' name")


def table_of(metrics: Iterable[Metric]) -> str:
    """One row a metric."""
    rows = [" | ".join(_HEAD), " | ".join("---" for _ in _HEAD), *map(_row, metrics)]
    return "\n".join(f"| {row} |" for row in rows)


def printed(sections: Iterable[Section]) -> str:
    """All tables, each with its title."""
    return "\n\n".join(f"## {section.title}\n\n{table_of(section.metrics)}" for section in sections)


def _row(metric: Metric) -> str:
    labels = ", ".join(f"`{label}`" for label in metric.labels)
    series = {"summary": " (`_count`, `_sum`)", "histogram": " (a histogram)"}.get(metric.kind, "")
    level = "" if metric.level is Level.INFO else str(metric.level)
    cells = (f"`{metric.shown}`{series}", labels, metric.unit, level, metric.meaning, metric.kafka)
    return " | ".join(cells)
