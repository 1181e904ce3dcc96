"""top(x, y, n): the values of the n records with the greatest y."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl
import pyarrow as pa

from streams_runtime.state.aggregates.aggregate_kind import Columns, Kind
from streams_runtime.state.aggregates.list_rows import ROW, elements, lists
from streams_runtime.state.aggregates.reduce_state import nullable
from streams_runtime.state.aggregates.value_order import REMEDY, can_be_ordered, ordered, with_one_zero


class Top(Kind):
    """The values of the `most` records with the greatest `by`, that with the greatest first; records without a `by` are
    left out.

    Of several with the same `by` the greater value comes first, null being the least: neither the order of records nor
    where batches begin decides. So the first value is that of max_by.
    """

    parts = ("by", "values")
    given = ("found",)
    remedy = REMEDY

    def __init__(self, by: str, most: int) -> None:
        self._by = by
        self._most = most

    def expressions(self, argument: str | None) -> Sequence[str]:
        return self.expressions_where(argument, "true")

    def expressions_where(self, argument: str | None, condition: str) -> Sequence[str]:
        both = f"struct(({self._by}) as `by`, ({argument}) as value)"
        found = f"collect_list(if(({condition}) and ({self._by}) is not null, {both}, null))"
        return (f"slice(sort_array({found}, false), 1, {self._most})",)

    def types(self, given: Sequence[pa.DataType]) -> Sequence[pa.DataType]:
        return [pa.list_(nullable(given[0].value_type.field(part).type)) for part in ("by", "value")]

    def keeps(self, kind: pa.DataType) -> bool:
        return can_be_ordered(kind)

    def of_batch(self, given: Columns) -> Columns:
        kinds = self.types([given[0].type])
        found = elements({"found": given[0]}).unnest("found").rename({"value": "values"})
        columns = lists(found, len(given[0]), dict(zip(self.parts, kinds, strict=True)))
        return [with_one_zero(each) for each in columns]

    def merge(self, old: Columns, new: Columns) -> Columns:
        frame = pl.concat([elements(dict(zip(self.parts, each, strict=True))) for each in (old, new)])
        kinds = [each.type for each in old]
        ranks = {f"{part} rank": _comparable(frame[part], kind) for part, kind in zip(self.parts, kinds, strict=True)}
        ranked = frame.with_columns(**ranks).sort(ROW, *ranks, descending=[False, True, True], nulls_last=True)
        greatest = ranked.group_by(ROW, maintain_order=True).head(self._most)
        return lists(greatest, len(old[0]), dict(zip(self.parts, kinds, strict=True)))

    def finish(self, parts: Columns) -> pa.ChunkedArray:
        return parts[1]

    def finish_value(self, parts: Mapping[str, Any]) -> Any:
        return parts["values"]


def _comparable(values: pl.Series, kind: pa.DataType) -> pl.Series:
    """What polars sorts as Spark does: plain values as they are."""
    if not pa.types.is_nested(kind.value_type):
        return values
    (ranks,) = ordered(pa.chunked_array([values.to_arrow().cast(kind.value_type)]))
    return pl.Series(pl.from_arrow(ranks))
