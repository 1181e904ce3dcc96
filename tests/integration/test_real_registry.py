"""The schema registry's client and a registry that others wrote: what each of the two answers the other."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import apicurio as program
import pytest
from apicurio import Apicurio
from avro_kit import field, record, schemas
from confluent_kafka.serialization import MessageField, SerializationContext
from json_kit import INTEGER, STRING, json_schema
from proto_kit import proto
from proto_kit import serialized as serialized_proto
from registry_front import RegistryFront

from streams_runtime.api.spec.kafka_spec import SchemaRegistrySpec
from streams_runtime.errors import (
    BrokerNotAvailableException,
    SchemaRegistryException,
)
from streams_runtime.kafka.schema_registry import FoundSchema, SchemaRegistry
from streams_runtime.pipeline.formats.schema_ids import id_in

pytestmark = pytest.mark.integration

USER = field("user", "string")
ORDER = record("Order", USER)
PROTO = proto("string user = 1", "optional int64 amount = 2")

JSON = json_schema(user=STRING)


def direct(url: str) -> SchemaRegistry:
    """A client with nothing between it and the registry."""
    return SchemaRegistry(SchemaRegistrySpec(url=url))


def test_a_schema_has_one_id_under_all_subjects_and_is_found_by_it(apicurio_server: Apicurio, namespace: str) -> None:
    client = direct(apicurio_server.url)
    number = client.id_of(f"{namespace}-value", ORDER)
    assert direct(apicurio_server.url).id_of(f"{namespace}-key", ORDER) == number
    assert direct(apicurio_server.url).schema(number) == FoundSchema(ORDER, "AVRO")
    assert client.schema(2**31 - 1) is None


def test_a_schema_that_cannot_follow_is_refused_with_the_registrys_reason(registry: RegistryFront) -> None:
    client = schemas(registry)
    first = client.id_of("a-value", ORDER)
    amount = field("amount", "long")
    with pytest.raises(SchemaRegistryException, match=r"subject a-value, answered 409.*amount at.*give new fields a"):
        client.id_of("a-value", record("Order", USER, amount))
    assert client.id_of("a-value", record("Order", USER, amount | {"default": 0})) not in {first, None}
    assert len(registry.ids("a-value")) == 2


def test_a_message_that_cannot_follow_is_refused_too(registry: RegistryFront) -> None:
    client = schemas(registry)
    client.id_of("a-value", PROTO, "PROTOBUF")
    with pytest.raises(SchemaRegistryException, match=r"subject a-value, answered 409.*not backward compatible"):
        client.id_of("a-value", PROTO.replace("int64", "string"), "PROTOBUF")


def test_a_json_schema_that_cannot_follow_is_refused_too(registry: RegistryFront) -> None:
    client = schemas(registry)
    first = client.id_of("a-value", JSON, "JSON")
    assert client.schema(first) == FoundSchema(JSON, "JSON")
    with pytest.raises(SchemaRegistryException, match=r"subject a-value, answered 409"):
        client.id_of("a-value", json_schema(user=INTEGER), "JSON")


@pytest.mark.parametrize("text", ["{nonsense", '{"type": "record", "name": "A", "fields": [{"name": "a"}]}'])
def test_what_is_no_schema_is_refused_and_not_asked_again(registry: RegistryFront, text: str) -> None:
    with pytest.raises(SchemaRegistryException, match=r"answered 422.*Correct the schema") as refused:
        schemas(registry).id_of("a-value", text)
    assert not isinstance(refused.value, BrokerNotAvailableException)


def test_a_schema_that_has_to_be_there_is_found_however_it_was_written(registry: RegistryFront) -> None:
    client = schemas(registry, autoRegister=False)
    with pytest.raises(SchemaRegistryException, match=r"under the subject a-value.*autoRegister"):
        client.id_of("a-value", ORDER)
    documented = json.dumps({"doc": "An order.", **json.loads(ORDER)}, indent=2)
    number = registry.put("a-value", documented)
    assert client.id_of("a-value", ORDER) == number
    commented = PROTO.replace("message", "\n// An order.\nmessage")
    number = registry.put("b-value", commented, "PROTOBUF")
    assert client.id_of("b-value", PROTO, "PROTOBUF") == number
    described = json.dumps(json.loads(JSON) | {"description": "An order."}, indent=2, sort_keys=True)
    number = registry.put("c-value", described, "JSON")
    assert client.id_of("c-value", JSON, "JSON") == number


def test_one_that_means_something_else_is_not_taken_for_it(registry: RegistryFront) -> None:
    client = schemas(registry, autoRegister=False)
    registry.put("a-value", record("Order", field("user", "string", default="")))
    registry.put("b-value", PROTO.replace("user = 1", "user = 3"), "PROTOBUF")
    registry.put("c-value", JSON.replace("string", "integer"), "JSON")
    for subject, text, kind in (
        ("a-value", ORDER, "AVRO"),
        ("b-value", PROTO, "PROTOBUF"),
        ("a-value", PROTO, "AVRO"),
        ("c-value", JSON, "JSON"),
    ):
        with pytest.raises(SchemaRegistryException, match=f"does not have this schema under the subject {subject}"):
            client.id_of(subject, text, kind)


def test_a_descriptor_that_a_client_in_python_registered_is_the_schema_of_its_text(registry: RegistryFront) -> None:
    (data,) = serialized_proto(registry, PROTO, [{"user": "ann"}], "a")
    assert schemas(registry, autoRegister=False).id_of("a-value", PROTO, "PROTOBUF") == id_in(data)


def test_a_record_under_the_name_of_its_record_is_found_by_its_id(registry: RegistryFront) -> None:
    client = schemas(registry)._client
    from confluent_kafka.schema_registry.avro import AvroSerializer

    conf = {"subject.name.strategy.type": "RECORD"}
    serialize = AvroSerializer(client, ORDER, conf=conf)
    data = serialize({"user": "ann"}, SerializationContext("a", MessageField.VALUE))
    assert data is not None
    found = schemas(registry).schema(id_in(data) or 0)
    assert found is not None
    assert json.loads(found.text) == json.loads(ORDER)
    assert registry.ids("Order") == [id_in(data)]


def test_the_address_without_the_path_of_the_api_is_no_registry(apicurio_server: Apicurio) -> None:
    for path in ("", "/apis/registry/v2"):
        client = SchemaRegistry(SchemaRegistrySpec(url=f"{apicurio_server.address}{path}"))
        with pytest.raises(SchemaRegistryException, match=r"answered 404.*Correct spec\.kafka\.schemaRegistry\.url"):
            client.schema(1)


def test_a_half_fetched_program_never_has_its_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(arguments: list[str], target: Path) -> None:
        (target / "archive.tar.gz").write_bytes(b"half of it")

    monkeypatch.setattr(program, "run_maven", broken)
    with pytest.raises(shutil.ReadError):
        program.apicurio_folder(tmp_path)
    assert not list(tmp_path.rglob("*.gz"))
    assert not (tmp_path / "apicurio-registry" / program.VERSION).exists()
