"""Protobuf through Spark: what Kafka's serializer writes is read, evolution by numbers, and the way back."""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import pytest
from avro_kit import SPEC, schemas
from clients import make_topics, send
from pipeline_bench import Bench, open_tasks
from pipeline_kit import Pipeline, Record, batch, mistakes_of, sent, source, topology_of, values
from proto_kit import HEAD, ORDER, deserialized, proto, proto_source, serialized
from registry_front import RegistryFront

from streams_runtime.errors import DeserializationException, SchemaRegistryException, StreamsException
from streams_runtime.kafka.client.client_properties import client_properties
from streams_runtime.kafka.types import TopicPartition
from streams_runtime.pipeline.batch_input import BatchInput, OffsetRange
from streams_runtime.pipeline.formats.protobuf.proto_wire import framed, unframed
from streams_runtime.pipeline.formats.schema_ids import id_in, prefix_of
from streams_runtime.processing.failures.error_policy import ErrorPolicy
from streams_runtime.processing.failures.unreadable_records import dead_letters

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.integration

UNKNOWN = 7_777_777  # an id that no registry of these tests comes to
OUT = {"from": "in", "topic": "out"}
PROTO_OUT = {**OUT, "value": {"format": "protobuf"}}
ALL = f"""{HEAD}
import "google/protobuf/timestamp.proto";
import "google/protobuf/wrappers.proto";
message Line {{ string item = 1; uint32 parts = 2; }}
message All {{
  enum Kind {{ NONE = 0; GIFT = 1; }}
  bool b = 1; float f = 2; double d = 3; bytes raw = 4;
  sint32 small = 5; uint64 big = 6; fixed32 fixed = 7;
  Kind kind = 8;
  repeated Line lines = 9;
  map<string, Line> named = 10;
  google.protobuf.Timestamp at = 11;
  google.protobuf.Int32Value rank = 12;
  oneof paid {{ string card = 13; int64 cash = 14; }}
  Line inner = 15;
  repeated int32 numbers = 16;
}}
"""
VALUE = {
    "b": True,
    "f": 0.5,
    "d": 2.25,
    "raw": "AP8=",
    "small": -3,
    "big": str(2**64 - 1),
    "fixed": 2**32 - 1,
    "kind": "GIFT",
    "lines": [{"item": "a", "parts": 2**32 - 1}, {}],
    "named": {"x": {"item": "b"}},
    "at": "2024-05-01T12:30:00.250001Z",
    "rank": 0,
    "cash": "0",
    "inner": {},
    "numbers": [1, 0, -1],
}


def pipeline(
    spark: SparkSession, registry: RegistryFront, given: dict[str, Any], sinks: Sequence[dict[str, Any]] = (OUT,)
) -> Pipeline:
    made = Pipeline(spark, topology_of([given], [], sinks, **SPEC), schemas=schemas(registry))
    made.compiler.register_schemas()
    return made


def why(made: Pipeline, *records: Record) -> str:
    """The words of the exception for the first of the records that can't be read."""
    one = batch(*records)
    result = made.runners[0].run(one)
    with pytest.raises(DeserializationException) as refused:
        dead_letters(ErrorPolicy("fail"), made.runners[0], one, result)
    return str(refused.value)


def test_what_kafkas_serializer_writes_is_read_and_absent_fields_have_their_defaults(
    spark: SparkSession, registry: RegistryFront
) -> None:
    first, second = serialized(registry, ORDER, [{"user": "ann", "amount": 3, "note": "x"}, {"user": "bo"}])
    made = pipeline(spark, registry, proto_source())
    result = made.run(
        Record(b"a", first), Record(b"b", second), Record(b"c", None), Record(b"d", framed(id_in(first) or 0, (0,)))
    )
    assert values(result) == [
        (b"a", {"user": "ann", "amount": 3, "note": "x"}),
        (b"b", {"user": "bo", "amount": None, "note": ""}),
        (b"c", None),
        (b"d", {"user": "", "amount": None, "note": ""}),
    ]
    assert result.broken == 0


def test_schemas_evolve_by_the_numbers_of_fields_and_each_is_fetched_once(
    spark: SparkSession, registry: RegistryFront
) -> None:
    registry.accept_all()
    older = proto("string customer = 1", "int32 amount = 2", "string gone = 9", name="Purchase")
    several = f"{HEAD} message Other {{ int32 x = 1; }} message Outer {{ message Order {{ string user = 1; }} }}"
    (one,) = serialized(registry, older, [{"customer": "ann", "amount": 2, "gone": "?"}])
    (two,) = serialized(registry, several, [{"user": "bo"}], message="Outer.Order")
    (three,) = serialized(registry, ORDER, [{"user": "cy", "amount": 2**40, "note": "n"}])
    assert two.startswith(framed(id_in(two) or 0, (1, 0)))
    made = pipeline(spark, registry, proto_source())
    result = made.run(Record(b"a", one), Record(b"b", two), Record(b"c", three), Record(b"d", one))
    assert [value for _, value in values(result)] == [
        {"user": "ann", "amount": 2, "note": ""},
        {"user": "bo", "amount": None, "note": ""},
        {"user": "cy", "amount": 2**40, "note": "n"},
        {"user": "ann", "amount": 2, "note": ""},
    ]
    asked = [each for each in registry.asked if each.startswith("GET /schemas/ids/")]
    made.run(Record(b"a", one), Record(b"b", two))
    assert [each for each in registry.asked if each.startswith("GET /schemas/ids/")] == asked


