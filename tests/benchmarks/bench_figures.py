"""What many rounds come to: medians, spreads, and ratios that are larger when this project is better (pure)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median

from bench_declared import Ratio, Workload
from bench_machine import Usage


@dataclass(frozen=True, slots=True)
class Result:
    """One verified run of a contestant in a case: its figures, and what else is worth keeping of it."""

    workload: str
    case: str
    contestant: str
    round: int
    figures: Mapping[str, float]
    details: Mapping[str, object] = field(default_factory=dict)
    processors: Usage | None = None


@dataclass(frozen=True, slots=True)
class Failed:
    """A run that does not count: its results were wrong, or it did not come to its end."""

    workload: str
    case: str
    contestant: str
    round: int
    reason: str
    wrong: bool = False
    """Its results are not those of the data, rather than not there."""


@dataclass(frozen=True, slots=True)
class Spread:
    """A figure over all rounds."""

    median: float
    least: float
    most: float
    rounds: int

    @property
    def width(self) -> float:
        """From the least to the most, as a share of the median; 0 where that is 0."""
        return (self.most - self.least) / self.median if self.median else 0.0


Figures = Mapping[tuple[str, str, str, str], Spread]
"""By workload, case, contestant and figure."""


def figures_of(results: Sequence[Result], failures: Sequence[Failed] = ()) -> dict[tuple[str, str, str, str], Spread]:
    """Every figure over the rounds. Who gave a wrong result, or none, in any round of a case has no figure in it."""
    out = {(each.workload, each.case, each.contestant) for each in failures}
    found: dict[tuple[str, str, str, str], list[float]] = {}
    for result in results:
        if (result.workload, result.case, result.contestant) not in out:
            for name, value in result.figures.items():
                found.setdefault((result.workload, result.case, result.contestant, name), []).append(value)
    return {key: spread(values) for key, values in found.items()}


def spread(values: Sequence[float]) -> Spread:
    """Median and range of at least one value."""
    return Spread(median(values), min(values), max(values), len(values))


def ratios_of(workloads: Sequence[Workload], figures: Figures) -> dict[str, float]:
    """The declared ratios for which both sides have a figure, by name."""
    made = {}
    for workload in workloads:
        for name, ratio in workload.ratios.items():
            value = ratio_of(workload, ratio, figures)
            if value is not None:
                made[name] = value
    return made


def ratio_of(workload: Workload, ratio: Ratio, figures: Figures) -> float | None:
    """Best median of this project's contestants over the peers' best; the other way round where less is better."""
    more = next(each.better == "more" for each in workload.measures if each.figure == ratio.figure)
    best = max if more else min

    def of(names: Sequence[str]) -> float | None:
        keys = [(workload.name, ratio.case, name, ratio.figure) for name in names]
        return best((figures[key].median for key in keys if key in figures), default=None)

    ours, peers = of(ratio.ours), of(ratio.peers)
    if ours is None or peers is None or not (peers if more else ours):
        return None
    return ours / peers if more else peers / ours


def percentile(values: Sequence[float], share: float) -> float:
    """The smallest value that at least `share` (0 to 1) of all values do not exceed. Raises ValueError for none."""
    if not values:
        raise ValueError("no values, so no percentile; measure longer")
    ordered = sorted(values)
    # Rounded first: 0.999 * 1000 is a hair above 999.
    rank = -int(-round(share * len(ordered), 9) // 1)
    return ordered[max(rank, 1) - 1]
