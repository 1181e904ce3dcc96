"""Applications of avro, and its bytes as Kafka's own serializer writes and reads them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from confluent_kafka.serialization import MessageField, SerializationContext
from registry_front import RegistryFront

from streams_runtime.api.spec.kafka_spec import SchemaRegistrySpec
from streams_runtime.kafka.schema_registry import SchemaRegistry


def field(name: str, kind: Any, **more: Any) -> dict[str, Any]:
    """A field of a record; `default=` gives it a default."""
    return {"name": name, "type": kind, **more}


def record(name: str, *fields: dict[str, Any]) -> str:
    """A record's schema."""
    return json.dumps({"type": "record", "name": name, "fields": list(fields)})


TIME = {"type": "long", "logicalType": "timestamp-millis"}
ORDER = record(
    "Order",
    field("user", "string"),
    field("amount", ["null", "long"], default=None),
    field("note", "string", default="none"),
)
SPEC: dict[str, Any] = {"kafka": {"schemaRegistry": {"url": "http://registry:8081"}}}


def avro_source(schema: str = ORDER, **more: Any) -> dict[str, Any]:
    """A source named `in` of the topic `in`."""
    key = {"format": "string"}
    return {"name": "in", "topic": "in", "key": key, "value": {"format": "avro", "schema": schema}} | more


def schemas(registry: RegistryFront, **spec: Any) -> SchemaRegistry:
    """This project's client of a registry."""
    return SchemaRegistry(SchemaRegistrySpec(url=registry.url, **spec))


def serialized(registry: RegistryFront, schema: str, values: Sequence[Any], topic: str = "in") -> list[bytes]:
    """What confluent-kafka's AvroSerializer writes as values of a topic."""
    client = schemas(registry)._client
    from confluent_kafka.schema_registry.avro import AvroSerializer

    serialize = AvroSerializer(client, schema)
    context = SerializationContext(topic, MessageField.VALUE)
    written = [serialize(value, context) for value in values]
    assert all(each is not None for each in written)
    return [bytes(each) for each in written if each is not None]


def deserialized(registry: RegistryFront, data: bytes, topic: str = "out", part: str = MessageField.VALUE) -> Any:
    """What confluent-kafka's AvroDeserializer reads."""
    client = schemas(registry)._client
    from confluent_kafka.schema_registry.avro import AvroDeserializer

    return AvroDeserializer(client)(data, SerializationContext(topic, part))
