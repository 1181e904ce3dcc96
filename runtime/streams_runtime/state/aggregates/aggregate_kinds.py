"""What each aggregate function keeps, how what it kept of two sets of records becomes one, and what a user sees of it.

A kind whose one part has no name keeps what a user sees, and that is its column; others keep a JSON object.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import pyarrow as pa
import pyarrow.compute as pc

from streams_runtime.api.sql.aggregate_calls import COUNT_DISTINCT, second_of
from streams_runtime.api.sql.aggregate_parameters import TOP, how_many
from streams_runtime.api.sql.python_aggregates import PYTHON
from streams_runtime.api.sql.reduce_aggregates import REDUCE, reduction_of
from streams_runtime.batch.json_columns import FLOATS
from streams_runtime.errors import NotSupportedException
from streams_runtime.state.aggregates.aggregate_kind import Columns, Kind, StateColumn, only_where
from streams_runtime.state.aggregates.approx_count_distinct import DistinctCount
from streams_runtime.state.aggregates.approx_percentile import Percentile
from streams_runtime.state.aggregates.collected import Collected
from streams_runtime.state.aggregates.distinct_values import DistinctValues
from streams_runtime.state.aggregates.ordered_sums import Average, DoubleSum, Folding, Spread
from streams_runtime.state.aggregates.reduce_state import Reducing, nullable
from streams_runtime.state.aggregates.subtracting import subtracting_kind
from streams_runtime.state.aggregates.top_values import Top
from streams_runtime.state.aggregates.user_classes.python_class import Custom
from streams_runtime.state.aggregates.user_classes.user_class import user_class
from streams_runtime.state.aggregates.value_order import REMEDY, alike, can_be_ordered, ordered, precedes, with_one_zero
from streams_runtime.topology.nodes.aggregate_node import Aggregate


class Total(Kind):
    """count, count_if, and sum of whole numbers."""

    def __init__(self, function: str) -> None:
        self._function = function

    def expressions(self, argument: str | None) -> Sequence[str]:
        return (f"{self._function}({argument or '1'})",)

    def merge(self, old: Sequence[pa.ChunkedArray], new: Sequence[pa.ChunkedArray]) -> Sequence[pa.ChunkedArray]:
        return (_both(old[0], new[0]),)


class Extreme(Kind):
    """min and max, which bool_and and bool_or are of conditions.

    any_value is the least: a value that is there, and the same one wherever batches begin.
    """

    remedy = REMEDY

    def __init__(self, function: str, called: str | None = None) -> None:
        """`function`: min or max; `called`: Spark's name of it, if it has another."""
        self._function = function
        self._called = called or function
        self._choose = pc.min_element_wise if function == "min" else pc.max_element_wise

    def expressions(self, argument: str | None) -> Sequence[str]:
        return (f"{self._called}({argument})",)

    def types(self, given: Sequence[pa.DataType]) -> Sequence[pa.DataType]:
        return [nullable(given[0])]

    def keeps(self, kind: pa.DataType) -> bool:
        return can_be_ordered(kind)

    def merge(self, old: Sequence[pa.ChunkedArray], new: Sequence[pa.ChunkedArray]) -> Sequence[pa.ChunkedArray]:
        if pa.types.is_nested(old[0].type):
            further = precedes(self._function, new[0], old[0])
            return _chosen(pc.and_(new[0].is_valid(), pc.or_(old[0].is_null(), further)), new, old)
        found = self._choose(*ordered(old[0], new[0]), skip_nulls=True)
        if self._function == "max" and old[0].type in FLOATS:
            # As in Spark, NaN is larger than all, and Arrow leaves it out.
            nan = pc.fill_null(pc.or_kleene(pc.is_nan(old[0]), pc.is_nan(new[0])), False)
            found = pc.if_else(nan, pa.scalar(math.nan, found.type), found)
        return (found.cast(old[0].type),)

    def of_batch(self, given: Sequence[pa.ChunkedArray]) -> Sequence[pa.ChunkedArray]:
        return [with_one_zero(given[0])]


