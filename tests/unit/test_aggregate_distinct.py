"""count(distinct …): as many as Python's set has, wherever batches and sessions begin, and its limits."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import orjson
import pyarrow as pa
import pytest
from example_counts import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from streams_runtime.api.sql.aggregate_parameters import MOST_DISTINCT
from streams_runtime.batch.json_columns import json_rows
from streams_runtime.errors import FailedProcessingException, InvalidApplicationException, ProcessorStateException
from streams_runtime.processors.aggregates.grouped_parts import put_in_order
from streams_runtime.state.aggregates.aggregate_state import AggregateState
from streams_runtime.state.aggregates.distinct_values import MOST_BYTES
from streams_runtime.state.aggregates.merge_order import Mark, MergeStep, MergeSteps
from streams_runtime.topology.nodes.aggregate_node import Aggregate

PATH = "spec.topology.steps[0].aggregate.n"
NUMBERS = pa.int64()


def state_of(kind: pa.DataType = NUMBERS) -> AggregateState:
    state = AggregateState([Aggregate("n", "count_distinct", "x", PATH)])
    state.bind(pa.schema([("n.found", found_type(kind))]))
    return state


def found_type(kind: pa.DataType) -> pa.DataType:
    """As Spark's collect_set gives it."""
    return pa.list_(pa.field("element", kind))


def of_batch(state: AggregateState, rows: Sequence[Sequence[Any]], kind: pa.DataType = NUMBERS) -> pa.Table:
    found = [[value for value in row if value is not None] for row in rows]
    return state.of_batch(pa.table({"n.found": pa.array(found, found_type(kind))}))


def counts(state: AggregateState, rows: pa.Table) -> list[int]:
    found: list[int] = state.finish(rows)["n"].to_pylist()
    return found


def parts(values: Sequence[Any], cuts: Sequence[int]) -> list[Sequence[Any]]:
    ends = sorted({cut % (len(values) + 1) for cut in cuts} | {len(values)})
    return [values[start:end] for start, end in zip([0, *ends[:-1]], ends, strict=True)]


CUTS = st.lists(st.integers(0, 50), max_size=5)
KINDS: dict[pa.DataType, st.SearchStrategy[Any]] = {
    NUMBERS: st.integers(0, 5) | st.sampled_from([-(2**63), 2**63 - 1]),
    pa.int8(): st.integers(0, 3),
    pa.float64(): st.sampled_from([1.5, -2.25, 1e300, 0.1, 0.0, -0.0, math.inf, -math.inf]),
    pa.float32(): st.sampled_from([1.5, 0.25, 2.0**-140, 0.0, -0.0]),
    pa.string(): st.text(max_size=2) | st.sampled_from(["", '"', "\x00", "null"]),
    pa.binary(): st.binary(max_size=1),
    pa.bool_(): st.booleans(),
    pa.date32(): st.dates(),
    pa.timestamp("us", tz="UTC"): st.datetimes(timezones=st.just(dt.UTC)),
    pa.timestamp("us"): st.datetimes(),
    pa.decimal128(10, 2): st.sampled_from([Decimal(each) for each in ("1.00", "1", "-1", "0", "-0.0", "99999999.99")]),
    pa.decimal128(38, 10): st.sampled_from([Decimal(each) for each in ("1E-10", "2E-10", "1", "12345678.5")]),
}


@settings(max_examples=examples(120))
@given(st.data(), st.sampled_from(list(KINDS)), CUTS)
def test_it_is_the_size_of_pythons_set_wherever_batches_begin(data: st.DataObject, kind: Any, cuts: list[int]) -> None:
    values = data.draw(st.lists(st.none() | KINDS[kind], max_size=20))
    state = state_of(kind)
    stored: list[bytes | None] = [None]
    for batch in parts(values, cuts):
        stored = list(state.encode(state.merge(state.decode(stored), of_batch(state, [batch], kind))))
    expected = len({value for value in values if value is not None})
    assert counts(state, state.decode(stored)) == [expected]
    assert stored in ([None], state.encode(of_batch(state, [values], kind))), "the same bytes, as of one batch"
    # A query reads it from the stored text, a sink from the columns.
    assert [state.finish_value(each) for each in stored if each] == [{"n": expected}]
    assert [orjson.loads(each) for each in json_rows(state.finish(state.decode(stored)))] == [{"n": expected}]


