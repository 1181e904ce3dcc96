"""Spark's side of sources: what reads their records, and what of these goes to stores as it is."""

from __future__ import annotations

from collections.abc import Iterable

from pyspark.sql import DataFrame
from pyspark.sql.types import StructType

from streams_runtime.batch.columns import ORDINAL, OUT_KEY, OUT_TIME, OUT_VALUE, RECORD, VALUE, further
from streams_runtime.batch.drop_reasons import DropReason
from streams_runtime.batch.stage import StageOutput, store_batch_of
from streams_runtime.pipeline.formats.decode import Decoder
from streams_runtime.pipeline.formats.spark_formats import ddl_of
from streams_runtime.pipeline.kinds.spark_kind import Collecting, SparkKind
from streams_runtime.pipeline.known import Known
from streams_runtime.pipeline.spark.frames import value_columns
from streams_runtime.pipeline.spark.refused_expressions import refusing
from streams_runtime.pipeline.stages.asked_query import Answer, Query
from streams_runtime.pipeline.stages.stage_frames import StageFrames
from streams_runtime.pipeline.steps.usable_rows import usable
from streams_runtime.topology.nodes.source_and_sink_nodes import (
    Format,
    RepartitionSourceNode,
    SourceNode,
    TableSourceNode,
)


class SourceKind(SparkKind[SourceNode]):
    """A stream's records are read, and that is all."""

    def analysed(self, node: SourceNode, known: Known) -> DataFrame:
        """The declared columns, with metadata."""
        return _read(node, known, keep_record=False)


class TableSourceKind(SparkKind[TableSourceNode]):
    """A table's records go to its store as they are; its usable ones are rows too."""

    def analysed(self, node: TableSourceNode, known: Known) -> DataFrame:
        """The declared columns, with metadata."""
        return _read(node, known, keep_record=True)

    def begin(self, node: TableSourceNode, stage: StageFrames) -> None:
        """Both of these."""
        rows = stage.given[node.name]
        stage.leave(node, rows)
        stage.given[node.name] = rows.where(usable(node))

    def query(self, node: TableSourceNode, rows: DataFrame, collecting: Collecting) -> Query:
        """Keys and values are the record's own bytes."""
        found = rows.selectExpr(
            "_partition",
            f"case when _key is not null then {RECORD}.key end {OUT_KEY}",
            f"unix_millis({RECORD}.timestamp) {OUT_TIME}",
            f"{RECORD}.value {OUT_VALUE}",
            *_beside(rows.columns, collecting),
        )
        return Query(found)

    def collect(self, node: TableSourceNode, answer: Answer, collecting: Collecting, result: StageOutput) -> None:
        """A batch for the store."""
        names = [OUT_VALUE, *_beside(answer.rows.column_names, collecting)]
        result.store_batches.append(store_batch_of(node, answer.rows, names))
        result.dropped[node.name, DropReason.NULL_KEY] += answer.rows[OUT_KEY].null_count


class RepartitionSourceKind(SparkKind[RepartitionSourceNode]):
    """Records of a repartition topic have the columns of its origin; raw ones are for stores alone."""

    def analysed(self, node: RepartitionSourceNode, known: Known) -> DataFrame:
        """The columns of the node whose rows were written, with metadata."""
        if node.raw:
            decoder = Decoder(Format("bytes"), Format("bytes"))
        else:
            origin = known.outputs[node.origin]
            columns = StructType([origin.schema[name] for name in value_columns(origin)])
            decoder = Decoder(known.key_format(node.origin), Format("json", ddl_of(columns)), strict=False)
        known.decoders[node.name] = decoder
        with refusing(node.topic):
            return known.decoded_nothing(decoder)

    def begin(self, node: RepartitionSourceNode, stage: StageFrames) -> None:
        """Raw records leave as they are."""
        if node.raw:
            stage.leave(node, stage.given[node.name])

    def query(self, node: RepartitionSourceNode, rows: DataFrame, collecting: Collecting) -> Query:
        """Keys and values as bytes, with their places."""
        raw = (f"_key {OUT_KEY}", f"{VALUE} {OUT_VALUE}", f"unix_millis(_timestamp) {OUT_TIME}")
        return Query(rows.selectExpr("_partition", *raw, *ORDINAL, *further(rows.columns)))

    def collect(self, node: RepartitionSourceNode, answer: Answer, collecting: Collecting, result: StageOutput) -> None:
        """Bytes for the store side of a join by a foreign key."""
        result.arrived[node.name] = answer.rows


def _beside(columns: Iterable[str], collecting: Collecting) -> list[str]:
    return [*ORDINAL, *further(columns), *(["_headers"] if collecting.headers else [])]


def _read(node: SourceNode | TableSourceNode, known: Known, keep_record: bool) -> DataFrame:
    key, value = known.readable(node.key), known.readable(node.value)
    decoder = Decoder(key, value, node.timestamp, f"{node.path}.timestamp", keep_record)
    known.decoders[node.name] = decoder
    with refusing(f"{node.path}.value.schema"):
        return known.decoded_nothing(decoder)
