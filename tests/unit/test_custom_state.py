"""What a class in Python keeps: how it comes to be, lies in a store, and is found wrong, without Spark."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from typing import Any

import orjson
import pyarrow as pa
import pytest

from streams_runtime.errors import (
    ConfigException,
    InvalidApplicationException,
    ProcessorStateException,
    UserCodeException,
)
from streams_runtime.state.aggregates.aggregate_state import AggregateState
from streams_runtime.state.aggregates.merge_order import Mark, MergeSteps
from streams_runtime.state.aggregates.user_classes.user_class import user_class
from streams_runtime.topology.nodes.aggregate_node import Aggregate

TRAIL = pa.struct([("trail", pa.string()), ("n", pa.int64())])
TIME = dt.datetime(2024, 2, 29, 12, 0, 0, 123_456, dt.UTC)
RECORD = pa.struct([("a", pa.int64())])
NEWEST = pa.struct([("at", pa.timestamp("us", "UTC")), ("a", pa.int64()), ("half", pa.float64()), ("raw", pa.binary())])
RESULT = pa.struct([("days", pa.list_(pa.date32())), ("most", pa.float64())])


def found_type(record: pa.DataType) -> pa.DataType:
    """As Spark gives it."""
    return pa.list_(pa.field("element", pa.struct([pa.field("at", pa.int64()), pa.field("record", record)])))


def state_of(name: str, kind: pa.DataType = TRAIL, record: pa.DataType = RECORD, result: Any = None) -> AggregateState:
    state = AggregateState([Aggregate("c", "python", "struct(a)", "aggregate.c", f"custom_classes:{name}")])
    parts = [("c", kind)] if result is None else [("c.state", kind), ("c.result", result)]
    state.bind(pa.schema([*parts, ("c.topic", pa.string()), ("c.found", found_type(record))]))
    return state


def given_by_spark(state: AggregateState, *rows: Sequence[tuple[int, Any]], record: pa.DataType = RECORD) -> pa.Table:
    """A row for each list of offsets and numbers, or records."""
    found = [[{"at": at, "record": it if isinstance(it, dict) else {"a": it}} for at, it in row] for row in rows]
    *parts, _, _ = [column.name for column in state.columns]
    columns = {name: pa.nulls(len(rows), _part_type(state, name)) for name in parts}
    columns |= {"c.topic": pa.array(["in"] * len(rows)), "c.found": pa.array(found, found_type(record))}
    return pa.table(columns)


def _part_type(state: AggregateState, name: str) -> pa.DataType:
    return state.decode([None]).schema.field(name).type


def played(state: AggregateState, rows: pa.Table, *sequences: MergeSteps) -> pa.Table:
    return state.played(rows, sequences, rows.slice(0, len(sequences)), lambda number: f"the key {number}")


def trails(state: AggregateState, table: pa.Table) -> list[str]:
    return [orjson.loads(each)["c"]["trail"] for each in state.encode(table)]


def test_records_are_added_in_the_order_of_offsets_to_what_turns_say() -> None:
    state = state_of("Trail")
    stored = state.decode([b'{"c":{"trail":"old","n":3}}', None])
    batch = state.of_batch(given_by_spark(state, [(9, 3), (2, 1), (5, 2)], [(1, None)], [(7, 8)]))
    rows = pa.concat_tables([stored, batch])
    merge_steps: list[MergeSteps] = [
        [0, 2],
        [1, 2],
        [2, 4],
        [0, 2, 3],
        [0],
        [Mark.BEGIN, 2, 0, Mark.MERGE, 3, 4, Mark.MERGE],
    ]
    merge_steps[-1] = [Mark.BEGIN, 2, 0, Mark.MERGE, 3, Mark.BEGIN, 4, Mark.MERGE, 4]
    found = played(state, rows, *merge_steps)
    assert trails(state, found) == [
        "old,1,2,3",
        ",1,2,3",
        ",1,2,3,8",
        "old,1,2,3,null",
        "old",
        "[[,1,2,3|old],null|,8],8",
    ]
    assert orjson.loads(state.encode(found)[0]) == {"c": {"trail": "old,1,2,3", "n": 6}}
    assert state.stored_as_seen


def test_a_state_with_its_result_comes_back_from_the_store_as_it_was() -> None:
    state = state_of("Newest", pa.list_(NEWEST), NEWEST, RESULT)
    record = {"at": TIME, "a": -(2**63), "half": 0.1, "raw": b"\x00\xff"}
    nothing = {"at": TIME, "a": None, "half": None, "raw": None}
    batch = state.of_batch(given_by_spark(state, [(1, record), (0, nothing)], record=NEWEST))
    new = played(state, pa.concat_tables([state.decode([None]), batch]), [0, 1])
    (value,) = state.encode(new)
    kept = {"at": "2024-02-29T12:00:00.123456Z", "a": -(2**63), "half": 0.1, "raw": "AP8="}
    seen = {"days": ["2024-02-29", "2024-02-29"], "most": 0.1}
    gone = {"at": "2024-02-29T12:00:00.123456Z", "a": None, "half": None, "raw": None}
    assert orjson.loads(value) == {"c": {"state": [gone, kept], "result": seen}}
    assert state.finish_value(value) == {"c": seen}
    again = state.decode([value, None])
    assert again["c.state"].to_pylist() == [[nothing, record], None]
    assert state.finish(again)["c"].to_pylist()[0] == {"days": [TIME.date(), TIME.date()], "most": 0.1}
    assert state.encode(played(state, again, [0])) == [value]


@pytest.mark.parametrize("value", [b'{"c":{"trial":"","n":1}}', b'{"c":{"trail":""}}', b'{"c":5}', b'{"d":{}}'])
def test_what_another_class_has_stored_is_refused(value: bytes) -> None:
    with pytest.raises(ProcessorStateException, match="give the store a new name"):
        state_of("Trail").decode([value])


@pytest.mark.parametrize(
    ("numbers", "told"),
    [
        ([13], "failed in add for the key 0, with records of in at the offsets 3 to 4: KeyError: 'thirteen' (custom_"),
        (
            [14],
            "gave the state {'trail': '', 'n': 'many'} for the key 0, with records of in at the offsets 3 to 4: is no",
        ),
        ([15], "there is no field 'm'; known here: trail, n. Mend the class or its state_type"),
    ],
)
def test_a_failure_names_the_class_the_method_the_key_and_the_records(numbers: list[int], told: str) -> None:
    state = state_of("Failing")
    batch = state.of_batch(given_by_spark(state, [(4, numbers[0]), (3, 1)]))
    with pytest.raises(UserCodeException) as failed:
        played(state, pa.concat_tables([state.decode([None]), batch]), [0, 1])
    assert str(failed.value).startswith("aggregate.c: custom_classes:Failing ")
    assert told in str(failed.value)


def test_a_failing_merge_is_told_too() -> None:
    state = state_of("Failing")
    batch = state.of_batch(given_by_spark(state, [(4, 1)], [(5, 2)]))
    with pytest.raises(
        UserCodeException, match="failed in merge for the key 0, with records of in at the offsets 4 to 5"
    ):
        played(state, batch, [Mark.BEGIN, 0, Mark.BEGIN, 1, Mark.MERGE])


def test_what_json_has_no_number_for_is_text_in_a_struct() -> None:
    state = state_of("Newest", pa.list_(NEWEST), NEWEST, RESULT)
    record = {"at": TIME, "a": 1, "half": float("nan"), "raw": None}
    batch = state.of_batch(given_by_spark(state, [(1, record)], record=NEWEST))
    kept = played(state, batch, [0])
    (value,) = state.encode(kept)
    assert b'"half":"NaN"' in value
    assert repr(state.decode([value])["c.state"].to_pylist()) == repr(kept["c.state"].to_pylist())


def test_a_type_that_only_spark_finds_unfit_is_refused() -> None:
    with pytest.raises(InvalidApplicationException, match="declare numbers, STRING"):
        state_of("Trail", pa.decimal128(5, 2))


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("Trial", "custom_classes has no 'Trial'; did you mean 'Trail'?"),
        ("no_class", "is no class but function; name a class"),
        ("WithoutAdd", "has no method add; did you mean 'ad'?"),
        ("WithoutType", "has no state_type; give it a Spark type"),
        ("OfNoType", "has 'BIGIN T' as its state_type, which is no type"),
        ("OfMaps", "has MAP<STRING, BIGINT> in its state_type, which is not kept yet; declare numbers"),
        ("NotMade", r"failed: OSError: no configuration \(custom_classes.py, line \d+\); make it without arguments"),
        ("Newest", "has no method merge, which puts two sessions together that become one; define it"),
        ("WithoutResult", "has a result_type and no method result; define it"),
    ],
)
def test_a_class_that_lacks_something_is_refused_before_any_record(name: str, told: str) -> None:
    with pytest.raises(ConfigException, match=told):
        user_class(f"custom_classes:{name}", merges=name == "Newest")


def test_merge_is_asked_of_sessions_only() -> None:
    assert user_class("custom_classes:Newest", merges=False).result_type == "STRUCT<days: ARRAY<DATE>, most: DOUBLE>"


def per_update(state: AggregateState, rows: pa.Table, *sequences: MergeSteps) -> pa.Table:
    records = sum(len(each) - 1 for each in sequences)
    return state.per_update(rows, sequences, rows.slice(0, records), lambda number: f"the key {number}")


def test_of_a_class_that_is_told_each_record_leaves_a_state_of_its_own() -> None:
    state = state_of("Trail")
    stored = state.decode([b'{"c":{"trail":"old","n":3}}', None])
    batch = state.of_batch(given_by_spark(state, [(2, 1)], [(5, 2)], [(7, None)], [(8, 4)]))
    found = per_update(state, pa.concat_tables([stored, batch]), [0, 2, 3, 5], [1, 4])
    # Trail changes the state that it is given, which is another object each time.
    assert trails(state, found) == ["old,1", "old,1,2", "old,1,2,4", ",null"]


def test_of_a_class_with_a_result_each_record_has_its_own_result() -> None:
    state = state_of("Newest", pa.list_(NEWEST), NEWEST, RESULT)
    halves = [0.5, None, 0.25]
    lists = [[(at, {"at": TIME, "a": at, "half": half, "raw": b""})] for at, half in enumerate(halves)]
    batch = state.of_batch(given_by_spark(state, *lists, record=NEWEST))
    found = per_update(state, pa.concat_tables([state.decode([None]), batch]), [0, 1, 2, 3])
    assert [len(each) for each in found["c.state"].to_pylist()] == [1, 2, 3]
    assert [each["most"] for each in state.finish(found)["c"].to_pylist()] == [0.5, 0.5, 0.5]


def test_a_failure_of_a_class_that_is_told_names_the_one_record() -> None:
    state = state_of("Failing")
    batch = state.of_batch(given_by_spark(state, [(3, 1)], [(4, 2)], [(5, 13)]))
    rows = pa.concat_tables([state.decode([None, None]), batch])
    with pytest.raises(
        UserCodeException, match="failed in add for the key 1, with records of in at the offsets 5 to 5"
    ):
        per_update(state, rows, [0, 2], [1, 3, 4])


def test_what_a_class_shows_once_a_batch_is_no_records_fault_and_what_it_adds_is() -> None:
    state = state_of("Newest", pa.list_(NEWEST), NEWEST, RESULT)
    record = {"at": None, "a": 1, "half": 0.5, "raw": None}
    batch = state.of_batch(given_by_spark(state, [(1, record)], record=NEWEST))
    with pytest.raises(UserCodeException, match="failed in result") as failed:
        played(state, batch, [0])
    assert not failed.value.of_a_record
    state = state_of("Failing")
    with pytest.raises(UserCodeException, match="failed in add") as failed:
        played(state, state.of_batch(given_by_spark(state, [(4, 13)])), [0])
    assert failed.value.of_a_record
