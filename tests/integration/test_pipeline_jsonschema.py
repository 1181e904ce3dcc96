"""JSON with a schema registry through Spark: what Confluent's serializer writes is read, and the way back."""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import ExitStack
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest
from avro_kit import SPEC, schemas
from clients import make_topics, send
from json_kit import DRAFT, INTEGER, ORDER, STRING, deserialized, json_object, json_schema, json_source, serialized
from pipeline_bench import Bench, open_tasks
from pipeline_kit import Pipeline, Record, batch, mistakes_of, sent, source, topology_of, values
from registry_front import RegistryFront

from streams_runtime.errors import DeserializationException, SchemaRegistryException, StreamsException
from streams_runtime.kafka.client.client_properties import client_properties
from streams_runtime.kafka.types import TopicPartition
from streams_runtime.pipeline.batch_input import BatchInput, OffsetRange
from streams_runtime.pipeline.formats.schema_ids import id_in, prefix_of
from streams_runtime.processing.failures.error_policy import ErrorPolicy
from streams_runtime.processing.failures.unreadable_records import dead_letters

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.integration

UNKNOWN = 7_777_777  # an id that no registry of these tests comes to
OUT = {"from": "in", "topic": "out"}
JSON_OUT = {**OUT, "value": {"format": "jsonschema"}}
ALL = json.dumps(
    {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **json_object(
            "b",
            b={"type": "boolean"},
            d={"type": "number", "minimum": 0},
            kind={"enum": ["GIFT", "NONE"]},
            lines={"type": "array", "items": {"$ref": "#/$defs/line"}},
            named={"type": "object", "additionalProperties": {"$ref": "#/$defs/line"}},
            at={"type": "string", "format": "date-time"},
            day={"anyOf": [{"type": "string", "format": "date"}, {"type": "null"}]},
            inner={"oneOf": [{"type": "null"}, {"$ref": "#/$defs/line"}]},
        ),
        "$defs": {"line": json_object("item", **{"item": STRING, "n-of": INTEGER})},
    }
)
VALUE = {
    "b": True,
    "d": 2.25,
    "kind": "GIFT",
    "lines": [{"item": "a", "n-of": 2**63 - 1}, {"item": "ü"}],
    "named": {"x": {"item": "b"}},
    "at": "2024-05-01T14:30:00.2500019+02:00",
    "day": "2024-05-01",
    "inner": None,
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


def test_what_confluents_serializer_writes_is_read_and_absent_properties_are_null(
    spark: SparkSession, registry: RegistryFront
) -> None:
    first, second = serialized(registry, ORDER, [{"user": "ann", "amount": 3, "more": [1]}, {"user": "bo"}])
    made = pipeline(spark, registry, json_source())
    result = made.run(Record(b"a", first), Record(b"b", second), Record(b"c", None))
    assert values(result) == [
        (b"a", {"user": "ann", "amount": 3, "note": None}),
        (b"b", {"user": "bo", "amount": None, "note": None}),
        (b"c", None),
    ]
    assert result.broken == 0


def test_records_of_all_schemas_are_read_by_the_sources_and_each_is_fetched_once(
    spark: SparkSession, registry: RegistryFront
) -> None:
    registry.accept_all()
    older = json_schema(user=STRING, gone={"type": "boolean"})
    (one,) = serialized(registry, older, [{"user": "ann", "gone": True}])
    (two,) = serialized(registry, ORDER, [{"user": "bo", "amount": 2**40}])
    made = pipeline(spark, registry, json_source())
    result = made.run(Record(b"a", one), Record(b"b", two), Record(b"c", one))
    assert [value["user"] for _, value in values(result)] == ["ann", "bo", "ann"]
    asked = [each for each in registry.asked if each.startswith("GET /schemas/ids/")]
    made.run(Record(b"a", one), Record(b"b", two))
    assert [each for each in registry.asked if each.startswith("GET /schemas/ids/")] == asked


def test_a_value_that_is_not_valid_says_place_and_record(spark: SparkSession, registry: RegistryFront) -> None:
    registry.accept_all()
    (fine,) = serialized(registry, ORDER, [{"user": "ann"}])
    (other,) = serialized(registry, json_schema(user=STRING, amount=STRING), [{"user": "a", "amount": "1"}])
    text = why(pipeline(spark, registry, json_source()), Record(b"a", fine), Record(b"b", other))
    assert text.startswith(
        "record in-0@1 can't be read: its value is not valid by the source's schema:"
        ' "1" is not of types "null", "integer" at #/amount'
    )
    assert f"it names the schema {id_in(other)}" in text


@pytest.mark.parametrize(
    ("id", "data", "found"),
    [
        (None, b"{}", "begins with 7b7d"),
        (None, b"", "has no bytes"),
        ("own", b"", "no JSON"),
        ("own", b'{"user": NaN}', "no JSON"),
        ("own", b'{"user": "\xff"}', "no JSON"),
        ("own", b"null", 'null is not of type "object" at #'),
        ("own", b'{"amount": 1}', '"user" is a required property at #'),
        ("own", b'{"user": "a", "amount": 9223372036854775808}', "too large for a BIGINT, at #/amount"),
        ("unknown", b"{}", "has no schema {unknown}"),
        ("avro", b"{}", "of the type AVRO"),
    ],
)
def test_bytes_that_are_no_value_of_a_known_schema_say_why(
    spark: SparkSession, registry: RegistryFront, id: str | None, data: bytes, found: str
) -> None:
    ids = {
        "own": registry.put("in-value", ORDER, "JSON"),
        "avro": registry.put("other", '"string"'),
        "unknown": UNKNOWN,
    }
    start = b"" if id is None else prefix_of(ids[id])
    assert found.format(**ids) in why(pipeline(spark, registry, json_source()), Record(b"a", start + data))


def test_types_go_through_and_confluents_deserializer_reads_what_is_written(
    spark: SparkSession, registry: RegistryFront
) -> None:
    (data,) = serialized(registry, ALL, [VALUE])
    sink = {**OUT, "topic": "same", "value": {"format": "jsonschema", "schema": ALL}}
    made = pipeline(spark, registry, json_source(ALL), [sink, OUT])
    emissions = made.run(Record(b"k", data)).emissions
    ((_, written, _),) = sent(emissions, "same")
    assert written is not None
    expected = VALUE | {"at": "2024-05-01T12:30:00.250001Z"}
    assert deserialized(registry, written, "same") == expected
    assert written.startswith(prefix_of(registry.ids("same-value")[0]))
    ((_, shown, _),) = sent(emissions, "out")
    read = json.loads(shown or b"")
    assert (read["d"], read["day"], read["inner"]) == (2.25, "2024-05-01", None)
    assert read["lines"] == [{"item": "a", "n-of": 2**63 - 1}, {"item": "ü", "n-of": None}]


def test_a_schema_is_made_of_the_columns(spark: SparkSession, registry: RegistryFront) -> None:
    ddl = "user STRING, n INT, deep ARRAY<STRUCT<x: BIGINT>>, more MAP<STRING, DOUBLE>, at TIMESTAMP, day DATE"
    made = pipeline(spark, registry, source("json", ddl), [JSON_OUT])
    value = {"user": "ann", "n": None, "deep": [{"x": 1}], "more": {"a": 0.5}, "at": "2024-01-01T00:00:00Z"}
    ((_, written, _),) = sent(made.run(Record(b"k", json.dumps(value).encode())).emissions, "out")
    assert written is not None
    assert registry.schema(registry.ids("out-value")[0])[0] == "JSON"
    assert deserialized(registry, written) == value | {"at": "2024-01-01T00:00:00.000000Z", "day": None}


def test_a_made_schema_may_get_columns_under_backward(spark: SparkSession, registry: RegistryFront) -> None:
    pipeline(spark, registry, source("json", "n BIGINT"), [JSON_OUT])
    pipeline(spark, registry, source("json", "n BIGINT, more STRING"), [JSON_OUT])
    assert len(registry.ids("out-value")) == 2
    with pytest.raises(SchemaRegistryException, match=r"subject out-value, answered 409"):
        pipeline(spark, registry, source("json", "n STRING, more STRING"), [JSON_OUT])


@pytest.mark.parametrize(
    ("properties", "found"),
    [
        ({"user": STRING, "n": STRING}, "n is BIGINT, and string in the schema"),
        ({"user": STRING, "n": {"type": "array", "items": INTEGER}}, "n is BIGINT, and array in the schema"),
    ],
)
def test_columns_that_a_sinks_schema_does_not_hold_are_refused(
    spark: SparkSession, registry: RegistryFront, properties: dict[str, Any], found: str
) -> None:
    sink = {**JSON_OUT, "value": {"format": "jsonschema", "schema": json_schema(**properties)}}
    mistakes = mistakes_of(spark, topology_of([source("json", "user STRING, n BIGINT")], [], [sink], **SPEC))
    assert mistakes.keys() == {"spec.topology.sinks[0].value.schema"}
    assert found in mistakes["spec.topology.sinks[0].value.schema"]


def test_a_decimal_has_no_type_in_a_schema_that_is_made_of_columns(
    spark: SparkSession, registry: RegistryFront
) -> None:
    mistakes = mistakes_of(spark, topology_of([source("json", "n DECIMAL(9, 2)")], [], [JSON_OUT], **SPEC))
    assert "no type for DECIMAL(9,2)" in mistakes["spec.topology.sinks[0].value.format"]


@pytest.mark.parametrize(
    ("value", "found"),
    [
        (b'{"user": null, "n": 1}', 'null is not of type "string" at #/user'),
        (b'{"user": "a", "n": -1}', "-1 is less than the minimum of 0 at #/n"),
    ],
)
def test_a_row_that_is_not_valid_names_the_place(
    spark: SparkSession, registry: RegistryFront, value: bytes, found: str
) -> None:
    schema = json_schema("user", user=STRING, n={"type": "integer", "minimum": 0})
    sink = {**OUT, "value": {"format": "jsonschema", "schema": schema}}
    made = pipeline(spark, registry, source("json", "user STRING, n BIGINT"), [sink])
    with pytest.raises(StreamsException, match=f"topic out does not fit its JSON Schema: {found}"):
        made.run(Record(b"k", value))


def test_keys_are_jsonschema_on_both_sides_when_declared(spark: SparkSession, registry: RegistryFront) -> None:
    key = json.dumps({"$schema": DRAFT, "type": "string"})
    data = serialized(registry, key, ["ann"], "anything")[0]
    given = source("json", "n INT") | {"key": {"format": "jsonschema", "schema": key}}
    made = pipeline(spark, registry, given, [{**OUT, "key": {"format": "jsonschema"}}])
    ((written, _, _),) = sent(made.run(Record(data, b'{"n": 1}')).emissions, "out")
    assert written is not None
    assert deserialized(registry, written, part="key") == "ann"


def test_a_table_of_jsonschema_is_joined_after_a_restart(spark: SparkSession, registry: RegistryFront) -> None:
    users = json_schema(tier=STRING)
    (gold,) = serialized(registry, users, [{"tier": "gold"}], "users")
    table = json_source(users, name="users", topic="users", table={"store": "users"})
    join = {"name": "both", "from": "in", "join": {"table": "users", "type": "left", "select": {"tier": "users.tier"}}}
    sinks = [{"from": "both", "topic": "out"}, {"from": "users", "topic": "all", "value": {"format": "jsonschema"}}]
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


def test_a_time_of_a_record_is_the_timestamp(spark: SparkSession, registry: RegistryFront) -> None:
    schema = json_schema(at={"type": "string", "format": "date-time"})
    (data,) = serialized(registry, schema, [{"at": "2024-05-01T12:30:00+02:00"}])
    made = pipeline(spark, registry, json_source(schema, timestamp="at"))
    (emission,) = made.run(Record(b"k", data)).emissions
    assert emission.timestamps == [int(datetime(2024, 5, 1, 10, 30, tzinfo=UTC).timestamp() * 1000)]


def test_spark_meets_a_schema_that_nobody_knew_in_what_it_reads_from_the_brokers(
    spark: SparkSession, registry: RegistryFront, broker: Any, namespace: str
) -> None:
    registry.accept_all()
    make_topics(broker.bootstrap_servers, **{namespace: 1})
    newer = json_schema(user=STRING, more={"type": "number"})
    topology = topology_of([json_source(topic=namespace)], [], [OUT], **SPEC)
    java = client_properties(broker.bootstrap_servers, {})
    made = Pipeline(spark, topology, java, schemas(registry))
    written = ((ORDER, {"user": "ann", "amount": 1}), (newer, {"user": "bo", "more": 1}))
    for end, (schema, value) in enumerate(written, 1):
        send(broker.bootstrap_servers, namespace, [("k", each) for each in serialized(registry, schema, [value])])
        where = OffsetRange(TopicPartition(namespace, 0), 0, end)
        result = made.runners[0].run(BatchInput((where,)))
        assert result.broken == 0
        assert [each["user"] for _, each in values(result)] == ["ann", "bo"][:end]
