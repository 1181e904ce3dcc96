"""Tables with a history: in the test driver, and in a whole client whose stores are lost and restored."""

from __future__ import annotations

import json
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from clients import client, make_topics, read, run_until_done, send, until_done
from topology_drivers import ORDERS, USERS, Made, document

from streams_runtime import (
    InvalidQueryException,
    StoreQueryParameters,
    StreamsBuilder,
    StreamsQueryClient,
    TopicPartition,
    VersionedRecord,
)
from streams_runtime.builder import json as json_format
from streams_runtime.errors import StoreTypeMismatch
from streams_runtime.testing import START

pytestmark = [pytest.mark.integration, pytest.mark.usefixtures("spark")]

HOUR, MINUTE = timedelta(hours=1), timedelta(minutes=1)
JOINED = {"name": "joined", "from": "orders", "join": {"table": "users", "type": "left", "select": {"t": "users.tier"}}}
VERSIONED = {**USERS, "table": {"store": "users", "historyRetention": "1h"}}


def test_a_driver_joins_and_answers_with_what_was_valid(made: Made) -> None:
    driver = made(document([ORDERS, VERSIONED], [JOINED], {"out": "joined"}))
    users, orders, out = driver.input_topic("users"), driver.input_topic("orders"), driver.output_topic("out")
    users.pipe("al", {"tier": "tin"}, timestamp=START)
    users.pipe("al", {"tier": "gold"}, timestamp=START + 10 * MINUTE)
    for late in (0, 5, 10, -1):
        orders.pipe("al", {"user": "al"}, timestamp=START + late * MINUTE)
    users.pipe("al", {"tier": "iron"}, timestamp=START + 4 * MINUTE)
    orders.pipe("al", {"user": "al"}, timestamp=START + 5 * MINUTE)
    assert [each.value["t"] for each in out.read_all()] == ["tin", "tin", "gold", None, "iron"]
    store = driver.store("users")
    assert store.get("al") == {"tier": "gold"}
    assert store.get("al", as_of=START + 4 * MINUTE) == VersionedRecord(
        {"tier": "iron"}, START + 4 * MINUTE, START + 10 * MINUTE
    )
    assert store.get("al", as_of=START + HOUR) == VersionedRecord({"tier": "gold"}, START + 10 * MINUTE, None)
    assert store.get("al", as_of=START - MINUTE) is None
    users.pipe("al", {"tier": "lost"}, timestamp=START - HOUR)
    assert driver.counters.records_dropped == 1


def test_a_builder_declares_a_history(made: Made) -> None:
    builder = StreamsBuilder()
    orders = builder.stream("orders", value=json_format("amount BIGINT"), key="string")
    last = orders.to_table("last", history_retention=HOUR)
    builder.stream("asked", value=json_format("n BIGINT"), key="string").join(last, {"amount": "last.amount"}).to("out")
    driver = made(builder)
    for amount in (1, 2):
        driver.input_topic("orders").pipe("al", {"amount": amount}, timestamp=START + amount * MINUTE)
    driver.input_topic("asked").pipe("al", {"n": 0}, timestamp=START + MINUTE)
    assert driver.output_topic("out").read().value == {"n": 0, "amount": 1}


def test_only_a_table_with_a_history_is_asked_for_a_time(made: Made) -> None:
    driver = made(document([ORDERS, USERS], [JOINED], {"out": "joined"}))
    with pytest.raises(StoreTypeMismatch, match="historyRetention"):
        driver.store("users").get("al", as_of=START)


def topology(prefix: str) -> str:
    key, value = "{format: string}", '{format: json, schema: "price BIGINT"}'
    return f"""
sources:
  - {{name: prices, topic: {prefix}-prices, key: {key}, value: {value}, table: {{store: prices, historyRetention: 1h}}}}
  - {{name: offers, topic: {prefix}-offers, key: {key}, value: {value}}}
  - {{name: orders, topic: {prefix}-orders, key: {key}, value: {{format: json, schema: "n BIGINT"}}}}
steps:
  - {{name: told, from: offers, toTable: {{store: offers, historyRetention: 1h}}}}
  - {{name: priced, from: orders, join: {{table: prices, type: left, select: {{price: prices.price}}}}}}
  - {{name: offered, from: priced, join: {{table: told, type: left, select: {{offer: told.price}}}}}}
sinks: [{{from: offered, topic: {prefix}-out}}]
"""


# ms, a whole second; of late, since a changelog keeps replaced rows for their history and a day by the broker's clock.
SINCE = (int(time.time()) - 3600) * 1000
MS = 60_000


def test_a_client_goes_on_with_its_history_after_its_stores_were_lost(
    broker: Any, namespace: str, tmp_path: Path
) -> None:
    bootstrap = broker.bootstrap_servers
    prices, offers, orders, out = (f"{namespace}-{name}" for name in ("prices", "offers", "orders", "out"))
    make_topics(bootstrap, **{prices: 2, offers: 2, orders: 2, out: 1})
    told = [("a", {"price": 1}), ("a", {"price": 2}), ("b", {"price": 7}), ("b", None), ("a", {"price": 3})]
    times = [SINCE + minute * MS for minute in (0, 10, 0, 20, 5)]
    settings = {"processing": {"guarantee": "exactly_once_v2"}}
    for topic in (prices, offers):
        send(bootstrap, topic, told, times=times)
    with client(bootstrap, namespace, topology(namespace), tmp_path / "first", **settings) as made:
        run_until_done(made, [prices, offers, orders])
    asked = [("a", minute) for minute in (0, 5, 12)] + [("b", minute) for minute in (1, 30)]
    send(bootstrap, orders, [(key, {"n": 0}) for key, _ in asked], times=[SINCE + minute * MS for _, minute in asked])
    with client(bootstrap, namespace, topology(namespace), tmp_path / "second", **settings) as made:
        run_until_done(made, [prices, offers, orders])
        since, until = (datetime.fromtimestamp((SINCE + minute * MS) / 1000, UTC) for minute in (5, 10))
        for store in ("prices", "offers"):
            handle = made.store(StoreQueryParameters(store))
            assert handle.get("a", as_of=since + MINUTE) == VersionedRecord({"price": 3}, since, until)  # type: ignore[call-arg]
        with StreamsQueryClient(made.url) as queries:
            assert queries.get("prices", "a", as_of=since) == VersionedRecord({"price": 3}, since, until)
            assert queries.get("offers", "b", as_of=until) == VersionedRecord(
                {"price": 7}, since - 5 * MINUTE, since + 15 * MINUTE
            )
            assert queries.get("offers", "b", as_of=since + HOUR) is None
            with pytest.raises(InvalidQueryException, match="position"):
                queries.with_position_bound({TopicPartition("others", 0): 1}).get("prices", "a", as_of=since)
        until_done(made, [prices, offers, orders])
    found = [(each.key().decode(), json.loads(each.value())) for each in read(bootstrap, out, committed=True)]
    prices_of = {key: [(value["price"], value["offer"]) for who, value in found if who == key] for key in "ab"}
    assert prices_of == {"a": [(1, 1), (3, 3), (2, 2)], "b": [(7, 7), (None, None)]}