class Nth(Kind):
    """first and last: the argument of one record, by the order of offsets; null if it is null there.

    `at` is that record's offset, null where there was none.
    """

    parts = ("at", "value")
    kept: ClassVar[Mapping[str, pa.DataType]] = {"at": pa.int64()}

    def __init__(self, first: bool) -> None:
        self._first = first

    def expressions(self, argument: str | None) -> Sequence[str]:
        end = "min" if self._first else "max"
        return f"{end}(_offset)", f"{end}_by({argument}, _offset)"

    def expressions_where(self, argument: str | None, condition: str) -> Sequence[str]:
        # Nulls of the argument count, so it is the offset that leaves records out.
        end, at = "min" if self._first else "max", only_where("_offset", condition)
        return f"{end}({at})", f"{end}_by({argument}, {at})"

    def merge(self, old: Sequence[pa.ChunkedArray], new: Sequence[pa.ChunkedArray]) -> Sequence[pa.ChunkedArray]:
        # Not by offsets: those of a topic that was made anew begin again.
        before, after = (old, new) if self._first else (new, old)
        return _chosen(pc.is_valid(before[0]), before, after)

    def join(self, one: Sequence[pa.ChunkedArray], other: Sequence[pa.ChunkedArray]) -> Sequence[pa.ChunkedArray]:
        wanted = pc.less_equal(one[0], other[0]) if self._first else pc.greater_equal(one[0], other[0])
        return _chosen(pc.coalesce(wanted, pc.is_valid(one[0])), one, other)

    def finish(self, parts: Sequence[pa.ChunkedArray]) -> pa.ChunkedArray:
        return parts[1]

    def finish_value(self, parts: Mapping[str, Any]) -> Any:
        return parts["value"]


class ExtremeBy(Kind):
    """max_by and min_by: a value of the record with the largest, or smallest, `by`; records without one are left out.

    Of several such records it is the largest, or smallest, value, null being the least: neither the order of records
    nor where batches begin decides.
    """

    parts = ("by", "value")
    given = ("found",)
    remedy = REMEDY

    def __init__(self, function: str, by: str) -> None:
        """`function`: min or max."""
        self._function = function
        self._by = by

    def expressions(self, argument: str | None) -> Sequence[str]:
        return self.expressions_where(argument, "true")

    def expressions_where(self, argument: str | None, condition: str) -> Sequence[str]:
        both = f"struct(({self._by}) as `by`, ({argument}) as value)"
        return (f"{self._function}(if(({condition}) and ({self._by}) is not null, {both}, null))",)

    def types(self, given: Sequence[pa.DataType]) -> Sequence[pa.DataType]:
        return [nullable(given[0].field(part).type) for part in self.parts]

    def keeps(self, kind: pa.DataType) -> bool:
        return can_be_ordered(kind)

    def of_batch(self, given: Sequence[pa.ChunkedArray]) -> Sequence[pa.ChunkedArray]:
        return [with_one_zero(pc.struct_field(given[0], [number])) for number in range(len(self.parts))]

    def merge(self, old: Sequence[pa.ChunkedArray], new: Sequence[pa.ChunkedArray]) -> Sequence[pa.ChunkedArray]:
        further = pc.or_(
            precedes(self._function, new[0], old[0]),
            pc.and_(alike(new[0], old[0]), precedes(self._function, new[1], old[1])),
        )
        return _chosen(pc.and_(new[0].is_valid(), pc.or_(old[0].is_null(), further)), new, old)

    def finish(self, parts: Sequence[pa.ChunkedArray]) -> pa.ChunkedArray:
        return parts[1]

    def finish_value(self, parts: Mapping[str, Any]) -> Any:
        return parts["value"]


_PLAIN: Mapping[str, Kind] = {
    "count": Total("count"),
    "sum": Total("sum"),
    "min": Extreme("min"),
    "max": Extreme("max"),
    "count_if": Total("count_if"),
    "bool_and": Extreme("min", "bool_and"),
    "bool_or": Extreme("max", "bool_or"),
    "any_value": Extreme("min"),
    "avg": Average(),
    "first": Nth(first=True),
    "last": Nth(first=False),
    "var_pop": Spread(sample=False, root=False),
    "var_samp": Spread(sample=True, root=False),
    "variance": Spread(sample=True, root=False),
    "stddev_pop": Spread(sample=False, root=True),
    "stddev_samp": Spread(sample=True, root=True),
    "stddev": Spread(sample=True, root=True),
    "approx_count_distinct": DistinctCount(),
    COUNT_DISTINCT: DistinctValues(None),
}
_WITH_PARAMETER: Mapping[str, Callable[[str], Kind]] = {
    "approx_percentile": lambda which: Percentile(Fraction(which)),
    "max_by": lambda by: ExtremeBy("max", by),
    "min_by": lambda by: ExtremeBy("min", by),
    COUNT_DISTINCT: DistinctValues,
    "collect_list": lambda most: Collected(int(most), distinct=False),
    "collect_set": lambda most: Collected(int(most), distinct=True),
    TOP: lambda both: Top(second_of(TOP, both) or "", how_many(TOP, both) or 0),
}
KINDS = tuple({**_PLAIN, **_WITH_PARAMETER})
"""The names of all functions, as Spark SQL has them, COUNT_DISTINCT and TOP."""


