"""The test driver with topics of avro: written, read, evolved and kept in stores."""

from __future__ import annotations

import pytest
from avro_kit import SPEC, TIME, avro_source, field, record
from topology_drivers import Made, document

from streams_runtime.errors import DeserializationException
from streams_runtime.state.serdes import SerdeException
from streams_runtime.testing import START, Record

pytestmark = [pytest.mark.integration, pytest.mark.usefixtures("spark")]

ORDERS = avro_source(name="orders", topic="orders")
BY_USER = {"name": "by-user", "from": "orders", "keyBy": "user"}
TOTALS = {"name": "totals", "from": "by-user", "aggregate": {"total": "sum(amount)"}, "store": "totals"}


def test_orders_of_avro_are_added_up_into_totals_of_avro(made: Made) -> None:
    sink = {"from": "totals", "topic": "totals", "key": {"format": "avro"}, "value": {"format": "avro"}}
    driver = made(document([ORDERS], [BY_USER, TOTALS], [sink], **SPEC))
    orders, totals = driver.input_topic("orders"), driver.output_topic("totals")
    orders.pipe("1", {"user": "ann", "amount": 2, "note": ""})
    orders.pipe("2", {"user": "ann", "amount": 3})
    assert totals.read_all() == [Record("ann", {"total": 2}, START), Record("ann", {"total": 5}, START)]
    assert driver.store("totals").get("ann") == {"total": 5}
    assert set(driver.schemas.subjects) == {"orders-value", "totals-key", "totals-value"}


def test_producers_of_another_schema_are_read_by_the_sources(made: Made) -> None:
    driver = made(document([ORDERS], [], {"copy": "orders"}, **SPEC))
    older = record("Order", field("user", "string"), field("amount", "int"))
    other = record("Order", field("user", "string"), field("amount", "string"))
    driver.input_topic("orders", value_schema=older).pipe("a", {"user": "ann", "amount": 1})
    assert driver.output_topic("copy").read() == Record("a", {"user": "ann", "amount": 1, "note": "none"}, START)
    with pytest.raises(DeserializationException, match=r"orders-0@1.*the field amount was written as string"):
        driver.input_topic("orders", value_schema=other).pipe("a", {"user": "ann", "amount": "1"})


def test_a_value_that_the_schema_does_not_hold_is_the_tests_mistake(made: Made) -> None:
    driver = made(document([ORDERS], [], {"copy": "orders"}, **SPEC))
    with pytest.raises(SerdeException, match="amount"):
        driver.input_topic("orders").pipe("a", {"user": "ann", "amount": "much"})


def test_a_table_of_avro_is_queried_as_json_has_it(made: Made) -> None:
    fields = field("tier", "string"), field("since", TIME), field("raw", ["null", "bytes"], default=None)
    users = avro_source(record("User", *fields), name="users", topic="users", table={"store": "users"})
    driver = made(document([users], [], [{"from": "users", "topic": "all", "value": {"format": "avro"}}], **SPEC))
    driver.input_topic("users").pipe("ann", {"tier": "gold", "since": START, "raw": b"\x01"})
    shown = {"tier": "gold", "since": "2024-01-01T00:00:00.000000Z", "raw": "AQ=="}
    assert driver.store("users").get("ann") == shown
    assert driver.output_topic("all").read() == Record("ann", shown, START)
