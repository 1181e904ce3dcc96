"""Schemas that refer to others: what is asked of the registry, and how Avro's become one document."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Mapping, Sequence

import pytest

from streams_runtime.api.schemas.avro_references import written_out
from streams_runtime.api.schemas.same_schema import same_schema
from streams_runtime.kafka.schema_references import ReferencedSchema, UnresolvedReference, referenced
from streams_runtime.kafka.schema_registry import FoundSchema
from streams_runtime.pipeline.formats.avro.avro_writer_schemas import avro_writer_schemas

with warnings.catch_warnings(record=True):
    # Authlib, which the client imports, deprecates the HTTP library that the client asks for.
    from confluent_kafka.schema_registry import Schema, SchemaReference

Held = Callable[[str, int], Schema | None]

CITY = {"type": "record", "name": "City", "fields": [{"name": "name", "type": "string"}]}
ADDRESS = {"type": "record", "name": "Address", "namespace": "shop", "fields": [{"name": "city", "type": CITY}]}


def to(name: str, subject: str, version: int = 1) -> SchemaReference:
    return SchemaReference(name, subject, version)


def held(schemas: Mapping[str, tuple[str, Sequence[SchemaReference]]], asked: list[str] | None = None) -> Held:
    """A registry's versions, by `subject@version`: each a text, and what it refers to."""

    def version(subject: str, number: int) -> Schema | None:
        if asked is not None:
            asked.append(subject)
        found = schemas.get(f"{subject}@{number}")
        return None if found is None else Schema(found[0], "AVRO", list(found[1]))

    return version


def test_what_is_referred_to_comes_before_what_refers_to_it_and_once() -> None:
    asked: list[str] = []
    schemas = {"a@1": ("A", [to("C", "c")]), "b@1": ("B", [to("C", "c")]), "c@1": ("C", [])}
    found = referenced([to("A", "a"), to("B", "b")], held(schemas, asked))
    assert found == tuple(ReferencedSchema(name, name) for name in "CAB")
    assert sorted(asked) == ["a", "b", "c"]


@pytest.mark.parametrize(
    ("references", "why"),
    [
        ([to("A", "gone", 3)], "the version 3 of the subject gone as A, which the registry does not have"),
        ([to("A", "a"), to("B", "b", 2)], "two schemas as A: the version 1 of the subject a and the version 1 of the"),
        ([to(str(each), "b") for each in range(300)], "more than 200 schemas"),
    ],
)
def test_references_that_cannot_be_followed_are_named(references: list[SchemaReference], why: str) -> None:
    version = held({"a@1": ("A", []), "b@1": ("B", []), "b@2": ("B", [to("A", "other")])})
    with pytest.raises(UnresolvedReference, match=why):
        referenced(references, version)


def test_references_in_a_circle_end() -> None:
    version = held({"a@1": ("A", [to("B", "b")]), "b@1": ("B", [to("A", "a")])})
    assert [each.name for each in referenced([to("A", "a")], version)] == ["B", "A"]


def test_a_type_is_defined_where_it_is_first_named_and_keeps_its_namespace() -> None:
    fields = [
        {"name": "home", "type": ["null", "shop.City"]},
        {"name": "work", "type": {"type": "array", "items": "shop.Address"}},
        {"name": "name", "type": "string", "default": "shop.City"},
    ]
    order = {"type": "record", "name": "Order", "namespace": "other", "fields": fields}
    home, work, name = written_out(json.dumps(order), [json.dumps(ADDRESS)])["fields"]
    assert home["type"] == ["null", CITY | {"namespace": "shop"}]
    assert work["type"]["items"] == ADDRESS | {"fields": [{"name": "city", "type": "shop.City"}]}
    assert name == fields[2]


def test_a_type_without_a_namespace_does_not_take_the_one_around_it() -> None:
    plain = {"type": "enum", "name": "Kind", "symbols": ["A"]}
    order = {"type": "record", "name": "Order", "fields": [{"name": "kind", "type": "Kind"}]}
    around = {"type": "record", "name": "Around", "namespace": "x", "fields": [{"name": "of", "type": "y.Inner"}]}
    inner = {"type": "record", "name": "Inner", "namespace": "y", "fields": [{"name": "kind", "type": "z.Kind"}]}
    assert written_out(json.dumps(order), [json.dumps(plain)])["fields"][0]["type"] == plain | {"namespace": ""}
    found = written_out(json.dumps(around), [json.dumps(inner), json.dumps(plain | {"namespace": "z"})])
    assert found["fields"][0]["type"]["fields"][0]["type"] == plain | {"namespace": "z"}


def test_a_schema_that_names_what_nobody_defines_makes_its_records_unreadable() -> None:
    class Registry:
        def schema(self, id: int) -> FoundSchema:
            text = {"type": "record", "name": "Order", "fields": [{"name": "to", "type": "shop.Gone"}]}
            return FoundSchema(json.dumps(text), "AVRO", (ReferencedSchema("shop.Address", json.dumps(ADDRESS)),))

        def id_of(self, subject: str, text: str, kind: str = "AVRO") -> int:
            raise NotImplementedError

    assert "it is no schema (UnknownType: shop.Gone" in (avro_writer_schemas(Registry()).problem(1) or "")


PROTO = 'syntax = "proto3"; package shop; message Order { string user = 1; }'


@pytest.mark.parametrize(
    ("kind", "one", "other", "same"),
    [
        ("AVRO", '{"type": "fixed", "name": "A", "size": 2}', '{"size":2,"doc":"x","name":"A","type":"fixed"}', True),
        ("AVRO", '{"type": "string"}', '"string"', True),
        ("AVRO", '{"type": "string", "logicalType": "uuid"}', '"string"', False),
        ("AVRO", '{"type": "fixed", "name": "A", "size": 2}', '{"type": "fixed", "name": "A", "size": 3}', False),
        ("AVRO", "nonsense", "nonsense", False),
        ("PROTOBUF", PROTO, PROTO.replace("message", "// of a user\nmessage"), True),
        ("PROTOBUF", PROTO, PROTO.replace("user", "name"), False),
        ("PROTOBUF", PROTO, PROTO.replace("shop", "mall"), False),
        ("PROTOBUF", "nonsense", "nonsense", False),
    ],
)
def test_texts_are_one_schema_when_they_mean_the_same(kind: str, one: str, other: str, same: bool) -> None:
    assert same_schema(kind, one, other) is same


def test_a_default_is_a_value_whatever_its_keys_are() -> None:
    texts = [{"name": "a", "type": {"type": "map", "values": "string"}, "default": {"doc": doc}} for doc in ("x", "y")]
    one, other = (json.dumps({"type": "record", "name": "A", "fields": [each]}) for each in texts)
    assert not same_schema("AVRO", one, other)
