"""Joins of whole clients: a stream beside a table, looked up through another key, and two tables; restored as well."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from clients import client, last_values, make_topics, read, run_until_done, send, until_done

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
