"""Joins of whole clients: a stream beside a table, looked up through another key, and two tables; restored as well."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from clients import client, last_values, make_topics, read, run_until_done, send, until_done
from confluent_kafka import Producer

pytestmark = pytest.mark.integration


def enriched(prefix: str) -> str:
    value = '{format: json, schema: "user STRING, amount BIGINT"}'
    return f"""
sources:
  - {{name: orders, topic: {prefix}-orders, key: {{format: string}}, value: {value}}}
  - {{name: users, topic: {prefix}-users, key: {{format: string}}, value: {{format: json, schema: "tier STRING"}},
      table: {{store: users}}}}
steps:
  - {{name: by-user, from: orders, keyBy: user}}
  - {{name: enriched, from: by-user, join: {{table: users, type: left, select: {{tier: users.tier}}}}}}
  - {{name: by-order, from: enriched, select: {{order: "cast(amount as string)", tier: tier, user: user}}}}
  - {{name: known, from: by-order, keyBy: order}}
sinks: [{{from: known, topic: {prefix}-enriched}}]
"""


@pytest.mark.usefixtures("spark")
def test_orders_are_enriched_by_the_user_that_they_name_also_after_the_table_was_lost(
    broker: Any, namespace: str, tmp_path: Path
) -> None:
    bootstrap, orders, users = broker.bootstrap_servers, f"{namespace}-orders", f"{namespace}-users"
    make_topics(bootstrap, **{orders: 3, users: 2, f"{namespace}-enriched": 1})
    send(bootstrap, users, [("ada", {"tier": "gold"}), ("bob", {"tier": "tin"})])
    inputs = [orders, users, f"{namespace}-by-user-repartition"]
    with client(bootstrap, namespace, enriched(namespace), tmp_path / "first") as made:
        run_until_done(made, [users])
        send(bootstrap, orders, [("o", {"user": "ada", "amount": 1}), ("o", {"user": "cid", "amount": 2})])
        send(bootstrap, orders, [("o", {"user": None, "amount": 3})])
        until_done(made, inputs[:1])
        until_done(made, inputs)
    with client(bootstrap, namespace, enriched(namespace), tmp_path / "second") as made:
        send(bootstrap, users, [("cid", {"tier": "new"})])
        run_until_done(made, [users])
        send(bootstrap, orders, [("o", {"user": "bob", "amount": 4}), ("o", {"user": "cid", "amount": 5})])
        until_done(made, inputs[:1])
        until_done(made, inputs)
    found = {order: value["tier"] for order, value in last_values(bootstrap, f"{namespace}-enriched").items()}
    assert found == {"1": "gold", "2": None, "3": None, "4": "tin", "5": "new"}


def beside(prefix: str) -> str:
    value = '{format: json, schema: "amount BIGINT"}'
    return f"""
sources:
  - {{name: orders, topic: {prefix}-orders, key: {{format: string}}, value: {value}}}
  - {{name: users, topic: {prefix}-users, key: {{format: string}}, value: {{format: json, schema: "tier BIGINT"}},
      table: {{store: users}}}}
steps:
  - {{name: joined, from: orders, join: {{table: users, type: left, select: {{tier: users.tier}}}}}}
