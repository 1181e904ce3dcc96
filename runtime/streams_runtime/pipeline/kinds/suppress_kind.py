"""Spark's side of a toStream with suppress: a table's changes leave with their columns as JSON, and come back."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from streams_runtime.batch.columns import METADATA, NULL_VALUE, OUT_TIME, OUT_VALUE, RECORD, WINDOW_END, WINDOW_START
from streams_runtime.batch.stage import StageInput, StageOutput
from streams_runtime.pipeline.formats.spark_formats import content, ddl_of, format_of, parsed, write_json
from streams_runtime.pipeline.kinds.spark_kind import Collecting, LeavingKind
from streams_runtime.pipeline.known import Known
from streams_runtime.pipeline.spark.frames import value_columns
from streams_runtime.pipeline.spark.refused_expressions import refusing
from streams_runtime.pipeline.stages.asked_query import Answer, Query
from streams_runtime.pipeline.windowing.record_ordinals import ordinal_columns
from streams_runtime.topology.nodes.source_and_sink_nodes import Format
from streams_runtime.topology.nodes.suppress_node import SuppressNode

_PARSED = "_parsed"


class SuppressKind(LeavingKind[SuppressNode]):
    """The changes of a toStream that wait for later ones."""

    FORWARDS = True

    def analysed(self, node: SuppressNode, known: Known) -> DataFrame:
        """The changes; refused where keys, or columns, have no format for their type."""
        rows = known.outputs[node.input].drop(RECORD)
        with refusing(f"{node.path}.toStream.suppress"):
            format_of(rows.schema["_key"].dataType)
            _changes_that_went_on(rows.select(_as_json(rows).alias(OUT_VALUE)), _format_of(rows))
        return rows

    def query(self, node: SuppressNode, rows: DataFrame, collecting: Collecting) -> Query:
        """The changes, values as JSON."""
        return Query(_waiting(rows))

    def collect(self, node: SuppressNode, answer: Answer, collecting: Collecting, result: StageOutput) -> None:
        """Changes that go on to the store."""
        result.inputs.append(StageInput(node, answer.rows))

    def behind(self, node: SuppressNode, rows: DataFrame, known: Known) -> DataFrame:
        """Those that go on, as columns again."""
        return _changes_that_went_on(rows, _format_of(known.outputs[node.name]))


def _format_of(changes: DataFrame) -> Format:
    """How the values of changes wait."""
    return Format("json", ddl_of(StructType([changes.schema[name] for name in value_columns(changes)])))


def _as_json(changes: DataFrame) -> Column:
    return write_json([F.col(f"`{name}`") for name in value_columns(changes)])


def _waiting(changes: DataFrame) -> DataFrame:
    """Each change: metadata, its time in ms, its columns as JSON, its window, and the place of what it came of.

    The JSON is null where a row went.
    """
    return changes.select(
        *METADATA,
        NULL_VALUE,
        F.unix_millis("_timestamp").alias(OUT_TIME),
        F.when(~F.col(NULL_VALUE), _as_json(changes)).alias(OUT_VALUE),
        *(name for name in (WINDOW_START, WINDOW_END) if name in changes.columns),
        *ordinal_columns(changes),
    )


def _changes_that_went_on(rows: DataFrame, format: Format) -> DataFrame:
    """Changes with their columns again in place of the JSON of `format`."""
    frame = rows.withColumn(_PARSED, parsed(F.col(OUT_VALUE), format))
    row = content(F.col(_PARSED), format)
    kind = frame.select(row.alias("x")).schema["x"].dataType
    assert isinstance(kind, StructType)
    beside = [name for name in rows.columns if name != OUT_VALUE]
    return frame.select(*beside, *(row[name].alias(name) for name in kind.fieldNames()))
