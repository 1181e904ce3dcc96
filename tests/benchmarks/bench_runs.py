"""What one measured run is: who did which work, how long each span of it took, and what came out."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from bench_data import Totals
from bench_machine import Usage

Side = Literal["kafka-streams", "streams-operator"]
Job = Literal["catch-up", "restore"]


@dataclass(frozen=True, slots=True)
class Work:
    """The work given to a side: the application, its topics, and how many records there are."""

    job: Job
    application_id: str
    input_topic: str
    output_topic: str
    records: int
    limit_s: float

    @property
    def changelog_topic(self) -> str:
        return f"{self.application_id}-totals-changelog"


@dataclass(frozen=True, slots=True)
class Place:
    """Where a run keeps its files (state included), and the broker's address."""

    folder: Path
    bootstrap_servers: str

    @property
    def state(self) -> Path:
        return self.folder / "state"


@dataclass(frozen=True, slots=True)
class Run:
    """One run.

    `seconds` holds its spans: `work` (the compared one), `to-committed` or `to-running`, and `from-start`. `processors`
    covers the whole run, the check of its results included.
    """

    side: Side
    job: Job
    variant: str
    round: int
    records: int
    seconds: Mapping[str, float]
    details: Mapping[str, object] = field(default_factory=dict)
    processors: Usage | None = None

    def rate(self, span: str) -> float:
        """Records per second over a span."""
        return self.records / self.seconds[span]


@dataclass(frozen=True, slots=True)
class Outcome:
    """A run with its results to check: `counted` records, and the totals by the place they are in."""

    run: Run
    counted: int
    found: Mapping[str, Totals]


Measure = Callable[[Work, Place, int], Outcome]
"""One variant of a side: does the work in the place, in the round of that number."""