@pytest.mark.parametrize(
    ("fields", "value", "found"),
    [
        (
            ("string user = 1", "string amount = 2"),
            {"user": "a", "amount": "1"},
            "the field amount was written as string and is read as int64",
        ),
        (("repeated string user = 1",), {"user": ["a", "b"]}, "the field user was written as repeated string"),
    ],
)
def test_a_message_that_cannot_be_read_says_field_and_record(
    spark: SparkSession, registry: RegistryFront, fields: tuple[str, ...], value: dict[str, Any], found: str
) -> None:
    registry.accept_all()
    (fine,) = serialized(registry, ORDER, [{"user": "ann"}])
    (other,) = serialized(registry, proto(*fields), [value])
    text = why(pipeline(spark, registry, proto_source()), Record(b"a", fine), Record(b"b", other))
    assert text.startswith(
        f"record in-0@1 can't be read: its value is of the schema {id_in(other)}, whose shop.Order can't be"
    )
    assert found in text


@pytest.mark.parametrize(
    ("id", "data", "found"),
    [
        (None, b"{}", "begins with 7b7d"),
        (None, b"", "has no bytes"),
        ("own", b"\0\x0a\x05ab", "damaged"),
        ("own", b"\0\x12\x01a", "of another type in the field amount"),
        ("own", b"\x02\x06", "the schema {own}, which has no message 3"),
        ("unknown", b"\0", "has no schema {unknown}"),
        ("avro", b"\0", "of the type AVRO"),
    ],
)
def test_bytes_that_are_no_message_of_a_known_schema_say_why(
    spark: SparkSession, registry: RegistryFront, id: str | None, data: bytes, found: str
) -> None:
    own = registry.put("in-value", ORDER, "PROTOBUF")
    ids = {"own": own, "avro": registry.put("other", '"string"'), "unknown": UNKNOWN}
    start = b"" if id is None else prefix_of(ids[id])
    assert found.format(**ids) in why(pipeline(spark, registry, proto_source()), Record(b"a", start + data))


def test_types_go_through_and_kafkas_deserializer_reads_what_is_written(
    spark: SparkSession, registry: RegistryFront
) -> None:
    (data,) = serialized(registry, ALL, [VALUE], message="All")
    sink = {**OUT, "topic": "same", "value": {"format": "protobuf", "schema": ALL, "message": "All"}}
    made = pipeline(spark, registry, proto_source(ALL, "All"), [sink, OUT])
    emissions = made.run(Record(b"k", data)).emissions
    ((_, written, _),) = sent(emissions, "same")
    assert written is not None
    assert deserialized(registry, ALL, written, "same", "All") == VALUE
    found = unframed(data)
    assert found is not None
    assert written == framed(registry.ids("same-value")[0], (1,)) + found[2]
    ((_, shown, _),) = sent(emissions, "out")
    read = json.loads(shown or b"")
    assert (read["fixed"], read["big"], read["card"], read["rank"]) == (2**32 - 1, 2**64 - 1, None, 0)
    assert (read["lines"][1], read["inner"]) == ({"item": "", "parts": 0},) * 2


def test_a_schema_is_made_of_the_columns(spark: SparkSession, registry: RegistryFront) -> None:
    ddl = "user STRING, n INT, deep ARRAY<STRUCT<x: BIGINT>>, more MAP<STRING, DOUBLE>, at TIMESTAMP"
    made = pipeline(spark, registry, source("json", ddl), [PROTO_OUT])
    value = {"user": "ann", "n": None, "deep": [{"x": 1}], "more": {"a": 0.5}, "at": "2024-01-01T00:00:00Z"}
    ((_, written, _),) = sent(made.run(Record(b"k", json.dumps(value).encode())).emissions, "out")
    assert written is not None
    kind, text = registry.schema(registry.ids("out-value")[0])
    assert kind == "PROTOBUF"
    expected = {"user": "ann", "deep": [{"x": "1"}], "more": {"a": 0.5}, "at": "2024-01-01T00:00:00Z"}
    assert deserialized(registry, text, written) == expected