@pytest.mark.parametrize(
    ("kind", "values", "expected"),
    [
        (pa.float64(), [math.nan, -math.nan, 0.0, -0.0, 1.0], 3),
        (pa.list_(NUMBERS), [[], [1], [1], [None], [1, 2], [2, 1]], 5),
        (pa.list_(pa.float64()), [[0.0], [-0.0], [math.nan], [math.nan]], 2),
        (
            pa.struct([("a", pa.float64()), ("b", pa.string())]),
            [{"a": 0.0, "b": "x"}, {"a": -0.0, "b": "x"}, {"a": None, "b": None}, {"a": math.nan, "b": "x"}],
            3,
        ),
    ],
)
def test_values_are_the_same_where_sql_says_so(kind: pa.DataType, values: list[Any], expected: int) -> None:
    state = state_of(kind)
    for first, second in ((values, values), (values[::2], values[1::2]), (values, [])):
        stored = state.encode(of_batch(state, [first], kind))
        assert counts(state, state.merge(state.decode(stored), of_batch(state, [second], kind))) == [expected]


def test_each_row_has_its_own_values() -> None:
    state = state_of()
    old, new = of_batch(state, [[1, 2], [], [3]]), of_batch(state, [[2, 3], [], []])
    assert counts(state, old) == [2, 0, 1]
    # Rows of a batch are put into another order before they meet the store.
    order = pa.array([2, 0, 1])
    both = state.merge(state.decode(state.encode(old)).take(order), new.take(order))
    assert counts(state, both) == [1, 3, 0]
    assert [orjson.loads(each)["n"]["values"] for each in state.encode(both)] == [[3], [1, 2, 3], []]


def test_a_pair_counts_where_neither_is_null() -> None:
    state = AggregateState([Aggregate("n", "count_distinct", "x", PATH, "y + 1", "z > 0")])
    (column,) = state.columns
    assert column.expression == (
        "collect_set(if((z > 0) and (x) is not null and (y + 1) is not null,"
        " struct((x) as `first`, (y + 1) as `second`), null))"
    )
    assert state.declared[0].call == "count(distinct x, y + 1) FILTER (WHERE z > 0)"


def test_what_is_stored_is_plain_json_that_others_can_read() -> None:
    time = pa.timestamp("us", tz="UTC")
    moment = dt.datetime(2024, 1, 2, 3, 4, 5, 60, tzinfo=dt.UTC)
    for kind, value, shown in (
        (NUMBERS, 7, b"7"),
        (pa.decimal128(10, 2), Decimal(1), b'"1.00"'),
        (time, moment, b'"2024-01-02T03:04:05.000060Z"'),
        (pa.float64(), math.nan, b'"NaN"'),
    ):
        state = state_of(kind)
        stored = state.encode(of_batch(state, [[value, value], []], kind))
        assert stored == [b'{"n":{"values":[%b]}}' % shown, b'{"n":{"values":[]}}']
    assert not state.stored_as_seen


Steps = list[tuple[str, list[int | None]]]
"""What a sequence does: begin with a stored state, add a record or put together what the last two came to."""


@st.composite
def sequences(draw: st.DrawFn) -> Steps:
    """As sessions have them: what was there is put together before the record that made one of it."""
    numbers = st.lists(st.none() | st.integers(0, 6), max_size=3)
    found: Steps = []
    sessions = draw(st.integers(1, 3))
    for number in range(sessions):
        found.append(("stored" if draw(st.booleans()) else "begin", draw(numbers)))
        found += [("record", draw(numbers)) for _ in range(draw(st.integers(0, 3)))]
        if number:
            found.append(("merge", []))
            found += [("record", draw(numbers)) for _ in range(draw(st.integers(1, 2)))]
    return [*found, ("record", draw(numbers))]


def by_hand(steps: Steps) -> list[set[int]]:
    """The values after each record."""
    stack: list[set[int]] = []
    after = []
    for what, values in steps:
        known = {value for value in values if value is not None}
        match what:
            case "merge":
                later = stack.pop()
                stack[-1] = stack[-1] | later
            case "record":
                stack[-1] = stack[-1] | known
                after.append(stack[-1])
            case "begin":
                stack.append(set())
            case _:
                stack.append(known)
    return after


def rows_of(state: AggregateState, several: Sequence[Steps]) -> tuple[pa.Table, list[MergeSteps]]:
    """Stored states and then a batch's records, and the sequences as numbers of these rows."""
    stored = [values for steps in several for what, values in steps if what == "stored"]
    records = [values for steps in several for what, values in steps if what == "record"]
    rows = [state.decode(state.encode(of_batch(state, stored))), of_batch(state, records)]
    counted = {"stored": iter(range(len(stored))), "record": iter(range(len(stored), len(stored) + len(records)))}
    marks = {"begin": Mark.BEGIN, "merge": Mark.MERGE}
    numbered: list[MergeSteps] = []
    for steps in several:
        row: list[MergeStep] = [marks[what] if what in marks else next(counted[what]) for what, _ in steps]
        numbered.append(row)
    return pa.concat_tables(rows), numbered


