"""Applications of protobuf, and its bytes as Kafka's own serializer writes and reads them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from avro_kit import schemas
from confluent_kafka.serialization import MessageField, SerializationContext
from google.protobuf.json_format import MessageToDict, ParseDict
from registry_front import RegistryFront

from streams_runtime.pipeline.formats.protobuf.proto_messages import message_class
from streams_runtime.pipeline.formats.protobuf.proto_read import message_type

HEAD = 'syntax = "proto3"; package shop;'
ORDER = f"{HEAD} message Order {{ string user = 1; optional int64 amount = 2; string note = 3; }}"


def proto(*fields: str, name: str = "Order") -> str:
    """A schema of one message."""
    return f"{HEAD} message {name} {{ {' '.join(f'{each};' for each in fields)} }}"


def proto_source(schema: str = ORDER, message: str | None = None, **more: Any) -> dict[str, Any]:
    """A source named `in` of the topic `in`."""
    value = {"format": "protobuf", "schema": schema} | ({} if message is None else {"message": message})
    return {"name": "in", "topic": "in", "key": {"format": "string"}, "value": value} | more


def serialized(
    registry: RegistryFront, schema: str, values: Sequence[Any], topic: str = "in", message: str | None = None
) -> list[bytes]:
    """What confluent-kafka's ProtobufSerializer writes as values of a topic, from what JSON has."""
    client = schemas(registry)._client
    from confluent_kafka.schema_registry.protobuf import ProtobufSerializer

    made = message_class(message_type(schema, message))
    serialize = ProtobufSerializer(made, client, {"use.deprecated.format": False})
    context = SerializationContext(topic, MessageField.VALUE)
    written = [serialize(ParseDict(value, made()), context) for value in values]
    assert all(each is not None for each in written)
    return [bytes(each) for each in written if each is not None]


def deserialized(
    registry: RegistryFront,
    schema: str,
    data: bytes,
    topic: str = "out",
    message: str | None = None,
    part: str = "value",
) -> Any:
    """What confluent-kafka's ProtobufDeserializer reads, as JSON has it, with the names of the fields."""
    client = schemas(registry)._client
    from confluent_kafka.schema_registry.protobuf import ProtobufDeserializer

    made = message_class(message_type(schema, message))
    deserialize = ProtobufDeserializer(made, {"use.deprecated.format": False}, client)
    found = deserialize(data, SerializationContext(topic, part))
    return MessageToDict(found, preserving_proto_field_name=True)
