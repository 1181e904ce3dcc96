"""Tables grouped by another key: what groups are told, and that they hold what their rows come to, in any batches."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

import orjson
import pyarrow as pa
import pytest
from example_counts import examples
from hypothesis import example, given, settings
from hypothesis import strategies as st
from pipeline_kit import Record, json, loaded, source, topology_of
from shared_cases import batches
from tables_played import OneTask, PlayedRunner, keyed

from streams_runtime.batch.snapshot_columns import group_of, grouped, held_value
from streams_runtime.errors import StreamsException
from streams_runtime.processors.aggregates.store_updates import table_updates
from streams_runtime.processors.contract import ApplyContext
from streams_runtime.processors.tables.table_changes import apply
from streams_runtime.state.aggregates.aggregate_state import AggregateState
from streams_runtime.state.aggregates.subtracting import Exact
from streams_runtime.state.store import stamp
from streams_runtime.topology.nodes.aggregate_node import Aggregate
from streams_runtime.topology.plan import SubTopology
from streams_runtime.topology.table_parts import TablePart, table_parts

COLUMNS = {
    "n": "count(*)",
    "known": "count(v)",
    "big": "count_if(v > 3)",
    "total": "sum(v)",
    "mean": "avg(v)",
    "sum": "sum(d)",
}
TABLE = source(schema="v BIGINT, d DOUBLE") | {"name": "in", "topic": "in", "table": {"store": "rows"}}
STEP = {"name": "groups", "from": "in", "groupBy": "v % 2", "aggregate": COLUMNS, "store": "groups"}

Number = int | None
Given = tuple[str, Number, bool, int]
"""Key, number, whether there is a row (else it is deleted), and time of a record."""
RECORDS = st.lists(
    st.tuples(st.sampled_from("abc"), st.one_of(st.none(), st.integers(-4, 9)), st.booleans(), st.integers(0, 9)),
    max_size=30,
)
CUTS = st.lists(st.integers(0, 30), max_size=4)


def group(number: Number) -> bytes | None:
    """Odd or even; numbers below 0 and null are in no group."""
    return None if number is None or number < 0 else str(number % 2).encode()


class GroupingRunner(PlayedRunner):
    """The groups in plain Python: what aggregates take of a row is the row's number."""

    def tables(self, part: TablePart, snapshots: pa.Table) -> pa.Table:
        answer = super().tables(part, snapshots)
        held = [None if value is None else loaded(value) for value in snapshots[held_value(0)].to_pylist()]
        groups = pa.array([None if number is None else group(number) for number in held], pa.binary())
        taken = pa.array([None if number is None else json(v=number) for number in held], pa.binary())
        return answer.append_column(group_of(0), groups).append_column(grouped(0), taken)


def plan() -> SubTopology:
    return topology_of([TABLE], [STEP], [{"from": "groups", "topic": "out"}]).subtopologies[0]


def told_in_batches(records: Sequence[Record], cuts: list[int]) -> list[tuple[bytes | None, Any, int]]:
    """What goes to the repartition topic, in order: group, what leaves and comes, time."""
    sub, task, found = plan(), OneTask(), []
    for first, end in batches(len(records), cuts):
        changed = keyed(sub, list(records[first:end]))
        (part,) = table_parts(sub)
        context = ApplyContext(GroupingRunner(), sub, {0: task.stores}, {}, changed, {}, {})  # type: ignore[arg-type]
        for each in apply(part, context).emissions:
            assert (each.topic, each.internal) == ("app-groups-repartition", True)
            values = [orjson.loads(value or b"") for value in each.values]
            found += list(zip(each.keys, values, each.timestamps, strict=True))
        for updates in table_updates(changed["in"]).values():
            held = task.stores["rows"].held
            for key, value, time in zip(updates.keys, updates.values, updates.timestamps, strict=True):
                held.pop(key, None)
                held |= {} if value is None else {key: stamp(time, value)}
    return found


