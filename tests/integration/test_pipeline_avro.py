"""Avro through Spark: what Kafka's serializer writes is read, evolution by Avro's rules, and the other way round."""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import ExitStack
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pytest
from avro_kit import ORDER, SPEC, avro_source, deserialized, field, record, schemas, serialized
from clients import make_topics, send
from pipeline_bench import Bench, open_tasks
from pipeline_kit import Pipeline, Record, batch, mistakes_of, sent, source, topology_of, values
from registry_front import RegistryFront

from streams_runtime.errors import DeserializationException, SchemaRegistryException, StreamsException
from streams_runtime.kafka.client.client_properties import client_properties
from streams_runtime.kafka.types import TopicPartition
from streams_runtime.pipeline.batch_input import BatchInput, OffsetRange
from streams_runtime.pipeline.formats.schema_ids import PREFIX, id_in, prefix_of
from streams_runtime.processing.failures.error_policy import ErrorPolicy
from streams_runtime.processing.failures.unreadable_records import dead_letters

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.integration

OUT = {"from": "in", "topic": "out"}
UNKNOWN = 7_777_777  # an id that no registry of these tests comes to
AVRO_OUT = {**OUT, "value": {"format": "avro"}}


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


def test_what_kafkas_serializer_writes_is_read_as_columns(spark: SparkSession, registry: RegistryFront) -> None:
    first, second = serialized(
        registry, ORDER, [{"user": "ann", "amount": 3, "note": "x"}, {"user": "bo", "amount": None, "note": ""}]
    )
    made = pipeline(spark, registry, avro_source())
    result = made.run(Record(b"a", first), Record(b"b", second), Record(b"c", None))
    assert values(result) == [
        (b"a", {"user": "ann", "amount": 3, "note": "x"}),
        (b"b", {"user": "bo", "amount": None, "note": ""}),
        (b"c", None),
    ]
    assert result.broken == 0


def test_records_of_several_writers_schemas_are_resolved_each_by_its_own(
    spark: SparkSession, registry: RegistryFront
) -> None:
    registry.accept_all()
    older = record("Purchase", field("user", "string"), field("amount", "int"), field("gone", "string"))
    newer = record("Order", field("more", "double"), field("user", "string"), field("note", "string"))
    (one,) = serialized(registry, older, [{"user": "ann", "amount": 2, "gone": "?"}])
    (two,) = serialized(registry, newer, [{"user": "bo", "note": "hi", "more": 1.5}])
    (three,) = serialized(registry, ORDER, [{"user": "cy", "amount": 2**40, "note": "n"}])
    made = pipeline(spark, registry, avro_source())
    assert values(made.run(Record(b"a", one))) == [(b"a", {"user": "ann", "amount": 2, "note": "none"})]
    result = made.run(Record(b"a", one), Record(b"b", two), Record(b"c", three), Record(b"d", one))
    assert [value for _, value in values(result)] == [
        {"user": "ann", "amount": 2, "note": "none"},
        {"user": "bo", "amount": None, "note": "hi"},
        {"user": "cy", "amount": 2**40, "note": "n"},
        {"user": "ann", "amount": 2, "note": "none"},
    ]
    asked = [each for each in registry.asked if each.startswith("GET /schemas/ids/")]
    made.run(Record(b"a", one), Record(b"b", two))
    assert [each for each in registry.asked if each.startswith("GET /schemas/ids/")] == asked


@pytest.mark.parametrize(
    ("writer", "value", "found"),
    [
        (record("Order", field("amount", "long")), {"amount": 1}, "the field user is not in the data"),
        (
            record("Order", field("user", "string"), field("amount", "string")),
            {"user": "a", "amount": "1"},
            "the field amount was written as string and is read as null or long",
        ),
    ],
)
def test_a_schema_that_does_not_resolve_says_field_and_record(
    spark: SparkSession, registry: RegistryFront, writer: str, value: dict[str, Any], found: str
) -> None:
    registry.accept_all()
    (fine,) = serialized(registry, ORDER, [{"user": "ann", "amount": 3, "note": "x"}])
    (other,) = serialized(registry, writer, [value])
    made = pipeline(spark, registry, avro_source())
    text = why(made, Record(b"a", fine), Record(b"b", other))
    assert text.startswith(f"record in-0@1 can't be read: its value is of the schema {id_in(other)}")
    assert found in text


