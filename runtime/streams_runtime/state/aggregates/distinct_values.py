"""count(distinct …): a key's different values, as many as may be, and how many they are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import orjson
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

from streams_runtime.api.sql.aggregate_calls import COUNT_DISTINCT
from streams_runtime.api.sql.aggregate_parameters import MOST_DISTINCT, TOP
from streams_runtime.batch.json_columns import FLOATS
from streams_runtime.errors import FailedProcessingException
from streams_runtime.state.aggregates.aggregate_kind import Columns
from streams_runtime.state.aggregates.list_rows import ROW, elements, lists
from streams_runtime.state.aggregates.merge_order import Mark, MergeSteps
from streams_runtime.state.aggregates.record_by_record import Named, RecordByRecord, nothing_of, whole
from streams_runtime.topology.nodes.aggregate_node import Aggregate

MOST_BYTES = 750_000
"""So long may the values of all counts and tops of a step be in one value of its store: with other columns it is below
the 1,000,000 bytes that a producer's record has at most.
"""


class DistinctValues(RecordByRecord):
    """How many different values there were, exactly; nulls are none.

    They are kept as they are, sorted. Which of them are the same is decided as in Spark: NaN is one value, and so are
    both zeros. Decimals are kept as text, of which a type has one for each value.

    What a row has is `values`, or `found` where these are null: a batch's, or what there is after a record. That is a
    view, since of a key each record's begins with those of the record before it.
    """

    parts = ("values",)
    passing = ("found",)
    given = ("found",)
    merges_in_columns = True
    by_order = False
    remedy = "count one field of it, or cast it to STRING"

    def __init__(self, second: str | None) -> None:
        """`second`: of pairs with it, neither of which is null, and not of single values."""
        self._second = second

    def expressions(self, argument: str | None) -> Sequence[str]:
        return self.expressions_where(argument, "true")

    def expressions_where(self, argument: str | None, condition: str) -> Sequence[str]:
        counts, value = f"({condition}) and ({argument}) is not null", f"({argument})"
        if self._second is not None:
            counts += f" and ({self._second}) is not null"
            value = f"struct(({argument}) as `first`, ({self._second}) as `second`)"
        return (f"collect_set(if({counts}, {value}, null))",)

    def types(self, given: Sequence[pa.DataType]) -> Sequence[pa.DataType]:
        kind = given[0].value_type
        kept = pa.string() if pa.types.is_decimal(kind) else kind
        return pa.list_(kept), pa.list_view(kept)

    def keeps(self, kind: pa.DataType) -> bool:
        return super().keeps(kind.value_type)

    def of_batch(self, given: Columns) -> Columns:
        kind, _ = self.types([given[0].type])
        found = _different([given[0].cast(kind)])
        values = pc.add(found.values, pa.scalar(0, kind.value_type)) if kind.value_type in FLOATS else found.values
        view = pa.ListViewArray.from_arrays(found.offsets[:-1], pc.list_value_length(found), values)
        return [pa.chunked_array([pa.nulls(len(found), kind)]), pa.chunked_array([view])]

    def merge(self, old: Columns, new: Columns) -> Columns:
        together = _different([_lists_of(each) for each in (old, new)])
        return [pa.chunked_array([together]), *nothing_of(old[1:], len(together))]

    def played(self, columns: Columns, sequences: Sequence[MergeSteps], path: str, named: Named) -> Columns:  # noqa: ARG002 - a kind's signature
        left = self._play(columns, sequences, each=False)
        return [_lists_of(left), *nothing_of(left[1:], len(left[0]))]

    def per_update(self, columns: Columns, sequences: Sequence[MergeSteps], path: str, named: Named) -> Columns:  # noqa: ARG002 - a kind's signature
        return self._play(columns, sequences, each=True)

    def stored(self, columns: Columns) -> Columns:
        values = _lists_of(columns)
        # In an order that does not say in which one they came.
        frame = elements({"values": values}).sort(ROW, "values")
        return lists(frame, len(values), {"values": values.type})

    def finish(self, parts: Columns) -> pa.ChunkedArray:
        return pc.coalesce(*(pc.list_value_length(each) for each in parts)).cast(pa.int64())

    def finish_value(self, parts: Mapping[str, Any]) -> Any:
        return len(parts["values"])

    def _play(self, columns: Columns, sequences: Sequence[MergeSteps], each: bool) -> Columns:
        """What each sequence leaves; or what there is after `each` record."""
        is_record: list[bool] = columns[1].is_valid().to_pylist()
        every = whole(_lists_of(columns))
        codes, ends = _codes(every.values), every.offsets.to_pylist()
        begun: list[_Set] = []
        states: list[tuple[int, int]] = []
        for merge_steps in sequences:
            stack: list[_Set] = []
            for step in merge_steps:
                if step is Mark.MERGE:
                    later = stack.pop()
                    stack[-1].add(codes, later.first)
                    continue
                if step is Mark.BEGIN or not stack or not is_record[step]:
                    begun.append(_Set(len(begun)))
                    stack.append(begun[-1])
                if isinstance(step, int):
                    stack[-1].add(codes, range(ends[step], ends[step + 1]))
                    if each and is_record[step]:
                        states.append((stack[-1].number, len(stack[-1].first)))
            if not each:
                states.append((stack[-1].number, len(stack[-1].first)))
        starts = np.concatenate([[0], np.cumsum([len(one.first) for one in begun])])
        elements_of = np.fromiter((at for one in begun for at in one.first), np.int64)
        numbers, sizes = np.array(states, np.int64).reshape(-1, 2).T
        view = pa.ListViewArray.from_arrays(
            pa.array(starts[numbers], pa.int32()), pa.array(sizes, pa.int32()), every.values.take(pa.array(elements_of))
        )
        return [*nothing_of(columns[:1], len(view)), pa.chunked_array([view])]


@dataclass(slots=True)
class _Set:
    """Different values as they come: the codes of them, and where each was first, in turn."""

    number: int
    codes: set[int] = field(default_factory=set)
    first: list[int] = field(default_factory=list)

    def add(self, codes: Sequence[int], rows: Sequence[int]) -> None:
        """Add what these rows have."""
        for row in rows:
            if codes[row] not in self.codes:
                self.codes.add(codes[row])
                self.first.append(row)


Counted = Sequence[tuple[Aggregate, pa.ChunkedArray]]
"""The counts of a step and its tops, and the first thing that each of them keeps."""


def refuse_too_much(counted: Counted, stored: Sequence[bytes], named: Named) -> None:
    """Check the counts of a step and its tops, before `stored` is written: what each row has of all columns.

    What a count keeps only grows, so that the first record with which it is too much is the same one wherever batches
    begin. What a top keeps may be less again with a later record of the batch.

    Raises FailedProcessingException: a row has too many values, or too long ones.
    """
    for declared, values in counted:
        if declared.function != COUNT_DISTINCT:
            continue
        too_many = pc.greater(pc.list_value_length(values), MOST_DISTINCT)
        row = pc.index(pc.fill_null(too_many, False), True).as_py()
        if row >= 0:
            raise _too_much(declared, named(row), f"more than {MOST_DISTINCT:,} different values")
    for row, value in enumerate(stored if counted else ()):
        if len(value) > MOST_BYTES and (size := _size([each for each, _ in counted], value)) > MOST_BYTES:
            longest = max((each for each, _ in counted), key=lambda each: _size([each], value))
            what = "values" if longest.function == TOP else "different values"
            raise _too_much(longest, named(row), f"{what} of {size:,} bytes, {MOST_BYTES:,} at most")


def _size(counted: Sequence[Aggregate], value: bytes) -> int:
    columns = orjson.loads(value)
    return sum(len(orjson.dumps(part)) for each in counted for part in columns[each.column].values())


def _too_much(declared: Aggregate, key: str, what: str) -> FailedProcessingException:
    return FailedProcessingException(
        f"{declared.path}: {declared.call} has {what} for {key}",
        "Keep fewer values, or shorter ones, such as an id or a hash of each"
        if declared.function == TOP
        else f"Estimate it by approx_count_distinct({declared.argument}), which takes any number of values, or divide"
        " them by a finer key or shorter windows",
    )


def _different(columns: Columns) -> pa.ListArray:
    """The values of each row's lists, each of them once."""
    frame = pl.concat([elements({"values": each}) for each in columns])
    (found,) = lists(frame.unique([ROW, "values"]), len(columns[0]), {"values": columns[0].type})
    return whole(found)


def _codes(values: pa.Array) -> list[int]:
    """A number for each value, the same one for those that are the same."""
    frame = pl.DataFrame({"values": pl.from_arrow(values)}).with_row_index("at")
    alike = frame.group_by("values").agg("at").with_row_index("code")
    found: list[int] = alike.explode("at").sort("at")["code"].to_list()
    return found


def _lists_of(columns: Columns) -> pa.ChunkedArray:
    """What each row has."""
    values, view = (whole(each) for each in columns)
    sizes = pc.fill_null(pc.list_value_length(view), 0).to_numpy()
    offsets = pa.array(np.concatenate([[0], np.cumsum(sizes)]), pa.int32())
    found = pa.ListArray.from_arrays(offsets, view.flatten(), mask=view.is_null())
    return pa.chunked_array([pc.coalesce(values, found)])
