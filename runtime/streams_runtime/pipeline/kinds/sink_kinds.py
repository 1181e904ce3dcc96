"""Spark's side of sinks, and of repartition topics: rows as they are written."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from pyspark.sql import DataFrame
from pyspark.sql.types import DataType, IntegralType, StringType, StructType

from streams_runtime.api.steps.format_names import REGISTERED
from streams_runtime.batch.stage import StageOutput
from streams_runtime.errors import InvalidApplicationException, Mistake
from streams_runtime.pipeline.formats.avro.avro_write import avro_writer
from streams_runtime.pipeline.formats.jsonschema.json_schema_write import json_schema_writer
from streams_runtime.pipeline.formats.protobuf.proto_write import proto_writer
from streams_runtime.pipeline.formats.registered_format import RegisteredWriter
from streams_runtime.pipeline.kinds.spark_kind import Collecting, LeavingKind
from streams_runtime.pipeline.known import Known
from streams_runtime.pipeline.spark.frames import value_columns
from streams_runtime.pipeline.spark.observed import Observed
from streams_runtime.pipeline.spark.refused_expressions import expect_type, refusing
from streams_runtime.pipeline.stages.asked_query import Answer, Query
from streams_runtime.pipeline.steps.usable_rows import left_out, taken
from streams_runtime.pipeline.steps.written_rows import sink_format, written
from streams_runtime.topology.nodes.source_and_sink_nodes import Format, RepartitionSinkNode, SinkNode

_NO_PARTITION = ("which is no number of a partition", "give an INT or a BIGINT: cast(… as int), pmod(hash(…), 4)")
_NO_TOPIC = ("which is no name of a topic", "give a STRING: cast(… as string), concat('orders-', …)")

_WRITERS: Mapping[str, Callable[[str, str, Format, DataType, str], RegisteredWriter]] = {
    "avro": avro_writer,
    "protobuf": proto_writer,
    "jsonschema": json_schema_writer,
}


class SinkKind(LeavingKind[SinkNode]):
    """A user's topic."""

    FORWARDS = True

    def analysed(self, node: SinkNode, known: Known) -> DataFrame:
        """The rows as they are written, by formats that can carry them."""
        rows = known.outputs[node.input]
        if node.topic_by is not None:
            path = f"{node.path}.topicBy"
            with refusing(path):
                expect_type(StringType, rows, node.topic_by, path, _NO_TOPIC)
        _check_partition(node.partition_by, rows, f"{node.path}.partitionBy")
        if node.key is not None and node.key.name in REGISTERED:
            kind = rows.schema["_key"].dataType
            known.registered[node.name, "key"] = _writer(node, "key", node.key, kind)
        else:
            _check_key(node, known.key_format(node.input))
        if node.value is not None and node.value.name in REGISTERED:
            columns = StructType([rows.schema[name] for name in value_columns(rows)])
            known.registered[node.name, "value"] = _writer(node, "value", node.value, columns)
        return written(rows, sink_format(node, rows), node.topic_by, node.partition_by)

    def query(self, node: SinkNode, rows: DataFrame, collecting: Collecting) -> Query:
        """The rows as they are written."""
        return Query(collecting.emissions.written(node, rows))

    def collect(self, node: SinkNode, answer: Answer, collecting: Collecting, result: StageOutput) -> None:
        """Records for the topic."""
        result.emissions.append(collecting.emissions.of_written(node, answer.rows))


class RepartitionSinkKind(LeavingKind[RepartitionSinkNode]):
    """A repartition topic."""

    FORWARDS = True

    def analysed(self, node: RepartitionSinkNode, known: Known) -> DataFrame:
        """The rows, as JSON."""
        rows = known.outputs[node.input]
        _check_partition(node.partition_by, rows, f"{node.path}.repartition.partitionBy")
        return written(rows, "json", partition_by=node.partition_by)

    def query(self, node: RepartitionSinkNode, rows: DataFrame, collecting: Collecting) -> Query:
        """The usable rows as they are written."""
        dropped = Observed()
        return Query(collecting.emissions.written(node, taken(node, rows, dropped)), {"dropped": dropped})

    def collect(self, node: RepartitionSinkNode, answer: Answer, collecting: Collecting, result: StageOutput) -> None:
        """Records for the topic."""
        result.emissions.append(collecting.emissions.of_written(node, answer.rows))
        result.dropped += left_out(node, answer.notes["dropped"])


def _writer(node: SinkNode, part: str, format: Format, kind: DataType) -> RegisteredWriter:
    return _WRITERS[format.name](node.one_topic, part, format, kind, node.path)


def _check_partition(text: str | None, rows: DataFrame, path: str) -> None:
    if text is not None:
        with refusing(path):
            expect_type(IntegralType, rows, text, path, _NO_PARTITION)


def _check_key(node: SinkNode, found: Format) -> None:
    if node.key is not None and node.key.name != found.name:
        raise InvalidApplicationException(
            [
                Mistake(
                    f"{node.path}.key.format",
                    f"the format {node.key.name} is declared, and the keys of {node.input} are {found.name}",
                    f"declare {found.name}, or change the key with a keyBy",
                )
            ]
        )