@pytest.mark.parametrize(
    ("id", "data", "found"),
    [
        (None, b"{}", "begins with 7b7d"),
        (None, b"", "has no bytes"),
        ("own", b"", "damaged"),
        ("own", b"\x08ab", "damaged"),
        ("own", b"\x02\xff\x00\x00", "damaged"),
        ("own", b"\x02a\x00\x02\xff", "damaged"),
        ("unknown", b"\x00", f"has no schema {UNKNOWN}"),
    ],
)
def test_bytes_that_are_no_avro_of_a_known_schema_say_why(
    spark: SparkSession, registry: RegistryFront, id: str | None, data: bytes, found: str
) -> None:
    ids = {"own": registry.put("in-value", ORDER), "unknown": UNKNOWN}
    start = b"" if id is None else prefix_of(ids[id])
    assert found in why(pipeline(spark, registry, avro_source()), Record(b"a", start + data))


def test_a_record_whose_fields_are_all_null_is_no_broken_one(spark: SparkSession, registry: RegistryFront) -> None:
    schema = record("Nothing", field("a", ["null", "int"], default=None))
    (data,) = serialized(registry, schema, [{"a": None}])
    result = pipeline(spark, registry, avro_source(schema)).run(Record(b"k", data))
    assert values(result) == [(b"k", {"a": None})]


def test_types_go_through_and_kafkas_deserializer_reads_what_is_written(
    spark: SparkSession, registry: RegistryFront
) -> None:
    inner = {"type": "record", "name": "Inner", "fields": [field("x", "int"), field("y", ["null", "string"])]}
    schema = record(
        "All",
        field("b", "boolean"),
        field("f", "float"),
        field("d", "double"),
        field("raw", "bytes"),
        field("day", {"type": "int", "logicalType": "date"}),
        field("at", {"type": "long", "logicalType": "timestamp-micros"}),
        field("price", {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}),
        field("list", {"type": "array", "items": "long"}),
        field("counts", {"type": "map", "values": "int"}),
        field("inner", ["null", inner]),
    )
    value = {
        "b": True,
        "f": 0.5,
        "d": 2.25,
        "raw": b"\x00\xff",
        "day": date(2024, 2, 29),
        "at": datetime(2024, 5, 1, 12, 30, 0, 250_001, tzinfo=UTC),
        "price": Decimal("12.50"),
        "list": [1, 2**40],
        "counts": {"a": 1},
        "inner": {"x": 1, "y": None},
    }
    (data,) = serialized(registry, schema, [value])
    for sink in (AVRO_OUT, {**OUT, "topic": "same", "value": {"format": "avro", "schema": schema}}):
        made = pipeline(spark, registry, avro_source(schema), [sink])
        ((_, written, _),) = sent(made.run(Record(b"k", data)).emissions, sink["topic"])
        assert written is not None
        assert deserialized(registry, written, sink["topic"]) == value
    assert written == prefix_of(registry.ids("same-value")[0]) + data[PREFIX:]


def test_the_columns_of_a_schema_are_what_spark_makes_of_it(spark: SparkSession, registry: RegistryFront) -> None:
    from streams_runtime.api.schemas.avro_schema import parse_avro

    schema = record(
        "A",
        field("e", {"type": "enum", "name": "E", "symbols": ["X"]}),
        field("x", {"type": "fixed", "name": "F", "size": 3}),
        field("u", {"type": "string", "logicalType": "uuid"}),
        field("l", {"type": "long", "logicalType": "local-timestamp-millis"}),
        field("again", ["null", "E"]),
        field("deep", {"type": "array", "items": {"type": "map", "values": ["null", "float"]}}),
    )
    made = pipeline(spark, registry, avro_source(schema))
    columns = parse_avro(schema).columns
    assert columns is not None
    found = {each.name: each.dataType.simpleString() for each in made.compiler.known.outputs["in"].schema}
    for column in columns:
        kind = spark.createDataFrame([], f"c {column.type.sql(dialect='spark') if column.type else 'VOID'}").schema
        assert found[column.name] == kind["c"].dataType.simpleString()


def test_a_null_where_the_schema_has_none_names_the_field(spark: SparkSession, registry: RegistryFront) -> None:
    strict = record("Order", field("user", "string"), field("amount", "long"), field("note", "string"))
    sink = {**OUT, "value": {"format": "avro", "schema": strict}}
    made = pipeline(spark, registry, source("json", "user STRING, amount BIGINT, note STRING"), [sink])
    with pytest.raises(StreamsException, match=r"topic out does not fit.*amount"):
        made.run(Record(b"k", b'{"user": "a", "note": ""}'))


