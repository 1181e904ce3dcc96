"""Running aggregates: batches one after the other give what one batch of all rows gives, and lie there as JSON."""

from __future__ import annotations

import datetime as dt
import math
import operator
import statistics
from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any

import orjson
import pyarrow as pa
import pytest
from example_counts import examples
from hypothesis import example, given, settings
from hypothesis import strategies as st

from streams_runtime.batch.json_columns import json_rows
from streams_runtime.errors import (
    InvalidApplicationException,
    NotSupportedException,
    ProcessorStateException,
    StreamsException,
)
from streams_runtime.state.aggregates.aggregate_kinds import kind_of
from streams_runtime.state.aggregates.aggregate_state import AggregateState
from streams_runtime.state.aggregates.ordered_sums import Folding
from streams_runtime.topology.nodes.aggregate_node import Aggregate

PATH = "spec.topology.steps[3].aggregate"
LEAST, MOST = -(2**63), 2**63 - 1
UTC = dt.UTC

TIME = pa.timestamp("us", tz="UTC")
LISTED = pa.struct([("at", pa.int64()), ("record", pa.float64())])
LOCAL_TIME = pa.timestamp("us")
# Types that min and max keep, with values that JSON and comparisons may trip over.
VALUES: dict[pa.DataType, st.SearchStrategy[Any]] = {
    pa.int64(): st.integers(LEAST, MOST) | st.sampled_from([LEAST, MOST, 2**53 + 1, -(2**53) - 1]),
    pa.int32(): st.integers(-(2**31), 2**31 - 1),
    pa.int16(): st.integers(-(2**15), 2**15 - 1),
    pa.int8(): st.integers(-128, 127),
    pa.float64(): st.floats(allow_nan=False, allow_infinity=False),
    pa.float32(): st.floats(allow_nan=False, allow_infinity=False, width=32),
    pa.bool_(): st.booleans(),
    pa.string(): st.text(max_size=5) | st.sampled_from(['"', "\\", "\x00\n\u2028", "flüge", "\U0001f600", "null"]),
    pa.date32(): st.dates(),
    TIME: st.datetimes(timezones=st.just(UTC)),
    LOCAL_TIME: st.datetimes(),
}
KINDS = list(VALUES)


def aggregate(column: str, function: str, argument: str | None = "x") -> Aggregate:
    return Aggregate(column, function, argument, f"{PATH}.{column}")


def state_of(*columns: tuple[str, str, pa.DataType]) -> AggregateState:
    """An aggregate of (column, function, type of the result), as Spark's analysis would bind it."""
    of_doubles = {name for name, function, kind in columns if (function, kind) == ("sum", pa.float64())}
    state = AggregateState([aggregate(name, function) for name, function, _ in columns], of_doubles=of_doubles)
    fields: list[tuple[str, pa.DataType]] = []
    for name, function, kind in columns:
        found = kind_of(aggregate(name, function), of_doubles=name in of_doubles)
        assert found is not None
        if isinstance(found, Folding):
            fields.append((f"{name}.found", pa.list_(LISTED)))
        else:
            fields += [(f"{name}.{part}", found.kept.get(part, kind)) if part else (name, kind) for part in found.parts]
    state.bind(pa.schema(fields))
    return state


def table(state: AggregateState, *rows: Sequence[Any]) -> pa.Table:
    """Rows of state columns; those that only pass are null."""
    schema = state._bound()
    kept = [field for field in schema if not field.name.endswith(".values")]
    columns = list(zip(*rows, strict=True)) if rows else [[] for _ in kept]
    found = {f.name: pa.array(c, f.type) for c, f in zip(columns, kept, strict=True)}
    return pa.table([found.get(f.name, pa.nulls(len(rows), f.type)) for f in schema], schema=schema)


def rows_of(found: pa.Table) -> list[tuple[Any, ...]]:
    return [tuple(row.values()) for row in found.drop_columns(passing_in(found)).to_pylist()]


def passing_in(found: pa.Table) -> list[str]:
    """Columns of what has been added, of which nothing is left."""
    names = [name for name in found.column_names if name.endswith(".values")]
    assert all(found[name].null_count == len(found) for name in names)
    return names


