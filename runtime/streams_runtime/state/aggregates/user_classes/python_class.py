"""python('package.module:Class', …): a user's class adds a batch's records to the state of their key.

Unlike with other kinds, the records of a batch are no state until they are added to the one that the store has: a
class need not be able to put any two states together, nor give the same for records in another order. So they go along
as they are (`passing`), and `played` makes states of them once it is known what comes after what.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from streams_runtime.api.sql.state_types import KEPT
from streams_runtime.errors import UserCodeException
from streams_runtime.state.aggregates.aggregate_kind import Columns
from streams_runtime.state.aggregates.merge_order import Mark, MergeSteps, rows_of
from streams_runtime.state.aggregates.record_by_record import Named, RecordByRecord, in_order, nothing_of, whole
from streams_runtime.state.aggregates.user_classes.python_values import as_arrow
from streams_runtime.state.aggregates.user_classes.user_class import UserClass
from streams_runtime.user_code import where_in


@dataclass(slots=True)
class _State:
    """A state as it comes to be; `pending` are rows whose records are to be added to it."""

    value: Any
    pending: list[int] = field(default_factory=list)


class Custom(RecordByRecord):
    """What a user's class keeps. The parts are its state, and what it makes of it for others, if it does."""

    passing = ("topic", "at", "records")
    remedy = f"declare {KEPT}"

    def __init__(self, described: UserClass) -> None:
        self._class = described
        self._has_result = described.result_type is not None
        self.parts = ("state", "result") if self._has_result else ("",)
        self.given = (*self.parts, "topic", "found")

    def expressions(self, argument: str | None) -> Sequence[str]:
        types = [self._class.state_type, *([self._class.result_type] if self._has_result else [])]
        return (
            *(f"any_value(cast(null as {kind}))" for kind in types),
            "min(_topic)",
            f"collect_list(struct(_offset as at, {argument} as record))",
        )

    def types(self, given: Sequence[pa.DataType]) -> Sequence[pa.DataType]:
        record = given[-1].value_type.field("record").type
        return [*given[: len(self.parts)], pa.string(), pa.list_(pa.int64()), pa.list_(record)]

    def of_batch(self, given: Columns) -> Columns:
        return [*given[:-1], *in_order(given[-1])]

    def played(self, columns: Columns, sequences: Sequence[MergeSteps], path: str, named: Named) -> Columns:
        """The parts that each sequence of rows of `columns` leaves (state.aggregates.merge_order).

        Raises UserCodeException: a method of the class failed, or gave what is not of its declared type; the message
        has the class, the method, the key and the records.
        """
        play = _Play(self._class, columns[0], columns[-3:], sequences, lambda number: (path, named(number)))
        states = [play.state_of(number) for number in range(len(sequences))]
        parts = [play.column("state", states, columns[0].type)]
        if self._has_result:
            results = [play.result_of(number, state) for number, state in enumerate(states)]
            parts.append(play.column("result", results, columns[1].type))
        return [*parts, *nothing_of(columns[-3:], len(states))]

    def per_update(self, columns: Columns, sequences: Sequence[MergeSteps], path: str, named: Named) -> Columns:
        """One call of `add` for each record, with the state as it would come out of the store.

        Raises UserCodeException, as `played` does.
        """
        is_record = whole(columns[-2]).is_valid().to_pylist()
        records_of = [
            (number, row) for number, steps in enumerate(sequences) for row in rows_of(steps) if is_record[row]
        ]
        records = [(row,) for _, row in records_of]
        play = _Play(self._class, columns[0], columns[-3:], records, lambda at: (path, named(records_of[at][0])))
        states: list[Any] = []
        results: list[Any] = []
        for merge_steps in sequences:
            stack: list[Any] = []
            for merge_step in merge_steps:
                if merge_step is Mark.BEGIN:
                    stack.append(None)
                elif merge_step is Mark.MERGE:
                    later, earlier = stack.pop(), stack.pop()
                    stack.append(play.merged(len(states), earlier, later))
                elif not is_record[merge_step]:
                    stack.append(play.stored(merge_step))
                else:
                    after = play.after(len(states), stack.pop() if stack else None)
                    if self._has_result:
                        results.append(play.result_of(len(states), after.as_py()))
                    states.append(after.as_py())
                    stack.append(after.as_py())  # a new object each time: the class may change what it is given
        parts = [play.column("state", states, columns[0].type)]
        if self._has_result:
            parts.append(play.column("result", results, columns[1].type))
        return [*parts, *nothing_of(columns[-3:], len(states))]

    def finish(self, parts: Columns) -> pa.ChunkedArray:
        return parts[len(self.parts) - 1]

    def finish_value(self, parts: Mapping[str, Any]) -> Any:
        return parts["result"]


