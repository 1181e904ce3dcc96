"""Spark's part of steps over tables: the row that each table has for a key, given what the sources hold for it.

A snapshot is what all sources of a part (topology.table_parts) hold for one key at one moment. Every table of the part
is a function of it, so one query over a batch's snapshots says what each table had before and after each change;
processors/tables/table_changes.py decides from that what is passed on.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from streams_runtime.batch.columns import CARRIED, HIDDEN, NULL_VALUE, RECORD, WINDOW_END, WINDOW_START
from streams_runtime.batch.snapshot_columns import (
    RAW_KEY,
    SHOWN,
    chosen_for,
    group_of,
    grouped,
    held_time,
    held_value,
    present,
    streamed,
    time_of,
    written_to,
)
from streams_runtime.errors import InvalidApplicationException, Mistake
from streams_runtime.pipeline.formats.decode import Decoder
from streams_runtime.pipeline.formats.spark_formats import content, format_of, is_null, parsed, write_json
from streams_runtime.pipeline.spark.frames import value_columns
from streams_runtime.pipeline.spark.refused_expressions import columns_refused, refusing
from streams_runtime.pipeline.steps.regrouped_rows import columns_taken
from streams_runtime.pipeline.steps.transformed_rows import transformed
from streams_runtime.pipeline.steps.written_rows import value_of
from streams_runtime.topology.nodes.foreign_key_nodes import ForeignKeyJoinNode
from streams_runtime.topology.nodes.step_nodes import TransformNode
from streams_runtime.topology.nodes.table_nodes import TableJoinNode
from streams_runtime.topology.table_parts import TablePart

_KEY, _TIME = "_key", "_timestamp"


def tables_of_snapshots(
    part: TablePart, snapshots: DataFrame, decoders: Mapping[str, Decoder], formats: Mapping[str, str]
) -> DataFrame:
    """The key of each snapshot, whether every table has a row for it, and what is written and streamed of these.

    Rows are in the snapshots' order.

    `decoders` are those of the sources, `formats` the names of the formats that the sinks write.
    """
    frame = _worked_out(part, _sources(part, snapshots, decoders, (SHOWN,)))
    number = part.copies.first
    for index, sink in enumerate(part.sinks):
        rows = _flat(frame, _row(number[sink.input]))
        wanted = ~F.col(NULL_VALUE) & F.col(CARRIED)[SHOWN]
        value = F.when(wanted, value_of(rows.columns, formats[sink.name]))
        topic = (
            F.lit(None).cast("string")
            if sink.topic_by is None
            else F.when(F.col(CARRIED)[SHOWN], F.expr(sink.topic_by))
        )
        frame = rows.select(f"{CARRIED}.*", value.alias(written_to(index)), topic.alias(chosen_for(index)))
    for index, regroup in enumerate(part.regroups):
        rows = _flat(frame, _row(number[regroup.input]))
        group = F.when(~F.col(NULL_VALUE), F.expr(regroup.key)).alias(group_of(index))
        value = F.when(~F.col(NULL_VALUE), write_json(columns_taken(regroup))).alias(grouped(index))
        frame = rows.select(f"{CARRIED}.*", group, value)
    tables = len(part.copies.sources) + len(part.copies.steps)
    rows_of = {index: F.col(_row(index)) for index in range(tables)}
    return frame.select(
        _KEY,
        *(row.isNotNull().alias(present(index)) for index, row in rows_of.items()),
        *(F.unix_millis(row[_TIME]).alias(time_of(index)) for index, row in rows_of.items()),
        *(name(index) for index in range(len(part.sinks)) for name in (written_to, chosen_for)),
        *(name(index) for index in range(len(part.regroups)) for name in (group_of, grouped)),
        *(F.col(_row(number[each.input])).alias(streamed(index)) for index, each in enumerate(part.streams)),
    )


def rows_of_last(
    part: TablePart, snapshots: DataFrame, decoders: Mapping[str, Decoder], beside: Sequence[str] = ()
) -> DataFrame:
    """The row that the last table of a part has in each snapshot, as expressions see it.

    Rows in their order, NULL_VALUE where there is none; in CARRIED the columns `beside` of the snapshots.
    """
    frame = _worked_out(part, _sources(part, snapshots, decoders, beside))
    return _flat(frame, _row(len(part.copies.sources) + len(part.copies.steps) - 1))


def check_table_join(node: TableJoinNode, left: DataFrame, right: DataFrame) -> DataFrame:
    """Analyse a join of two tables over no rows, each column by itself; its result.

    Raises:
        InvalidApplicationException: keys of two types, and the columns that Spark's analysis refuses; all of them.
    """
    mistakes = []
    with refusing(f"{node.path}.join"):
        mine, theirs = (format_of(each.schema[_KEY].dataType) for each in (left, right))
    if mine != theirs:
        found = f"the keys of {node.input} are {mine.name}, those of {node.table} {theirs.name}"
        if mine.name == theirs.name:
            found = f"the keys of {node.input} are {mine.schema}, those of {node.table} {theirs.schema}"
        mistakes.append(Mistake(f"{node.path}.join.table", found, "join tables whose topics have keys of one type"))
    nothing = F.lit(None).cast(StructType([right.schema[name] for name in value_columns(right)]))
    mistakes += columns_refused(left.withColumn(node.table, nothing), node.select, f"{node.path}.join.select")
    if mistakes:
        raise InvalidApplicationException(mistakes)
    return joined_rows(node, left, nothing, F.col(_TIME))


def _sources(
    part: TablePart, snapshots: DataFrame, decoders: Mapping[str, Decoder], beside: Sequence[str]
) -> DataFrame:
    """The key, the columns `beside`, and a row for each source: null where it holds nothing."""
    key = decoders[part.sources[0].name].key
    windows = _windows_of(snapshots)
    values = [(index, decoders[each.node.name]) for index, each in enumerate(part.copies.sources)]
    frame = snapshots.withColumns(
        {"_parsed_key": parsed(F.col(RAW_KEY), key)}
        | {_parsed(index): parsed(F.col(held_value(index)), decoder.value) for index, decoder in values}
    )
    rows = []
    for index, decoder in values:
        columns = F.struct(F.col(held_time(index)).alias(_TIME), *windows, *decoder.fields(frame, _parsed(index)))
        rows.append(F.when(~is_null(F.col(held_value(index)), decoder.value), columns).alias(_row(index)))
    frame = frame.select(content(F.col("_parsed_key"), key).alias(_KEY), *beside, *rows)
    for index, decoder in values:
        if decoder.timestamp is not None:
            others = [name for name in frame.columns if name != _row(index)]
            timed = _flat(frame, _row(index))
            timed = timed.withColumn(_TIME, F.coalesce(decoder.extracted(timed), F.col(_TIME)))
            frame = _packed(timed, "_timed").select(*others, F.col("_timed").alias(_row(index)))
    return frame


def _worked_out(part: TablePart, frame: DataFrame) -> DataFrame:
    """The rows of the steps beside those of the sources."""
    for number, copy in enumerate(part.copies.steps, len(part.copies.sources)):
        rows = _flat(frame, _row(copy.inputs[0]))
        if isinstance(copy.node, TransformNode):
            rows = transformed(copy.node, rows, table=True)
        else:
            other = F.col(CARRIED)[_row(copy.inputs[1])]
            windows = [name for name in (WINDOW_START, WINDOW_END) if name in rows.columns]
            # Of an outer join the left side may have no row; the bounds are those of the key.
            for name in windows:
                rows = rows.withColumn(name, F.coalesce(F.col(name), other[name]))
            rows = joined_rows(copy.node, rows, other.dropFields(_TIME, *windows), other[_TIME])
        frame = _packed(rows, _row(number))
    return frame


def joined_rows(node: TableJoinNode | ForeignKeyJoinNode, rows: DataFrame, other: Column, time: Column) -> DataFrame:
    """The result's rows over those of the left table; `other` is the right one's as a struct, `time` its time."""
    frame = rows.withColumns({node.table: other, _TIME: F.greatest(F.col(_TIME), time)})
    here, there = ~F.col(NULL_VALUE), F.col(f"`{node.table}`").isNotNull()
    found = {"inner": here & there, "left": here, "outer": here | there}[node.type]
    added = {name.lower() for name, _ in node.select}
    hidden = [F.col(name) for name in rows.columns if name in HIDDEN and name not in (RECORD, NULL_VALUE, _TIME)]
    kept = [F.col(f"`{name}`") for name in value_columns(rows) if name.lower() not in added]
    new = [F.when(found, F.expr(text)).alias(name) for name, text in node.select]
    return frame.select(*hidden, _TIME, (~found).alias(NULL_VALUE), *kept, *new)


def _row(number: int) -> str:
    return f"_row_{number}"


def _parsed(source: int) -> str:
    return f"_parsed_{source}"


def _flat(frame: DataFrame, row: str) -> DataFrame:
    """One table's rows as expressions see them; everything else goes along as CARRIED."""
    kind = frame.schema[row].dataType
    assert isinstance(kind, StructType)
    columns = [F.col(row)[name].alias(name) for name in kind.fieldNames()]
    return frame.select(F.struct(*frame.columns).alias(CARRIED), _KEY, F.col(row).isNull().alias(NULL_VALUE), *columns)


def _packed(rows: DataFrame, row: str) -> DataFrame:
    """The reverse: what was kept, and the rows as one column."""
    columns = [F.col(f"`{name}`") for name in value_columns(rows)]
    row_of = F.struct(_TIME, *_windows_of(rows), *columns)
    return rows.select(f"{CARRIED}.*", F.when(~F.col(NULL_VALUE), row_of).alias(row))


def _windows_of(rows: DataFrame) -> list[Column]:
    """Start and end of each row, where they are windows."""
    return [F.col(name) for name in (WINDOW_START, WINDOW_END) if name in rows.columns]
