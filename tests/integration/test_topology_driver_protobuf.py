"""The test driver with topics of protobuf: written, read, evolved and kept in stores."""

from __future__ import annotations

import pytest
from avro_kit import SPEC
from proto_kit import HEAD, proto, proto_source
from topology_drivers import Made, document

from streams_runtime.builder import StreamsBuilder, protobuf
from streams_runtime.errors import DeserializationException
from streams_runtime.state.serdes import SerdeException
from streams_runtime.testing import START, Record

pytestmark = [pytest.mark.integration, pytest.mark.usefixtures("spark")]

ORDERS = proto_source(name="orders", topic="orders")
KEY = "named_struct('user', user)"


def test_orders_of_protobuf_are_added_up_into_totals_of_protobuf(made: Made) -> None:
    steps = [
        {"name": "by-user", "from": "orders", "keyBy": KEY},
        {"name": "totals", "from": "by-user", "aggregate": {"total": "sum(amount)"}, "store": "totals"},
    ]
    sink = {"from": "totals", "topic": "totals", "key": {"format": "protobuf"}, "value": {"format": "protobuf"}}
    driver = made(document([ORDERS], steps, [sink], **SPEC))
    orders, totals = driver.input_topic("orders"), driver.output_topic("totals")
    orders.pipe("1", {"user": "ann", "amount": 2, "note": ""})
    orders.pipe("2", {"user": "ann", "amount": 3})
    ann = {"user": "ann"}
    assert totals.read_all() == [Record(ann, {"total": 2}, START), Record(ann, {"total": 5}, START)]
    assert set(driver.schemas.subjects) == {"orders-value", "totals-key", "totals-value"}


def test_producers_of_another_schema_are_read_by_the_sources(made: Made) -> None:
    driver = made(document([ORDERS], [], {"copy": "orders"}, **SPEC))
    older = proto("string user = 1", "int32 amount = 2", "string gone = 8")
    other = proto("string user = 1", "string amount = 2")
    driver.input_topic("orders", value_schema=older).pipe("a", {"user": "ann", "amount": 1, "gone": "?"})
    assert driver.output_topic("copy").read() == Record("a", {"user": "ann", "amount": 1, "note": ""}, START)
    with pytest.raises(DeserializationException, match=r"orders-0@1.*the field amount was written as string"):
        driver.input_topic("orders", value_schema=other).pipe("a", {"user": "ann", "amount": "1"})


@pytest.mark.parametrize(
    ("value", "told"),
    [
        ({"user": "ann", "amount": "much"}, "amount is 'much'"),
        ({"usr": "ann"}, "no field usr"),
        ({"user": None}, "null"),
    ],
)
def test_a_value_that_the_schema_does_not_hold_is_the_tests_mistake(
    made: Made, value: dict[str, object], told: str
) -> None:
    driver = made(document([ORDERS], [], {"copy": "orders"}, **SPEC))
    with pytest.raises(SerdeException, match=told):
        driver.input_topic("orders").pipe("a", value)


def test_a_table_of_protobuf_is_queried_as_json_has_it(made: Made) -> None:
    text = f"""{HEAD} import "google/protobuf/timestamp.proto";
        message Other {{ int32 x = 1; }}
        message User {{ string tier = 1; google.protobuf.Timestamp since = 2; bytes raw = 3; uint64 big = 4; }}"""
    users = proto_source(text, "User", name="users", topic="users", table={"store": "users"})
    driver = made(document([users], [], [{"from": "users", "topic": "all", "value": {"format": "json"}}], **SPEC))
    driver.input_topic("users").pipe("ann", {"tier": "gold", "since": START, "raw": b"\x01", "big": 2**64 - 1})
    shown = {"tier": "gold", "since": "2024-01-01T00:00:00.000000Z", "raw": "AQ==", "big": str(2**64 - 1)}
    assert driver.store("users").get("ann") == shown


def test_a_builder_takes_the_format(made: Made) -> None:
    builder = StreamsBuilder()
    stream = builder.stream("orders", key="string", value=protobuf(proto("string user = 1")))
    stream.to("out", value=protobuf(proto("string user = 3", name="Copy"), "Copy"))
    built = document([], [], [], **SPEC)
    built["spec"]["topology"] = builder.document
    driver = made(built)
    driver.input_topic("orders").pipe("a", {"user": "ann"})
    assert driver.output_topic("out").read() == Record("a", {"user": "ann"}, START)


def test_tables_of_protobuf_are_joined_by_foreign_keys_and_global_ones_by_expressions(made: Made) -> None:
    def table(name: str, *fields: str, **more: bool) -> dict[str, object]:
        given = proto_source(proto(*fields, name="Row"), name=name, topic=name)
        return given | {"table": {"store": name} | more}

    users, plans = table("users", "string plan = 1", "string country = 2"), table("plans", "int64 price = 1")
    countries = table("countries", "string name = 3", **{"global": True})
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
    sinks = [{"from": name, "topic": name, "value": {"format": "protobuf"}} for name in ("billed", "placed")]
    driver = made(document([ORDERS, users, plans, countries], steps, sinks, **SPEC), partitions={"users": 2})
    driver.input_topic("users").pipe("ann", {"plan": "pro", "country": "fr"})
    driver.input_topic("plans").pipe("pro", {"price": 5})
    newer = proto("string name = 3", "int32 size = 1", name="Row")
    driver.input_topic("countries", value_schema=newer).pipe("fr", {"name": "France", "size": 7})
    driver.input_topic("orders").pipe("k", {"user": "ann", "note": "fr"})
    assert driver.output_topic("billed").read() == Record("ann", {"plan": "pro", "country": "fr", "price": 5}, START)
    placed = {"user": "ann", "amount": None, "note": "fr", "place": "France"}
    assert driver.output_topic("placed").read() == Record("k", placed, START)
    assert driver.store("countries").get("fr") == {"name": "France"}
