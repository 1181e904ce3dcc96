"""How many records a batch of partial aggregates may have: by the keys that come of the first one."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streams_runtime.processing.inputs.batch_size import AGGREGATED_KEYS, FIRST_RECORDS, BatchSize, records_with

MOST = 1_000_000


def test_without_a_number_of_keys_every_batch_is_as_large_as_it_may_be() -> None:
    size = BatchSize(500)
    assert (size.limit, size.is_known) == (500, True)
    size.learn(500, 500)
    assert size.limit == 500


def test_the_first_batch_is_small_and_says_how_large_the_next_ones_may_be() -> None:
    size = BatchSize(MOST, AGGREGATED_KEYS)
    assert (size.limit, size.is_known) == (FIRST_RECORDS, False)
    size.learn(0, 0)
    assert not size.is_known
    size.learn(FIRST_RECORDS, 142_000)  # 200,000 keys
    assert (size.limit, size.is_known) == (MOST, True)
    size.learn(MOST, 700_000)
    assert 260_000 < size.limit < 300_000


@pytest.mark.parametrize(
    ("records", "found", "limit"),
    [
        (1000, 1000, 250),  # each record has a key of its own
        (1000, 3000, 83),  # in three tables
        (1000, 0, MOST),  # none is kept
        (1000, 1, MOST),
    ],
)
def test_keys_of_their_own_and_hardly_any_keys(records: int, found: int, limit: int) -> None:
    assert records_with(250, records, found, MOST) == limit


@given(st.integers(100_000, 10**7), st.floats(0.05, 4.0), st.floats(0.01, 0.98))
def test_of_keys_that_come_equally_often_it_finds_the_number(total: int, records_a_key: float, wanted: float) -> None:
    records, keys = int(total * records_a_key), int(total * wanted)
    found = round(total * -math.expm1(-records / total))
    limit = records_with(keys, records, found, 10**9)
    assert total * -math.expm1(-limit / total) == pytest.approx(keys, rel=0.1)


@given(st.integers(1, 10**7), st.integers(1, 10**7), st.integers(1, 10**7), st.integers(1, 10**7))
def test_there_is_always_a_batch_and_none_is_too_large(keys: int, records: int, found: int, most: int) -> None:
    assert 1 <= records_with(keys, records, found, most) <= most


def test_a_batch_that_took_too_long_is_followed_by_ones_that_take_half_of_what_is_allowed() -> None:
    size = BatchSize(MOST, AGGREGATED_KEYS)
    size.learn(FIRST_RECORDS, 142_000)
    size.overran(MOST, 30.0, 30.0)
    assert size.limit == MOST // 2
    size.overran(MOST // 2, 300.0, 30.0)
    assert size.limit == MOST // 40
    size.learn(MOST // 40, 10)
    assert size.limit == MOST // 40, "few keys make it no faster"
    size.overran(1, 300.0, 30.0)
    assert size.limit == 1


@given(st.integers(1, MOST), st.floats(0, 30))
def test_batches_grow_to_the_most_again_and_only_if_they_were_full_and_quick(records: int, seconds: float) -> None:
    size = BatchSize(MOST)
    size.overran(MOST, 600.0, 30.0)
    before = size.limit
    size.kept(records, seconds, 30.0)
    grows = seconds <= 15 and records * 2 >= before
    assert size.limit == (before + before // 10 if grows else before)
    for _ in range(60):
        size.kept(size.limit, 1.0, 30.0)
    assert size.limit == MOST