@settings(max_examples=examples(120))
@given(st.lists(sequences(), min_size=1, max_size=4))
def test_sessions_that_become_one_have_the_values_of_all(several: list[Steps]) -> None:
    state = state_of()
    rows, numbered = rows_of(state, several)
    left = [by_hand(steps)[-1] for steps in several]
    together = put_in_order(state, rows, numbered, state.join, str)
    assert counts(state, together) == [len(each) for each in left]
    assert [orjson.loads(each)["n"]["values"] for each in state.encode(together)] == [sorted(each) for each in left]


@settings(max_examples=examples(120))
@given(st.lists(sequences(), min_size=1, max_size=4))
def test_after_each_record_it_is_what_there_is_by_then(several: list[Steps]) -> None:
    state = state_of()
    rows, numbered = rows_of(state, several)
    after = [each for steps in several for each in by_hand(steps)]
    begun = state.without_sets(rows).take(pa.array([0] * len(after)))
    found = state.per_update(rows, numbered, begun, str)
    assert counts(state, found) == [len(each) for each in after]
    assert [{*orjson.loads(each)["n"]["values"]} for each in state.encode(found)] == after
    # What comes of it meets a batch as any stored state does.
    again = state.merge(state.decode(state.encode(found)), of_batch(state, [[99]] * len(after)))
    assert counts(state, again) == [len(each) + 1 for each in after]


def test_the_values_of_many_records_are_not_copied() -> None:
    """Each record's state has all values before it: there would be 80 million of them."""
    state, records = state_of(), 8000
    rows = of_batch(state, [[number] for number in range(MOST_DISTINCT, MOST_DISTINCT - records, -1)])
    old = state.decode(state.encode(of_batch(state, [range(MOST_DISTINCT)])))
    found = state.per_update(pa.concat_tables([old, rows]), [range(records + 1)], state.without_sets(rows), str)
    assert counts(state, found) == [MOST_DISTINCT + 1] * records
    assert found.nbytes < 2_000_000


def test_more_values_than_the_limit_are_an_error_of_the_record_that_brings_them() -> None:
    state = state_of()
    full = of_batch(state, [[1], range(MOST_DISTINCT)])
    stored = state.encode(full)
    assert counts(state, state.decode(stored)) == [1, MOST_DISTINCT]
    # Any of those that are there may come again.
    assert state.encode(state.merge(state.decode(stored), of_batch(state, [[], [MOST_DISTINCT - 1]])))
    more = state.merge(state.decode(stored), of_batch(state, [[2], [MOST_DISTINCT]]))
    with pytest.raises(FailedProcessingException) as failed:
        state.encode(more, lambda row: f"the key {row}")
    assert failed.value.of_a_record
    assert failed.value.reason == f"{PATH}: count(distinct x) has more than 10,000 different values for the key 1"
    assert "approx_count_distinct(x)" in str(failed.value)


def test_the_values_of_a_key_are_shorter_than_a_record_may_be() -> None:
    state = AggregateState([Aggregate(name, "count_distinct", "x", f"a.{name}") for name in ("n", "m")])
    kind = found_type(pa.string())
    state.bind(pa.schema([("n.found", kind), ("m.found", kind)]))

    def stored(length: int) -> list[bytes]:
        texts = [f"{number:0{length}}" for number in range(500)]
        return state.encode(state.of_batch(pa.table({f"{name}.found": pa.array([texts], kind) for name in ("n", "m")})))

    (long,) = stored(700)
    assert len(long) < MOST_BYTES
    # Each of them is short enough by itself.
    with pytest.raises(FailedProcessingException, match=r"a\.n: count\(distinct x\) has different values of 903,002"):
        stored(900)


@pytest.mark.parametrize("kind", [pa.map_(pa.string(), NUMBERS), pa.list_(pa.map_(pa.string(), NUMBERS)), pa.null()])
def test_values_that_json_can_not_keep_are_refused_with_their_field(kind: pa.DataType) -> None:
    with pytest.raises(InvalidApplicationException) as refused:
        state_of(kind)
    assert [mistake.path for mistake in refused.value.mistakes] == [PATH]


@pytest.mark.parametrize("value", [b'{"n":7}', b'{"n":{"at":[1],"values":[1]}}', b'{"n":{"hll":"AA=="}}', b'{"m":1}'])
def test_what_another_function_has_stored_is_an_error_and_not_nothing(value: bytes) -> None:
    with pytest.raises(ProcessorStateException, match="give the store a new name"):
        state_of().decode([value])


def test_a_stored_value_without_values_is_an_error_of_the_query() -> None:
    with pytest.raises(ValueError, match="is not the state of"):
        state_of().finish_value(b'{"n":{"hll":"AA=="}}')
