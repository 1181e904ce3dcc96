"""What is known of a metric before anything is measured: its name, kind, labels, unit, level and meaning."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Literal

Kind = Literal["gauge", "counter", "summary", "histogram"]


class Level(StrEnum):
    """How much is measured and shown, as metrics.recording.level says (Kafka Streams' TRACE is not there)."""

    INFO = "INFO"
    DEBUG = "DEBUG"

    def shows(self, level: Level) -> bool:
        """Whether a metric of `level` is shown at this one."""
        return self is Level.DEBUG or level is Level.INFO


@dataclass(frozen=True, slots=True)
class Metric:
    """One metric. `name` is without the endings that Prometheus' format adds (`_total`, `_count`, `_sum`, `_bucket`).

    `labels` are those beside the ones that every metric of the same process has. `kafka`: the group and the name that
    Kafka Streams has for it, with the KIP that brought it; empty for this project's own.
    """

    name: str
    kind: Kind
    unit: str
    meaning: str
    labels: tuple[str, ...] = ()
    kafka: str = ""
    level: Level = Level.INFO

    @property
    def shown(self) -> str:
        """The name as a query for Prometheus has it; of a summary or a histogram the stem of its series."""
        return f"{self.name}_total" if self.kind == "counter" else self.name


@dataclass(frozen=True, slots=True)
class Section:
    """Metrics that a page shows in one table."""

    title: str
    metrics: tuple[Metric, ...]
