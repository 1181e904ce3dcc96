"""A topology over no records: what Spark's analysis finds out, and refuses."""

from __future__ import annotations

from pyspark.sql import DataFrame, Observation, SparkSession
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import DataType, StructType

from streams_runtime.api.steps.format_names import REGISTERED
from streams_runtime.batch.rows import table_rows
from streams_runtime.errors import InvalidApplicationException, Mistake
from streams_runtime.pipeline.formats.avro.avro_ids import Schemas
from streams_runtime.pipeline.formats.avro.avro_read import AvroFormat
from streams_runtime.pipeline.formats.avro.avro_write import avro_writer
from streams_runtime.pipeline.formats.avro.avro_writer_schemas import avro_writer_schemas
from streams_runtime.pipeline.formats.decode import Decoder
from streams_runtime.pipeline.formats.protobuf.proto_read import ProtoFormat
from streams_runtime.pipeline.formats.protobuf.proto_write import proto_writer
from streams_runtime.pipeline.formats.protobuf.proto_writer_schemas import proto_writer_schemas
from streams_runtime.pipeline.formats.registered_format import RegisteredWriter
from streams_runtime.pipeline.formats.spark_formats import ddl_of, format_of
from streams_runtime.pipeline.spark.frames import frame_of
from streams_runtime.pipeline.spark.refused_expressions import refusing
from streams_runtime.pipeline.stage_outputs import applied_to
from streams_runtime.pipeline.steps.applied_nodes import (
    check_aggregates,
    check_select,
    sink_format,
    sums_of_doubles,
    value_columns,
    written,
)
from streams_runtime.pipeline.steps.dedupe_ids import check_dedupe
from streams_runtime.pipeline.steps.foreign_key_frames import check_foreign_key_join
from streams_runtime.pipeline.steps.global_lookups import check_lookup
from streams_runtime.pipeline.steps.partial_aggregates import partial_aggregates
from streams_runtime.pipeline.steps.reduce_lambda import bind_reductions
from streams_runtime.pipeline.steps.stream_frames import check_stream_node
from streams_runtime.pipeline.steps.stream_join_frames import check_stream_join
from streams_runtime.pipeline.steps.table_join_frames import check_join
from streams_runtime.pipeline.steps.table_rows import check_table_join
from streams_runtime.pipeline.steps.to_table_rows import decoder_of_rows
from streams_runtime.pipeline.topology_traits import Traits
from streams_runtime.state.aggregates.aggregate_state import AggregateState
from streams_runtime.state.aggregates.user_class import user_class_mistakes
from streams_runtime.topology.aggregate_order import order_mistakes
from streams_runtime.topology.node_order import needed_first
from streams_runtime.topology.nodes.all_nodes import (
    AggregateNode,
    Format,
    JoinNode,
    KeyByNode,
    Node,
    RepartitionSinkNode,
    RepartitionSourceNode,
    SinkNode,
    SourceNode,
    TableSourceNode,
    TransformNode,
    needed_by,
)
from streams_runtime.topology.nodes.dedupe_node import DedupeNode
from streams_runtime.topology.nodes.foreign_key_nodes import ForeignKeyJoinNode, ResponseNode, SubscribeNode
from streams_runtime.topology.nodes.stream_join_node import StreamJoinNode
from streams_runtime.topology.nodes.stream_nodes import StreamNode
from streams_runtime.topology.nodes.table_nodes import TableJoinNode, ToTableNode
from streams_runtime.topology.nodes.window_kinds import SessionWindows

Source = SourceNode | TableSourceNode | RepartitionSourceNode
MeetsStores = JoinNode | StreamJoinNode | DedupeNode | TableJoinNode | ResponseNode | ForeignKeyJoinNode | ToTableNode


