"""The test driver with aggregates by reduce: written, kept in stores, and told where they fail."""

from __future__ import annotations

import pytest
from topology_drivers import ORDERS, Made, document

from streams_runtime.errors import InvalidApplicationException, StreamsException
from streams_runtime.testing import START, Record

pytestmark = [pytest.mark.integration, pytest.mark.usefixtures("spark")]

BALANCE = {
    "name": "balance",
    "from": "orders",
    "aggregate": {"left": "reduce(10, (left, row) -> left - cast(row.amount as int))", "n": "count(*)"},
    "store": "balance",
}


def test_orders_are_taken_off_what_every_key_begins_with(made: Made) -> None:
    driver = made(document([ORDERS], [BALANCE], {"balance": "balance"}))
    orders, balance = driver.input_topic("orders"), driver.output_topic("balance")
    orders.pipe("ann", {"amount": 3})
    orders.pipe_all([("ann", {"amount": 2}), ("bob", {"amount": 1}), ("ann", {"amount": 1})])
    assert balance.read() == Record("ann", {"left": 7, "n": 1}, START)
    assert balance.read_latest_by_key() == {"ann": {"left": 4, "n": 3}, "bob": {"left": 9, "n": 1}}
    assert driver.store("balance").get("ann") == {"left": 4, "n": 3}


def test_a_value_that_the_lambda_fails_on_is_told_and_the_driver_goes_on_without_it(made: Made) -> None:
    driver = made(document([ORDERS], [BALANCE], {"balance": "balance"}))
    orders, balance = driver.input_topic("orders"), driver.output_topic("balance")
    with pytest.raises(StreamsException, match=r"aggregate\.left: the expression failed in Spark: \[CAST_OVERFLOW\]"):
        orders.pipe("ann", {"amount": 2**40})
    orders.pipe("ann", {"amount": 1})
    assert balance.read_all() == [Record("ann", {"left": 9, "n": 1}, START)]


def test_users_functions_are_refused_within_a_lambda(made: Made) -> None:
    functions = {"halved": {"python": "user_functions:halved", "returns": "INT"}}
    given = document([ORDERS], [{**BALANCE, "aggregate": {"left": "reduce(0, (n, row) -> halved(n))"}}], {})
    given["spec"]["topology"]["functions"] = functions
    with pytest.raises(InvalidApplicationException, match="halved is a function of yours, and Spark calls none within"):
        made(given)
