"""Generated cases by the dozen: one example of hypothesis is as many cases as share one run of what is expensive.

    @settings(max_examples=EXAMPLES)
    @given(shared(st.tuples(records, cuts)))
    def test_it(cases): ...

A failure is made smaller as always: all but one case become the simplest, and that one is what fails.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, pairwise, zip_longest
from typing import TypeVar

from hypothesis import strategies as st

T = TypeVar("T")

CASES = 10
"""Cases of an example."""
EXAMPLES = 2
"""For `max_examples`: the first one is always of the simplest cases."""


def shared(case: st.SearchStrategy[T]) -> st.SearchStrategy[list[T]]:
    """So many of the cases as share a run."""
    return st.lists(case, min_size=CASES, max_size=CASES)


def batches(records: int, cuts: Iterable[int]) -> Iterable[tuple[int, int]]:
    """First and end of each batch of so many records that are cut before these."""
    return pairwise(sorted({0, records, *(cut for cut in cuts if cut < records)}))


def shared_batches(cases: Iterable[tuple[Sequence[T], Iterable[int]]]) -> Iterator[list[T]]:
    """Batches of cases that share them, so that there are as few as the longest case has: the first part of each case,
    then the second of each, and so on. A case is its records, which nothing of the others may come near (a partition,
    keys or days of their own), and before which of them a batch begins.
    """
    parts = [[records[first:end] for first, end in batches(len(records), cuts)] for records, cuts in cases]
    return (list(chain.from_iterable(some)) for some in zip_longest(*parts, fillvalue=()))