@pytest.mark.parametrize(
    ("schema", "found"),
    [
        (proto("string user = 1", "int32 n = 2"), "n is BIGINT, and int32 in the schema"),
        (proto("string user = 1", "repeated int64 n = 2"), "n is BIGINT, and repeated int64 in the schema"),
    ],
)
def test_columns_that_a_sinks_schema_does_not_hold_are_refused(
    spark: SparkSession, registry: RegistryFront, schema: str, found: str
) -> None:
    sink = {**PROTO_OUT, "value": {"format": "protobuf", "schema": schema}}
    mistakes = mistakes_of(spark, topology_of([source("json", "user STRING, n BIGINT")], [], [sink], **SPEC))
    assert mistakes.keys() == {"spec.topology.sinks[0].value.schema"}
    assert found in mistakes["spec.topology.sinks[0].value.schema"]


def test_a_date_has_no_type_in_a_schema_that_is_made_of_columns(spark: SparkSession, registry: RegistryFront) -> None:
    mistakes = mistakes_of(spark, topology_of([source("json", "day DATE")], [], [PROTO_OUT], **SPEC))
    assert "no type for DATE" in mistakes["spec.topology.sinks[0].value.format"]


def test_a_null_where_a_field_has_no_presence_names_the_field(spark: SparkSession, registry: RegistryFront) -> None:
    sink = {**OUT, "value": {"format": "protobuf", "schema": proto("string user = 1", "int64 n = 2")}}
    made = pipeline(spark, registry, source("json", "user STRING, n BIGINT"), [sink])
    with pytest.raises(StreamsException, match=r"topic out does not fit its Protobuf schema: n is null"):
        made.run(Record(b"k", b'{"user": "a"}'))


def test_a_schema_that_the_registry_refuses_is_told_before_anything_is_written(
    spark: SparkSession, registry: RegistryFront
) -> None:
    registry.put("out-value", proto("string n = 1"), "PROTOBUF")
    with pytest.raises(SchemaRegistryException, match=r"subject out-value, answered 409"):
        pipeline(spark, registry, source("json", "n BIGINT"), [PROTO_OUT])


def test_keys_are_protobuf_on_both_sides_when_declared(spark: SparkSession, registry: RegistryFront) -> None:
    key = proto("int64 id = 1", name="Key")
    data = serialized(registry, key, [{"id": 5}], "anything")[0]
    given = source("json", "n INT") | {"key": {"format": "protobuf", "schema": key}}
    made = pipeline(spark, registry, given, [{**OUT, "key": {"format": "protobuf", "schema": key}}])
    ((written, _, _),) = sent(made.run(Record(data, b'{"n": 1}')).emissions, "out")
    assert written is not None
    assert deserialized(registry, key, written, part="key") == {"id": "5"}


def test_a_table_of_protobuf_is_joined_after_a_restart(spark: SparkSession, registry: RegistryFront) -> None:
    users = proto("string tier = 1", name="User")
    (gold,) = serialized(registry, users, [{"tier": "gold"}], "users")
    table = proto_source(users, name="users", topic="users", table={"store": "users"})
    join = {"name": "both", "from": "in", "join": {"table": "users", "type": "left", "select": {"tier": "users.tier"}}}
    sinks = [{"from": "both", "topic": "out"}, {"from": "users", "topic": "all", "value": {"format": "protobuf"}}]
    topology = topology_of([source("json", "n INT"), table], [join], sinks, **SPEC)
    with ExitStack() as stack:
        tasks = open_tasks(stack, topology)
        first, again = (Bench(Pipeline(spark, topology, schemas=schemas(registry)), tasks) for _ in range(2))
        first.pipeline.compiler.register_schemas()
        first.store(first.process(Record(b"ann", gold, "users")))
        ((_, _, _, row, *_),) = first.producer.records
        assert deserialized(registry, users, row, "all") == {"tier": "gold"}
        again.process(Record(b"ann", b'{"n": 1}'), Record(b"bo", b'{"n": 2}'))
        out = [(key, json.loads(value)) for topic, _, key, value, *_ in again.producer.records if topic == "out"]
    assert out == [(b"ann", {"n": 1, "tier": "gold"}), (b"bo", {"n": 2, "tier": None})]


def test_spark_meets_a_schema_that_nobody_knew_in_what_it_reads_from_the_brokers(
    spark: SparkSession, registry: RegistryFront, broker: Any, namespace: str
) -> None:
    registry.accept_all()  # Apicurio compares no descriptors, which the serializer registers
    make_topics(broker.bootstrap_servers, **{namespace: 1})
    newer = proto("string user = 1", "double more = 7")
    topology = topology_of([proto_source(topic=namespace)], [], [OUT], **SPEC)
    java = client_properties(broker.bootstrap_servers, {})
    made = Pipeline(spark, topology, java, schemas(registry))
    written = ((ORDER, {"user": "ann", "amount": 1}), (newer, {"user": "bo", "more": 1}))
    for end, (schema, value) in enumerate(written, 1):
        send(broker.bootstrap_servers, namespace, [("k", each) for each in serialized(registry, schema, [value])])
        where = OffsetRange(TopicPartition(namespace, 0), 0, end)
        result = made.runners[0].run(BatchInput((where,)))
        assert result.broken == 0
        assert [each["user"] for _, each in values(result)] == ["ann", "bo"][:end]
