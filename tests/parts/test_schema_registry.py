"""The schema registry's client against the HTTP API, over a real socket."""

from __future__ import annotations

import json
from typing import Any

import pytest
from schema_registry import Registry, schema_registry

from streams_runtime.api.spec.kafka_spec import SchemaRegistrySpec
from streams_runtime.errors import (
    BrokerNotAvailableException,
    ConfigException,
    SchemaRegistryException,
    SchemaRegistryNotAvailableException,
)
from streams_runtime.kafka.schema_registry import FoundSchema, SchemaRegistry


def record(*fields: dict[str, Any]) -> str:
    return json.dumps({"type": "record", "name": "Order", "fields": list(fields)}, separators=(",", ":"))


USER = {"name": "user", "type": "string"}
ORDER = record(USER)


def client(registry: Registry, **spec: Any) -> SchemaRegistry:
    return SchemaRegistry(SchemaRegistrySpec(url=registry.url, **spec))


def test_a_schema_is_registered_once_and_found_by_its_id() -> None:
    with schema_registry() as registry:
        known = client(registry)
        number = known.id_of("orders-value", ORDER)
        assert known.id_of("orders-value", ORDER) == number == 1
        assert client(registry).schema(number) == FoundSchema(ORDER, "AVRO")
        assert registry.subjects == {"orders-value": [1]}


def test_an_id_that_the_registry_does_not_have_is_none() -> None:
    with schema_registry() as registry:
        assert client(registry).schema(7) is None


def test_a_schema_that_cannot_follow_the_last_one_is_refused() -> None:
    with schema_registry() as registry:
        known = client(registry)
        known.id_of("orders-value", ORDER)
        with pytest.raises(SchemaRegistryException, match=r"orders-value, answered 409.*give new fields a default"):
            known.id_of("orders-value", record(USER, {"name": "amount", "type": "long"}))
        assert known.id_of("orders-value", record(USER, {"name": "amount", "type": "long", "default": 0})) == 2


def test_without_auto_register_a_schema_has_to_be_there() -> None:
    with schema_registry() as registry:
        known = client(registry, autoRegister=False)
        with pytest.raises(SchemaRegistryException, match=r"orders-value.*autoRegister"):
            known.id_of("orders-value", ORDER)
        assert registry.subjects == {}
        registry.put("orders-value", ORDER)
        assert known.id_of("orders-value", ORDER) == 1


def test_a_login_is_sent_and_one_that_is_refused_is_no_reason_to_wait() -> None:
    with schema_registry(user_info="ann:secret") as registry:
        assert client(registry, config={"basic.auth.user.info": "ann:secret"}).id_of("a-value", ORDER) == 1
        with pytest.raises(SchemaRegistryException, match=r"401.*basic\.auth\.user\.info") as refused:
            client(registry, config={"basic.auth.user.info": "ann:wrong"}).id_of("a-value", ORDER)
        assert not isinstance(refused.value, BrokerNotAvailableException)
        assert "wrong" not in str(refused.value)


def test_a_registry_that_is_away_is_asked_again() -> None:
    with schema_registry(away=True) as registry:
        known = client(registry)
        with pytest.raises(SchemaRegistryNotAvailableException, match="answered 503"):
            known.schema(1)
        registry.away = False
        assert known.schema(1) is None
    with pytest.raises(SchemaRegistryNotAvailableException, match="does not answer"):
        known.id_of("a-value", ORDER)


def test_an_address_that_is_no_registry_is_refused() -> None:
    with schema_registry() as registry, pytest.raises(SchemaRegistryException, match="url"):
        SchemaRegistry(SchemaRegistrySpec(url=f"{registry.url}/elsewhere")).schema(1)


def test_a_property_that_cannot_be_used_is_not_quoted() -> None:
    spec = SchemaRegistrySpec(url="http://r", config={"basic.auth.user.info": "hunter2"})
    with pytest.raises(ConfigException, match="user:password") as refused:
        SchemaRegistry(spec)
    assert "hunter2" not in str(refused.value)
