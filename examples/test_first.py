"""How to test a topology: the one of first.yaml, without Kafka."""

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from streams_runtime.errors import DeserializationException
from streams_runtime.testing import START, Record, TopologyTestDriver, spark_session

FIRST = Path(__file__).with_name("first.yaml")


@pytest.fixture(scope="session", autouse=True)
def spark() -> Iterator[None]:
    """Spark once for the whole run (in conftest.py, where there are several files): it takes seconds to start."""
    with spark_session():
        yield


@pytest.fixture
def driver() -> Iterator[TopologyTestDriver]:
    with TopologyTestDriver(FIRST) as driver:
        yield driver


def test_orders_of_a_user_are_added_up(driver: TopologyTestDriver) -> None:
    orders, totals = driver.input_topic("orders"), driver.output_topic("totals")
    orders.pipe("ada", {"amount": 12.5})
    orders.advance(timedelta(seconds=1))
    orders.pipe_all([("bob", {"amount": 1}), ("ada", {"amount": 7.5})])
    assert totals.read() == Record("ada", {"total": 12.5, "n": 1}, START)
    assert totals.read_latest_by_key() == {"ada": {"total": 20.0, "n": 2}, "bob": {"total": 1.0, "n": 1}}
    assert totals.empty
    assert driver.store("totals").get("ada") == {"total": 20.0, "n": 2}


def test_an_order_that_is_no_json_stops_the_application(driver: TopologyTestDriver) -> None:
    with pytest.raises(DeserializationException, match="orders-0@0"):
        driver.input_topic("orders").pipe("ada", b"12,50")
    assert driver.output_topic("totals").empty
