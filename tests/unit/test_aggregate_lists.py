"""collect_list and collect_set: the last values by their offsets, wherever batches and sessions begin."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Sequence
from typing import Any

import orjson
import pyarrow as pa
import pytest
from example_counts import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from streams_runtime.batch.json_columns import json_rows
from streams_runtime.errors import InvalidApplicationException, ProcessorStateException
from streams_runtime.state.aggregates.aggregate_state import AggregateState
from streams_runtime.topology.nodes.aggregate_node import Aggregate

Placed = Sequence[tuple[int, Any]]
"""Values with their offsets."""

LIST, SET = "collect_list", "collect_set"
TIME = pa.timestamp("us", tz="UTC")


def state_of(function: str, most: int, kind: pa.DataType) -> AggregateState:
    state = AggregateState([Aggregate("c", function, "x", "aggregate.c", str(most))])
    state.bind(pa.schema([("c.found", found_type(kind))]))
    return state


def found_type(kind: pa.DataType) -> pa.DataType:
    """As Spark gives it."""
    return pa.list_(pa.field("element", pa.struct([pa.field("at", pa.int64()), pa.field("value", kind)])))


def given_by_spark(kind: pa.DataType, *rows: Placed) -> pa.Table:
    found = [[{"at": at, "value": value} for at, value in row if value is not None] for row in rows]
    return pa.table({"c.found": pa.array(found, found_type(kind))})


def expected(function: str, most: int, values: Placed) -> list[Any]:
    """The same by Python: without nulls, the last ones, of a set each where it came last."""
    known = [value for _, value in sorted(values, key=lambda each: each[0]) if value is not None]
    if function == SET:
        known = list(dict.fromkeys(reversed(known)))[::-1]
    return known[-most:]


def parts(values: Placed, cuts: Sequence[int]) -> list[Placed]:
    ends = sorted({cut % (len(values) + 1) for cut in cuts} | {len(values)})
    return [values[start:end] for start, end in zip([0, *ends[:-1]], ends, strict=True)]


FUNCTIONS = st.sampled_from([LIST, SET])
MOST = st.integers(1, 6)
CUTS = st.lists(st.integers(0, 50), max_size=5)
KINDS: dict[pa.DataType, st.SearchStrategy[Any]] = {
    pa.int64(): st.integers(0, 5) | st.sampled_from([-(2**63), 2**63 - 1]),
    pa.int32(): st.integers(0, 3),
    pa.float64(): st.sampled_from([1.5, -2.25, 1e300, 3.0]),
    pa.string(): st.text(max_size=2) | st.sampled_from(["", '"', "\x00", "null"]),
    pa.bool_(): st.booleans(),
    pa.date32(): st.dates(),
    TIME: st.datetimes(timezones=st.just(dt.UTC)),
}


@settings(max_examples=examples(80))
@given(st.data(), FUNCTIONS, MOST, st.sampled_from(list(KINDS)), CUTS)
def test_lists_do_not_depend_on_batches(
    data: st.DataObject, function: str, most: int, kind: Any, cuts: list[int]
) -> None:
    values = list(enumerate(data.draw(st.lists(st.none() | KINDS[kind], max_size=20))))
    state = state_of(function, most, kind)
    stored: list[bytes | None] = [None]
    for batch in parts(values, cuts):
        merged = state.merge(state.decode(stored), state.of_batch(given_by_spark(kind, batch)))
        stored = list(state.encode(merged))
    (found,) = state.finish(state.decode(stored))["c"].to_pylist()
    assert found == expected(function, most, values)
    # A query reads it from the stored text, a sink from the columns.
    assert [state.finish_value(each) for each in stored if each] == [
        orjson.loads(each) for each in json_rows(state.finish(state.decode(stored)))
    ]


@settings(max_examples=examples(80))
@given(st.data(), FUNCTIONS, MOST, st.lists(st.none() | st.integers(0, 4), max_size=12))
def test_sessions_that_become_one_have_their_values_in_the_order_of_offsets(
    data: st.DataObject, function: str, most: int, known: list[int | None]
) -> None:
    values = list(enumerate(known))
    sessions = data.draw(st.lists(st.integers(0, 2), min_size=len(values), max_size=len(values)))
    state = state_of(function, most, pa.int64())
    rows = [[each for each, mine in zip(values, sessions, strict=True) if mine == number] for number in range(3)]
    one, two, three = (state.of_batch(given_by_spark(pa.int64(), row)) for row in rows)
    for joined in (state.join(state.join(one, two), three), state.join(three, state.join(two, one))):
        assert state.finish(joined)["c"].to_pylist() == [expected(function, most, values)]


def test_each_row_has_its_own_list() -> None:
    state = state_of(LIST, 2, pa.int64())
    old = state.of_batch(given_by_spark(pa.int64(), [(0, 1)], [], [(1, 2), (3, 3)]))
    new = state.of_batch(given_by_spark(pa.int64(), [], [(4, 4)], [(5, 5)]))
    assert state.finish(state.merge(old, new))["c"].to_pylist() == [[1], [4], [3, 5]]


@pytest.mark.parametrize("function", [LIST, SET])
def test_the_values_of_a_topic_that_was_made_anew_come_after_the_old_ones(function: str) -> None:
    state = state_of(function, 2, pa.string())
    old, new = (state.of_batch(given_by_spark(pa.string(), [each])) for each in ((7, "a"), (0, "b")))
    assert state.finish(state.merge(old, new))["c"].to_pylist() == [["a", "b"]]
    newer = state.of_batch(given_by_spark(pa.string(), [(1, "c")]))
    assert state.finish(state.merge(state.merge(old, new), newer))["c"].to_pylist() == [["b", "c"]]


def test_what_is_stored_is_plain_json_that_others_can_read() -> None:
    state = state_of(SET, 3, TIME)
    time = dt.datetime(2024, 1, 2, 3, 4, 5, 60, tzinfo=dt.UTC)
    rows = state.of_batch(given_by_spark(TIME, [(4, time), (5, time)], []))
    assert state.encode(rows) == [
        b'{"c":{"at":[5],"values":["2024-01-02T03:04:05.000060Z"]}}',
        b'{"c":{"at":[],"values":[]}}',
    ]
    assert not state.stored_as_seen
    assert [state.finish_value(each) for each in state.encode(rows)] == [
        {"c": ["2024-01-02T03:04:05.000060Z"]},
        {"c": []},
    ]


def test_a_list_that_was_kept_longer_is_cut_with_the_next_record() -> None:
    stored = state_of(LIST, 5, pa.int64()).encode(
        state_of(LIST, 5, pa.int64()).of_batch(given_by_spark(pa.int64(), [(at, at) for at in range(5)]))
    )
    state = state_of(LIST, 2, pa.int64())
    merged = state.merge(state.decode(stored), state.of_batch(given_by_spark(pa.int64(), [(5, 5)])))
    assert state.finish(merged)["c"].to_pylist() == [[4, 5]]


@pytest.mark.parametrize("number", [math.nan, math.inf])
def test_what_json_has_no_number_for_is_text_in_a_list(number: float) -> None:
    state = state_of(LIST, 2, pa.float64())
    kept = state.of_batch(given_by_spark(pa.float64(), [(0, 1.0), (1, number)]))
    (value,) = state.encode(kept)
    assert orjson.loads(value)["c"]["values"] == [1.0, "NaN" if math.isnan(number) else "Infinity"]
    assert repr(state.decode([value]).to_pylist()) == repr(kept.to_pylist())


@pytest.mark.parametrize("kind", [pa.binary(), pa.decimal128(10, 2), pa.list_(pa.int64())])
def test_elements_that_json_can_not_keep_are_refused_with_their_field(kind: pa.DataType) -> None:
    with pytest.raises(InvalidApplicationException) as refused:
        state_of(LIST, 2, kind)
    assert [mistake.path for mistake in refused.value.mistakes] == ["aggregate.c"]


@pytest.mark.parametrize("value", [b'{"c":[1]}', b'{"c":1}', b'{"c":{"value":1,"seen":true}}', b'{"c":{"hll":"AA=="}}'])
def test_what_another_function_has_stored_is_an_error_and_not_an_empty_list(value: bytes) -> None:
    with pytest.raises(ProcessorStateException, match="give the store a new name"):
        state_of(LIST, 2, pa.int64()).decode([value])
    if value.startswith(b'{"c":{'):
        with pytest.raises(ValueError, match="is not the state of"):
            state_of(LIST, 2, pa.int64()).finish_value(value)