def read(given: Sequence[Given]) -> list[Record]:
    return [
        Record(key.encode(), json(v=number) if there and number is not None else None, offset=offset, time=time)
        for offset, (key, number, there, time) in enumerate(given)
    ]


THERE_AND_BACK: list[Given] = [
    ("a", 1, True, 5),
    ("a", 3, True, 4),
    ("a", 2, True, 6),
    ("a", 1, True, 3),
    ("a", None, False, 7),
    ("a", None, False, 8),
    ("a", -1, True, 9),
    ("a", 4, True, 9),
]


@settings(max_examples=examples(200))
@given(RECORDS, CUTS)
@example(THERE_AND_BACK, [])
@example(THERE_AND_BACK, [1, 2, 3, 4, 5, 6, 7])
def test_a_row_leaves_the_group_that_it_was_in_wherever_batches_begin(given: list[Given], cuts: list[int]) -> None:
    expected = []
    rows: dict[str, int] = {}
    for key, number, there, time in given:
        before = rows.pop(key, None)
        if there and number is not None:
            rows[key] = number
        old, new = group(before), group(rows.get(key))
        values = [None if each is None else {"v": each} for each in (before, rows.get(key))]
        if old is not None and old == new:
            expected.append((old, {"old": values[0], "new": values[1]}, time))
            continue
        expected += [] if old is None else [(old, {"old": values[0], "new": None}, time)]
        expected += [] if new is None else [(new, {"old": None, "new": values[1]}, time)]
    assert told_in_batches(read(given), cuts) == expected


def state() -> AggregateState:
    declared = []
    for name, call in COLUMNS.items():
        function, _, argument = call.removesuffix(")").partition("(")
        argument_or_none = None if argument == "*" else argument
        declared.append(Aggregate(name, function, argument_or_none, f"steps[0].aggregate.{name}", subtracts=True))
    made = AggregateState(declared, of_doubles={"sum"})
    lists = pa.list_(pa.float64())
    types = {
        "n": pa.int64(),
        "known": pa.int64(),
        "big": pa.int64(),
        "total.sum": pa.int64(),
        "total.count": pa.int64(),
    }
    types |= {f"{name}.{part}": lists for name in ("mean", "sum") for part in ("added", "taken")}
    made.bind(pa.schema([(column.name, types[column.name]) for column in made.columns]))
    return made


Taken = tuple[int | None, float | None]
"""What aggregates take of a row: a whole number and a double."""


def contribution(changes: Sequence[tuple[Taken | None, Taken | None]]) -> pa.Table:
    """What Spark gives of a group's changes (old, new) in a batch."""
    sides = [[each[side] for each in changes if each[side] is not None] for side in (1, 0)]
    whole = [[v for v, _ in side if v is not None] for side in sides]  # type: ignore[misc]
    doubles = [[d for _, d in side if d is not None] for side in sides]  # type: ignore[misc]
    counted = {
        "n": len(sides[0]) - len(sides[1]),
        "known": len(whole[0]) - len(whole[1]),
        "big": sum(v > 3 for v in whole[0]) - sum(v > 3 for v in whole[1]),
        "total.sum": sum(whole[0]) - sum(whole[1]),
        "total.count": len(whole[0]) - len(whole[1]),
    }
    lists = {"mean.added": list(map(float, whole[0])), "mean.taken": list(map(float, whole[1]))}
    lists |= {"sum.added": doubles[0], "sum.taken": doubles[1]}
    columns = {name: pa.array([value], pa.int64()) for name, value in counted.items()}
    return pa.table(columns | {name: pa.array([value], pa.list_(pa.float64())) for name, value in lists.items()})


def shown(rows: Sequence[Taken]) -> dict[str, Any]:
    """What the rows of a group come to, worked out of nothing but them."""
    whole = [v for v, _ in rows if v is not None]
    doubles = [d for _, d in rows if d is not None]
    return {
        "n": len(rows),
        "known": len(whole),
        "big": sum(v > 3 for v in whole),
        "total": sum(whole) if whole else None,
        "mean": float(Fraction(sum(whole), len(whole))) if whole else None,
        "sum": exact_sum(doubles) if doubles else None,
    }


