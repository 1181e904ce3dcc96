"""The figures side by side: a table for people, a JSON file for programs."""

from __future__ import annotations

import os
import platform
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median

import orjson
from bench_runs import Job, Run, Side
from rich.table import Table

MEASURES: tuple[tuple[Job, str, str], ...] = (
    ("catch-up", "work", "catch-up"),
    ("catch-up", "to-committed", "  until all is committed"),
    ("catch-up", "from-start", "  from process start"),
    ("restore", "work", "cold restoration"),
    ("restore", "to-running", "  from CREATED to RUNNING"),
    ("restore", "from-start", "  from process start to RUNNING"),
)
"""Job, span and title of each line; the lines that are not indented are the compared ones."""


TOLERATED_OTHERS = 0.1
"""Share of all processors that other programs may take during a run before its figures are called disturbed."""


@dataclass(frozen=True, slots=True)
class Line:
    """One measure: the rate of each side in records per second, None where a side was not run."""

    job: Job
    span: str
    title: str
    kafka_streams: float | None
    streams_operator: float | None
    ratio: float | None


def lines(runs: Sequence[Run]) -> tuple[Line, ...]:
    """The measures of all runs: per side the median over the rounds of its best variant in that measure."""
    made = []
    for job, span, title in MEASURES:
        peer, ours = _rate(runs, "kafka-streams", job, span), _rate(runs, "streams-operator", job, span)
        if peer is not None or ours is not None:
            ratio = ours / peer if ours is not None and peer is not None else None
            made.append(Line(job, span, title, peer, ours, ratio))
    return tuple(made)


def ratios(runs: Sequence[Run], measured: Sequence[Line]) -> dict[str, float]:
    """The compared lines' ratios by the names that `make bench` gives them.

    Kafka Streams with settings of its own is not the default one, and so has another name.
    """
    configured = any("=" in run.variant for run in runs if run.side == "kafka-streams")
    names = {"catch-up": f"catch_up_vs_kafka_streams_{'configured' if configured else 'default'}"}
    names["restore"] = "restore_vs_kafka_streams" + ("_configured" if configured else "")
    return {names[line.job]: line.ratio for line in measured if line.span == "work" and line.ratio is not None}


def _rate(runs: Sequence[Run], side: Side, job: Job, span: str) -> float | None:
    rates: dict[str, list[float]] = {}
    for run in runs:
        if run.side == side and run.job == job:
            rates.setdefault(run.variant, []).append(run.rate(span))
    return max((median(found) for found in rates.values()), default=None)


def table(measured: Sequence[Line], title: str) -> Table:
    """The lines as a table."""
    made = Table(title=title, title_justify="left")
    made.add_column("measure", no_wrap=True)
    for column in ("Kafka Streams", "this project", "ratio"):
        made.add_column(column, justify="right")
    for line in measured:
        rates = (line.kafka_streams, line.streams_operator)
        made.add_row(
            line.title,
            *("-" if rate is None else f"{rate:,.0f}" for rate in rates),
            "-" if line.ratio is None else f"{line.ratio:.2f}",
            style=None if line.title.startswith(" ") else "bold",
        )
    return made


def disturbance(runs: Sequence[Run]) -> str | None:
    """A warning when other programs took more of the processors than lets the sides be compared."""
    shares = [run.processors.others for run in runs if run.processors is not None]
    if max(shares, default=0.0) <= TOLERATED_OTHERS:
        return None
    return (
        f"not comparable: other programs took {min(shares):.0%} to {max(shares):.0%} of the processors during a run."
        " Measure again on a quiet machine"
    )


def write_json(file: Path, settings: dict[str, object], runs: Sequence[Run], measured: Sequence[Line]) -> None:
    """All figures: settings, machine, the measures, and every single run with its spans in seconds."""
    machine = {"cores": os.cpu_count(), "system": platform.platform(), "python": platform.python_version()}
    content = {
        "settings": settings,
        "machine": machine,
        "unit": "records per second; spans in seconds",
        "disturbance": disturbance(runs),
        "ratios": ratios(runs, measured),
        "measures": [asdict(line) for line in measured],
        "runs": [asdict(run) for run in runs],
    }
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(orjson.dumps(content, option=orjson.OPT_INDENT_2))