class Analysis:
    """Each source's decoder, each key's format, each aggregate's state, and the rows that each node gives."""

    def __init__(self, spark: SparkSession, traits: Traits, schemas: Schemas | None) -> None:
        """Nothing is read or run. Raises what Compiler raises."""
        self._spark = spark
        self._traits = traits
        self._writers = None if schemas is None else avro_writer_schemas(schemas)
        self._proto_writers = None if schemas is None else proto_writer_schemas(schemas)
        self.registered: dict[tuple[str, str], RegisteredWriter] = {}
        self.decoders: dict[str, Decoder] = {}
        self.aggregates: dict[str, AggregateState] = {}
        self.outputs: dict[str, DataFrame] = {}
        mistakes = [*order_mistakes(traits.topology)]
        needs = {node.name: needed_by(node) for node in traits.topology.nodes}
        for name in needed_first(needs):
            if any(each not in self.outputs for each in needs[name]):
                continue  # what it builds on is refused already
            try:
                self.outputs[name] = self._analysed(traits.topology.node(name))
            except InvalidApplicationException as error:
                mistakes += error.mistakes
        if mistakes:
            raise InvalidApplicationException(mistakes)

    def key_format(self, node: str) -> Format:
        """The format of the keys of the rows that a node gives."""
        return format_of(self.outputs[node].schema["_key"].dataType)

    def _analysed(self, node: Node) -> DataFrame:
        match node:
            case SourceNode() | TableSourceNode() | RepartitionSourceNode():
                decoder = self.decoders[node.name] = self._decoder_of(node)
                with refusing(_schema_path(node)):
                    return decoder.readable(decoder.decode(self._nothing(decoder)))
            case AggregateNode():
                return self._analysed_aggregate(node)
            case (
                JoinNode()
                | StreamJoinNode()
                | TableJoinNode()
                | DedupeNode()
                | ForeignKeyJoinNode()
                | ResponseNode()
                | ToTableNode()
            ):
                return self._analysed_later(node)
            case RepartitionSinkNode() | SubscribeNode():
                return written(self.outputs[node.input], "json")
            case SinkNode():
                rows = self.outputs[node.input]
                return self._analysed_sink(node, rows)
            case _:
                if isinstance(node, TransformNode):
                    check_select(node, self.outputs[node.input])
                if isinstance(node, StreamNode):
                    check_stream_node(node, self.outputs[node.input])
                frame = applied_to(self._traits, node, self.outputs)
                if isinstance(node, KeyByNode):
                    with refusing(f"{node.path}.keyBy"):
                        format_of(frame.schema["_key"].dataType)
                return frame

    def _analysed_sink(self, node: SinkNode, rows: DataFrame) -> DataFrame:
        if node.key is not None and node.key.name in REGISTERED:
            kind = rows.schema["_key"].dataType
            self.registered[node.name, "key"] = _writer(node, "key", node.key, kind)
        else:
            _check_sink_key(node, self.key_format(node.input))
        if node.value is not None and node.value.name in REGISTERED:
            columns = StructType([rows.schema[name] for name in value_columns(rows)])
            self.registered[node.name, "value"] = _writer(node, "value", node.value, columns)
        return written(rows, sink_format(node, rows))

    def _analysed_later(self, node: MeetsStores) -> DataFrame:
        rows = self.outputs[node.input]
        match node:
            case ToTableNode():
                return self._analysed_table(node, rows)
            case DedupeNode():
                return check_dedupe(node, rows)
            case StreamJoinNode():
                return check_stream_join(node, rows, self.outputs[node.other])
            case ResponseNode():
                return rows
            case TableJoinNode() | ForeignKeyJoinNode():
                return self._analysed_tables(node, rows)
            case JoinNode():
                if node.on is not None:
                    check_lookup(node, rows, self.outputs[node.table])
                return check_join(node, rows, self.key_format(node.table), self.decoders[node.table].value)

    def _analysed_tables(self, node: TableJoinNode | ForeignKeyJoinNode, rows: DataFrame) -> DataFrame:
        if isinstance(node, ForeignKeyJoinNode):
            return self._analysed_table(node, check_foreign_key_join(node, rows, self.outputs[node.table]))
        return check_table_join(node, rows, self.outputs[node.table])

    def _analysed_table(self, node: ToTableNode | AggregateNode | ForeignKeyJoinNode, rows: DataFrame) -> DataFrame:
        """The rows of a table, once it is known how they are read from its store, or from what is shown of it."""
        field = {ToTableNode: "toTable", AggregateNode: "aggregate", ForeignKeyJoinNode: "join"}[type(node)]
        with refusing(f"{node.path}.{field}"):
            decoder = self.decoders[node.name] = decoder_of_rows(rows)
            decoder.readable(decoder.decode(self._nothing(decoder)))
        return rows

    def _analysed_aggregate(self, node: AggregateNode) -> DataFrame:
        merges = isinstance(node.windows, SessionWindows)
        if mistakes := user_class_mistakes(node.aggregates, merges):
            raise InvalidApplicationException(mistakes)
        rows = self.outputs[node.input]
        state = AggregateState(node.aggregates, merges, sums_of_doubles(node.aggregates, rows))
        check_aggregates(state, rows)
        self.aggregates[node.name] = state
        schema = to_arrow_schema(partial_aggregates(self._traits, state, node, rows, Observation()).schema)
        state.bind(schema)
        bind_reductions(self._spark, state, node.name in self._traits.told)
        empty = schema.empty_table()
        finished = state.finish(state.of_batch(empty))
        nothing = empty["_time"]
        windows = None if node.windows is None else (nothing, nothing)
        table = table_rows(empty["_key"], empty["_partition"], nothing, finished, windows)
        rows = frame_of(self._spark, table)
        return self._analysed_table(node, rows) if node.name in self._traits.told else rows

    def _decoder_of(self, node: Source) -> Decoder:
        if isinstance(node, RepartitionSourceNode) and node.raw:
            return Decoder(Format("bytes"), Format("bytes"))
        if isinstance(node, RepartitionSourceNode):
            origin = self.outputs[node.origin]
            columns = StructType([origin.schema[name] for name in value_columns(origin)])
            return Decoder(self.key_format(node.origin), Format("json", ddl_of(columns)), strict=False)
        path = f"{node.path}.timestamp"
        key, value = self._read(node.key), self._read(node.value)
        return Decoder(key, value, node.timestamp, path, isinstance(node, TableSourceNode))

    def _read(self, format: Format) -> Format:
        if format.name == "protobuf":
            return ProtoFormat(format.name, format.schema, format.message, self._proto_writers)
        return AvroFormat(format.name, format.schema, None, self._writers) if format.name == "avro" else format

    def _nothing(self, decoder: Decoder) -> DataFrame:
        """No records, as the decoder wants them."""
        return frame_of(self._spark, decoder.wanted(headers=True).schema.empty_table())


def _writer(node: SinkNode, part: str, format: Format, kind: DataType) -> RegisteredWriter:
    make = proto_writer if format.name == "protobuf" else avro_writer
    return make(node.topic, part, format, kind, node.path)


def _schema_path(node: Source) -> str:
    return node.topic if isinstance(node, RepartitionSourceNode) else f"{node.path}.value.schema"


def _check_sink_key(node: SinkNode, found: Format) -> None:
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