def exact_sum(doubles: Sequence[float]) -> float:
    finite = [each for each in doubles if math.isfinite(each)]
    if len(finite) < len(doubles):
        return sum(each for each in doubles if not math.isfinite(each))
    try:
        return float(sum(map(Fraction, finite)))
    except OverflowError:
        return math.copysign(math.inf, sum(map(Fraction, finite)))


def alike(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    return one.keys() == other.keys() and all(
        one[name] == other[name] or (one[name] != one[name] and other[name] != other[name]) for name in one
    )


_DOUBLES = st.one_of(
    st.none(), st.sampled_from([0.1, 0.2, 0.3, 1e300, -1e300, math.inf, -math.inf, math.nan, 5e-324]), st.floats()
)
CHANGES = st.lists(
    st.tuples(
        st.sampled_from("abc"), st.one_of(st.none(), st.tuples(st.one_of(st.none(), st.integers(-9, 9)), _DOUBLES))
    ),
    max_size=30,
)


@settings(max_examples=examples(200))
@given(CHANGES, CUTS)
@example([("a", (1, 0.1)), ("b", (2, 1e300)), ("b", None), ("c", (None, math.nan)), ("c", (9, 0.2))], [1, 3])
@example([("a", (1, 0.1)), ("a", None)], [1])
def test_a_group_is_what_its_rows_come_to_whatever_came_and_went(
    given: list[tuple[str, Taken | None]], cuts: list[int]
) -> None:
    """Of what is stored too: each batch begins with what the last one has written."""
    made = state()
    stored: bytes | None = None
    rows: dict[str, Taken] = {}
    for first, end in batches(len(given), cuts):
        changes: list[tuple[Taken | None, Taken | None]] = []
        for key, new in given[first:end]:
            old = rows.pop(key, None)
            rows |= {} if new is None else {key: new}
            changes.append((old, new))
        if not changes:
            continue
        merged = made.merge(made.decode([stored]), made.of_batch(contribution(changes)))
        (stored,) = made.encode(merged)
        (row,) = made.finish(merged).to_pylist()
        assert alike(row, shown(list(rows.values())))
        assert alike(made.finish_value(stored), _as_queried(row))


def _as_queried(row: Mapping[str, Any]) -> dict[str, Any]:
    """Numbers that are not finite are texts."""
    return {
        name: str(value).replace("inf", "Infinity").replace("nan", "NaN")
        if isinstance(value, float) and not math.isfinite(value)
        else value
        for name, value in row.items()
    }


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False)), st.lists(st.booleans()))
def test_an_exact_sum_has_one_text_whatever_its_parts(values: list[float], signs: list[bool]) -> None:
    there, back = Exact(), Exact()
    there.add_all(values, 1)
    back.add_all(reversed(values), 1)
    assert there.text == back.text == Exact(there.text).text
    there.add_all(values, -1)
    assert there.text == "0p-0"


def test_a_sum_that_leaves_the_range_of_a_bigint_is_told_by_its_field() -> None:
    made = state()
    most = contribution([(None, (2**63 - 1, None))])
    before = made.of_batch(most)
    with pytest.raises(StreamsException, match=r"steps\[0\].aggregate.total: the running total left the range"):
        made.merge(before, made.of_batch(contribution([(None, (1, None))])))


def test_rows_of_several_partitions_are_told_in_the_order_of_their_times() -> None:
    records = [
        Record(key, json(v=1), partition=partition, offset=offset, time=time)
        for key, time, partition, offset in ((b"a", 5, 0, 0), (b"b", 9, 0, 1), (b"c", 1, 1, 0), (b"d", 7, 1, 1))
    ]
    sub = plan()
    tasks = {number: OneTask().stores for number in (0, 1)}
    (part,) = table_parts(sub)
    context = ApplyContext(GroupingRunner(), sub, tasks, {}, keyed(sub, records), {}, {})  # type: ignore[arg-type]
    (told,) = apply(part, context).emissions
    assert told.timestamps == [1, 5, 7, 9]