def given_by_spark(state: AggregateState, function: str, values: Sequence[Any]) -> pa.Table:
    """State of a batch of one key's values."""
    if state.lists_in_order:
        # Spark collects them in any order.
        listed = [{"at": at, "record": value} for at, value in enumerate(values) if value is not None][::-1]
        return state.of_batch(pa.table({"x.found": pa.array([listed], pa.list_(LISTED))}))
    return table(state, partial(function, values))


def partial(function: str, values: Sequence[Any]) -> tuple[Any, ...]:
    """What Spark gives for a batch's values of one key."""
    known = [value for value in values if value is not None]
    found: dict[str, Callable[[], tuple[Any, ...]]] = {
        "count": lambda: (len(known),),
        "avg": lambda: (float(added_up(known)) if known else None, len(known)),
        "sum": lambda: (added_up(known) if known else None,),
        "min": lambda: (min(known, default=None),),
        "max": lambda: (max(known, default=None),),
        "bool_and": lambda: (all(known) if known else None,),
        "bool_or": lambda: (any(known) if known else None,),
        # A value's place is its offset.
        "first": lambda: min(values, default=(None, None), key=lambda each: each[0]),
        "last": lambda: max(values, default=(None, None), key=lambda each: each[0]),
    }
    return found.get(function, lambda: spread(known))()


def added_up(known: Sequence[Any]) -> Any:
    """One after the other: Python's own sum is more exact in later versions."""
    return reduce(operator.add, known, 0)


def spread(known: Sequence[float]) -> tuple[Any, ...]:
    if not known:
        return (0, None, None)
    return (len(known), statistics.fmean(known), statistics.pvariance(known) * len(known))


def batched(values: Sequence[Any], cuts: Sequence[int]) -> list[Sequence[Any]]:
    ends = sorted({cut % (len(values) + 1) for cut in cuts} | {len(values)})
    return [values[start:end] for start, end in zip([0, *ends[:-1]], ends, strict=True)]


def fold(function: str, kind: pa.DataType, values: Sequence[Any], cuts: Sequence[int]) -> list[tuple[Any, ...]]:
    """The state after the batches, each stored as JSON and read again before the next one comes."""
    state = state_of(("x", function, kind))
    stored: list[bytes | None] = [None]
    for batch in batched(values, cuts):
        merged = state.merge(state.decode(stored), given_by_spark(state, function, batch))
        stored = list(state.encode(merged))
    return rows_of(state.decode(stored))


CUTS = st.lists(st.integers(0, 50), max_size=5)


@settings(max_examples=examples(60))
@given(st.data(), st.sampled_from(["min", "max"]), st.sampled_from(KINDS), CUTS)
def test_min_and_max_do_not_depend_on_batches(data: st.DataObject, function: str, kind: Any, cuts: list[int]) -> None:
    values = data.draw(st.lists(st.none() | VALUES[kind], max_size=20))
    assert fold(function, kind, values, cuts) == [partial(function, values)]


@settings(max_examples=examples(40))
@given(st.sampled_from(["bool_and", "bool_or"]), st.lists(st.none() | st.booleans(), max_size=8), CUTS)
@example("bool_and", [None, False, True], [1, 2])
@example("bool_or", [None, None], [1])
def test_conditions_of_records_do_not_depend_on_batches(
    function: str, values: list[bool | None], cuts: list[int]
) -> None:
    assert fold(function, pa.bool_(), values, cuts) == [partial(function, values)]


DOUBLES = st.floats(-1e9, 1e9) | st.sampled_from([0.1, 0.2, 0.3, 1e16, -1e16, 1.0])


@settings(max_examples=examples(40))
@given(st.data(), st.sampled_from(["sum", "avg", "count"]), st.sampled_from([pa.int64(), pa.float64()]), CUTS)
def test_sum_avg_and_count_do_not_depend_on_batches(
    data: st.DataObject, function: str, kind: Any, cuts: list[int]
) -> None:
    numbers = st.integers(-(2**58), 2**58) if kind == pa.int64() and function == "sum" else DOUBLES
    values = data.draw(st.lists(st.none() | numbers, max_size=20))
    if kind == pa.int64() and function != "sum":
        kind = pa.int64() if function == "count" else pa.float64()
    assert fold(function, pa.int64() if function == "count" else kind, values, cuts) == [partial(function, values)]