sinks: [{{from: joined, topic: {prefix}-joined}}]
"""


@pytest.mark.usefixtures("spark")
@pytest.mark.parametrize(
    ("orders", "batch"), [(400, 150), (60_000, 30_000)], ids=["which the member would fetch", "which Spark reads"]
)
def test_of_two_backlogs_each_order_meets_the_user_of_its_time(
    orders: int, batch: int, broker: Any, namespace: str, tmp_path: Path
) -> None:
    bootstrap, users = broker.bootstrap_servers, orders // 8
    make_topics(bootstrap, **{f"{namespace}-{name}": 2 for name in ("orders", "users", "joined")})
    produced = Producer({"bootstrap.servers": bootstrap, "partitioner": "murmur2_random", "linger.ms": 20})

    def produce(topic: str, key: int, value: dict[str, int], time: int) -> None:
        text = json.dumps(value).encode()
        while True:
            try:
                produced.produce(f"{namespace}-{topic}", text, f"k{key}".encode(), timestamp=time)
            except BufferError:
                produced.poll(0.1)
            else:
                return

    # Users come four by four as orders do, and the first half of the orders' keys get another tier at the end.
    for number in range(orders):
        produce("orders", number // 8, {"amount": number}, 10_000 + number)
    for number in range(users):
        produce("users", number, {"tier": number}, 10_000 + 8 * number)
    for number in range(users // 2):
        produce("users", number, {"tier": -1}, 10_000 + orders + number)
    assert produced.flush(60) == 0
    processing = {"maxBatchRecords": batch}
    with client(bootstrap, namespace, beside(namespace), tmp_path, processing=processing) as made:
        run_until_done(made, [f"{namespace}-orders", f"{namespace}-users"])
    found = {value["amount"]: value["tier"] for value in map(_value, read(bootstrap, f"{namespace}-joined"))}
    assert len(found) == orders
    assert {amount: tier for amount, tier in found.items() if tier != amount // 8} == {}


@pytest.mark.usefixtures("spark")
@pytest.mark.parametrize("guarantee", ["at_least_once", "exactly_once_v2"])
def test_an_order_waits_for_its_user_who_comes_later(
    guarantee: str, broker: Any, namespace: str, tmp_path: Path
) -> None:
    bootstrap = broker.bootstrap_servers
    orders, users, others = (f"{namespace}-{name}" for name in ("orders", "users", "others"))
    make_topics(bootstrap, **dict.fromkeys((orders, users, others, f"{namespace}-joined", f"{namespace}-passed"), 1))
    topology = beside(namespace).replace(
        "steps:", f"  - {{name: others, topic: {others}, value: {{format: string}}}}\nsteps:"
    )
    topology = topology.replace("sinks: [", f"sinks: [{{from: others, topic: {namespace}-passed}}, ")
    processing = {"guarantee": guarantee, "maxTaskIdle": "1h"}
    with client(bootstrap, namespace, topology, tmp_path, processing=processing) as made:
        run_until_done(made, [users])
        send(bootstrap, orders, [("ada", {"amount": 1})], times=[20_000])
        send(bootstrap, others, [("o", {"n": 1})])
        until_done(made, [others])
        send(bootstrap, users, [("ada", {"tier": 7}), ("bob", {"tier": 8})], times=[10_000, 30_000])
        until_done(made, [orders])
        send(bootstrap, orders, [("bob", {"amount": 2})], times=[30_000])
        until_done(made, [users, orders])
    values = map(_value, read(bootstrap, f"{namespace}-joined", committed=True))
    assert list(values) == [{"amount": 1, "tier": 7}, {"amount": 2, "tier": 8}]


@pytest.mark.usefixtures("spark")
def test_an_order_whose_user_does_not_come_goes_on_without(broker: Any, namespace: str, tmp_path: Path) -> None:
    bootstrap, orders = broker.bootstrap_servers, f"{namespace}-orders"
    make_topics(bootstrap, **{orders: 2, f"{namespace}-users": 2, f"{namespace}-joined": 1})
    processing = {"maxTaskIdle": "500ms"}
    with client(bootstrap, namespace, beside(namespace), tmp_path, processing=processing) as made:
        send(bootstrap, orders, [("ada", {"amount": 1}), ("bob", {"amount": 2})])
        run_until_done(made, [orders])
        send(bootstrap, orders, [("ada", {"amount": 3})])
        until_done(made, [orders])
    values = map(_value, read(bootstrap, f"{namespace}-joined"))
    assert sorted((each["amount"], each["tier"]) for each in values) == [(1, None), (2, None), (3, None)]


def _value(message: Any) -> dict[str, Any]:
    value: dict[str, Any] = json.loads(message.value())
    return value


def tables(prefix: str) -> str:
    return f"""
sources:
  - {{name: users, topic: {prefix}-users, key: {{format: string}}, value: {{format: json, schema: "tier STRING"}},
      table: {{store: users}}}}
  - {{name: limits, topic: {prefix}-limits, key: {{format: string}}, value: {{format: json, schema: "most BIGINT"}},
      table: {{store: limits}}}}
steps:
  - {{name: known, from: users, where: "tier != 'none'"}}
  - {{name: both, from: known, join: {{table: limits, type: outer, select: {{most: limits.most}}}}}}
sinks: [{{from: both, topic: {prefix}-both}}]
"""


@pytest.mark.usefixtures("spark")
def test_two_tables_are_one_that_changes_with_either_also_after_their_stores_were_lost(
    broker: Any, namespace: str, tmp_path: Path
) -> None:
    bootstrap, users, limits = broker.bootstrap_servers, f"{namespace}-users", f"{namespace}-limits"
    make_topics(bootstrap, **{users: 2, limits: 2, f"{namespace}-both": 1})
    send(bootstrap, users, [("ada", {"tier": "gold"}), ("bob", {"tier": "none"}), ("cid", {"tier": "tin"})])
    with client(bootstrap, namespace, tables(namespace), tmp_path / "first") as made:
        run_until_done(made, [users])
        send(bootstrap, limits, [("ada", {"most": 1}), ("bob", {"most": 2}), ("dan", {"most": 4})])
        until_done(made, [limits])
    with client(bootstrap, namespace, tables(namespace), tmp_path / "second") as made:
        run_until_done(made, [users, limits])
        send(bootstrap, users, [("ada", {"tier": "none"}), ("cid", {"tier": "none"}), ("dan", {"tier": "new"})])
        until_done(made, [users])
        send(bootstrap, limits, [("bob", None)])
        until_done(made, [limits])
    written = [
        (message.key().decode(), json.loads(message.value()) if message.value() else None)
        for message in read(bootstrap, f"{namespace}-both")
    ]
    of_keys = {key: [value for each, value in written if each == key] for key in ("ada", "bob", "cid", "dan")}
    assert of_keys == {
        "ada": [{"tier": "gold", "most": None}, {"tier": "gold", "most": 1}, {"tier": None, "most": 1}],
        "bob": [{"tier": None, "most": 2}, None],
        "cid": [{"tier": "tin", "most": None}, None],
        "dan": [{"tier": None, "most": 4}, {"tier": "new", "most": 4}],
    }
