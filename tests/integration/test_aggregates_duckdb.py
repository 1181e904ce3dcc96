"""Aggregates of SQL beside DuckDB's: records in any batches give what its GROUP BY gives of all of them."""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import duckdb
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from pipeline_bench import Bench, open_tasks
from pipeline_kit import Pipeline, Record, source, topology_of
from shared_cases import EXAMPLES, shared, shared_batches

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [
    pytest.mark.integration,
    pytest.mark.timeout(900),
    pytest.mark.usefixtures("compiled_queries"),
]

CALLS: Mapping[str, tuple[str, str]] = {
    "n": ("count_if(v > 1)", "count(*) filter (where v > 1)"),
    "none": ("count_if(v > 100)", "count(*) filter (where v > 100)"),
    "every": ("bool_and(v > 0)", "bool_and(v > 0)"),
    "one": ("bool_or(b)", "bool_or(b)"),
    "some": ("any_value(s)", "min(s)"),
    # Of several with the same v: the largest s, and the smallest, null being the least.
    "most": ("max_by(s, v)", "max(s) filter (where v = top)"),
    "least": (
        "min_by(s, v)",
        "case when count(*) filter (where v = low and s is null) = 0 then min(s) filter (where v = low) end",
    ),
    "most_b": ("max_by(s, v) FILTER (WHERE v < 0)", "max(s) filter (where v < 0 and v = below)"),
    "counted": ("count(*) FILTER (WHERE b)", "count(*) filter (where b)"),
    "kinds": ("count(distinct s)", "count(distinct s)"),
    "kinds_b": ("count(distinct v) FILTER (WHERE b)", "count(distinct v) filter (where b)"),
    "pairs": ("count(distinct v, s)", "count(distinct (v, s)) filter (where v is not null and s is not null)"),
    "values": ("count(s) FILTER (WHERE v > 0)", "count(s) filter (where v > 0)"),
    "added": ("sum(v) FILTER (WHERE s = 'a')", "cast(sum(v) filter (where s = 'a') as bigint)"),
    "mean": ("avg(v) FILTER (WHERE b)", "avg(v) filter (where b)"),
    "begun": ("first(v) FILTER (WHERE b)", "arg_min_null(v, nth) filter (where b)"),
    "ended": ("last(v) FILTER (WHERE s is not null)", "arg_max_null(v, nth) filter (where s is not null)"),
    # Of several with the same v the larger s first, null being the least.
    "top": (
        "top(s, v, 3)",
        "coalesce(list_slice(list(s order by v desc, s desc nulls last) filter (where v is not null), 1, 3), [])",
    ),
    "top_b": (
        "top(v, s, 2) FILTER (WHERE b)",
        "coalesce(list_slice(list(v order by s desc, v desc nulls last) filter (where b and s is not null), 1, 2), [])",
    ),
    "list": (
        "collect_list(v, 3) FILTER (WHERE b)",
        "coalesce(list_slice(list(v order by nth) filter (where b and v is not null), -3, -1), [])",
    ),
}
"""Ours, and DuckDB's: whose any_value is the first one, and whose count_if of nulls alone is null."""
COLUMNS = "v BIGINT, b BOOLEAN, s STRING"
WINDOWS: Mapping[str, Mapping[str, Any]] = {"by key": {}, "tumbling": {"window": {"tumbling": {"size": "10ms"}}}}
Given = tuple[int, int, int | None, bool | None, str | None]
"""Key, time in ms, and the columns."""
Case = tuple[Sequence[Given], Sequence[int]]
"""Rows, and before which of them a batch begins."""
MIXED: Sequence[Given] = [(0, 1000, 3, True, "b"), (0, 1001, None, None, None), (0, 1002, -1, False, "a")]

rows = st.lists(
    st.tuples(
        st.integers(-1, 1),
        st.integers(1000, 1020),
        st.none() | st.integers(-2, 3),
        st.none() | st.booleans(),
        st.none() | st.sampled_from(["a", "b", "ä", ""]),
    ),
    max_size=12,
)


@pytest.fixture(scope="module")
def pipelines(spark: SparkSession) -> dict[str, Pipeline]:
    return {window: _pipeline(spark, window) for window in WINDOWS}


def _pipeline(spark: SparkSession, window: str) -> Pipeline:
    calls = {name: ours for name, (ours, _) in CALLS.items()}
    # Records of any time count: DuckDB knows no late ones.
    step = {"name": "s", "from": "in", "aggregate": calls, "store": "s", **_with_grace(WINDOWS[window])}
    return Pipeline(spark, topology_of([source(schema=COLUMNS, key="long")], [step], [{"from": "s", "topic": "out"}]))


def _with_grace(window: Mapping[str, Any]) -> dict[str, Any]:
    return {"window": {"tumbling": {**window["window"]["tumbling"], "grace": "1h"}}} if window else {}


@pytest.mark.parametrize("window", WINDOWS)
@settings(max_examples=EXAMPLES)
@given(shared(st.tuples(rows, st.lists(st.integers(1, 11), max_size=2))))
@example([([(0, 1000, None, None, None)], []), (MIXED, [1, 2]), (MIXED, [])])
def test_aggregates_are_those_of_duckdb(pipelines: Mapping[str, Pipeline], window: str, cases: Sequence[Case]) -> None:
    pipeline = pipelines[window]
    found: dict[bytes, dict[str, Any]] = {}
    with ExitStack() as stack:
        bench = Bench(pipeline, open_tasks(stack, pipeline.topology))
        at = 0
        for part in shared_batches((_keyed(case, rows), cuts) for case, (rows, cuts) in enumerate(cases)):
            records = [_record(row, at + number) for number, row in enumerate(part)]
            at += len(records)
            found |= {key: value for key, value, _ in bench.written(records, [])}
    given = [row for case, (rows, _) in enumerate(cases) for row in _keyed(case, rows)]
    assert found == dict(_of_duckdb(given, window))


def _keyed(case: int, given: Sequence[Given]) -> list[Given]:
    """The rows of a case, under keys of its own."""
    return [(key + 10 * case, *others) for key, *others in given]


def _record(row: Given, at: int) -> Record:
    key, time, v, b, s = row
    return Record(struct.pack(">q", key), json.dumps({"v": v, "b": b, "s": s}).encode(), offset=at, time=time)


def _of_duckdb(given: Sequence[Given], window: str) -> Iterator[tuple[bytes, dict[str, Any]]]:
    """Each group's key, as a sink has it, and its columns."""
    start = "0" if window == "by key" else "time // 10 * 10"
    calls = ", ".join(f'{theirs} as "{name}"' for name, (_, theirs) in CALLS.items())
    with duckdb.connect() as database:
        database.execute("create table given (key bigint, time bigint, v bigint, b boolean, s varchar, nth bigint)")
        for at, row in enumerate(given):
            database.execute("insert into given values (?, ?, ?, ?, ?, ?)", [*row, at])
        database.execute(
            f"create view shown as select *, {start} as opened, max(v) over w as top, min(v) over w as low,"
            f" max(v) filter (where v < 0) over w as below from given window w as (partition by key, {start})"
        )
        for key, opened, *values in database.execute(
            f"select key, opened, {calls} from shown group by key, opened"
        ).fetchall():
            whole = struct.pack(">q", key) + (b"" if window == "by key" else struct.pack(">q", opened))
            yield whole, dict(zip(CALLS, values, strict=True))