def kind_of(declared: Aggregate, merges: bool = False, of_doubles: bool = False) -> Kind | None:
    """The kind of a declared aggregate; None for a function that is not python, reduce or one of KINDS.

    `of_doubles`: it is a sum that is a DOUBLE.

    Raises ConfigException: a class in Python is not there, or lacks something (user_class.user_class).
    """
    if declared.subtracts:
        return subtracting_kind(declared, of_doubles)
    if declared.function == PYTHON:
        return Custom(user_class(declared.parameter or "", merges))
    if declared.function == REDUCE:
        return Reducing(reduction_of(declared.parameter or ""))
    if declared.function == "sum" and of_doubles:
        return DoubleSum()
    if declared.function in _WITH_PARAMETER and declared.parameter is not None:
        return _WITH_PARAMETER[declared.function](declared.parameter)
    return _PLAIN.get(declared.function)


@dataclass(frozen=True, slots=True)
class KeptAggregate:
    """One aggregate: what the user sees is the column `name`; `columns` are what Spark gives for it."""

    name: str
    kind: Kind
    declared: Aggregate
    columns: tuple[StateColumn, ...]

    @property
    def parts(self) -> list[tuple[str, str]]:
        """Each part's name and state column; none where what is kept is what is seen."""
        return [] if self.kind.parts == ("",) else list(zip(self.kind.parts, self.kept_names, strict=True))

    @property
    def kept_names(self) -> list[str]:
        """The columns that lie in a store."""
        return _names(self.name, self.kind.parts)

    @property
    def state_names(self) -> list[str]:
        """All columns, those too that are passing."""
        return self.kept_names + _names(self.name, self.kind.passing)

    def given(self, batch: pa.Table) -> Columns:
        return [batch[column.name] for column in self.columns]

    def of(self, state: pa.Table) -> Columns:
        return [state[name] for name in self.state_names]


def _names(name: str, parts: Sequence[str]) -> list[str]:
    return [f"{name}.{part}" if part else name for part in parts]


def kept_aggregate(declared: Aggregate, merges: bool, of_doubles: bool) -> KeptAggregate:
    """What is kept of a declared aggregate. Raises as `kind_of` does, and NotSupportedException: no such function."""
    kind = kind_of(declared, merges, of_doubles)
    if kind is None:
        raise NotSupportedException(
            f"{declared.path}: the aggregate {declared.function} is not there yet; use {', '.join(KINDS)}"
        )
    name, argument = declared.column, declared.taken
    condition = None if declared.subtracts else declared.condition
    expressions = kind.expressions(argument) if condition is None else kind.expressions_where(argument, condition)
    argument = argument if condition is None else only_where(argument, condition)
    names = _names(name, kind.given or kind.parts)
    listed = kind.listed(argument) if isinstance(kind, Folding) else None
    columns = (StateColumn(*each, declared.path, listed) for each in zip(names, expressions, strict=True))
    return KeptAggregate(name, kind, declared, tuple(columns))


def _chosen(
    wanted: pa.ChunkedArray, one: Sequence[pa.ChunkedArray], other: Sequence[pa.ChunkedArray]
) -> list[pa.ChunkedArray]:
    """Each row of the one where it is wanted, else of the other."""
    return [pc.if_else(wanted, mine, theirs) for mine, theirs in zip(one, other, strict=True)]


def _both(old: pa.ChunkedArray, new: pa.ChunkedArray) -> pa.ChunkedArray:
    return pc.coalesce(pc.add_checked(old, new), old, new)
