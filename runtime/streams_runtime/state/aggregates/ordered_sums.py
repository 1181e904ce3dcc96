"""sum of doubles, avg, variances and standard deviations: a batch's values are added one by one, in record order.

What doubles add up to depends on the order, as each addition is rounded. So a batch's values go along as they are, in
the order of their records, until they are added to what the store has: the result is that of Kafka Streams, which adds
record by record, wherever batches begin. Nothing but the result is kept.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from functools import reduce
from typing import Any, ClassVar, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from streams_runtime.batch.columns import ORDER
from streams_runtime.batch.json_columns import number_of
from streams_runtime.state.aggregates.aggregate_kind import Columns
from streams_runtime.state.aggregates.merge_order import Mark, MergeSteps
from streams_runtime.state.aggregates.record_by_record import Named, RecordByRecord, in_order, nothing_of, whole

_Numbers = np.ndarray[tuple[int], np.dtype[np.float64]]
_VALUES = pa.list_view(pa.float64())
"""A view, so that rows are put into another order without their values."""
_FEW = 16
"""Keys of which it is quicker to take each by itself than all of them value by value."""
N = TypeVar("N", float, _Numbers)
State = tuple[float, ...]


class Folding(RecordByRecord):
    """An aggregate of that sort. What it keeps of no value at all are zeros, as numbers."""

    passing = ("values",)
    given = ("found",)
    merges_in_columns = True

    def expressions(self, argument: str | None) -> Sequence[str]:
        number = self.listed(argument)
        return (f"collect_list(if({number} is null, null, struct(cast({ORDER} as bigint) as at, {number} as record)))",)

    def listed(self, argument: str | None) -> str:
        """Spark SQL of the values that are added."""
        return f"cast(({argument}) as double)"

    def types(self, given: Sequence[pa.DataType]) -> Sequence[pa.DataType]:  # noqa: ARG002 - a kind's signature
        return [*(self.kept.get(part, pa.float64()) for part in self.parts), _VALUES]

    def of_batch(self, given: Columns) -> Columns:
        none = [pa.nulls(len(given[0]), self.kept.get(part, pa.float64())) for part in self.parts]
        lists = whole(in_order(given[0])[1])
        views = pa.ListViewArray.from_arrays(lists.offsets[:-1], pc.list_value_length(lists), lists.values)
        return [*(pa.chunked_array([each]) for each in none), pa.chunked_array([views])]

    @abstractmethod
    def added(self, state: tuple[N, ...], value: N) -> tuple[N, ...]:
        """What is kept of some values and one more."""

    @abstractmethod
    def both(self, one: tuple[N, ...], other: tuple[N, ...]) -> tuple[N, ...]:
        """What is kept of the values of both, of which neither has none."""

    def all_added(self, state: State, values: _Numbers) -> State:
        """What is kept of some values and more of them."""
        return reduce(self.added, values.tolist(), state)

    @abstractmethod
    def count(self, parts: Columns) -> pa.ChunkedArray:
        """More than 0 where something is kept."""

    def merge(self, old: Columns, new: Columns) -> Columns:
        some, state = self._read(old)
        more, others = self._read(new)
        with np.errstate(all="ignore"):
            if more.any():
                together = self.both(state, others)
                choices = zip(state, others, together, strict=True)
                state = tuple(
                    np.where(some & more, joined, np.where(more, theirs, mine)) for mine, theirs, joined in choices
                )
            values = whole(new[-1])
            state = self._folded(state, values)
        there = some | more | (pc.fill_null(pc.list_value_length(values), 0).to_numpy() > 0)
        return [*self._columns(state, there), *nothing_of(old[-1:], len(there))]

    def played(self, columns: Columns, sequences: Sequence[MergeSteps], path: str, named: Named) -> Columns:  # noqa: ARG002 - a kind's signature
        return self._play(columns, sequences, each=False)

    def per_update(self, columns: Columns, sequences: Sequence[MergeSteps], path: str, named: Named) -> Columns:  # noqa: ARG002 - a kind's signature
        return self._play(columns, sequences, each=True)

    def _read(self, columns: Columns) -> tuple[np.ndarray[tuple[int], np.dtype[np.bool_]], tuple[_Numbers, ...]]:
        """Which rows keep something, and what they keep."""
        parts = columns[:-1]
        some = pc.fill_null(pc.greater(self.count(parts), 0), False).to_numpy()
        return some, tuple(pc.fill_null(part.cast(pa.float64(), safe=False), 0.0).to_numpy() for part in parts)

    def _columns(self, state: Sequence[_Numbers], there: np.ndarray[tuple[int], np.dtype[np.bool_]]) -> Columns:
        found = []
        for part, numbers in zip(self.parts, state, strict=True):
            counts = self.kept.get(part) == pa.int64()
            column = pa.array(numbers.astype(np.int64)) if counts else pa.array(numbers, mask=~there)
            found.append(pa.chunked_array([column]))
        return found

    def _folded(self, state: tuple[_Numbers, ...], lists: pa.ListViewArray) -> tuple[_Numbers, ...]:
        """The states with the values of each list: of all keys one value at a time, as long as there are many."""
        lengths = pc.fill_null(pc.list_value_length(lists), 0).to_numpy()
        most = int(lengths.max(initial=0))
        # Numbers of 16 bits are sorted in a tenth of the time.
        order = np.argsort((most - lengths).astype(np.uint16 if most < 2**16 else np.int64), kind="stable")
        left = lengths[order]
        starts, values = lists.offsets.to_numpy()[order], lists.values.to_numpy()
        found = [each[order] for each in state]
        counts = np.searchsorted(-left, -np.arange(most))  # keys with more values than that
        done = 0
        for count in counts.tolist():
            if count < _FEW:
                break
            more = self.added(tuple(each[:count] for each in found), values[starts[:count] + done])
            for each, new in zip(found, more, strict=True):
                each[:count] = new
            done += 1
        for row in range(int(np.searchsorted(-left, -done))):
            one = tuple(float(each[row]) for each in found)
            one = self.all_added(one, values[starts[row] + done : starts[row] + left[row]])
            for each, number in zip(found, one, strict=True):
                each[row] = number
        for each in found:
            each[order] = each.copy()
        return tuple(found)

    def _play(self, columns: Columns, sequences: Sequence[MergeSteps], each: bool) -> Columns:
        """The state that each sequence leaves; or that it has after `each` record."""
        some, numbers = self._read(columns)
        rows = zip(some.tolist(), zip(*(each.tolist() for each in numbers), strict=True), strict=True)
        stored = [row if there else None for there, row in rows]
        lists = whole(columns[-1])
        is_batch: list[bool] = lists.is_valid().to_pylist()
        starts: list[int] = lists.offsets.to_pylist()
        sizes: list[int] = lists.sizes.to_pylist()
        values: list[float] = lists.values.to_pylist()
        zero: State = (0.0,) * len(self.parts)
        found: list[State | None] = []
        for merge_steps in sequences:
            stack: list[State | None] = []
            for merge_step in merge_steps:
                if merge_step is Mark.BEGIN:
                    stack.append(None)
                elif merge_step is Mark.MERGE:
                    later, earlier = stack.pop(), stack.pop()
                    stack.append(self.both(earlier, later) if earlier and later else earlier or later)
                elif not is_batch[merge_step]:
                    stack.append(stored[merge_step])
                else:
                    state = stack.pop() if stack else None
                    for value in values[starts[merge_step] : starts[merge_step] + sizes[merge_step]]:
                        state = self.added(state or zero, value)
                    stack.append(state)
                    if each:
                        found.append(state)
            if not each:
                found.append(stack[-1])
        there = np.array([state is not None for state in found], np.bool_)
        states = np.array([state or zero for state in found], np.float64).reshape(len(found), len(zero))
        return [*self._columns(list(states.T), there), *nothing_of(columns[-1:], len(found))]


class DoubleSum(Folding):
    """sum of FLOAT or DOUBLE."""

    def added(self, state: tuple[N, ...], value: N) -> tuple[N, ...]:
        return (state[0] + value,)

    def all_added(self, state: State, values: _Numbers) -> State:
        return (_running(state[0], values),)

    def both(self, one: tuple[N, ...], other: tuple[N, ...]) -> tuple[N, ...]:
        return (one[0] + other[0],)

    def count(self, parts: Columns) -> pa.ChunkedArray:
        return parts[0].is_valid().cast(pa.int64())


class Average(Folding):
    """avg."""

    parts = ("sum", "count")
    kept: ClassVar[Mapping[str, pa.DataType]] = {"sum": pa.float64(), "count": pa.int64()}

    def added(self, state: tuple[N, ...], value: N) -> tuple[N, ...]:
        total, count = state
        return total + value, count + 1

    def all_added(self, state: State, values: _Numbers) -> State:
        return _running(state[0], values), state[1] + len(values)

    def both(self, one: tuple[N, ...], other: tuple[N, ...]) -> tuple[N, ...]:
        return one[0] + other[0], one[1] + other[1]

    def count(self, parts: Columns) -> pa.ChunkedArray:
        return parts[1]

    def finish(self, parts: Columns) -> pa.ChunkedArray:
        total, count, *_ = parts
        return pc.divide(total, _or_null(count, pc.greater(count, 0)))

    def finish_value(self, parts: Mapping[str, Any]) -> Any:
        return number_of(parts["sum"]) / parts["count"] if parts["count"] else None


class Spread(Folding):
    """Variances and standard deviations: how many, their mean, and the sum of squared distances from it.

    A value is added as Welford does it, and two sessions are put together as Chan, Golub and LeVeque do it, which does
    not lose digits as sums of squares would. `sample`: divided by one less than how many there are; null for a single
    value, as in SQL.
    """

    parts = ("count", "mean", "squares")
    kept: ClassVar[Mapping[str, pa.DataType]] = {"count": pa.int64(), "mean": pa.float64(), "squares": pa.float64()}

    def __init__(self, sample: bool, root: bool) -> None:
        self._less = 1 if sample else 0
        self._root = root

    def added(self, state: tuple[N, ...], value: N) -> tuple[N, ...]:
        count, mean, squares = state
        count = count + 1
        apart = value - mean
        mean = mean + apart / count
        return count, mean, squares + apart * (value - mean)

    def both(self, one: tuple[N, ...], other: tuple[N, ...]) -> tuple[N, ...]:
        (n, mean, squares), (m, other_mean, other_squares) = one, other
        apart = other_mean - mean
        part = m / (n + m)
        return n + m, mean + apart * part, squares + other_squares + apart * apart * (n * part)

    def count(self, parts: Columns) -> pa.ChunkedArray:
        return parts[0]

    def finish(self, parts: Columns) -> pa.ChunkedArray:
        count, _, squares, *_ = parts
        divisor = pc.subtract(count, self._less)
        variance = pc.divide(squares, _or_null(divisor, pc.greater(divisor, 0)))
        return pc.sqrt(variance) if self._root else variance

    def finish_value(self, parts: Mapping[str, Any]) -> Any:
        divisor = (parts["count"] or 0) - self._less
        if divisor <= 0:
            return None
        variance = number_of(parts["squares"]) / divisor
        return math.sqrt(variance) if self._root else variance


def _running(begin: float, values: _Numbers) -> float:
    """One after the other: numpy's own sum adds in pairs."""
    return float(np.add.accumulate(np.concatenate([[begin], values]))[-1])


def _or_null(count: pa.ChunkedArray, wanted: pa.ChunkedArray) -> pa.ChunkedArray:
    """The counts that are wanted as doubles, null for the others."""
    return pc.if_else(wanted, count, pa.scalar(None, pa.int64())).cast(pa.float64())