@settings(max_examples=examples(60))
@given(st.data(), st.sampled_from(["first", "last"]), st.sampled_from(KINDS), CUTS)
def test_first_and_last_do_not_depend_on_batches(
    data: st.DataObject, function: str, kind: Any, cuts: list[int]
) -> None:
    values = list(enumerate(data.draw(st.lists(st.none() | VALUES[kind], min_size=1, max_size=20))))
    assert fold(function, kind, values, cuts) == [partial(function, values)]


@settings(max_examples=examples(60))
@given(st.sampled_from(["first", "last"]), st.permutations(range(6)), st.integers(0, 6))
def test_first_and_last_of_two_sessions_are_those_by_their_offsets(function: str, offsets: list[int], cut: int) -> None:
    state = state_of(("x", function, pa.int64()))
    one, other = ([(at, -at) for at in part] for part in (offsets[:cut], offsets[cut:]))
    joined = state.join(table(state, partial(function, one)), table(state, partial(function, other)))
    assert rows_of(joined) == [partial(function, [*one, *other])]


def test_the_last_of_a_topic_that_was_made_anew_is_that_of_the_later_batch() -> None:
    state = state_of(("old", "first", pa.string()), ("new", "last", pa.string()))
    before, after = table(state, (7, "a", 7, "a")), table(state, (0, "b", 0, "b"))
    assert state.finish(state.merge(before, after)).to_pylist() == [{"old": "a", "new": "b"}]


# None so small that its square is 0.
THOUSANDTHS = st.integers(-(10**9), 10**9).map(lambda number: number / 1000)
SPREADS = {
    "var_pop": statistics.pvariance,
    "var_samp": statistics.variance,
    "variance": statistics.variance,
    "stddev_pop": statistics.pstdev,
    "stddev_samp": statistics.stdev,
    "stddev": statistics.stdev,
}


@settings(max_examples=examples(60))
@given(st.sampled_from(list(SPREADS)), st.lists(st.none() | THOUSANDTHS, max_size=20), CUTS)
@example("stddev", [1e9 + 1, 1e9 + 2, 1e9 + 3], [1, 2])
@example("stddev", [0.1, 0.2, 0.3, 0.7], [1])
def test_variances_do_not_depend_on_batches(function: str, values: list[float | None], cuts: list[int]) -> None:
    state = state_of(("x", function, pa.float64()))
    whole = fold(function, pa.float64(), values, cuts)
    assert whole == fold(function, pa.float64(), values, [])
    parts = table(state, *whole)
    (found,) = state.finish(parts)["x"].to_pylist()
    known = [value for value in values if value is not None]
    if len(known) < (1 if function.endswith("_pop") else 2):
        assert found is None
    else:
        expected = SPREADS[function](known)
        assert found == pytest.approx(expected, rel=1e-6, abs=1e-6)
    assert state.finish_value(state.encode(parts)[0]) == {"x": found}


@settings(max_examples=examples(60))
@given(st.data(), st.sampled_from(KINDS))
def test_state_comes_back_from_json_as_it_was(data: st.DataObject, kind: Any) -> None:
    state = state_of(("m", "max", kind), ("a", "avg", pa.float64()), ("n", "count", pa.int64()))
    row = st.tuples(
        st.none() | VALUES[kind],
        st.none() | st.floats(),
        st.none() | st.integers(0, MOST),
        st.none() | st.integers(0, MOST),
    )
    rows = data.draw(st.lists(row, max_size=8))
    encoded = state.encode(table(state, *rows))
    for value in encoded:
        assert list(orjson.loads(value)) == ["m", "a", "n"]
    decoded = state.decode([*encoded, None])
    assert decoded.schema == state._bound()
    expected = table(state, *rows, (None, None, None, None))
    assert repr(decoded.to_pylist()) == repr(expected.to_pylist())


