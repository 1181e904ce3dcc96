"""Spark's part of a join of two tables by a foreign key: foreign keys, rows that are sent, and results.

What travels between the two sides is JSON of a row's columns. Everything else of such a join is about bytes, and is
decided in processors/joins/fk_subscription.py and processors/joins/fk_response.py.
"""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from streams_runtime.batch.columns import CARRIED, FOREIGN_KEY, NULL_VALUE, OTHER, OUT_TIME, OUT_VALUE
from streams_runtime.errors import InvalidApplicationException, Mistake
from streams_runtime.pipeline.formats.spark_formats import content, ddl_of, format_of, parsed, write_json
from streams_runtime.pipeline.spark.frames import value_columns
from streams_runtime.pipeline.spark.refused_expressions import columns_refused, refusing
from streams_runtime.pipeline.steps.table_rows import joined_rows
from streams_runtime.topology.nodes.foreign_key_nodes import ForeignKeyJoinNode
from streams_runtime.topology.nodes.source_and_sink_nodes import Format

_PARSED = "_parsed_other"


def foreign_keys(node: ForeignKeyJoinNode, rows: DataFrame) -> DataFrame:
    """The foreign key of each row of the left table; null where there is no row, and where the expression gives null.

    NULL_VALUE says where there is no row. `rows` are as table_rows.rows_of_last gives them.
    """
    return rows.select(F.when(~F.col(NULL_VALUE), F.expr(node.on)).alias(FOREIGN_KEY), NULL_VALUE)


def rows_as_json(rows: DataFrame) -> DataFrame:
    """The rows of a table as they are sent (OUT_VALUE, null where there is none) and their times in ms (OUT_TIME)."""
    value = write_json([F.col(f"`{name}`") for name in value_columns(rows)])
    return rows.select(
        F.when(~F.col(NULL_VALUE), value).alias(OUT_VALUE),
        F.unix_millis("_timestamp").alias(OUT_TIME),
    )


def results(node: ForeignKeyJoinNode, rows: DataFrame, table: Format) -> DataFrame:
    """The join's rows over those of the left table, which have OTHER in KEPT.

    JSON of the result's columns (OUT_VALUE), null where it has no row. `table` is the right table's format
    (`sent_format`).
    """
    # A projection of its own, so that Spark parses once.
    both = rows.withColumn(CARRIED, F.struct(parsed(F.col(CARRIED)[OTHER], table).alias(_PARSED)))
    frame = joined_rows(node, both, content(F.col(CARRIED)[_PARSED], table), F.col("_timestamp"))
    value = write_json([F.col(f"`{name}`") for name in value_columns(frame)])
    return frame.select(F.when(~F.col(NULL_VALUE), value).alias(OUT_VALUE))


def sent_format(table: DataFrame) -> Format:
    """How the rows of a table are sent, of which this is a frame."""
    return Format("json", ddl_of(StructType([table.schema[name] for name in value_columns(table)])))


def check_foreign_key_join(node: ForeignKeyJoinNode, left: DataFrame, right: DataFrame) -> DataFrame:
    """Analyse a join by a foreign key over no rows, each expression by itself; its result.

    Raises:
        InvalidApplicationException: a foreign key of another type than the keys that it stands for, and the expressions
            that Spark's analysis refuses; all of them.
    """
    mistakes: list[Mistake] = []
    field = f"{node.path}.join.key"
    try:
        with refusing(field):
            (found,) = left.select(F.expr(node.on)).schema
            mine, theirs = format_of(found.dataType), format_of(right.schema["_key"].dataType)
        if mine != theirs:
            one, other = (each.name if mine.name != theirs.name else each.schema for each in (mine, theirs))
            text = f"{node.on} is {one}, and the keys of {node.table} are {other}"
            mistakes.append(Mistake(field, text, "give the type of the other table's key: cast(… as …)"))
    except InvalidApplicationException as refused:
        mistakes += refused.mistakes
    nothing = F.lit(None).cast(StructType([right.schema[name] for name in value_columns(right)]))
    mistakes += columns_refused(left.withColumn(node.table, nothing), node.select, f"{node.path}.join.select")
    if mistakes:
        raise InvalidApplicationException(mistakes)
    return joined_rows(node, left, nothing, F.col("_timestamp"))
