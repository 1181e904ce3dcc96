"""Records whose schemas refer to other subjects of a real registry, as Confluent's serializers write them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest
from apicurio import Apicurio
from avro_kit import SPEC, avro_source, field, record, schemas
from confluent_kafka.serialization import MessageField, SerializationContext
from google.protobuf.descriptor_pb2 import FileDescriptorSet
from google.protobuf.json_format import ParseDict
from json_kit import STRING, json_object, json_schema, json_source
from json_kit import serialized as serialized_json
from pipeline_kit import Pipeline, Record, topology_of, values
from proto_kit import proto_source
from real_registry import RealRegistry
from registry_front import RegistryFront, serving

from streams_runtime.api.schemas.proto_schema import compiled
from streams_runtime.pipeline.formats.protobuf.proto_messages import MessageType, message_class
from streams_runtime.pipeline.formats.schema_ids import prefix_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.integration

CITY = record("shop.City", field("name", "string"))
ADDRESS = record("shop.Address", field("city", "shop.City"), field("street", "string"))
ORDER = record("Order", field("user", "string"), field("to", "shop.Address"), field("origin", ["null", "shop.City"]))
_TO = json.loads(record("shop.Address", field("city", json.loads(CITY))))
READ = record("Order", field("user", "string"), field("to", _TO), field("origin", ["null", "shop.City"]))

HEAD = 'syntax = "proto3"; package shop;'
IMPORTED = f"""{HEAD}
import "google/protobuf/timestamp.proto";
message Address {{ string city = 1; google.protobuf.Timestamp since = 2; }}
"""
IMPORTING = """syntax = "proto3"; package shop;
import "FILE";
message Other { string x = 1; }
message Order { string user = 1; Address to = 2; }
"""
PROTO = f"{HEAD} message Order {{ string user = 1; To to = 2; message To {{ string city = 1; }} }}"


@pytest.fixture
def registry(apicurio_server: Apicurio) -> Iterator[RegistryFront]:
    """The group of all tests of references: their subjects have names of their own."""
    found = RealRegistry(server=apicurio_server.url, group=None)
    with serving(found):
        yield found
    found.close()


def pipeline(spark: SparkSession, registry: RegistryFront, source: dict[str, Any]) -> Pipeline:
    topology = topology_of([source], [], [{"from": "in", "topic": "out"}], **SPEC)
    return Pipeline(spark, topology, schemas=schemas(registry))


def put(registry: RegistryFront, subject: str, text: str, kind: str, **references: tuple[str, str]) -> int:
    """Register a schema with references: each is a name and a subject, whose first version is meant."""
    client = schemas(registry)._client
    from confluent_kafka.schema_registry import Schema, SchemaReference

    needs = [SchemaReference(name, other, 1) for name, other in references.values()]
    return client.register_schema(subject, Schema(text, kind, needs))


def test_avro_that_names_types_of_other_subjects_is_read(
    spark: SparkSession, registry: RegistryFront, namespace: str
) -> None:
    client = schemas(registry)._client
    from confluent_kafka.schema_registry import Schema, SchemaReference
    from confluent_kafka.schema_registry.avro import AvroSerializer

    city, address = f"{namespace}-city", f"{namespace}-address"
    put(registry, city, CITY, "AVRO")
    put(registry, address, ADDRESS, "AVRO", city=("shop.City", city))
    order = Schema(ORDER, "AVRO", [SchemaReference("shop.Address", address, 1)])
    serialize = AvroSerializer(client, order)
    home = {"name": "Rome"}
    given = {"user": "ann", "to": {"city": home, "street": "Via"}, "origin": home}
    data = serialize(given, SerializationContext(namespace, MessageField.VALUE))
    assert data is not None
    result = pipeline(spark, registry, avro_source(READ)).run(Record(b"a", data))
    assert values(result) == [(b"a", {"user": "ann", "to": {"city": home}, "origin": home})]
    assert result.broken == 0


def test_json_whose_schema_refers_to_other_subjects_is_read(
    spark: SparkSession, registry: RegistryFront, namespace: str
) -> None:
    from confluent_kafka.schema_registry import Schema, SchemaReference

    uri, address = f"https://shop.test/{namespace}/address.json", f"{namespace}-address"
    put(registry, address, json_schema(city=STRING), "JSON")
    text = json_schema("user", user=STRING, to={"$ref": uri})
    order = Schema(text, "JSON", [SchemaReference(uri, address, 1)])
    (data,) = serialized_json(registry, order, [{"user": "ann", "to": {"city": "Rome"}}], namespace)
    own = json_schema("user", user=STRING, to=json_object(city=STRING))
    result = pipeline(spark, registry, json_source(own)).run(Record(b"a", data))
    assert values(result) == [(b"a", {"user": "ann", "to": {"city": "Rome"}})]
    assert result.broken == 0


def test_protobuf_that_imports_files_of_other_subjects_is_read(
    spark: SparkSession, registry: RegistryFront, namespace: str
) -> None:
    client = schemas(registry)._client
    from confluent_kafka.schema_registry.protobuf import ProtobufSerializer

    file, address = f"{namespace}/address.proto", f"{namespace}-address"
    imported, _ = compiled(IMPORTED)
    files = FileDescriptorSet()
    files.CopyFrom(imported)
    files.file[-1].name = file
    text = IMPORTING.replace("FILE", file)
    importing, problems = compiled(text, files.SerializeToString())
    assert not problems
    made = message_class(MessageType(importing.SerializeToString(), "shop.Order"))
    serialize = ProtobufSerializer(made, client)
    given = ParseDict({"user": "ann", "to": {"city": "Rome", "since": "2026-01-02T03:04:05Z"}}, made())
    data = serialize(given, SerializationContext(namespace, MessageField.VALUE))
    assert data is not None
    assert registry.ids(file)
    # The same once more as Java's serializer registers it: as the texts of the two files.
    put(registry, address, IMPORTED, "PROTOBUF")
    number = put(registry, f"{namespace}-text", text, "PROTOBUF", file=(file, address))
    same = prefix_of(number) + data[len(prefix_of(number)) :]
    assert same != data
    result = pipeline(spark, registry, proto_source(PROTO, "Order")).run(Record(b"a", data), Record(b"b", same))
    wanted = {"user": "ann", "to": {"city": "Rome"}}
    assert values(result) == [(b"a", wanted), (b"b", wanted)]
    assert result.broken == 0
