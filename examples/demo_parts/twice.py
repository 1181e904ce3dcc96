"""Records that were processed twice: which ones may have been, by the instances' logs, and whether that explains all.

At least once means this: an instance that is killed between writing a batch's output and committing its offsets leaves
both behind; whoever has its partitions next reads those records again. A batch writes each key's new total as one
record, so each key has either all of the batch's flights twice, or none.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path

from demo_parts.figures import Figures, Row, different

Ranges = Mapping[str, tuple[int, int]]


@dataclass(frozen=True, slots=True)
class Batch:
    """A batch that an instance began to write: when (text that sorts by time), and offsets [start, end) it had read."""

    at: str
    ranges: Ranges


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a store's row says beside the expected one.

    `twice` are the flights that it counts a second time; `unexplained` the columns that not even those account for.
    """

    twice: int
    unexplained: tuple[str, ...]


def batches(logs: Iterable[Path]) -> list[Batch]:
    """All batches in the instances' logs (level DEBUG, format json), the first one first."""
    found = []
    for log in logs:
        for line in log.read_text(errors="replace").splitlines():
            if '"producing"' in line:
                told = json.loads(line)
                found.append(Batch(told["timestamp"], {name: (a, b) for name, (a, b) in told["ranges"].items()}))
    return sorted(found, key=lambda batch: batch.at)


def read_again(found: Sequence[Batch]) -> list[Batch]:
    """The batches whose records a later batch has read again, because they were not committed."""
    return [batch for number, batch in enumerate(found) if _overlaps(batch.ranges, found[number + 1 :])]


def judge(ours: Row, expected: Figures, candidates: Sequence[Figures]) -> Verdict:
    """Compare a row with what is expected; each of `candidates` may have been counted once more, all of it or none."""
    for size in range(len(candidates) + 1):
        for chosen in combinations(candidates, size):
            figures = sum(chosen, expected)
            if not different(ours, figures.row()):
                return Verdict(figures.flights - expected.flights, ())
    return Verdict(0, different(ours, expected.row()))


def _overlaps(ranges: Ranges, later: Sequence[Batch]) -> bool:
    return any(
        start < ranges[name][1] and end > ranges[name][0]
        for batch in later
        for name, (start, end) in batch.ranges.items()
        if name in ranges
    )
