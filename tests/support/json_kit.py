"""Applications of jsonschema, and its bytes as Confluent's own serializer writes and reads them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from avro_kit import schemas
from confluent_kafka.serialization import MessageField, SerializationContext
from registry_front import RegistryFront

DRAFT = "http://json-schema.org/draft-07/schema#"
STRING: dict[str, Any] = {"type": "string"}
INTEGER: dict[str, Any] = {"type": "integer"}


def json_object(*required: str, **properties: Any) -> dict[str, Any]:
    """The schema of an object."""
    return {"type": "object", "properties": properties} | ({"required": list(required)} if required else {})


def json_schema(*required: str, **properties: Any) -> str:
    """The text of an object's schema."""
    return json.dumps({"$schema": DRAFT, "title": "Order", **json_object(*required, **properties)})


ORDER = json_schema("user", user=STRING, amount={"type": ["null", "integer"]}, note=STRING)


def json_source(schema: str = ORDER, **more: Any) -> dict[str, Any]:
    """A source named `in` of the topic `in`."""
    value = {"format": "jsonschema", "schema": schema}
    return {"name": "in", "topic": "in", "key": {"format": "string"}, "value": value} | more


def serialized(registry: RegistryFront, schema: Any, values: Sequence[Any], topic: str = "in") -> list[bytes]:
    """What confluent-kafka's JSONSerializer writes as values of a topic; `schema` is a text, or its Schema."""
    client = schemas(registry)._client
    from confluent_kafka.schema_registry.json_schema import JSONSerializer

    serialize = JSONSerializer(schema, client)
    context = SerializationContext(topic, MessageField.VALUE)
    written = [serialize(value, context) for value in values]
    assert all(each is not None for each in written)
    return [bytes(each) for each in written if each is not None]


def deserialized(registry: RegistryFront, data: bytes, topic: str = "out", part: str = MessageField.VALUE) -> Any:
    """What confluent-kafka's JSONDeserializer reads, which is valid by the schema that the bytes name."""
    client = schemas(registry)._client
    from confluent_kafka.schema_registry.json_schema import JSONDeserializer

    return JSONDeserializer(None, schema_registry_client=client)(data, SerializationContext(topic, part))
