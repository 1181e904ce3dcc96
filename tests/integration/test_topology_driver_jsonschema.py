"""The test driver with topics of jsonschema: written, read, evolved and kept in stores."""

from __future__ import annotations

import json
from datetime import date
from typing import Any

import pytest
from avro_kit import SPEC
from json_kit import INTEGER, STRING, json_object, json_schema, json_source
from topology_drivers import Made, document

from streams_runtime.api.steps.format_names import REGISTERED
from streams_runtime.errors import DeserializationException
from streams_runtime.state.serdes import SerdeException
from streams_runtime.testing import START, Record

pytestmark = [pytest.mark.integration, pytest.mark.usefixtures("spark")]

ORDERS = json_source(name="orders", topic="orders")
OUT = {"format": "jsonschema"}
KEY = "named_struct('user', user)"


def test_orders_of_jsonschema_are_added_up_into_totals_of_jsonschema(made: Made) -> None:
    steps = [
        {"name": "by-user", "from": "orders", "keyBy": "user"},
        {"name": "totals", "from": "by-user", "aggregate": {"total": "sum(amount)"}, "store": "totals"},
    ]
    driver = made(document([ORDERS], steps, [{"from": "totals", "topic": "totals", "key": OUT, "value": OUT}], **SPEC))
    orders, totals = driver.input_topic("orders"), driver.output_topic("totals")
    orders.pipe("1", {"user": "ann", "amount": 2, "note": ""})
    orders.pipe("2", {"user": "ann", "amount": 3})
    assert totals.read_all() == [Record("ann", {"total": 2}, START), Record("ann", {"total": 5}, START)]
    assert driver.store("totals").get("ann") == {"total": 5}
    assert set(driver.schemas.subjects) == {"orders-value", "totals-key", "totals-value"}
    found = driver.schemas.schema(driver.schemas.subjects["totals-value"][0])
    assert found is not None
    total = {"oneOf": [{"type": "null"}, INTEGER]}
    made_of = json_object(total=total) | {"title": "totals_value", "additionalProperties": False}
    assert json.loads(found.text).items() >= made_of.items()


def test_producers_of_another_schema_are_read_by_the_sources(made: Made) -> None:
    driver = made(document([ORDERS], [], {"copy": "orders"}, **SPEC))
    older, other = json_schema(user=STRING, gone=STRING), json_schema(user=STRING, amount=STRING)
    driver.input_topic("orders", value_schema=older).pipe("a", {"user": "ann", "gone": "?"})
    assert driver.output_topic("copy").read() == Record("a", {"user": "ann", "amount": None, "note": None}, START)
    with pytest.raises(DeserializationException, match=r'orders-0@1.*"1" is not of type.* at #/amount'):
        driver.input_topic("orders", value_schema=other).pipe("a", {"user": "ann", "amount": "1"})


@pytest.mark.parametrize(
    ("value", "told"),
    [
        ({"user": "ann", "amount": "much"}, '"much" is not of type.* at #/amount'),
        ({"usr": "ann"}, '"user" is a required property at #'),
        ({"user": None}, 'null is not of type "string" at #/user'),
    ],
)
def test_a_value_that_the_schema_does_not_hold_is_the_tests_mistake(
    made: Made, value: dict[str, object], told: str
) -> None:
    driver = made(document([ORDERS], [], {"copy": "orders"}, **SPEC))
    with pytest.raises(SerdeException, match=told):
        driver.input_topic("orders").pipe("a", value)


def test_a_schema_of_another_producer_that_is_none_is_the_tests_mistake(made: Made) -> None:
    driver = made(document([ORDERS], [], {"copy": "orders"}, **SPEC))
    with pytest.raises(SerdeException, match="orders does not fit its JSON Schema: a JSON Schema that is not JSON"):
        driver.input_topic("orders", value_schema="user STRING").pipe("a", {"user": "ann"})


def test_a_table_of_jsonschema_is_queried_as_json_has_it(made: Made) -> None:
    time, day = {"type": "string", "format": "date-time"}, {"type": "string", "format": "date"}
    schema = json_schema(tier=STRING, since=time, day=day, more={"type": "object", "additionalProperties": INTEGER})
    users = json_source(schema, name="users", topic="users", table={"store": "users"})
    driver = made(document([users], [], [{"from": "users", "topic": "all", "value": {"format": "json"}}], **SPEC))
    value = {"tier": "gold", "since": START, "day": date(2026, 1, 31), "more": {"a": 1}}
    driver.input_topic("users").pipe("ann", value)
    shown = {"tier": "gold", "since": "2024-01-01T00:00:00.000000Z", "day": "2026-01-31", "more": {"a": 1}}
    assert driver.store("users").get("ann") == shown
    driver.input_topic("users").pipe("ann", None)
    assert driver.store("users").get("ann") is None


