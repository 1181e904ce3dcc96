"""top(x, y, n): the values that Python's own order puts first, wherever batches and sessions begin, and its limits."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Sequence
from typing import Any

import orjson
import pyarrow as pa
import pytest
from example_counts import examples
from hypothesis import example, given, settings
from hypothesis import strategies as st

from streams_runtime.batch.json_columns import json_rows
from streams_runtime.errors import FailedProcessingException, InvalidApplicationException, ProcessorStateException
from streams_runtime.state.aggregates.aggregate_state import AggregateState
from streams_runtime.state.aggregates.distinct_values import MOST_BYTES
from streams_runtime.topology.nodes.aggregate_node import Aggregate

PATH = "spec.topology.steps[0].aggregate.t"
NUMBERS, TEXTS = pa.float64(), pa.string()
Pair = tuple[Any, Any]
"""What a record goes by, and its value."""


def found_type(by: pa.DataType, value: pa.DataType) -> pa.DataType:
    """As Spark gives it."""
    return pa.list_(pa.field("element", pa.struct([pa.field("by", by), pa.field("value", value)])))


def state_of(most: int, by: pa.DataType = NUMBERS, value: pa.DataType = TEXTS) -> AggregateState:
    state = AggregateState([Aggregate("t", "top", "x", PATH, f"y, {most}")])
    state.bind(pa.schema([("t.found", found_type(by, value))]))
    return state


def given_by_spark(most: int, *rows: Sequence[Pair], by: pa.DataType = NUMBERS, value: pa.DataType = TEXTS) -> pa.Table:
    found = [[{"by": y, "value": x} for y, x in greatest(most, row)] for row in rows]
    return pa.table({"t.found": pa.array(found, found_type(by, value))})


def greatest(most: int, pairs: Sequence[Pair]) -> list[Pair]:
    """By Python: NaN is greater than all numbers, null the least value, and records without a `by` are left out."""
    known = [each for each in pairs if each[0] is not None]
    return sorted(known, key=lambda pair: (_rank(pair[0]), _rank(pair[1])), reverse=True)[:most]


def _rank(value: Any) -> tuple[Any, ...]:
    if value is None:
        return (0,)
    nan = isinstance(value, float) and math.isnan(value)
    return (1, nan, 0 if nan else value)


def parts(values: Sequence[Pair], cuts: Sequence[int]) -> list[Sequence[Pair]]:
    ends = sorted({cut % (len(values) + 1) for cut in cuts} | {len(values)})
    return [values[start:end] for start, end in zip([0, *ends[:-1]], ends, strict=True)]


FLOATS = st.sampled_from([1.5, -2.25, 0.0, -0.0, math.inf, -math.inf, math.nan])
KINDS: dict[pa.DataType, st.SearchStrategy[Any]] = {
    pa.int64(): st.integers(0, 3) | st.sampled_from([-(2**63), 2**63 - 1]),
    NUMBERS: FLOATS,
    TEXTS: st.sampled_from(["", "a", "b", "ä", "\U0001f600", "\uffff", '"', "\x00"]),
    pa.bool_(): st.booleans(),
    pa.date32(): st.dates(),
    pa.timestamp("us", tz="UTC"): st.datetimes(timezones=st.just(dt.UTC)),
}
CUTS = st.lists(st.integers(0, 50), max_size=5)


@settings(max_examples=examples(120))
@given(st.data(), st.integers(1, 4), st.sampled_from(list(KINDS)), st.sampled_from(list(KINDS)), CUTS)
def test_it_is_what_pythons_order_puts_first_wherever_batches_begin(
    data: st.DataObject, most: int, by: Any, value: Any, cuts: list[int]
) -> None:
    pairs = data.draw(st.lists(st.tuples(st.none() | KINDS[by], st.none() | KINDS[value]), max_size=15))
    state = state_of(most, by, value)
    stored: list[bytes | None] = [None]
    for batch in parts(pairs, cuts):
        batch_state = state.of_batch(given_by_spark(most, batch, by=by, value=value))
        stored = list(state.encode(state.merge(state.decode(stored), batch_state)))
    (found,) = state.finish(state.decode(stored))["t"].to_pylist()
    expected = [x + 0.0 if isinstance(x, float) else x for _, x in greatest(most, pairs)]
    # NaN is not itself, and the zeros are.
    assert [str(each) for each in found] == [str(each) for each in expected]
    # A query reads it from the stored text, a sink from the columns.
    assert [state.finish_value(each) for each in stored if each] == [
        orjson.loads(each) for each in json_rows(state.finish(state.decode(stored)))
    ]


@settings(max_examples=examples(40))
@given(st.lists(st.tuples(FLOATS, st.none() | KINDS[TEXTS]), max_size=12), st.lists(st.integers(0, 2)))
@example([(1.0, None), (1.0, "a")], [0, 1])
def test_sessions_that_become_one_are_in_no_order(pairs: list[Pair], owners: list[int]) -> None:
    state = state_of(2)
    rows = [[each for at, each in enumerate(pairs) if (owners[at] if at < len(owners) else 0) == n] for n in range(3)]
    one, two, three = (state.of_batch(given_by_spark(2, row)) for row in rows)
    for joined in (state.join(state.join(one, two), three), state.join(three, state.join(two, one))):
        assert repr(state.finish(joined)["t"].to_pylist()) == repr([[x for _, x in greatest(2, pairs)]])


def test_each_row_has_its_own_values() -> None:
    state = state_of(2)
    old = state.of_batch(given_by_spark(2, [(1.0, "a")], [], [(5.0, "c"), (2.0, "b")]))
    new = state.of_batch(given_by_spark(2, [], [(4.0, "d")], [(3.0, "e")]))
    assert state.finish(state.merge(old, new))["t"].to_pylist() == [["a"], ["d"], ["c", "e"]]


def test_spark_is_asked_for_no_more_than_the_greatest() -> None:
    state = AggregateState([Aggregate("t", "top", "x", PATH, "y + 1, 3", "z > 0")])
    (column,) = state.columns
    assert column.expression == (
        "slice(sort_array(collect_list(if((z > 0) and (y + 1) is not null,"
        " struct((y + 1) as `by`, (x) as value), null)), false), 1, 3)"
    )
    assert state.declared[0].call == "top(x, y + 1, 3) FILTER (WHERE z > 0)"


def test_what_is_stored_is_plain_json_that_others_can_read() -> None:
    state = state_of(3)
    rows = state.of_batch(given_by_spark(3, [(math.nan, None), (-0.0, "a")], []))
    assert state.encode(rows) == [
        b'{"t":{"by":["NaN",0.0],"values":[null,"a"]}}',
        b'{"t":{"by":[],"values":[]}}',
    ]
    assert not state.stored_as_seen


def test_values_that_are_too_long_end_the_batch_with_the_field_and_a_remedy() -> None:
    state = state_of(2)
    half = "x" * (MOST_BYTES // 2)
    stored = state.encode(state.of_batch(given_by_spark(2, [(1.0, half)])))
    both = state.merge(state.decode(stored), state.of_batch(given_by_spark(2, [(2.0, half)])))
    with pytest.raises(FailedProcessingException) as failed:
        state.encode(both, lambda row: f"the key {row}")
    assert str(failed.value).startswith(f"{PATH}: top(x, y, 2) has values of 750,0")
    assert "750,000 at most for the key 0" in str(failed.value)
    assert "fewer values, or shorter ones" in str(failed.value)


@pytest.mark.parametrize("kinds", [(pa.decimal128(10, 2), TEXTS), (NUMBERS, pa.decimal128(10, 2))])
def test_a_type_that_is_not_kept_is_refused_on_either_side(kinds: tuple[pa.DataType, pa.DataType]) -> None:
    with pytest.raises(InvalidApplicationException) as refused:
        state_of(2, *kinds)
    assert [mistake.path for mistake in refused.value.mistakes] == [PATH]


@pytest.mark.parametrize("value", [b'{"t":[1]}', b'{"t":1}', b'{"t":{"value":1,"by":true}}', b'{"t":{"at":[]}}'])
def test_what_another_function_has_stored_is_an_error_and_not_an_empty_list(value: bytes) -> None:
    with pytest.raises(ProcessorStateException, match="give the store a new name"):
        state_of(2).decode([value])
    if value.startswith(b'{"t":{"at'):
        with pytest.raises(ValueError, match="is not the state of"):
            state_of(2).finish_value(value)
