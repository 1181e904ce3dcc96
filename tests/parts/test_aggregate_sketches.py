"""Approximate aggregates beside exact answers: within their bounds, and the same wherever batches begin."""

from __future__ import annotations

import base64
import math
import random
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import datasketches
import numpy as np
import orjson
import pyarrow as pa
import pytest
from example_counts import examples
from hypothesis import example, given, settings
from hypothesis import strategies as st

from streams_runtime.batch.json_columns import json_rows
from streams_runtime.errors import ProcessorStateException
from streams_runtime.state.aggregates.aggregate_state import AggregateState
from streams_runtime.state.aggregates.approx_count_distinct import LOG_REGISTERS
from streams_runtime.state.aggregates.approx_percentile import ERROR, MOST_BUCKETS, buckets_of, values_of
from streams_runtime.topology.nodes.aggregate_node import Aggregate

CUTS = st.lists(st.integers(0, 5000), max_size=5)


def batched(values: Sequence[Any], cuts: Sequence[int]) -> list[Sequence[Any]]:
    ends = sorted({cut % (len(values) + 1) for cut in cuts} | {len(values)})
    return [values[start:end] for start, end in zip([0, *ends[:-1]], ends, strict=True)]


def percentile(which: str) -> AggregateState:
    state = AggregateState([Aggregate("p", "approx_percentile", "x", "aggregate.p", which)])
    state.bind(pa.schema([("p.values", pa.list_(pa.float64()))]))
    return state


def values_given(*rows: Sequence[float]) -> pa.Table:
    return pa.table({"p.values": pa.array(rows, pa.list_(pa.float64()))})


def stored(state: AggregateState, batches: Sequence[pa.Table]) -> list[bytes]:
    """What lies in the store after the batches, each stored as JSON and read again before the next one comes."""
    found: list[bytes | None] = [None] * len(batches[0])
    for batch in batches:
        found = list(state.encode(state.merge(state.decode(found), state.of_batch(batch))))
    return [each for each in found if each is not None]


def exact(which: str, values: Sequence[float]) -> float:
    """The smallest value below which, or at which, this part of them lies, as Spark's percentile_disc."""
    return sorted(values)[max(math.ceil(Fraction(which) * len(values)), 1) - 1]


# Subnormal numbers have not enough digits to be within any part of themselves.
DOUBLES = st.floats(allow_nan=False, allow_infinity=False, allow_subnormal=False)
ROUNDING = 1e-9
WHICH = st.sampled_from(["0", "0.1", "0.25", ".5", "0.95", "0.99", "0.999999", "1", "1.0"])


@settings(max_examples=examples(150))
@given(WHICH, st.lists(DOUBLES | st.integers(-20, 20).map(float), min_size=1, max_size=60), CUTS, st.randoms())
@example("0.07", [float(number) for number in range(1, 101)], [7, 20], random.Random(0))
def test_a_percentile_is_within_its_bound_of_the_exact_one_wherever_batches_begin(
    which: str, values: list[float], cuts: list[int], shuffled: random.Random
) -> None:
    state = percentile(which)
    (value,) = stored(state, [values_given(each) for each in batched(values, cuts)])
    (found,) = state.finish(state.decode([value]))["p"].to_pylist()
    wanted = exact(which, values)
    assert abs(found - wanted) <= abs(wanted) * (ERROR + ROUNDING)
    assert state.finish_value(value) == {"p": found}
    others = list(values)
    shuffled.shuffle(others)
    assert stored(state, [values_given(others)]) == [value]


def test_percentiles_of_many_values_are_within_their_bound() -> None:
    values = np.random.default_rng(1).lognormal(3, 2, 200_000)
    for which in ("0.01", "0.5", "0.9", "0.99", "0.9999"):
        (value,) = stored(percentile(which), [values_given(part) for part in np.array_split(values, 3)])
        assert percentile(which).finish_value(value)["p"] == pytest.approx(exact(which, values.tolist()), rel=ERROR)


@settings(max_examples=examples(200))
@given(DOUBLES, DOUBLES)
def test_buckets_are_in_the_order_of_their_values(one: float, other: float) -> None:
    smaller, larger = buckets_of(np.array(sorted([one, other])))
    assert smaller <= larger
    lower, higher = values_of(np.array([smaller, larger], np.int32))
    assert math.isfinite(lower)
    assert lower <= higher


@settings(max_examples=examples(10))
@given(CUTS, st.integers(0, 1000))
def test_too_many_buckets_cost_the_smallest_values_only_whatever_their_order(cuts: list[int], seed: int) -> None:
    values = [1.03**number for number in range(-1500, 1500)]
    random.Random(seed).shuffle(values)
    (value,) = stored(percentile("0.9"), [values_given(each) for each in batched(values, cuts)])
    assert value == stored(percentile("0.9"), [values_given(sorted(values))])[0]
    assert len(orjson.loads(value)["p"]["buckets"]) == MOST_BUCKETS
    assert sum(orjson.loads(value)["p"]["counts"]) == len(values)
    for which in ("0.4", "0.9", "1"):
        assert percentile(which).finish_value(value)["p"] == pytest.approx(exact(which, values), rel=ERROR)
    # The 2048th bucket from above, which all smaller values are in.
    assert percentile("0").finish_value(value)["p"] > min(values)


