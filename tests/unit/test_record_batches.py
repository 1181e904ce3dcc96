"""Processors of batches: cut wherever they may be, beside twins that take records one by one; and what is refused."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pytest
from example_counts import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from processor_kit import Harness, Read, harness, step_of
from state_kit import memory_folder

from streams_runtime.batch.columns import BRANCH, ELEMENT, ORDER_TIME
from streams_runtime.errors import ConfigException, UserCodeException
from streams_runtime.processors.user_processors.record_batches import forwarded_batch, given_batch
from streams_runtime.state.processor_class import processor_class, processor_class_mistakes

OPS = ("put", "put", "absent", "delete", "range", "from", "all", "get", "twice", "cancel", "clear", None)

reads = st.builds(
    lambda key, op, n, time, reaches: (time, key, None if op is None else (op, n), reaches),
    st.sampled_from(("a", "ab", "b", None)),
    st.sampled_from(OPS),
    st.integers(0, 3),
    st.integers(0, 65),
    st.sampled_from((True, True, True, False)),
)
cases = st.tuples(st.lists(reads, min_size=1, max_size=25), st.lists(st.integers(0, 25), max_size=6))


def recorded(given: Sequence[tuple[Any, ...]], topic: str = "a", keys: bool = True) -> list[Read]:
    return [
        Read(topic, 0, at, time, key if keys or key else "c", value, reaches)
        for at, (time, key, value, reaches) in enumerate(given)
    ]


def results(of: str, reads: Sequence[Read], cuts: Sequence[int], moves: bool = False, **more: Any) -> list[Any]:
    """All that is forwarded, in order, and what the stores have in the end."""
    with memory_folder() as folder, harness(folder, of, **more) as made:
        for first, last in zip([0, *(bounds := _bounds(reads, cuts))], [*bounds, len(reads)], strict=True):
            if moves:
                made.apply(reads[first:last])  # and nothing of it is committed
            made.run(reads[first:last])
            if moves:
                made.restart()
        for each in made.rows:
            del each[ORDER_TIME]  # of a record behind an earlier one it is that one's, if they are in one batch
        return [made.rows, [_contents(made, name) for name in sorted(made.stores[0])]]


def _bounds(reads: Sequence[Read], cuts: Sequence[int]) -> list[int]:
    return sorted({cut for cut in cuts if 0 < cut < len(reads)})


def _contents(made: Harness, name: str) -> list[tuple[bytes, bytes]]:
    store: Any = made.stores[0][name]
    if name.endswith("process-store"):  # it counts batches
        return []
    fetch = getattr(store, "fetch", None)
    return list(store.scan(None, None) if fetch is None else fetch(None, None, 0, 2**62))


@settings(max_examples=examples(60), deadline=None)
@given(cases, st.booleans())
def test_wherever_batches_are_cut_the_results_are_those_of_single_records(case: Any, moves: bool) -> None:
    records = recorded(case[0], keys=False)
    single = results("processor_classes:Everything", records, [])
    assert results("batch_processors:Everything", records, case[1], moves) == single


@settings(max_examples=examples(40), deadline=None)
@given(cases, st.sampled_from(("Windowing", "Sessioning")))
def test_windows_and_sessions_are_those_of_single_records_wherever_batches_are_cut(case: Any, of: str) -> None:
    more = {"window": {"size": "10ms", "retention": "30ms"}, "session": {"retention": "30ms"}}
    records = recorded(case[0])
    single = results(f"scripted_processor:{of}", records, [], **more)
    assert results(f"batch_processors:{of}", records, case[1], **more) == single


@settings(max_examples=examples(40), deadline=None)
@given(cases)
def test_outputs_get_what_they_get_of_single_records_in_that_order(case: Any) -> None:
    records = recorded(case[0])
    single = results("scripted_processor:Addressing", records, [], outputs=("large", "small"))
    assert results("batch_processors:Addressing", records, case[1], outputs=("large", "small")) == single


@settings(max_examples=examples(40), deadline=None)
@given(cases)
def test_columns_give_the_same_wherever_they_are_cut(case: Any) -> None:
    records = recorded(case[0])
    whole = results("batch_processors:Columns", records, [], key=None)
    assert results("batch_processors:Columns", records, case[1], key=None) == whole
    seen = [(each["_offset"], each["seen"], each["_key"]) for each in whole[0]]
    expected = []
    for each in records:
        if each.value is None or not each.reaches:
            continue
        op, n = each.value
        expected += [(each.offset, text, each.key) for text in (op.upper(), op)[: 1 + n % 2]]
    assert seen == expected


def test_two_topics_have_one_order_in_batches_too() -> None:
    topics = ("a", "b")
    records = [
        Read(topic, 0, offset, time, "k", ("put", time))
        for topic in topics
        for offset, time in enumerate((3, 9, 14) if topic == "a" else (2, 9, 30))
    ]
    single = results("processor_classes:Everything", records, [], topics=topics)
    assert results("batch_processors:Everything", records, [], topics=topics) == single


def cuts_of(reads: Sequence[Read]) -> list[str]:
    with memory_folder() as folder, harness(folder, "batch_processors:Cuts") as made:
        made.run(reads)
        return [seen for _, seen, _, _ in made.told()]


def test_a_batch_ends_with_the_record_with_which_a_punctuator_is_due() -> None:
    given = [0, 3, 12, 7, 13, 19, 25, 24]
    assert cuts_of([Read("a", 0, at, time) for at, time in enumerate(given)]) == [
        *("[0] at [0] to 0", "sweep 0"),
        *("[1, 2] at [3, 12] to 12", "sweep 12"),
        *("[3, 4, 5, 6] at [12, 13, 19, 25] to 25", "sweep 25"),
        "[7] at [25] to 25",
    ]


def test_a_record_that_does_not_reach_the_step_lets_time_come_behind_what_came_before() -> None:
    reads = [Read("a", 0, 0, 0), Read("a", 0, 1, 5), Read("a", 0, 2, 11, reaches=False), Read("a", 0, 3, 12)]
    assert cuts_of(reads) == ["[0] at [0] to 0", "sweep 0", "[1] at [5] to 5", "sweep 11", "[3] at [12] to 12"]


def test_a_batch_has_the_columns_of_its_records() -> None:
    reads = [Read("a", 0, 0, 5, "k", ("x", 1)), Read("a", 0, 1, 4, None, None)]
    with memory_folder() as folder, harness(folder, "batch_processors:Echo") as made:
        made.run(reads)
        (task,) = made.processors[0].values()
        rows = task._made.rows
        assert rows.given == [
            {"_row": 0, "_key": "k", "_timestamp": 5, "_headers": None, "_tombstone": False, "_topic": "a"}
            | {"_partition": 0, "_offset": 0, "_stream_time": 5, "op": "x", "n": 1},
            {"_row": 1, "_key": None, "_timestamp": 4, "_headers": None, "_tombstone": True, "_topic": "a"}
            | {"_partition": 0, "_offset": 1, "_stream_time": 5, "op": None, "n": None},
        ]


@pytest.mark.parametrize(
    ("op", "found"),
    [
        ("raised", "ValueError: a bad batch"),
        ("single", "RuntimeError: forward is for single records; in process_batch give rows to forward_batch"),
        ("list", "TypeError: list in place of a batch; give a pyarrow.RecordBatch"),
        ("rows", "ValueError: the column '_row' is missing; keep it: it says which record each row comes of"),
        ("beyond", "ValueError: the column '_row' goes from 2 to 2, of 2 rows that were given"),
        ("unknown", "ValueError: the step declares no column 'sen'; did you mean 'seen'?; select those"),
        ("missing", "ValueError: the column 'seen' is missing; the step declares it"),
        ("twice", "ValueError: the column 'seen' is there 2 times; keep one of them"),
        ("type", "TypeError: the column 'seen' that is forwarded has the type int64; give string"),
        ("time", "ValueError: the column '_timestamp' goes from -1 to -1; give milliseconds since 1970"),
        ("output", "LookupError: forward to 'large', and the step declares no outputs"),
        ("header", "ValueError: the column '_headers' has a header without a name"),
        ("nothing", "AttributeError"),
    ],
)
def test_a_failure_names_the_first_and_the_last_record(op: str, found: str) -> None:
    reads = [Read("a", 0, 16, 1, "k", (op, 1)), Read("a", 0, 19, 2, "k", ("x", 1))]
    with (
        memory_folder() as folder,
        harness(folder, "batch_processors:Failing") as made,
        pytest.raises(UserCodeException) as failure,
    ):
        made.run(reads)
    where = "spec.topology.steps[0].process: batch_processors:Failing failed in process_batch for the 2 records from"
    assert str(failure.value).startswith(f"{where} a-0@16 to a-0@19: {found}")
    assert failure.value.of_a_record


def test_a_failure_over_one_record_names_it() -> None:
    with (
        memory_folder() as folder,
        harness(folder, "batch_processors:Failing") as made,
        pytest.raises(UserCodeException, match=r"for the record a-0@16: ValueError: a bad batch"),
    ):
        made.run([Read("a", 0, 16, 1, "k", ("raised", 1))])


def test_without_a_declared_key_no_row_has_another_one() -> None:
    with (
        memory_folder() as folder,
        harness(folder, "batch_processors:Failing", None) as made,
        pytest.raises(UserCodeException, match=r"the key 'another' in place of 'k'; declare process.key"),
    ):
        made.run([Read("a", 0, 16, 1, "k", ("key", 1))])


def test_what_a_batch_that_failed_has_put_is_forgotten() -> None:
    reads = [Read("a", 0, at, at, key, (op, at)) for at, (key, op) in enumerate((("a", "put"), ("b", "raise")))]
    with memory_folder() as folder, harness(folder, "batch_processors:Keeping", None) as made:
        with pytest.raises(UserCodeException):
            made.run(reads)
        made.run(reads[:1])
        assert made.contents() == {"a": b'{"n":0}'}


def test_what_is_forwarded_where_there_is_no_batch_is_refused() -> None:
    with (
        memory_folder() as folder,
        harness(folder, "batch_processors:ForwardsBatches") as made,
        pytest.raises(UserCodeException, match="forward_batch is for process_batch; process and punctuators give"),
    ):
        made.run([Read("a", 0, 0, 1)])


def test_a_class_with_both_methods_is_refused_at_its_field() -> None:
    with pytest.raises(ConfigException, match="has both process and process_batch; define one of the two"):
        processor_class("batch_processors:Both")
    (mistake,) = processor_class_mistakes(step_of("batch_processors:Both")[1])
    assert (mistake.path, mistake.remedy) == ("spec.topology.steps[0].process.python", "define one of the two")
    assert processor_class("batch_processors:Columns").takes_batches
    assert not processor_class("processor_classes:Echo").takes_batches


@pytest.mark.parametrize("rows", [1, 2])
def test_rows_go_on_in_the_order_of_their_records(rows: int) -> None:
    reads = [Read("a", 0, at, at, "k", ("x", 1)) for at in range(rows)]
    with memory_folder() as folder, harness(folder, "batch_processors:Columns", None) as made:
        found = made.run(reads)
    assert [(each["_offset"], each["seen"], each[ELEMENT]) for each in found] == [
        (at, text, [number]) for at in range(rows) for number, text in enumerate(("X", "x"))
    ]
    assert BRANCH not in found[0]


TIME = pa.timestamp("us", tz="UTC")
TYPES: list[tuple[pa.Array, pa.DataType]] = [
    (pa.array([1], pa.int8()), pa.int64()),
    (pa.array([1], pa.int64()), pa.int8()),
    (pa.array([0.5], pa.float64()), pa.float32()),
    (pa.array(["x"], pa.large_string()), pa.string()),
    (pa.array(["x"]).dictionary_encode(), pa.string()),
    (pa.array([b"x"], pa.large_binary()), pa.binary()),
    (pa.nulls(1), pa.list_(pa.int64())),
    (pa.array([5], pa.timestamp("ms", tz="Europe/Berlin")), TIME),
    (pa.array([[1, None]], pa.large_list(pa.int16())), pa.list_(pa.int64())),
    (pa.array([{"x": 1, "y": "z"}]), pa.struct([("x", pa.int32()), ("y", pa.string())])),
]
OTHERS: list[tuple[pa.Array, pa.DataType]] = [
    (pa.array(["1"]), pa.int64()),
    (pa.array([1]), pa.string()),
    (pa.array([1]), pa.float64()),
    (pa.array([1.0]), pa.int64()),
    (pa.array([300]), pa.int8()),
    (pa.array([True]), pa.int64()),
    (pa.array(["x"]), pa.binary()),
    (pa.array([5], pa.timestamp("us")), TIME),
    (pa.array([5], pa.int64()), TIME),
    (pa.array([5], pa.timestamp("ns", tz="UTC")), TIME),
    (pa.array([["x"]]), pa.list_(pa.int64())),
    (pa.array([{"y": 1}]), pa.struct([("x", pa.int64())])),
    (pa.array([{"x": 1, "y": 2}]), pa.struct([("x", pa.int64())])),
]


def _forwarded(column: pa.Array, kind: pa.DataType) -> Any:
    given = given_batch(_table(1), [0])
    return forwarded_batch(pa.record_batch({"_row": [0], "x": column}), given, pa.struct([("x", kind)]), None, None)


def _table(rows: int) -> pa.Table:
    return pa.table(
        {
            "_key": pa.array(["k"] * rows),
            "_timestamp": pa.array([5000] * rows, TIME),
            "_topic": pa.array(["a"] * rows),
            "_partition": pa.array([0] * rows, pa.int32()),
            "_offset": pa.array(range(rows), pa.int64()),
            "_headers": pa.nulls(rows, pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))),
            "_null": pa.array([False] * rows),
        }
    )


@pytest.mark.parametrize(("column", "kind"), TYPES, ids=lambda it: str(getattr(it, "type", it)))
def test_values_of_another_width_become_what_is_declared(column: pa.Array, kind: pa.DataType) -> None:
    found = _forwarded(column, kind)
    assert found.values.type == pa.struct([("x", kind)])
    plain = found.values.field(0).to_pylist()
    assert plain == column.to_pylist()


@pytest.mark.parametrize(("column", "kind"), OTHERS, ids=lambda it: str(getattr(it, "type", it)))
def test_values_of_another_type_are_refused(column: pa.Array, kind: pa.DataType) -> None:
    with pytest.raises((TypeError, ValueError), match="the column 'x' that is forwarded"):
        _forwarded(column, kind)


def test_tables_are_taken_for_batches_and_batches_of_no_rows_forward_nothing() -> None:
    given, kind = given_batch(_table(3), [0, 0, 0]), pa.struct([("x", pa.int64())])
    pieces = pa.concat_tables([pa.table({"_row": [2], "x": [1]}), pa.table({"_row": [0], "x": [2]})])
    found = forwarded_batch(pieces, given, kind, pa.string(), 1)
    assert (found.rows.to_pylist(), found.keys.to_pylist()) == ([2, 0], ["k", "k"])
    assert (found.timestamps.to_pylist(), found.outputs.to_pylist()) == ([5, 5], [1, 1])
    nothing = forwarded_batch(pieces.slice(0, 0), given, kind, pa.string(), None)
    assert len(nothing.rows) == len(nothing.values) == 0


@pytest.mark.parametrize(
    ("column", "values"),
    [
        ("_row", [None]),
        ("_row", ["0"]),
        ("_row", [-1]),
        ("_timestamp", [None]),
        ("_timestamp", [1.5]),
        ("_tombstone", [None]),
        ("_tombstone", [1]),
        ("_headers", [["x"]]),
        ("_key", [5]),
    ],
)
def test_metadata_that_can_not_be_is_refused_by_its_name(column: str, values: list[Any]) -> None:
    batch = pa.record_batch({"_row": pa.array([0]), "x": pa.array([1])} | {column: pa.array(values)})
    with pytest.raises((TypeError, ValueError), match=f"'{column}'"):
        forwarded_batch(batch, given_batch(_table(1), [0]), pa.struct([("x", pa.int64())]), pa.string(), None)