def test_columns_that_a_sinks_schema_does_not_hold_are_refused_with_their_field(
    spark: SparkSession, registry: RegistryFront
) -> None:
    declared = record("Order", field("user", "string"), field("amount", "int"))
    sink = {**OUT, "value": {"format": "avro", "schema": declared}}
    topology = topology_of([source("json", "user STRING, amount BIGINT")], [], [sink], **SPEC)
    found = mistakes_of(spark, topology)
    assert found.keys() == {"spec.topology.sinks[0].value.schema"}
    assert "amount is BIGINT, and int in the schema" in found["spec.topology.sinks[0].value.schema"]


def test_a_schema_that_the_registry_refuses_is_told_before_anything_is_written(
    spark: SparkSession, registry: RegistryFront
) -> None:
    registry.put("out-value", record("out_value", field("n", "string")))
    with pytest.raises(SchemaRegistryException, match=r"subject out-value, answered 409"):
        pipeline(spark, registry, source("json", "n BIGINT"), [AVRO_OUT])


def test_keys_are_avro_on_both_sides_when_declared(spark: SparkSession, registry: RegistryFront) -> None:
    key = record("Key", field("id", "long"))
    registry.put("in-key", key)
    data = serialized(registry, key, [{"id": 5}], "anything")[0]
    given = source("json", "n INT") | {"key": {"format": "avro", "schema": key}}
    made = pipeline(spark, registry, given, [{**OUT, "key": {"format": "avro"}}])
    ((written, _, _),) = sent(made.run(Record(data, b'{"n": 1}')).emissions, "out")
    assert written is not None
    assert deserialized(registry, written, "out", "key") == {"id": 5}


def test_a_table_of_avro_is_joined_after_a_restart(spark: SparkSession, registry: RegistryFront) -> None:
    users = record("User", field("tier", "string"))
    (gold,) = serialized(registry, users, [{"tier": "gold"}], "users")
    table = avro_source(users, name="users", topic="users", table={"store": "users"})
    join = {"name": "both", "from": "in", "join": {"table": "users", "type": "left", "select": {"tier": "users.tier"}}}
    sinks = [{"from": "both", "topic": "out"}, {"from": "users", "topic": "all", "value": {"format": "avro"}}]
    topology = topology_of([source("json", "n INT"), table], [join], sinks, **SPEC)
    with ExitStack() as stack:
        tasks = open_tasks(stack, topology)
        first, again = (Bench(Pipeline(spark, topology, schemas=schemas(registry)), tasks) for _ in range(2))
        first.pipeline.compiler.register_schemas()
        first.store(first.process(Record(b"ann", gold, "users")))
        ((_, _, _, row, *_),) = first.producer.records
        assert deserialized(registry, row, "all") == {"tier": "gold"}
        again.process(Record(b"ann", b'{"n": 1}'), Record(b"bo", b'{"n": 2}'))
        out = [(key, json.loads(value)) for topic, _, key, value, *_ in again.producer.records if topic == "out"]
    assert out == [(b"ann", {"n": 1, "tier": "gold"}), (b"bo", {"n": 2, "tier": None})]


def test_spark_meets_a_schema_that_nobody_knew_in_what_it_reads_from_the_brokers(
    spark: SparkSession, registry: RegistryFront, broker: Any, namespace: str
) -> None:
    make_topics(broker.bootstrap_servers, **{namespace: 1})
    newer = record("Order", field("user", "string"), field("note", "string"))
    registry.accept_all()
    topology = topology_of([avro_source(topic=namespace)], [], [OUT], **SPEC)
    made = Pipeline(spark, topology, client_properties(broker.bootstrap_servers, {}), schemas(registry))
    written = ((ORDER, {"user": "ann", "amount": 1, "note": ""}), (newer, {"user": "bo", "note": ""}))
    for end, (schema, value) in enumerate(written, 1):
        send(broker.bootstrap_servers, namespace, [("k", each) for each in serialized(registry, schema, [value])])
        where = OffsetRange(TopicPartition(namespace, 0), 0, end)
        result = made.runners[0].run(BatchInput((where,)))
        assert result.broken == 0
        assert [each["user"] for _, each in values(result)] == ["ann", "bo"][:end]
