"""collect_list and collect_set: the last values, by the order of offsets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import polars as pl
import pyarrow as pa

from streams_runtime.state.aggregates.aggregate_kind import Columns, Kind, can_be_kept
from streams_runtime.state.aggregates.list_rows import ROW, elements, lists

_AT = pa.list_(pa.int64())


class Collected(Kind):
    """The last `most` values, the oldest first; nulls are none. `distinct`: each value once, where it came last.

    `at` are their offsets, which say in what order the values of two sessions are that became one.
    """

    parts = ("at", "values")
    given = ("found",)
    kept: ClassVar[Mapping[str, pa.DataType]] = {"at": _AT}

    def __init__(self, most: int, distinct: bool) -> None:
        self._most = most
        self._distinct = distinct

    def expressions(self, argument: str | None) -> Sequence[str]:
        found = f"collect_list(if(({argument}) is null, null, struct(_offset as at, ({argument}) as value)))"
        # Among many values there may be few different ones: only a list can be cut short before it leaves Spark.
        return (found if self._distinct else f"slice(sort_array({found}, false), 1, {self._most})",)

    def types(self, given: Sequence[pa.DataType]) -> Sequence[pa.DataType]:
        return _AT, pa.list_(given[0].value_type.field("value").type)

    def keeps(self, kind: pa.DataType) -> bool:
        return can_be_kept(kind.value_type)

    def of_batch(self, given: Columns) -> Columns:
        found = elements({"found": given[0]}).unnest("found").rename({"value": "values"})
        return self._last(found.sort("at", maintain_order=True), len(given[0]), self.types([given[0].type]))

    def merge(self, old: Columns, new: Columns) -> Columns:
        # Not by offsets: those of a topic that was made anew begin again.
        return self._last(self._both(old, new), len(old[0]), [each.type for each in old])

    def join(self, one: Columns, other: Columns) -> Columns:
        return self._last(
            self._both(one, other).sort("at", maintain_order=True), len(one[0]), [each.type for each in one]
        )

    def finish(self, parts: Columns) -> pa.ChunkedArray:
        return parts[1]

    def finish_value(self, parts: Mapping[str, Any]) -> Any:
        return parts["values"]

    def _both(self, one: Columns, other: Columns) -> pl.DataFrame:
        return pl.concat([elements(dict(zip(self.parts, each, strict=True))) for each in (one, other)])

    def _last(self, frame: pl.DataFrame, rows: int, types: Sequence[pa.DataType]) -> Columns:
        """The last values of each row, of those that are in their order."""
        if self._distinct:
            frame = frame.unique([ROW, "values"], keep="last", maintain_order=True)
        last = frame.group_by(ROW, maintain_order=True).tail(self._most)
        return lists(last, rows, dict(zip(self.parts, types, strict=True)))