def test_stored_state_is_plain_json_that_others_can_read() -> None:
    state = state_of(
        ("at", "max", TIME), ("day", "min", pa.date32()), ("a", "avg", pa.float64()), ("s", "max", pa.string())
    )
    time = dt.datetime(2024, 1, 2, 3, 4, 5, 60, tzinfo=UTC)
    assert state.encode(table(state, (time, dt.date(2024, 1, 2), 1.5, 2, 'ü"'), (None, None, None, 0, None))) == [
        '{"at":"2024-01-02T03:04:05.000060Z","day":"2024-01-02","a":{"sum":1.5,"count":2},"s":"ü\\""}'.encode(),
        b'{"at":null,"day":null,"a":{"sum":null,"count":0},"s":null}',
    ]


def test_rows_without_any_state_are_rows_of_nulls() -> None:
    for kind in KINDS:
        state = state_of(("m", "max", kind), ("a", "avg", pa.float64()))
        assert rows_of(state.decode([None, None])) == [(None, None, None)] * 2
        assert rows_of(state.decode([])) == []
        assert state.encode(state.decode([])) == []


@pytest.mark.parametrize(("old", "new"), [(MOST, 1), (LEAST, -1), (MOST, MOST)])
@pytest.mark.parametrize("function", ["sum", "count"])
def test_a_total_that_leaves_bigint_is_an_error_that_names_its_field(function: str, old: int, new: int) -> None:
    state = state_of(("n", "count", pa.int64()), ("total", function, pa.int64()))
    with pytest.raises(StreamsException, match=rf"{PATH}.total".replace("[", r"\[")) as refused:
        state.merge(table(state, (1, 1), (1, old)), table(state, (1, 1), (1, new)))
    assert "BIGINT" in str(refused.value)
    assert "cast the argument to DOUBLE" in str(refused.value)


def test_the_last_number_of_bigint_is_still_in_its_range() -> None:
    state = state_of(("total", "sum", pa.int64()))
    assert rows_of(state.merge(table(state, (MOST - 1,), (LEAST + 1,)), table(state, (1,), (-1,)))) == [
        (MOST,),
        (LEAST,),
    ]


NOT_FINITE = [math.nan, math.inf, -math.inf]


@pytest.mark.parametrize("number", NOT_FINITE)
@pytest.mark.parametrize("function", ["sum", "avg", "max", "variance"])
def test_what_json_has_no_number_for_stands_there_as_text_and_spoils_its_own_key_only(
    function: str, number: float
) -> None:
    state = state_of(("m", function, pa.float64()), ("n", "count", pa.int64()))
    bad = {"avg": (number, 1), "variance": (2, 1.0, number)}.get(function, (number,))
    good = {"avg": (3.0, 2), "variance": (2, 1.0, 0.5)}.get(function, (1.5,))
    rows = table(state, (*good, 1), (*bad, 2), (*good, 3))
    encoded = state.encode(rows)
    text = {math.inf: "Infinity", -math.inf: "-Infinity"}.get(number, "NaN")
    assert f'"{text}"' in encoded[1].decode()
    assert orjson.loads(encoded[1])["n"] == 2
    assert repr(rows_of(state.decode([*encoded, None]))[:3]) == repr(rows_of(rows))
    seen = [orjson.loads(each) for each in json_rows(state.finish(rows))]
    assert [state.finish_value(each) for each in encoded] == seen
    assert seen[1]["m"] == text
    assert seen[0]["m"] == seen[2]["m"]


def test_a_sum_goes_on_with_what_json_has_no_number_for() -> None:
    state = state_of(("x", "sum", pa.float64()))
    for values, text in ([1.7e308, 1.7e308, -1.7e308], "Infinity"), ([1.0, math.inf, -math.inf, 5.0], "NaN"):
        for cuts in range(len(values)):
            parts = fold("sum", pa.float64(), values, [cuts])
            assert state.encode(table(state, *parts)) == [f'{{"x":"{text}"}}'.encode()]


@pytest.mark.parametrize(("function", "found"), [("min", 1.0), ("max", math.nan)])
def test_nan_is_larger_than_all_wherever_batches_begin(function: str, found: float) -> None:
    for values in ([1.0, math.nan], [math.nan, 1.0]):
        state = state_of(("x", function, pa.float64()))
        one, other = (table(state, (value,)) for value in values)
        assert repr(rows_of(state.merge(one, other))) == repr([(found,)])


def test_there_is_one_zero_for_min_and_max() -> None:
    state = state_of(("x", "min", pa.float64()))
    assert repr(rows_of(state.of_batch(table(state, (-0.0,))))) == "[(0.0,)]"


