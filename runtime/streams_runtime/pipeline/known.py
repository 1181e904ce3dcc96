"""What is known of a topology's nodes once Spark has analysed them."""

from __future__ import annotations

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from streams_runtime.pipeline.formats.avro.avro_read import AvroFormat
from streams_runtime.pipeline.formats.avro.avro_writer_schemas import avro_writer_schemas
from streams_runtime.pipeline.formats.decode import Decoder
from streams_runtime.pipeline.formats.jsonschema.json_schema_read import JsonSchemaFormat, json_writer_schemas
from streams_runtime.pipeline.formats.protobuf.proto_read import ProtoFormat
from streams_runtime.pipeline.formats.protobuf.proto_writer_schemas import proto_writer_schemas
from streams_runtime.pipeline.formats.registered_format import RegisteredFormat, RegisteredWriter
from streams_runtime.pipeline.formats.schema_ids import Schemas
from streams_runtime.pipeline.formats.spark_formats import format_of
from streams_runtime.pipeline.spark.frames import frame_of
from streams_runtime.pipeline.topology_traits import Traits
from streams_runtime.state.aggregates.aggregate_state import AggregateState
from streams_runtime.topology.nodes.source_and_sink_nodes import Format


class Known:
    """Filled node by node (`analysis.analysed`): by a node's name, what reads, keeps and writes its rows.

    `decoders` read the records of sources, and the rows of tables from their stores; `aggregates` are the states of
    aggregates; `registered` what writes keys or values by a registry's schema, by sink and part; `outputs` the rows
    that each node gives, over no records.
    """

    def __init__(self, spark: SparkSession, traits: Traits, schemas: Schemas | None) -> None:
        """Nothing is known yet, and nothing is read or run. `schemas`: needed for formats in a registry."""
        self.spark = spark
        self.traits = traits
        self.decoders: dict[str, Decoder] = {}
        self.aggregates: dict[str, AggregateState] = {}
        self.registered: dict[tuple[str, str], RegisteredWriter] = {}
        self.outputs: dict[str, DataFrame] = {}
        self.version = 0
        """Grows with what frames of `decoders` are made of: with each schema that is met."""
        self._avro_writers = None if schemas is None else avro_writer_schemas(schemas)
        self._proto_writers = None if schemas is None else proto_writer_schemas(schemas)
        self._json_writers = None if schemas is None else json_writer_schemas(schemas)

    def key_format(self, node: str) -> Format:
        """The format of the keys of the rows that a node gives."""
        return format_of(self.outputs[node].schema["_key"].dataType)

    def readable(self, format: Format) -> Format:
        """A declared format as records are read by it: with the registry's schemas where it needs them."""
        match format.name:
            case "protobuf":
                return ProtoFormat(format.name, format.schema, format.message, self._proto_writers)
            case "avro":
                return AvroFormat(format.name, format.schema, None, self._avro_writers)
            case "jsonschema":
                return JsonSchemaFormat(format.name, format.schema, None, self._json_writers)
            case _:
                return format

    def learn(self, format: Format, data: pa.ChunkedArray) -> bool:
        """Fetch the schemas that these keys or values were written with; whether any was new.

        Raises:
            SchemaRegistryNotAvailableException: call again.
            SchemaRegistryException: the registry does not have a schema; the message says which.
        """
        if not isinstance(format, RegisteredFormat) or not format.learn(data):
            return False
        self.version += 1
        return True

    def decoded_nothing(self, decoder: Decoder) -> DataFrame:
        """What the decoder makes of no records."""
        nothing = self.frame(decoder.wanted(headers=True).schema.empty_table())
        return decoder.readable(decoder.decode(nothing))

    def frame(self, rows: pa.Table) -> DataFrame:
        """Rows as a DataFrame."""
        return frame_of(self.spark, rows)
