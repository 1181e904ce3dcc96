"""Doubles are added one by one, as Kafka Streams does it: of many keys at once, and of parts that are put together."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import reduce
from operator import add

import numpy as np
import pyarrow as pa
import pytest
from example_counts import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from streams_runtime.state.aggregates.merge_order import Mark, MergeStep
from streams_runtime.state.aggregates.ordered_sums import Average, DoubleSum, Folding, Spread

KINDS = {"sum": DoubleSum(), "avg": Average(), "variance": Spread(sample=True, root=False)}
DOUBLES = st.floats(-1e3, 1e3) | st.sampled_from([0.1, 0.2, 0.3, 1e16, -1e16, math.inf, math.nan])
LISTS = st.lists(st.lists(DOUBLES, max_size=6), min_size=1, max_size=60)
BEGIN, MERGE = Mark.BEGIN, Mark.MERGE
Columns = Sequence[pa.ChunkedArray]


def of_batch(kind: Folding, lists: Sequence[Sequence[float]]) -> Columns:
    """State of a batch with these values of each key, which Spark has collected in another order."""
    found = [[{"at": at, "record": value} for at, value in enumerate(values)][::-1] for values in lists]
    listed = pa.list_(pa.struct([("at", pa.int64()), ("record", pa.float64())]))
    return kind.of_batch([pa.chunked_array([pa.array(found, listed)])])


def nothing(kind: Folding, rows: int) -> Columns:
    return [pa.chunked_array([pa.nulls(rows, each.type)]) for each in of_batch(kind, [])]


def shown(columns: Columns) -> str:
    """Digit by digit; NaN as any other."""
    return repr([each.to_pylist() for each in columns])


@pytest.mark.parametrize("name", KINDS)
@settings(max_examples=examples(40))
@given(lists=LISTS, cut=st.integers(0, 6))
def test_what_a_key_comes_to_does_not_depend_on_where_a_batch_ends(
    name: str, lists: list[list[float]], cut: int
) -> None:
    kind, none = KINDS[name], nothing(KINDS[name], len(lists))
    whole = kind.merge(none, of_batch(kind, lists))
    first = kind.merge(none, of_batch(kind, [values[:cut] for values in lists]))
    assert shown(kind.merge(first, of_batch(kind, [values[cut:] for values in lists]))) == shown(whole)
    # And with few keys, which are taken one by one.
    alone = kind.merge(nothing(kind, 1), of_batch(kind, lists[:1]))
    assert shown([each.slice(0, 1) for each in whole]) == shown(alone)
    if name == "sum":
        expected = [reduce(add, values, 0.0) if values else None for values in lists]
        assert repr(whole[0].to_pylist()) == repr(expected)


@pytest.mark.parametrize("name", KINDS)
@settings(max_examples=examples(40))
@given(values=st.lists(DOUBLES, max_size=12), cut=st.integers(0, 12))
def test_parts_are_added_one_after_the_other_and_told_after_each(name: str, values: list[float], cut: int) -> None:
    kind = KINDS[name]
    (stored, new) = values[:cut], values[cut:]
    begun = kind.merge(nothing(kind, 1), of_batch(kind, [stored]))
    batch = of_batch(kind, [[value] for value in new])
    columns = [pa.chunked_array([*one.chunks, *more.chunks]) for one, more in zip(begun, batch, strict=True)]
    merge_steps = [range(len(new) + 1)]
    whole = kind.merge(nothing(kind, 1), of_batch(kind, [values]))
    assert shown(kind.played(columns, merge_steps, "", str)) == shown(whole)
    told = kind.per_update(columns, merge_steps, "", str)
    prefixes = of_batch(kind, [values[: cut + number] for number in range(1, len(new) + 1)])
    assert shown(told) == shown(kind.merge(nothing(kind, len(new)), prefixes))


def test_two_sessions_become_one_before_the_record_that_joins_them() -> None:
    kind = KINDS["sum"]
    columns = of_batch(kind, [[0.1], [0.2], [0.7]])
    merge_steps: list[MergeStep] = [BEGIN, 0, BEGIN, 1, MERGE, 2]
    (total, _) = kind.played(columns, [merge_steps], "", str)
    assert total.to_pylist() == [(0.1 + 0.2) + 0.7]
    spread = KINDS["variance"]
    (count, mean, squares, _) = spread.played(of_batch(spread, [[1.0, 2.0], [6.0], [3.0]]), [merge_steps], "", str)
    assert count.to_pylist() == [4]
    assert (mean.to_pylist(), squares.to_pylist()) == ([3.0], [pytest.approx(14.0)])


def test_a_key_with_very_many_values_is_added_in_order_too() -> None:
    values = np.random.default_rng(5).normal(0, 1e6, 5_000).tolist()
    kind = KINDS["sum"]
    (total, _) = kind.merge(nothing(kind, 1), of_batch(kind, [values]))
    assert total.to_pylist() == [reduce(add, values, 0.0)]
    assert total.to_pylist() != [math.fsum(values)]
