"""How a test's keys and values become a topic's bytes, and the other way round: by the formats that are declared."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from streams_runtime.api.steps.format_names import REGISTERED
from streams_runtime.errors import ConfigException, StreamsException
from streams_runtime.pipeline.compile import Compiler
from streams_runtime.pipeline.formats.avro.avro_values import decoded
from streams_runtime.pipeline.formats.avro.avro_write import AvroWriter
from streams_runtime.pipeline.formats.avro.avro_writer_schemas import avro_writer_schemas
from streams_runtime.pipeline.formats.jsonschema import json_schema_read
from streams_runtime.pipeline.formats.jsonschema.json_schema_write import JsonSchemaWriter
from streams_runtime.pipeline.formats.plain_ddl import kind_of
from streams_runtime.pipeline.formats.protobuf.proto_read import as_written
from streams_runtime.pipeline.formats.protobuf.proto_write import declared_writer
from streams_runtime.pipeline.formats.protobuf.proto_writer_schemas import proto_writer_schemas
from streams_runtime.pipeline.formats.registered_format import RegisteredWriter
from streams_runtime.query.stores.views import StoreCodec
from streams_runtime.query.stores.window_handle import window_at
from streams_runtime.query.wire.windowed_keys import Window, Windowed, moment
from streams_runtime.state.serdes import SerdeException, key_serde, value_serde
from streams_runtime.state.window_keys import split_session_key, split_start
from streams_runtime.testing.fitting_inputs import fitted
from streams_runtime.testing.memory_registry import LocalSchemas
from streams_runtime.topology.nodes.aggregate_node import AggregateNode
from streams_runtime.topology.nodes.source_and_sink_nodes import Format, SinkNode
from streams_runtime.topology.nodes.step_nodes import MergeNode, TransformNode
from streams_runtime.topology.nodes.stream_nodes import StreamNode
from streams_runtime.topology.nodes.suppress_node import SuppressNode
from streams_runtime.topology.nodes.table_nodes import TableJoinNode, ToStreamNode
from streams_runtime.topology.plan import Topology

Encode = Callable[[object], bytes | None]
Decode = Callable[[bytes], object]


def encoder(topic: str, part: str, format: Format, schemas: LocalSchemas) -> Encode:
    """Writes keys (`part` is `key`) or values of a source's topic. bytes are written as they are, whatever the format.

    What it gives raises SerdeException for a value that does not fit.
    """
    if format.name in REGISTERED:
        return _registered_encoder(topic, part, format, schemas)
    serde = value_serde(format)
    kind = None if format.schema is None else kind_of(format.schema)
    where = f"{part} for {topic}"

    def encode(given: object) -> bytes | None:
        if given is None or isinstance(given, bytes):
            return given
        fit = given if kind is None else fitted(given, kind, where)
        try:
            return serde.encode(fit)
        except SerdeException as error:
            raise SerdeException(f"{where}: {error}") from None

    return encode


def _registered_encoder(topic: str, part: str, format: Format, schemas: LocalSchemas) -> Encode:
    writer: RegisteredWriter
    if format.name == "protobuf":
        writer = declared_writer(topic, part, format)
    elif format.name == "jsonschema":
        writer = JsonSchemaWriter(topic, part, format.schema or "")
    else:
        writer = AvroWriter(topic, part, json.loads(format.schema or ""))
    writer.register(schemas)

    def encode(given: object) -> bytes | None:
        if given is None or isinstance(given, bytes):
            return given
        try:
            return writer.encode(given)
        except StreamsException as error:
            raise SerdeException(str(error)) from None

    return encode


@dataclass(frozen=True, slots=True)
class Decoders:
    """How keys and values of an output topic are read."""

    key: Decode
    value: Decode


RAW = Decoders(bytes, bytes)
"""As they are: dead letters."""


def decoders_of(
    topology: Topology, compiler: Compiler, codec: Callable[[str], StoreCodec], topic: str, schemas: LocalSchemas
) -> Decoders:
    """How the records are read that the topology writes to a topic; `codec` is a store's by its name.

    Raises:
        ConfigException: different things are written to it.
    """
    sinks = [
        node
        for node in topology.nodes
        if isinstance(node, SinkNode) and (topic in node.users_topics or node.writes_any)
    ]
    late = [node for node in topology.nodes if isinstance(node, AggregateNode) and node.late_topic == topic]
    written = {
        (
            _key_written(each, compiler),
            _windows_of(topology, each.input),
            compiler.value_format(each),
        )
        for each in sinks
    }
    written |= {(compiler.key_format(each.input), None, "json") for each in late}
    if len(written) > 1:
        names = ", ".join([*(each.input for each in sinks), *(each.name for each in late)])
        raise ConfigException(
            f"{names} write keys or values of different formats to {topic}, which can't be told apart when they are"
            " read; give each a topic of its own"
        )
    ((key, aggregate, value),) = written
    registered: dict[str, Decode] = {
        "avro": partial(decoded, reader=None, writers=avro_writer_schemas(schemas)),
        "protobuf": partial(as_written, writers=proto_writer_schemas(schemas)),
        "jsonschema": partial(json_schema_read.as_written, writers=json_schema_read.json_writer_schemas(schemas)),
    }
    read_key = registered.get(key.name) or key_serde(key).decode
    if aggregate is not None:
        read_key = _windowed(read_key, codec(aggregate.store))
    return Decoders(read_key, registered.get(value) or value_serde(Format(value)).decode)


def _key_written(sink: SinkNode, compiler: Compiler) -> Format:
    if sink.key is not None and sink.key.name in REGISTERED:
        return Format(sink.key.name)
    return compiler.key_format(sink.input)


def _windowed(read_key: Decode, store: StoreCodec) -> Decode:
    """Of keys within the windows or the sessions of a store."""

    def decode(data: bytes) -> Windowed:
        if store.window_end is None:
            key, start, end = split_session_key(data)
            return Windowed(read_key(key), Window(moment(start), moment(end)))
        key, start = split_start(data)
        return Windowed(read_key(key), window_at(store, start))

    return decode


def _windows_of(topology: Topology, name: str) -> AggregateNode | None:
    """The aggregate whose windows or sessions are the keys of what a node gives."""
    node = topology.node(name)
    if isinstance(node, TransformNode | StreamNode | ToStreamNode | SuppressNode):
        return _windows_of(topology, node.input)
    if isinstance(node, MergeNode | TableJoinNode):
        return _windows_of(topology, node.inputs[0])  # all are of one kind
    return node if isinstance(node, AggregateNode) and node.windows is not None else None
