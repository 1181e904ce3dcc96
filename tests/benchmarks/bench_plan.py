"""Who runs when: all contestants of a case in each round, another one first each time (pure)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from bench_declared import Case, Workload


@dataclass(frozen=True, slots=True)
class Turn:
    """One run to make: the name of the contestant and the number of the round, from 1."""

    case: Case
    contestant: str
    round: int


def turns(workload: Workload, case: Case, rounds: int, only: Sequence[str] = ()) -> Iterator[Turn]:
    """The runs of a case in their order.

    Contestants alternate within a round, so that what the machine does meanwhile meets all of them; who is first
    changes, since the first one finds the coldest page cache.
    """
    names = [name for name in workload.taking_part(case) if not only or name in only]
    for round_ in range(1, rounds + 1):
        first = (round_ - 1) % len(names) if names else 0
        for name in names[first:] + names[:first]:
            yield Turn(case, name, round_)
