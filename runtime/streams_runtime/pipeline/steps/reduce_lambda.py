"""Spark's part of `reduce`: the lambda over the records of every key at once, once the stores have been read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_type
from pyspark.sql.types import ArrayType, DataType, StructType

from streams_runtime.api.sql.reduce_aggregates import Lambda, Reduction
from streams_runtime.errors import InvalidApplicationException, Mistake
from streams_runtime.pipeline.spark.frames import frame_of
from streams_runtime.pipeline.spark.query_failures import expression_failed, is_spark_failure
from streams_runtime.pipeline.spark.refused_expressions import refusing
from streams_runtime.pipeline.stages.kept_stages import KeptStages
from streams_runtime.state.aggregates.aggregate_state import AggregateState
from streams_runtime.state.aggregates.record_by_record import whole
from streams_runtime.state.aggregates.reduce_state import (
    ADD,
    BEGIN,
    CHUNKS,
    DO,
    MERGE,
    MERGE_STEPS,
    RECORD,
    RECORDS,
    STATE,
    STORED,
)

_HELD, _RECORD, _STACK, _MERGE_STEP = "_held", "_record", "_stack", "_merge_step"
_CHUNK, _CHUNKS_HELD = "_chunk", "_chunks_held"


def bind_reductions(spark: SparkSession, state: AggregateState, per_update: bool = False) -> None:
    """Have Spark compute the lambdas of an aggregate step, whose state is bound.

    `per_update`: every change counts.

    Raises:
        InvalidApplicationException: what Spark's analysis refuses of them, and results that are no state; all of it.
    """
    mistakes: list[Mistake] = []
    for path, kind, of_state, of_record in state.reductions():
        try:
            kind.fold = SparkFold(spark, path, kind.reduction, of_state, of_record, per_update)
        except InvalidApplicationException as error:
            mistakes += error.mistakes
    if mistakes:
        raise InvalidApplicationException(mistakes)


class SparkFold:
    """A state.aggregates.reduce_state.Fold."""

    def __init__(
        self,
        spark: SparkSession,
        path: str,
        reduction: Reduction,
        state: pa.DataType,
        record: pa.DataType,
        per_update: bool = False,
    ) -> None:
        """Analyse the lambdas over no rows. `path` is their field. Raises InvalidApplicationException.

        `per_update`: the state after each record is wanted.
        """
        self._spark, self._path, self._kept = spark, path, KeptStages(spark)
        of_state = from_arrow_type(state)
        kind = _sql(spark, of_state)
        add, merge = reduction.add, reduction.merge
        self._check(reduction, add, of_state, [state, record])
        if merge is None:
            self._expression = (_state_per_record if per_update else _adding)(reduction, kind)
            columns = {STATE: state, **_listed(RECORDS, record, per_update)}
        else:
            self._check(reduction, merge, of_state, [state, state])
            self._expression = (_merged_state_per_record if per_update else _merging)(reduction, merge, kind)
            columns = _listed(MERGE_STEPS, pa.struct([(DO, pa.int32()), (STATE, state), (RECORD, record)]), per_update)
        with refusing(path):
            self._states(_frame(spark, pa.schema(list(columns.items())).empty_table())).schema  # noqa: B018 - analyses it

    def __call__(self, table: pa.Table) -> pa.ChunkedArray:
        try:
            return self._kept.answer(STATE, _whole(table), self._states)[STATE]
        except Exception as error:
            failed = expression_failed(error, self._path) if is_spark_failure(error) else None
            if failed is None:
                raise
            raise failed from error

    def _states(self, rows: DataFrame) -> DataFrame:
        return rows.select(F.expr(self._expression).alias(STATE))

    def _check(self, reduction: Reduction, given: Lambda, state: DataType, kinds: Sequence[pa.DataType]) -> None:
        """The lambda gives what can stand for a state without a loss."""
        named = pa.schema(list(zip(given.names, kinds, strict=True))).empty_table()
        with refusing(self._path):
            (field,) = _frame(self._spark, named).select(F.expr(given.body)).schema
        if _fits(self._spark, field.dataType, state):
            return
        found, wanted = (_sql(self._spark, each).replace(" NOT NULL", "") for each in (field.dataType, state))
        raise InvalidApplicationException(
            [
                Mistake(
                    self._path,
                    f"{given.body!r} is {found}, and the initial value {reduction.initial!r} makes the state {wanted}",
                    f"begin with cast({reduction.initial} as {found}), or cast what the lambda gives to {wanted}",
                )
            ]
        )


def _listed(name: str, element: pa.DataType, per_update: bool) -> dict[str, pa.DataType]:
    """The column that a fold is given: a list, in chunks where every change counts."""
    return {CHUNKS: pa.list_(pa.list_(element))} if per_update else {name: pa.list_(element)}


def _adding(reduction: Reduction, kind: str) -> str:
    added = _added(reduction, kind, _HELD, _RECORD)
    return f"aggregate({RECORDS}, {STATE}, ({_HELD}, {_RECORD}) -> {added})"


def _state_per_record(reduction: Reduction, kind: str) -> str:
    """The states after each record, chunk by chunk, so that a list to which a state is added stays short."""
    last = f"element_at({_HELD}, -1)"
    one_more = f"concat({_HELD}, array({_added(reduction, kind, last, _RECORD)}))"
    begun = f"array(element_at(element_at({_STACK}, -1), -1))"
    chunk = f"aggregate({_MERGE_STEP}, {begun}, ({_HELD}, {_RECORD}) -> {one_more})"
    # Each list begins with the state before its first record.
    longer = f"concat({_STACK}, array({chunk}))"
    chunks = f"aggregate({CHUNKS}, array(array({STATE})), ({_STACK}, {_MERGE_STEP}) -> {longer})"
    return f"flatten(transform({chunks}, {_HELD} -> slice({_HELD}, 2, size({_HELD}))))"


def _merging(reduction: Reduction, merge: Lambda, kind: str) -> str:
    done = _done(reduction, merge, kind)
    stack = f"aggregate({MERGE_STEPS}, {_no_states(kind)}, ({_STACK}, {_MERGE_STEP}) -> {done})"
    return f"element_at({stack}, 1)"


def _merged_state_per_record(reduction: Reduction, merge: Lambda, kind: str) -> str:
    """The states after each record, with a stack of states beside them that lasts from chunk to chunk."""
    done = f"transform(array({_HELD}.stack), {_STACK} -> {_done(reduction, merge, kind)})[0]"
    one_more = f"concat({_HELD}.states, array(element_at({_STACK}, -1)))"
    states = f"if({_MERGE_STEP}.{DO} = {ADD}, {one_more}, {_HELD}.states)"
    step = f"transform(array({done}), {_STACK} -> named_struct('stack', {_STACK}, 'states', {states}))[0]"
    begun = f"named_struct('stack', {_CHUNKS_HELD}.stack, 'states', {_no_states(kind)})"
    chunk = f"aggregate({_CHUNK}, {begun}, ({_HELD}, {_MERGE_STEP}) -> {step})"
    longer = f"concat({_CHUNKS_HELD}.states, array({_HELD}.states))"
    both = f"named_struct('stack', {_HELD}.stack, 'states', {longer})"
    none = f"named_struct('stack', {_no_states(kind)}, 'states', cast(array() as array<array<{kind}>>))"
    chunks = f"({_CHUNKS_HELD}, {_CHUNK}) -> transform(array({chunk}), {_HELD} -> {both})[0]"
    return f"flatten(aggregate({CHUNKS}, {none}, {chunks}).states)"


def _no_states(kind: str) -> str:
    return f"cast(array() as array<{kind}>)"


def _done(reduction: Reduction, merge: Lambda, kind: str) -> str:
    """The stack of states after a merge step."""
    last, before = f"element_at({_STACK}, -1)", f"element_at({_STACK}, -2)"
    both = _applied(merge, kind, before, last)
    together = f"case when {before} is null then {last} when {last} is null then {before} else {both} end"
    below = {number: f"slice({_STACK}, 1, size({_STACK}) - {number})" for number in (1, 2)}
    done = {
        BEGIN: f"concat({_STACK}, array(cast(null as {kind})))",
        STORED: f"concat({_STACK}, array({_MERGE_STEP}.{STATE}))",
        ADD: f"concat({below[1]}, array({_added(reduction, kind, last, f'{_MERGE_STEP}.{RECORD}')}))",
        MERGE: f"concat({below[2]}, array({together}))",
    }
    cases = " ".join(f"when {number} then {then}" for number, then in done.items())
    return f"case {_MERGE_STEP}.{DO} {cases} end"


def _added(reduction: Reduction, kind: str, state: str, record: str) -> str:
    """The state with one more record; one of null begins anew, as where Kafka Streams deletes the row."""
    return _applied(reduction.add, kind, f"coalesce({state}, cast({reduction.initial} as {kind}))", record)


def _applied(given: Lambda, kind: str, one: str, other: str) -> str:
    """What the lambda gives for two values. Its names are bound by zip_with, so that they hide no others."""
    body = f"cast({given.body} as {kind})"
    return f"element_at(zip_with(array({one}), array({other}), ({given.one}, {given.other}) -> {body}), 1)"


def _frame(spark: SparkSession, table: pa.Table) -> DataFrame:
    return frame_of(spark, _whole(table))


def _whole(table: pa.Table) -> pa.Table:
    return pa.table({name: whole(table[name]) for name in table.column_names})


def _fits(spark: SparkSession, found: DataType, state: DataType) -> bool:
    """Whether each value of the one type is one of the other: 1 of DOUBLE, and 1.5 not of INT."""
    jvm: Any = spark._jvm
    cast = jvm.org.apache.spark.sql.catalyst.expressions.Cast
    return bool(cast.canUpCast(_jvm_type(spark, found), _jvm_type(spark, state))) and _same_fields(found, state)


def _same_fields(one: DataType, other: DataType) -> bool:
    """A cast goes by the order of a struct's fields, whatever they are called."""
    if isinstance(one, StructType) and isinstance(other, StructType):
        return len(one) == len(other) and all(
            mine.name.lower() == theirs.name.lower() and _same_fields(mine.dataType, theirs.dataType)
            for mine, theirs in zip(one, other, strict=True)
        )
    if isinstance(one, ArrayType) and isinstance(other, ArrayType):
        return _same_fields(one.elementType, other.elementType)
    return True


def _sql(spark: SparkSession, kind: DataType) -> str:
    """The type as Spark SQL has it, with the names of fields in backticks."""
    return str(_jvm_type(spark, kind).sql())


def _jvm_type(spark: SparkSession, kind: DataType) -> Any:
    jvm: Any = spark._jvm
    return jvm.org.apache.spark.sql.types.DataType.fromJson(kind.json())