def test_percentiles_of_each_row_are_its_own_and_of_nothing_null() -> None:
    state = percentile("0.5")
    old = state.decode([*stored(state, [values_given([1.0], [], [5.0, 0.0, -2.0])]), None])
    new = state.of_batch(values_given([], [], [-7.0, -8.0], [4.0]))
    found = state.finish(state.merge(old, new))["p"].to_pylist()
    assert found == [pytest.approx(1, rel=ERROR), None, pytest.approx(-2, rel=ERROR), pytest.approx(4, rel=ERROR)]
    assert state.finish_value(state.encode(old)[1]) == {"p": None}


def test_a_percentile_is_stored_as_buckets_with_counts_that_others_can_read() -> None:
    value = b'{"p":{"buckets":[-40081,0,40000,40116],"counts":[1,1,3,1]}}'
    assert stored(percentile("0.5"), [values_given([0.0, 1, 1, 1, 10, -5])]) == [value]
    assert percentile("0.5").finish_value(value) == {"p": pytest.approx(1, rel=ERROR)}


@pytest.mark.parametrize(("part", "text"), [("0.3", "-Infinity"), ("0.6", "Infinity"), ("1", "NaN")])
def test_what_json_has_no_number_for_has_its_place_among_the_values(part: str, text: str) -> None:
    state = percentile(part)
    (value,) = stored(state, [values_given([math.nan, -math.inf]), values_given([math.inf])])
    assert state.finish_value(value) == {"p": text}
    assert json_rows(state.finish(state.decode([value]))) == [orjson.dumps({"p": text})]


def distinct() -> AggregateState:
    state = AggregateState([Aggregate("d", "approx_count_distinct", "x", "aggregate.d")])
    state.bind(pa.schema([("d.hll", pa.binary())]))
    return state


def sketches(*rows: Sequence[int]) -> pa.Table:
    """As Spark's hll_sketch_agg gives them, of hashes."""
    return pa.table({"d.hll": pa.array([sketch(row) for row in rows], pa.binary())})


def sketch(values: Sequence[int]) -> bytes:
    made = datasketches.hll_sketch(LOG_REGISTERS, datasketches.tgt_hll_type.HLL_8)
    for each in values:
        made.update(each)
    return bytes(made.serialize_updatable())


# The hashes of numbers are the same in every run, and so are the errors.
@pytest.mark.parametrize("count", [0, 1, 2, 10, 300, 384, 385, 1000, 5000, 20_000, 300_000])
def test_a_count_of_different_values_is_within_three_standard_errors(count: int) -> None:
    state, numbers = distinct(), range(count)
    parts = [numbers[: count // 2], numbers[count // 3 :], numbers[:10]]
    (value,) = stored(state, [sketches(each) for each in parts])
    found = state.finish_value(value)["d"]
    assert state.finish(state.decode([value]))["d"].to_pylist() == [found]
    if count <= 300:
        assert found == count
    assert found == pytest.approx(count, rel=3 * 1.04 / math.sqrt(2**LOG_REGISTERS))
    assert len(value) < 2900


@settings(max_examples=examples(40))
@given(st.sampled_from([0, 5, 100, 384, 386, 1000, 5000]), st.integers(0, 3), CUTS, st.integers(0, 1000))
def test_a_count_of_different_values_does_not_depend_on_batches(
    count: int, times: int, cuts: list[int], seed: int
) -> None:
    values = [*range(count)] + [number for number in range(0, count, 7) for _ in range(times)]
    (once,) = stored(distinct(), [sketches(values)])
    random.Random(seed).shuffle(values)
    (often,) = stored(distinct(), [sketches(each) for each in batched(values, cuts)])
    assert distinct().finish_value(often) == distinct().finish_value(once)
    assert distinct().finish_value(often)["d"] == pytest.approx(count, rel=0.05)


def test_rows_without_any_state_have_no_count_and_without_values_zero() -> None:
    state = distinct()
    assert state.finish(state.decode([None, *stored(state, [sketches([])])]))["d"].to_pylist() == [None, 0]
    rows = state.merge(state.decode([None]), state.of_batch(sketches([1, 2])))
    assert state.finish(rows)["d"].to_pylist() == [2]


# Written by datasketches 5.2: changelogs hold such bytes for ever.
STORED = b'{"d":{"hll":"AgEHDAMIAwAr8vsGhi/5DXWBZgc="}}'


def test_a_sketch_that_was_stored_once_is_read_for_ever() -> None:
    assert distinct().finish_value(STORED) == {"d": 3}
    more = distinct().merge(distinct().decode([STORED]), distinct().of_batch(sketches([3, 4])))
    assert distinct().finish(more)["d"].to_pylist() == [4]


@pytest.mark.parametrize("damaged", [b"", b"abc", bytes(40), sketch(range(5000))[:100]])
def test_what_is_no_sketch_is_an_error_that_says_what_to_do(damaged: bytes) -> None:
    value = orjson.dumps({"d": {"hll": base64.b64encode(damaged).decode()}})
    state = distinct()
    with pytest.raises(ProcessorStateException, match="give the store a new name"):
        state.finish(state.merge(state.decode([value]), state.of_batch(sketches([1]))))
    with pytest.raises(ValueError, match="can't be read"):
        state.finish_value(value)
    with pytest.raises(ValueError, match=r"."):
        state.finish_value(b'{"d":{"hll":"?"}}')