def test_the_average_of_nothing_is_null() -> None:
    state = state_of(("a", "avg", pa.float64()))
    rows = table(state, (None, None), (None, 0), (0.0, 0), (3.0, 2))
    assert state.finish(rows)["a"].to_pylist() == [None, None, None, 1.5]
    seen = [state.finish_value(value)["a"] for value in state.encode(rows)]
    assert seen == [None, None, None, 1.5]
    assert state.finish_value(b'{"a":null}') == {"a": None}


@settings(max_examples=examples(30))
@given(st.data(), st.sampled_from(KINDS))
def test_one_value_is_finished_as_a_column_is(data: st.DataObject, kind: Any) -> None:
    state = state_of(("m", "max", kind), ("a", "avg", pa.float64()))
    row = st.tuples(st.none() | VALUES[kind], DOUBLES, st.integers(0, 2**53))
    rows = table(state, *data.draw(st.lists(row, min_size=1, max_size=5)))
    seen = [orjson.loads(each) for each in json_rows(state.finish(rows))]
    assert [state.finish_value(value) for value in state.encode(rows)] == seen


def test_only_an_average_is_stored_in_another_form_than_it_is_seen() -> None:
    assert state_of(("m", "max", pa.int64()), ("n", "count", pa.int64())).stored_as_seen
    assert not state_of(("m", "max", pa.int64()), ("a", "avg", pa.float64())).stored_as_seen


@pytest.mark.parametrize(
    "value",
    [
        b"{",
        b"[1]",
        b"1",
        b'{"n":"text","total":1}',
        b"\xff",
        b'{"other":1}',
        b'{"n":1}',
        b"null",
    ],
)
def test_a_stored_value_of_something_else_is_an_error_and_not_a_null(value: bytes) -> None:
    state = state_of(("n", "count", pa.int64()), ("total", "sum", pa.int64()))
    with pytest.raises(ProcessorStateException, match="give the store a new name") as refused:
        state.decode([b'{"n":1,"total":2}', value])
    assert PATH in str(refused.value)


def test_a_query_for_a_value_that_is_no_state_is_a_value_error() -> None:
    state = state_of(("n", "count", pa.int64()))
    for value in (b"{", b"[1]", b"1"):
        with pytest.raises(ValueError, match=r"."):
            state.finish_value(value)


@pytest.mark.parametrize(
    "kind", [pa.decimal128(10, 2), pa.list_(pa.decimal128(10, 2)), pa.map_(pa.string(), pa.int64())]
)
def test_types_that_json_can_not_keep_are_refused_with_their_field(kind: pa.DataType) -> None:
    with pytest.raises(InvalidApplicationException) as refused:
        state_of(("good", "max", pa.int64()), ("one", "max", kind), ("two", "min", kind))
    assert [mistake.path for mistake in refused.value.mistakes] == [f"{PATH}.one", f"{PATH}.two"]
    assert str(kind) in refused.value.mistakes[0].found


def test_an_unknown_function_is_refused_by_name() -> None:
    with pytest.raises(
        NotSupportedException, match=r"steps\[3\]\.aggregate\.p: the aggregate percentile is not there yet"
    ):
        AggregateState([aggregate("p", "percentile")])


DOUBLE = "cast((x) as double)"
EXPRESSIONS: list[tuple[str, str | None, list[str]]] = [
    ("count", None, ["count(1)"]),
    ("count", "x", ["count(x)"]),
    ("sum", "a + 1", ["sum(a + 1)"]),
    ("min", "x", ["min(x)"]),
    ("max", "x", ["max(x)"]),
    ("count_if", "x > 1", ["count_if(x > 1)"]),
    ("bool_and", "x", ["bool_and(x)"]),
    ("bool_or", "x", ["bool_or(x)"]),
    ("any_value", "x", ["min(x)"]),
    ("first", "x", ["min(_offset)", "min_by(x, _offset)"]),
    ("last", "x", ["max(_offset)", "max_by(x, _offset)"]),
    (
        "stddev",
        "x",
        [f"collect_list(if({DOUBLE} is null, null, struct(cast(_record_order as bigint) as at, {DOUBLE} as record)))"],
    ),
]