def test_a_stream_of_jsonschema_is_kept_as_a_table_and_joined(made: Made) -> None:
    users = json_source(json_schema(tier=STRING), name="users", topic="users")
    steps = [
        {"name": "kept", "from": "users", "toTable": {"store": "kept"}},
        {"name": "both", "from": "orders", "join": {"table": "kept", "type": "left", "select": {"tier": "kept.tier"}}},
    ]
    driver = made(document([ORDERS, users], steps, [{"from": "both", "topic": "both", "value": OUT}], **SPEC))
    driver.input_topic("users").pipe("k", {"tier": "gold"})
    driver.input_topic("orders").pipe("k", {"user": "ann", "amount": 1})
    assert driver.store("kept").get("k") == {"tier": "gold"}
    both = {"user": "ann", "amount": 1, "note": None, "tier": "gold"}
    assert driver.output_topic("both").read() == Record("k", both, START)


def test_letters_of_records_that_are_not_valid_are_what_came(made: Made) -> None:
    policy = {"onDeserializationError": {"deadLetter": {"topic": "letters"}}}
    driver = made(document([ORDERS], [], {"copy": "orders"}, processing=policy, **SPEC))
    other = json_schema(user=INTEGER)
    driver.input_topic("orders", value_schema=other).pipe("a", {"user": 1})
    driver.input_topic("orders").pipe("b", {"user": "bo"})
    letter = driver.output_topic("letters").read()
    assert letter.value.endswith(b'{"user":1}')
    headers = dict(letter.headers)
    assert headers["__streams.errors.offset"] == b"0"
    assert b"1 is not of type" in headers["__streams.errors.message"]
    assert driver.output_topic("copy").read_all() == [Record("b", {"user": "bo", "amount": None, "note": None}, START)]


@pytest.mark.parametrize("key", ["string", *REGISTERED])
@pytest.mark.parametrize("window", [{"tumbling": {"size": "1m"}}, {"session": {"gap": "1m"}}])
def test_windows_are_written_with_their_keys_in_whatever_format(made: Made, key: str, window: dict[str, Any]) -> None:
    by = KEY if key == "protobuf" else "user"
    steps = [
        {"name": "by-user", "from": "orders", "keyBy": by},
        {"name": "times", "from": "by-user", "window": window, "aggregate": {"total": "sum(amount)"}, "store": "times"},
    ]
    sink = {"from": "times", "topic": "times", "key": {"format": key}, "value": OUT}
    driver = made(document([ORDERS], steps, [sink], **SPEC))
    driver.input_topic("orders").pipe("1", {"user": "ann", "amount": 2})
    (found,) = driver.output_topic("times").read_all()
    assert found.key.key == ({"user": "ann"} if key == "protobuf" else "ann")
    assert found.key.window.start == START
    assert found.value == {"total": 2}


def test_tables_of_jsonschema_are_joined_by_foreign_keys_and_global_ones_by_expressions(made: Made) -> None:
    def table(name: str, *required: str, properties: dict[str, Any], **more: bool) -> dict[str, object]:
        given = json_source(json_schema(*required, **properties), name=name, topic=name)
        return given | {"table": {"store": name} | more}

    users = table("users", properties={"plan": STRING, "of-a.b": STRING})
    plans = table("plans", "price", properties={"price": INTEGER})
    countries = table("countries", properties={"name": STRING}, **{"global": True})
    steps = [
        {
            "name": "billed",
            "from": "users",
            "join": {"table": "plans", "key": "plan", "select": {"price": "plans.price"}},
            "store": "billed",
        },
        {
            "name": "placed",
            "from": "orders",
            "join": {"table": "countries", "key": "note", "select": {"place": "countries.name"}},
        },
    ]
    sinks = [{"from": name, "topic": name, "value": OUT} for name in ("billed", "placed")]
    driver = made(document([ORDERS, users, plans, countries], steps, sinks, **SPEC), partitions={"users": 2})
    driver.input_topic("users").pipe("ann", {"plan": "pro", "of-a.b": "x"})
    driver.input_topic("plans").pipe("pro", {"price": 5})
    newer = json_schema(name=STRING, size=INTEGER)
    driver.input_topic("countries", value_schema=newer).pipe("fr", {"name": "France", "size": 7})
    driver.input_topic("orders").pipe("k", {"user": "ann", "note": "fr"})
    assert driver.output_topic("billed").read() == Record("ann", {"plan": "pro", "of-a.b": "x", "price": 5}, START)
    placed = {"user": "ann", "amount": None, "note": "fr", "place": "France"}
    assert driver.output_topic("placed").read() == Record("k", placed, START)
    assert driver.store("countries").get("fr") == {"name": "France"}