class _Play:
    """Calls the class over rows: stored states, and records of a batch."""

    def __init__(
        self,
        described: UserClass,
        states: pa.ChunkedArray,
        passing: Columns,
        sequences: Sequence[MergeSteps],
        records_of: Callable[[int], tuple[str, str]],
    ) -> None:
        """`records_of` gives a sequence's field and the name of its key, for messages."""
        self._class, self._sequences, self._named_at = described, sequences, records_of
        self._states = whole(states)
        topics, at, records = (whole(each) for each in passing)
        self._topics, self._at = topics, at
        self._starts = records.offsets.to_numpy()
        self._records = pa.RecordBatch.from_struct_array(records.values)
        self._is_batch = at.is_valid().to_pylist()
        self._number = 0  # of the sequence that is being played

    def state_of(self, number: int) -> Any:
        """The state that a sequence leaves."""
        self._number = number
        stack: list[_State] = []
        for merge_step in self._sequences[number]:
            if merge_step is Mark.BEGIN:
                stack.append(_State(None))
            elif merge_step is Mark.MERGE:
                later, earlier = self._settled(stack.pop()), self._settled(stack.pop())
                stack.append(_State(self._merged(earlier, later)))
            elif not self._is_batch[merge_step]:
                # A new object each time: several windows may begin with one state, and the class may change it.
                stack.append(_State(self.stored(merge_step)))
            else:
                if not stack:
                    stack.append(_State(None))
                stack[-1].pending.append(merge_step)
        (left,) = stack
        return self._added(left)

    def stored(self, row: int) -> Any:
        """The state that a row has."""
        return self._states[row].as_py()

    def after(self, number: int, before: Any) -> pa.Scalar:
        """The state that a sequence, which is one record, makes of the one before it, as its declared type has it."""
        self._number = number
        return self._one(self._added(_State(before, rows_of(self._sequences[number]))), "state", self._states.type)[0]

    def merged(self, number: int, earlier: Any, later: Any) -> Any:
        """Two states as one, for a sequence whose records come next."""
        self._number = number
        return self._merged(earlier, later)

    def result_of(self, number: int, state: Any) -> Any:
        """What the class makes of a state for others."""
        self._number = number
        return self._call("result", state)

    def column(self, part: str, values: Sequence[Any], kind: pa.DataType) -> pa.ChunkedArray:
        """The values as their declared type has them."""
        try:
            return pa.chunked_array([as_arrow(values, kind)])
        except (pa.ArrowException, ValueError, TypeError, OverflowError):
            for number, value in enumerate(values):
                self._number = number
                self._one(value, part, kind)
            raise

    def _merged(self, earlier: Any, later: Any) -> Any:
        if earlier is None or later is None:
            return later if earlier is None else earlier
        return self._as_declared(self._call("merge", earlier, later))

    def _settled(self, state: _State) -> Any:
        """The state with all that is pending, as it would come out of a store."""
        return self._as_declared(self._added(state)) if state.pending else state.value

    def _as_declared(self, state: Any) -> Any:
        return self._one(state, "state", self._states.type)[0].as_py()

    def _one(self, value: Any, part: str, kind: pa.DataType) -> pa.Array:
        try:
            return as_arrow([value], kind)
        except (pa.ArrowException, ValueError, TypeError, OverflowError) as error:
            declared = self._class.state_type if part == "state" else self._class.result_type
            reason = str(error).strip().splitlines()[0]
            raise self._failure(
                f"gave the {part} {_short(value)}",
                f"is no {declared}: {reason}",
                f"the class or its {part}_type",
                part == "state",
            ) from error

    def _added(self, state: _State) -> Any:
        if not state.pending:
            return state.value
        value = self._call("zero") if state.value is None else state.value
        spans = [(int(self._starts[row]), int(self._starts[row + 1])) for row in state.pending]
        if len(spans) == 1:
            records = self._records.slice(spans[0][0], spans[0][1] - spans[0][0])
        else:
            records = self._records.take(pa.array([at for start, end in spans for at in range(start, end)], pa.int64()))
        return self._call("add", value, records)

    def _call(self, method: str, *arguments: Any) -> Any:
        try:
            return getattr(self._class.made, method)(*arguments)
        except Exception as error:
            # What a batch leaves is shown once a batch, so `result` says nothing of a single record.
            of_a_record = method != "result" and not isinstance(error, MemoryError)
            raise self._failure(f"failed in {method}", where_in(error), "the method", of_a_record) from error

    def _failure(self, what: str, why: str, remedy: str, of_a_record: bool) -> UserCodeException:
        path, key = self._named_at(self._number)
        rows = [row for row in rows_of(self._sequences[self._number]) if self._is_batch[row]]
        offsets = [at for row in rows for at in self._at[row].as_py()]
        records = f"{self._topics[rows[0]].as_py()} at the offsets {min(offsets)} to {max(offsets)}"
        return UserCodeException(
            f"{path}: {self._class.reference} {what} for {key}, with records of {records}: {why}",
            f"Mend {remedy} and start the application again; these records are processed anew then",
            of_a_record,
        )


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 200 else text[:197] + "..."
