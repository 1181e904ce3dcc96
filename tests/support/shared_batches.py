"""Batches of cases that share them, so that there are as few as the longest case has."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, zip_longest
from typing import TypeVar

from pipeline_bench import batches

T = TypeVar("T")


def shared_batches(cases: Iterable[tuple[Sequence[T], Iterable[int]]]) -> Iterator[list[T]]:
    """The first part of each case, then the second of each, and so on. A case is its records, which nothing else of the
    others may come near (a partition or keys of their own), and before which of them a batch begins.
    """
    parts = [[records[first:end] for first, end in batches(len(records), cuts)] for records, cuts in cases]
    for together in zip_longest(*parts, fillvalue=()):
        yield list(chain.from_iterable(together))
