"""What reduce asks Spark for: each key's state and records in their order, or what is to be done with sessions."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import Any

import orjson
import pyarrow as pa
import pytest

from streams_runtime.errors import InvalidApplicationException
from streams_runtime.state.aggregates import reduce_state
from streams_runtime.state.aggregates.aggregate_state import AggregateState
from streams_runtime.state.aggregates.merge_order import Mark
from streams_runtime.state.aggregates.reduce_state import ADD, BEGIN, MERGE, MERGE_STEPS, STORED
from streams_runtime.topology.nodes.aggregate_node import Aggregate

RECORD = pa.struct([pa.field("a", pa.int64(), nullable=False)])
PARAMETER = "'', (state, row) -> concat(state, row.a)"
MERGING = f"{PARAMETER}, (one, other) -> concat(one, other)"


class Told:
    """Stands for Spark: takes down what it is asked, and answers with the number of each row."""

    def __init__(self) -> None:
        self.rows: list[dict[str, Any]] = []

    def __call__(self, table: pa.Table) -> pa.ChunkedArray:
        self.rows = table.to_pylist()
        return pa.chunked_array([pa.array([str(number) for number in range(len(table))], pa.large_string())])


def state_of(parameter: str, kind: pa.DataType | None = None) -> tuple[AggregateState, Told]:
    state = AggregateState(
        [
            Aggregate("c", "reduce", "struct(`a`)", "aggregate.c", parameter),
            Aggregate("n", "count", None, "aggregate.n"),
        ]
    )
    found = pa.list_(pa.struct([("at", pa.int64()), ("record", RECORD)]))
    state.bind(
        pa.schema([("c", pa.list_(pa.string() if kind is None else kind)), ("c.found", found), ("n", pa.int64())])
    )
    told = Told()
    for _, reduction, *_ in state.reductions():
        reduction.fold = told
    return state, told


def rows_of(state: AggregateState, stored: Sequence[str | None], *found: Sequence[tuple[int, int]]) -> pa.Table:
    """Rows of stored states, and behind them one for each list of offsets and numbers of a batch."""
    old = state.decode([None if each is None else orjson.dumps({"c": each, "n": 1}) for each in stored])
    lists = [[{"at": at, "record": {"a": a}} for at, a in each] for each in found]
    kind = pa.list_(pa.struct([("at", pa.int64()), ("record", RECORD)]))
    columns = [
        pa.array([[]] * len(found), pa.list_(pa.string())),
        pa.array(lists, kind),
        pa.array([len(each) for each in found]),
    ]
    return pa.concat_tables([old, state.of_batch(pa.table(columns, names=["c", "c.found", "n"]))])


def test_records_are_asked_for_in_the_order_of_their_offsets_from_the_stored_state_on() -> None:
    state, told = state_of(PARAMETER)
    rows = rows_of(state, ["x", None], [(7, 70), (5, 50), (6, 60)], [], [(9, 90)])
    # The last one is a sliding window's: two rows of the batch behind a state.
    left = state.played(rows, [[0, 2], [1, 4], [3], [0, 4, 2]], rows.slice(0, 4), str)
    assert [(each["state"], [record["a"] for record in each["records"]]) for each in told.rows] == [
        ("x", [50, 60, 70]),
        (None, [90]),
        (None, []),
        ("x", [90, 50, 60, 70]),
    ]
    assert left["c"].to_pylist() == ["0", "1", "2", "3"]
    assert left["n"].to_pylist() == [1, None, 3, 0]  # of others what was put together already
    assert left["c.records"].null_count == 4


def test_sessions_are_asked_for_as_what_is_done_one_after_the_other() -> None:
    state, told = state_of(MERGING)
    rows = rows_of(state, ["x", "y"], [(5, 50)], [(6, 60), (7, 70)])
    state.played(rows, [[0, 1, Mark.MERGE, 3], [Mark.BEGIN, 2]], rows.slice(0, 2), str)
    done = [
        [(merge_step["do"], merge_step["state"], merge_step["record"]) for merge_step in each[MERGE_STEPS]]
        for each in told.rows
    ]
    assert done == [
        [
            (STORED, "x", None),
            (STORED, "y", None),
            (MERGE, None, None),
            (ADD, None, {"a": 60}),
            (ADD, None, {"a": 70}),
        ],
        [(BEGIN, None, None), (ADD, None, {"a": 50})],
    ]


def test_a_state_without_records_is_null_whatever_spark_takes_for_granted_of_its_literals() -> None:
    literal = pa.struct([pa.field("n", pa.int64(), nullable=False)])
    state, _ = state_of("named_struct('n', 0), (state, row) -> state", literal)
    found = pa.list_(pa.struct([("at", pa.int64()), ("record", RECORD)]))
    columns = [pa.array([[]], pa.list_(literal)), pa.array([[{"at": 1, "record": {"a": 1}}]], found), pa.array([1])]
    assert state.of_batch(pa.table(columns, names=["c", "c.found", "n"]))["c"].to_pylist() == [None]


def test_what_is_stored_is_the_state_as_it_is_seen() -> None:
    state, _ = state_of(PARAMETER)
    stored = b'{"c":"x","n":1}'
    assert state.encode(state.decode([stored])) == [stored]
    assert state.finish_value(stored) == {"c": "x", "n": 1}
    assert state.needs_order


@pytest.mark.parametrize("kind", [pa.decimal128(9, 2), pa.map_(pa.string(), pa.int64()), pa.null(), pa.struct([])])
def test_states_that_json_does_not_hold_are_refused_at_the_field(kind: pa.DataType) -> None:
    with pytest.raises(InvalidApplicationException) as refused:
        state_of(PARAMETER, kind)
    (mistake,) = refused.value.mistakes
    assert mistake.path == "aggregate.c"
    assert "not there yet" in mistake.found
    assert "cast the initial value to numbers" in mistake.remedy


def test_of_a_reduce_that_is_told_the_records_of_each_key_are_asked_for_in_chunks(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(reduce_state, "CHUNK_SIZE", 2)
    state, _ = state_of(PARAMETER)
    asked: list[dict[str, Any]] = []

    def fold(table: pa.Table) -> pa.ChunkedArray:
        asked.extend(table.to_pylist())
        answer = [[f"{row}.{n}" for n, _ in enumerate(chain(*each["chunks"]))] for row, each in enumerate(asked)]
        return pa.chunked_array([pa.array(answer, pa.list_(pa.large_string()))])

    for _, reduction, *_ in state.reductions():
        reduction.fold = fold
    rows = rows_of(state, ["x", None], *([(at, at * 10)] for at in range(6)))
    left = state.per_update(rows, [[0, 2, 3, 4, 5, 7], [1, 6]], rows.slice(2), str)
    chunks = [[[record["a"] for record in chunk] for chunk in each["chunks"]] for each in asked]
    assert [each["state"] for each in asked] == ["x", None]
    assert chunks == [[[0, 10], [20, 30], [50]], [[40]]]
    assert left["c"].to_pylist() == ["0.0", "0.1", "0.2", "0.3", "0.4", "1.0"]
    assert left["n"].to_pylist() == [1] * 6  # of others what was put together already
    assert left["c.records"].null_count == 6
