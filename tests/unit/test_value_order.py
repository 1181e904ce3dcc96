"""max, min, max_by and top of structs, arrays and bytes: Spark's order of them, wherever batches begin."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import cmp_to_key
from typing import Any

import orjson
import pyarrow as pa
import pytest
from example_counts import examples
from hypothesis import example, given, settings
from hypothesis import strategies as st

from streams_runtime.batch.json_columns import json_rows
from streams_runtime.errors import InvalidApplicationException
from streams_runtime.state.aggregates.aggregate_state import AggregateState
from streams_runtime.topology.nodes.aggregate_node import Aggregate

PATH = "spec.topology.steps[0].aggregate.m"
NUMBER, NUMBERS = pa.int64(), pa.list_(pa.int64())
PAIR = pa.struct([("a", pa.float64()), ("b", pa.string())])
DEEP = pa.struct([("l", NUMBERS), ("p", PAIR), ("ok", pa.bool_())])
floats = st.none() | st.sampled_from([0.0, -0.0, 1.5, math.nan, -math.inf])
lists = st.lists(st.none() | st.integers(0, 2), max_size=3)
texts = st.none() | st.sampled_from(["", "a", "ä", "\uffff", "\U0001f600"])
# In the order of the fields, which a dictionary of Hypothesis' has not.
pairs = st.tuples(floats, texts).map(lambda each: dict(zip("ab", each, strict=True)))
deep = st.tuples(st.none() | lists, st.none() | pairs, st.none() | st.booleans())
KINDS: dict[pa.DataType, st.SearchStrategy[Any]] = {
    NUMBERS: lists,
    PAIR: pairs,
    pa.list_(PAIR): st.lists(st.none() | pairs, max_size=2),
    DEEP: deep.map(lambda each: dict(zip(("l", "p", "ok"), each, strict=True))),
    pa.binary(): st.binary(max_size=2),
    pa.bool_(): st.booleans(),
}
CUTS = st.lists(st.integers(0, 50), max_size=4)


def compared(one: Any, other: Any) -> int:
    """Below, equal to or above 0, as Spark's InterpretedOrdering says it."""
    if one is None or other is None:
        return (one is not None) - (other is not None)
    if isinstance(one, dict):
        return compared(list(one.values()), list(other.values()))
    if isinstance(one, list):
        found = (compared(mine, theirs) for mine, theirs in zip(one, other, strict=False))
        return next((each for each in found if each), len(one) - len(other))
    if isinstance(one, float) and math.isnan(one) != math.isnan(other):
        return 1 if math.isnan(one) else -1
    return (one > other) - (one < other)


def largest(values: Sequence[Any]) -> list[Any]:
    return sorted(values, key=cmp_to_key(compared), reverse=True)


def with_one_zero(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: with_one_zero(each) for name, each in value.items()}
    if isinstance(value, list):
        return [with_one_zero(each) for each in value]
    return value + 0.0 if isinstance(value, float) else value


def state_of(function: str, given: pa.DataType, parameter: str | None = None) -> AggregateState:
    state = AggregateState([Aggregate("m", function, "x", PATH, parameter)])
    state.bind(pa.schema([("m" if parameter is None else "m.found", given)]))
    return state


def parts(values: Sequence[Any], cuts: Sequence[int]) -> list[Sequence[Any]]:
    ends = sorted({cut % (len(values) + 1) for cut in cuts} | {len(values)})
    return [values[start:end] for start, end in zip([0, *ends[:-1]], ends, strict=True)]


def kept(
    state: AggregateState, given: pa.DataType, batches: Sequence[Any], of_spark: Callable[[Any], Any]
) -> tuple[Any, bytes]:
    """What is kept after the batches, beside another key to which nothing comes, and how it is stored."""
    stored: list[bytes | None] = [None, None]
    for batch in batches:
        (column,) = state.columns
        made = state.of_batch(pa.table({column.name: pa.array([of_spark(batch), of_spark([])], given)}))
        stored = list(state.encode(state.merge(state.decode(stored), made)))
    found = state.finish(state.decode(stored))
    # A query reads it from the stored text, a sink from the columns.
    shown = [orjson.loads(each) for each in json_rows(found)]
    assert [state.finish_value(each) for each in stored if each] == shown
    return found["m"].to_pylist()[0], stored[0] or b""


@settings(max_examples=examples(100))
@given(st.data(), st.sampled_from(["max", "min", "any_value"]), st.sampled_from(list(KINDS)), CUTS)
def test_the_largest_and_the_least_are_those_of_spark(
    data: st.DataObject, function: str, kind: Any, cuts: list[int]
) -> None:
    values = data.draw(st.lists(st.none() | KINDS[kind], min_size=1, max_size=10))
    which = 0 if function == "max" else -1

    def of_spark(batch: Sequence[Any]) -> Any:
        known = [each for each in batch if each is not None]
        return largest(known)[which] if known else None

    found, stored = kept(state_of(function, kind), kind, parts(values, cuts), of_spark)
    assert str(found) == str(with_one_zero(of_spark(values)))
    assert stored == kept(state_of(function, kind), kind, [values], of_spark)[1], "the same bytes, as of one batch"


@settings(max_examples=examples(60))
@given(st.data(), st.sampled_from(list(KINDS)), st.sampled_from(list(KINDS)), CUTS)
def test_what_goes_by_such_values_and_the_greatest_of_them_are_those_of_spark(
    data: st.DataObject, by: Any, kind: Any, cuts: list[int]
) -> None:
    rows = data.draw(st.lists(st.tuples(KINDS[by], st.none() | KINDS[kind]), min_size=1, max_size=8))
    struct = pa.struct([("by", by), ("value", kind)])

    def ranked(batch: Sequence[Any]) -> list[Any]:
        return largest([{"by": y, "value": x} for y, x in batch])

    found, _ = kept(
        state_of("max_by", struct, "y"), struct, parts(rows, cuts), lambda batch: next(iter(ranked(batch)), None)
    )
    assert str(found) == str(with_one_zero(ranked(rows)[0]["value"]))
    found, _ = kept(
        state_of("top", pa.list_(struct), "y, 2"), pa.list_(struct), parts(rows, cuts), lambda batch: ranked(batch)[:2]
    )
    assert str(found) == str(with_one_zero([each["value"] for each in ranked(rows)[:2]]))


@example(pa.decimal128(10, 2))
@example(pa.list_(pa.decimal128(10, 2)))
@example(pa.struct([("a", pa.int64()), ("a", pa.int64())]))
@given(st.just(pa.struct([("a", pa.map_(pa.string(), pa.string()))])))
def test_what_can_not_be_kept_is_refused_with_its_field(kind: pa.DataType) -> None:
    with pytest.raises(InvalidApplicationException) as refused:
        state_of("max", kind)
    (mistake,) = refused.value.mistakes
    assert mistake.path == PATH
    assert "cast a DECIMAL" in mistake.remedy