FILTERED: list[tuple[Aggregate, list[str]]] = [
    (Aggregate("c", "count", None, PATH, condition="a"), ["count(if((a), (1), null))"]),
    (Aggregate("c", "max", "x", PATH, condition="a"), ["max(if((a), (x), null))"]),
    (
        Aggregate("c", "first", "x", PATH, condition="a"),
        ["min(if((a), (_offset), null))", "min_by(x, if((a), (_offset), null))"],
    ),
    (
        Aggregate("c", "max_by", "x", PATH, "y", "a"),
        ["max(if((a) and (y) is not null, struct((y) as `by`, (x) as value), null))"],
    ),
]


@pytest.mark.parametrize(("declared", "expected"), FILTERED)
def test_spark_leaves_out_what_a_filter_leaves_out(declared: Aggregate, expected: list[str]) -> None:
    assert [column.expression for column in AggregateState([declared]).columns] == expected


def test_what_is_added_in_order_is_listed_of_the_records_that_a_filter_leaves() -> None:
    (column,) = AggregateState([Aggregate("c", "avg", "x", PATH, condition="a")]).columns
    assert column.listed == "cast((if((a), (x), null)) as double)"


BY = pa.struct([("by", pa.float64()), ("value", pa.string())])
NUMBERS = st.sampled_from([None, -1.5, -0.0, 0.0, 2.0, math.nan, math.inf])


def _best(function: str, pairs: Sequence[tuple[float | None, str | None]]) -> tuple[float, str | None] | None:
    """What Spark gives of a batch: the largest or smallest struct, null the least and NaN the largest."""
    known = [(0.0 if by == 0 else by, value) for by, value in pairs if by is not None]
    found = max if function == "max_by" else min
    return found(
        known, key=lambda each: (math.isnan(each[0]), each[0], each[1] is not None, each[1] or ""), default=None
    )


@settings(max_examples=examples(80))
@given(
    st.sampled_from(["max_by", "min_by"]),
    st.lists(st.tuples(NUMBERS, st.sampled_from([None, "a", "b", "ä"])), max_size=6),
    CUTS,
)
@example("max_by", [(1.0, None), (1.0, "a")], [1])
@example("min_by", [(1.0, "a"), (1.0, None)], [1])
@example("max_by", [(math.nan, "a"), (math.inf, "b")], [1])
@example("min_by", [(None, "a"), (math.nan, "b")], [1])
def test_what_goes_by_another_value_does_not_depend_on_batches(
    function: str, pairs: list[tuple[float | None, str | None]], cuts: list[int]
) -> None:
    state = AggregateState([Aggregate("x", function, "s", PATH, "n")])
    state.bind(pa.schema([("x.found", BY)]))
    stored: list[bytes | None] = [None]
    for part in batched(pairs, cuts):
        best = _best(function, part)
        given = pa.array([best and {"by": best[0], "value": best[1]}], BY)
        merged = state.merge(state.decode(stored), state.of_batch(pa.table({"x.found": given})))
        stored = list(state.encode(merged))
    expected = _best(function, pairs)
    found = state.decode(stored)
    assert repr(rows_of(found)) == repr([expected or (None, None)])
    assert state.finish(found)["x"].to_pylist() == [expected[1] if expected else None]
    assert state.finish_value(stored[0] or b"") == {"x": expected[1] if expected else None}


@pytest.mark.parametrize("kinds", [(pa.decimal128(10, 2), pa.string()), (pa.int64(), pa.decimal128(10, 2))])
def test_a_type_that_is_not_kept_is_refused_on_either_side_of_by(kinds: tuple[pa.DataType, pa.DataType]) -> None:
    state = AggregateState([Aggregate("x", "max_by", "s", PATH, "n")])
    with pytest.raises(InvalidApplicationException, match="are not there yet"):
        state.bind(pa.schema([("x.found", pa.struct(list(zip(("by", "value"), kinds, strict=True))))]))


@pytest.mark.parametrize(("function", "argument", "expected"), EXPRESSIONS)
def test_spark_computes_what_the_function_says(function: str, argument: str | None, expected: list[str]) -> None:
    state = AggregateState([aggregate("c", function, argument)])
    assert [column.expression for column in state.columns] == expected
