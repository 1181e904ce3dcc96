"""Entries of several partitions taken together: what is given, and how often the partitions are looked at."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from query_fakes import FakeView

from streams_runtime.errors import StateStoreMigratedException
from streams_runtime.query.stores.merged_entries import MergedEntries
from streams_runtime.query.stores.views import ViewClosed


def merged(views: list[FakeView], asked: list[bool]) -> MergedEntries:
    def guard(broken: bool) -> None:
        asked.append(broken)
        if broken or not all(view.is_open for view in views):
            raise StateStoreMigratedException("gone")

    return MergedEntries([view.scan(None, None) for view in views], reverse=False, guard=guard)


def two_views() -> list[FakeView]:
    return [FakeView(0, {b"a": b"1", b"c": b"3", b"e": b"5"}), FakeView(1, {b"b": b"2", b"d": b"4"})]


@given(st.lists(st.integers(1, 4)))
def test_entries_that_are_taken_together_are_those_that_are_taken_one_by_one(counts: list[int]) -> None:
    asked: list[bool] = []
    walk, found = merged(two_views(), asked), []
    for most in [*counts, 6]:
        taken = walk.take(most)
        assert len(taken) == min(most, 5 - len(found))
        found += taken
    assert found == list(merged(two_views(), []))
    assert len(asked) <= len(counts) + 1, "once each time, and not at all behind the end"


def test_a_partition_that_has_closed_is_met_at_the_next_taking() -> None:
    views = two_views()
    walk = merged(views, [])
    assert [key for key, _ in walk.take(2)] == [b"a", b"b"]
    views[0].is_open = False  # whose next entry the merge has read already
    with pytest.raises(StateStoreMigratedException):
        walk.take(1)


def test_a_partition_that_closes_meanwhile_is_not_an_early_end() -> None:
    views = two_views()
    walk = merged(views, [])
    walk.take(1)

    def lose() -> None:
        raise ViewClosed("closed")

    views[1].check = lose  # type: ignore[method-assign]
    for _ in range(2):
        with pytest.raises(StateStoreMigratedException):
            walk.take(6)
