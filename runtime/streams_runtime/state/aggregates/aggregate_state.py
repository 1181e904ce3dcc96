"""Running aggregates as columns: what Spark pre-aggregates, how it merges into a store, how it lies there.

Each aggregate keeps one or a few *state columns* (aggregate_kinds), which `of_batch` makes of what Spark gives for a
batch; `merge` adds the batch to what the store has, column by column, and `finish` turns state into what a user sees.
Doubles are added one by one, in record order (folding): they come as lists of what there is to add.
In a store and its changelog a key's state is one JSON object; an aggregate that keeps more than what is seen is an
object in it, such as avg's {"sum": …, "count": …}.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from typing import Any

import orjson
import polars as pl
import pyarrow as pa

from streams_runtime.batch.json_columns import (
    fields_in_json,
    from_json,
    json_type,
    rows_as_json,
    rows_of_json,
    to_json,
    with_texts,
)
from streams_runtime.errors import (
    InvalidApplicationException,
    Mistake,
    ProcessorStateException,
    StreamsException,
)
from streams_runtime.state.aggregates.aggregate_kind import Columns
from streams_runtime.state.aggregates.aggregate_kinds import KeptAggregate, kept_aggregate
from streams_runtime.state.aggregates.distinct_values import DistinctValues, refuse_too_much
from streams_runtime.state.aggregates.merge_order import MergeSteps
from streams_runtime.state.aggregates.record_by_record import Named, RecordByRecord
from streams_runtime.state.aggregates.reduce_state import Reducing
from streams_runtime.state.aggregates.top_values import Top
from streams_runtime.topology.nodes.aggregate_node import Aggregate


class AggregateState:
    """The state of one aggregate step.

    `columns` are what Spark gives. The types of the state (Arrow) are known once Spark has analysed the expressions:
    `bind` them before merging.
    """

    def __init__(
        self, aggregates: Sequence[Aggregate], merges: bool = False, of_doubles: Container[str] = frozenset()
    ) -> None:
        """`merges`: states with records of their own are put together, as those of sessions; `of_doubles`: columns that
        are sums of doubles.

        Raises ConfigException: a class in Python is not there, or lacks something.
        """
        self.of_doubles = frozenset(each.column for each in aggregates if each.column in of_doubles)
        """The columns that are sums of doubles."""
        self._aggregates = tuple(kept_aggregate(each, merges, each.column in of_doubles) for each in aggregates)
        self.columns = tuple(column for aggregate in self._aggregates for column in aggregate.columns)
        self.given = pa.schema([])
        """The types that it was bound by."""
        self._schema: pa.Schema | None = None

    @property
    def declared(self) -> Sequence[Aggregate]:
        """The aggregates as they were declared."""
        return [aggregate.declared for aggregate in self._aggregates]

    @property
    def record_by_record(self) -> bool:
        """Whether records are taken one after the other where a state is made of several parts (`played`): there is a
        class in Python, a reduce, something that adds doubles, or a count(distinct …).
        """
        return any(isinstance(aggregate.kind, RecordByRecord) for aggregate in self._aggregates)

    @property
    def needs_order(self) -> bool:
        """Whether their order matters too: of all of these but count(distinct …)."""
        return any(each.kind.by_order for each in self._aggregates if isinstance(each.kind, RecordByRecord))

    @property
    def merges_in_columns(self) -> bool:
        """Whether `merge` alone adds a batch to what the store has."""
        return all(each.kind.merges_in_columns for each in self._aggregates if isinstance(each.kind, RecordByRecord))

    @property
    def lists_in_order(self) -> bool:
        """Whether what Spark gives is in the order of batch.columns.ORDER."""
        return any(column.listed is not None for column in self.columns)

    @property
    def by_offsets(self) -> bool:
        """Whether what Spark gives is in the order of the rows' offsets."""
        return any("_offset" in column.expression for column in self.columns)

    def bind(self, schema: pa.Schema) -> None:
        """Fix the types of the state columns, by those of what Spark gives.

        Raises:
            InvalidApplicationException: columns whose type can't be kept as JSON, each with its field.
        """
        fields: list[tuple[str, pa.DataType]] = []
        mistakes = []
        for aggregate in self._aggregates:
            types = aggregate.kind.types([schema.field(column.name).type for column in aggregate.columns])
            fields += zip(aggregate.state_names, types, strict=True)
            mistakes += [
                Mistake(
                    aggregate.declared.path,
                    f"aggregates of type {kind} are not there yet",
                    aggregate.kind.remedy,
                )
                for part, kind in zip(aggregate.kind.parts, types, strict=False)  # what is passing is not kept
                if part not in aggregate.kind.kept and not aggregate.kind.keeps(kind)
            ]
        if mistakes:
            raise InvalidApplicationException(mistakes)
        self.given, self._schema = schema, pa.schema(fields)

    def reductions(self) -> Iterator[tuple[str, Reducing, pa.DataType, pa.DataType]]:
        """Each reduce: its field, its kind, and the types of its state and of the records that it takes."""
        schema = self._bound()
        for each in self._aggregates:
            if isinstance(each.kind, Reducing):
                state, records = (schema.field(name).type for name in each.state_names)
                yield each.declared.path, each.kind, state, records.value_type

    def of_batch(self, batch: pa.Table) -> pa.Table:
        """State of a batch alone: what Spark gave (`columns`) becomes state columns, row by row."""
        columns = [part for each in self._aggregates for part in each.kind.of_batch(each.given(batch))]
        return pa.table(columns, names=self._bound().names).cast(self._bound())

    def merge(self, stored: pa.Table, batch: pa.Table) -> pa.Table:
        """State after the batch; the tables have the same keys in the same rows, nulls where there was no state.

        Raises:
            StreamsException: a sum or count left the range of BIGINT. Cast its argument to DOUBLE.
            ProcessorStateException: what is stored can't be read.
        """
        return self._together(stored, batch, needs_order=True)

    def join(self, one: pa.Table, other: pa.Table) -> pa.Table:
        """State of both together, where the records of neither come first. Raises as `merge` does."""
        return self._together(one, other, needs_order=False)

    def _together(self, one: pa.Table, other: pa.Table, needs_order: bool) -> pa.Table:
        merged: list[pa.ChunkedArray] = []
        for aggregate in self._aggregates:
            together = aggregate.kind.merge if needs_order else aggregate.kind.join
            try:
                merged += together(aggregate.of(one), aggregate.of(other))
            except pa.ArrowInvalid as error:
                where = aggregate.declared.path
                raise StreamsException(
                    f"{where}: the running total left the range of BIGINT ({error}); cast the argument to DOUBLE"
                ) from error
        return pa.table(merged, names=self._bound().names)

    def played(self, rows: pa.Table, sequences: Sequence[MergeSteps], others: pa.Table, named: Named) -> pa.Table:
        """The state that each sequence of rows leaves, of aggregates that take records in turn; of others what `others`
        has.

        `rows` are stored states and a batch's, `sequences` their numbers in turn (state.aggregates.merge_order). Raises
        UserCodeException: a class failed; the message has the class, the method, the key and the records. Raises
        StreamsException: a reduce failed; the message has its field.
        """
        return self._in_order(
            others, lambda kind, each: kind.played(each.of(rows), sequences, each.declared.path, named)
        )

    def per_update(self, rows: pa.Table, sequences: Sequence[MergeSteps], others: pa.Table, named: Named) -> pa.Table:
        """The same after each record: a row for each row of a sequence that is one record's, as `others` has.

        The other rows are stored states, or nulls. Raises as `played` does.
        """
        return self._in_order(
            others, lambda kind, each: kind.per_update(each.of(rows), sequences, each.declared.path, named)
        )

    def _in_order(self, others: pa.Table, ask: Callable[[RecordByRecord, KeptAggregate], Columns]) -> pa.Table:
        """What `ask` gives of aggregates that take records in turn, and what `others` has of the others."""
        if not self.record_by_record:
            return others
        columns: list[pa.ChunkedArray] = []
        for each in self._aggregates:
            columns += ask(each.kind, each) if isinstance(each.kind, RecordByRecord) else each.of(others)
        return pa.table(columns, names=self._bound().names)

    def without_sets(self, rows: pa.Table) -> pa.Table:
        """The rows without what count(distinct …) has, where others are put together and this is worked out in turn: it
        would be copied with each step.
        """
        names = {
            name for each in self._aggregates if isinstance(each.kind, DistinctValues) for name in each.state_names
        }
        found = [pa.nulls(len(rows), each.type) if each.name in names else rows[each.name] for each in rows.schema]
        return pa.table(found, schema=rows.schema)

    def encode(self, state: pa.Table, named: Named = lambda _: "a key") -> list[bytes]:
        """State as stored: one JSON object a row. `named` gives what messages call a row's key.

        Raises FailedProcessingException: a count(distinct …) has too many values, or it or a top too long ones; see
        distinct_values.refuse_too_much.
        """
        stored = [(each, each.kind.stored(each.of(state))) for each in self._aggregates]
        parts = {name: part for each, found in stored for name, part in zip(each.kept_names, found, strict=True)}
        rows = rows_as_json(self._nested(pl.from_arrow(pa.table(parts))))  # type: ignore[arg-type]
        bounded = [(each.declared, found[0]) for each, found in stored if isinstance(each.kind, DistinctValues | Top)]
        refuse_too_much(bounded, rows, named)
        return rows

    def decode(self, values: Sequence[bytes | None]) -> pa.Table:
        """Stored values as a table of state columns; a row of nulls for each None.

        Raises:
            ProcessorStateException: a value does not have the aggregate's columns.
        """
        schema = self._bound()
        try:
            text = pl.Series("state", values, dtype=pl.Binary).cast(pl.String)
            self._check_columns(text)
            decoded = rows_of_json(text, pl.Struct(self._stored_types(schema))).struct.unnest()
        except (pl.exceptions.PolarsError, TypeError) as error:
            raise ProcessorStateException(
                f"a stored value of the aggregate {self._path} can't be read ({error}). Its columns were changed, or"
                " the changelog was written by something else: give the store a new name"
            ) from error
        flat = []
        for aggregate in self._aggregates:
            whole = pl.col(aggregate.name)
            for part, column in aggregate.parts or [("", aggregate.name)]:
                read = whole.struct.field(part) if part else whole
                flat.append(from_json(read, schema.field(column).type).alias(column))
        stored = decoded.select(flat).to_arrow()
        kept = stored.column_names
        found = (stored[field.name] if field.name in kept else pa.nulls(len(stored), field.type) for field in schema)
        return pa.table(list(found), names=schema.names).cast(schema)

    def _check_columns(self, text: pl.Series) -> None:
        """Every stored value has every column, since `encode` writes them all; one without was written for others.

        Of a column that is an object its first part, so that one of another function is not taken for an empty one.
        """
        present = text.drop_nulls()
        for aggregate in self._aggregates:
            name = orjson.dumps(aggregate.name).decode()
            begins = f'{name}:{{"{aggregate.parts[0][0]}":' if aggregate.parts else f"{name}:"
            there = present.str.contains(begins, literal=True)
            for field in fields_in_json(self._bound().field(aggregate.kept_names[0]).type):
                # A struct that has no such field is of a class that has changed.
                there &= present.str.contains(field, literal=True) | present.str.contains(f"{begins}null", literal=True)
            if not there.all():
                raise pl.exceptions.PolarsError(f"no column {aggregate.name} of {aggregate.declared.function}")

    def finish(self, state: pa.Table) -> pa.Table:
        """What a user sees of the state: one column for each aggregate."""
        return pa.table({each.name: each.kind.finish(each.of(state)) for each in self._aggregates})

    @property
    def stored_as_seen(self) -> bool:
        """Whether the stored JSON is already what a user sees."""
        return not any(aggregate.parts for aggregate in self._aggregates)

    def finish_value(self, value: bytes) -> dict[str, Any]:
        """What a user sees of one stored value, for queries. Raises ValueError for bytes that are not such a value."""
        state = orjson.loads(value)
        if not isinstance(state, dict):
            raise ValueError(f"stored value {value!r} is not the state of {self._path}")
        seen = {}
        for aggregate in self._aggregates:
            found = state.get(aggregate.name)
            if aggregate.parts:
                found = with_texts(self._finished(aggregate, found)) if isinstance(found, Mapping) else None
            seen[aggregate.name] = found
        return seen

    def _finished(self, aggregate: KeptAggregate, parts: Mapping[str, Any]) -> Any:
        try:
            return aggregate.kind.finish_value(parts)
        except (KeyError, TypeError) as error:
            what = f"{aggregate.declared.call} of {self._path}"
            raise ValueError(f"stored value {dict(parts)!r} is not the state of {what}") from error

    @property
    def _path(self) -> str:
        return self._aggregates[0].declared.path.rpartition(".")[0]

    def _bound(self) -> pa.Schema:
        if self._schema is None:
            raise AssertionError("bind() comes before merging")
        return self._schema

    def _stored_types(self, schema: pa.Schema) -> dict[str, pl.DataType]:
        types: dict[str, Any] = {}
        for aggregate in self._aggregates:
            parts = {part: json_type(schema.field(column).type) for part, column in aggregate.parts}
            types[aggregate.name] = pl.Struct(parts) if parts else json_type(schema.field(aggregate.name).type)
        return types

    def _nested(self, state: pl.DataFrame) -> pl.DataFrame:
        columns = []
        for aggregate in self._aggregates:
            parts = [to_json(pl.col(column), state.schema[column]).alias(part) for part, column in aggregate.parts]
            columns.append(pl.struct(parts).alias(aggregate.name) if parts else pl.col(aggregate.name))
        return state.select(columns)
