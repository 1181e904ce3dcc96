"""Spark's side of an aggregate: what each batch adds to each key, or to each of its windows."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql.pandas.types import to_arrow_schema

from streams_runtime.batch.columns import ORDINAL, further
from streams_runtime.batch.rows import table_rows
from streams_runtime.batch.stage import StageOutput, store_batch_of
from streams_runtime.errors import InvalidApplicationException
from streams_runtime.pipeline.kinds.spark_kind import Collecting, LeavingKind
from streams_runtime.pipeline.kinds.table_kinds import kept_as_table
from streams_runtime.pipeline.known import Known
from streams_runtime.pipeline.spark.frames import with_nulls_allowed
from streams_runtime.pipeline.spark.observed import Observed
from streams_runtime.pipeline.stages.asked_query import Answer, Query
from streams_runtime.pipeline.steps.aggregate_columns import check_aggregates, sums_of_doubles
from streams_runtime.pipeline.steps.partial_aggregates import partial_aggregates
from streams_runtime.pipeline.steps.reduce_lambda import bind_reductions
from streams_runtime.pipeline.steps.usable_rows import left_out, taken
from streams_runtime.state.aggregates.aggregate_state import AggregateState
from streams_runtime.state.aggregates.user_classes.user_class import user_class_mistakes
from streams_runtime.topology.nodes.aggregate_node import AggregateNode
from streams_runtime.topology.nodes.window_kinds import SessionWindows, TimeWindows


class AggregateKind(LeavingKind[AggregateNode]):
    """`aggregate`, of a key or of its windows."""

    KEEPS_ROWS = True

    def analysed(self, node: AggregateNode, known: Known) -> DataFrame:
        """The columns that the state finishes with, once Spark has taken its part of each."""
        merges = isinstance(node.windows, SessionWindows)
        if mistakes := user_class_mistakes(node.aggregates, merges):
            raise InvalidApplicationException(mistakes)
        rows, per_update = known.outputs[node.input], node.name in known.traits.per_update
        state = AggregateState(node.aggregates, merges, sums_of_doubles(node.aggregates, rows))
        check_aggregates(state, rows)
        known.aggregates[node.name] = state
        schema = to_arrow_schema(partial_aggregates(known.traits, state, node, rows, Observed()).schema)
        state.bind(schema)
        bind_reductions(known.spark, state, per_update)
        empty = schema.empty_table()
        finished = state.finish(state.of_batch(empty))
        nothing = empty["_time"]
        windows = None if node.windows is None else (nothing, nothing)
        found = known.frame(table_rows(empty["_key"], empty["_partition"], nothing, finished, windows))
        return kept_as_table(node, f"{node.path}.aggregate", found, known) if per_update else found

    def query(self, node: AggregateNode, rows: DataFrame, collecting: Collecting) -> Query:
        """What the rows add to each key, or each row by itself where every change counts."""
        known, dropped, late = collecting.known, Observed(), Observed()
        usable = taken(node, rows, dropped)
        partials = partial_aggregates(known.traits, known.aggregates[node.name], node, usable, late)
        return Query(with_nulls_allowed(partials), {"dropped": dropped, "late": late})

    def collect(self, node: AggregateNode, answer: Answer, collecting: Collecting, result: StageOutput) -> None:
        """A batch for the store."""
        known, notes = collecting.known, answer.notes
        result.dropped += left_out(node, notes["dropped"])
        result.late[node.name] += notes["late"]["late"] if isinstance(node.windows, TimeWindows) else 0
        names = [column.name for column in known.aggregates[node.name].columns]
        if node.name in known.traits.per_update:
            names += [*ORDINAL, *further(answer.rows.column_names), "_headers"]
        result.store_batches.append(store_batch_of(node, answer.rows, names))
