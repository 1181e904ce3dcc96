"""A join by a foreign key of a whole client: topics of other partition counts, restored stores, exactly once."""

from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import Any

import pytest
from clients import client, last_values, make_topics, run_until_done, send, until_done

from streams_runtime.client import StreamsClient
from streams_runtime.kafka.admin.kafka_admin import Admin
from streams_runtime.query.stores.key_value_handle import StoreQueryParameters

pytestmark = pytest.mark.integration

KEYS = 12
JOINS = ("enriched", "priced")  # the second one of what the first one gives


def topology(prefix: str) -> str:
    return f"""
sources:
  - {{name: orders, topic: {prefix}-orders, key: {{format: string}}, value: {{format: json, schema: "user STRING"}},
      table: {{store: orders}}}}
  - {{name: users, topic: {prefix}-users, key: {{format: string}}, value: {{format: json, schema: "tier STRING"}},
      table: {{store: users}}}}
  - {{name: plans, topic: {prefix}-plans, key: {{format: string}}, value: {{format: json, schema: "price INT"}},
      table: {{store: plans}}}}
steps:
  - name: known
    from: users
    where: tier != 'none'
  - name: enriched
    from: orders
    join: {{table: known, type: left, "key": user, select: {{tier: known.tier}}}}
    store: enriched
  - name: priced
    from: enriched
    join: {{table: plans, type: left, "key": tier, select: {{price: plans.price}}}}
    store: priced
  - {{name: shouted, from: enriched, select: {{tier: upper(tier)}}}}
sinks:
  - {{from: enriched, topic: {prefix}-enriched}}
  - {{from: shouted, topic: {prefix}-shouted}}
  - {{from: priced, topic: {prefix}-priced}}
"""


def all_done(made: StreamsClient, prefix: str) -> None:
    """Sources, what goes to the users' tasks, what comes back, and the same of the plans."""
    between = [
        f"{prefix}-{step}-subscription-{kind}-topic" for step, kind in product(JOINS, ("registration", "response"))
    ]
    for topics in ([f"{prefix}-orders", f"{prefix}-users", f"{prefix}-plans"], *([topic] for topic in between)):
        until_done(made, topics)


def rows(made: StreamsClient) -> dict[Any, Any]:
    return {each.key: each.value["tier"] for each in made.store(StoreQueryParameters("enriched", "key-value")).all()}


@pytest.mark.usefixtures("spark")
@pytest.mark.parametrize("guarantee", ["at_least_once", "exactly_once_v2"])
def test_orders_have_what_their_user_is_now_also_after_all_stores_were_lost(
    broker: Any, namespace: str, tmp_path: Path, guarantee: str
) -> None:
    bootstrap, orders, users = broker.bootstrap_servers, f"{namespace}-orders", f"{namespace}-users"
    outputs = {f"{namespace}-{step}": 1 for step in (*JOINS, "shouted")}
    make_topics(bootstrap, **{orders: 3, users: 2, f"{namespace}-plans": 1, **outputs})
    names = [f"u{number % 4}" for number in range(KEYS)]
    processing = {"processing": {"guarantee": guarantee}}
    send(bootstrap, users, [("u0", {"tier": "tin"}), ("u1", {"tier": "gold"}), ("u2", {"tier": "none"})])
    send(bootstrap, f"{namespace}-plans", [("tin", {"price": 1}), ("gold", {"price": 2}), ("zinc", {"price": 3})])
    with client(bootstrap, namespace, topology(namespace), tmp_path / "first", **processing) as made:
        run_until_done(made, [users])
        send(bootstrap, orders, [(f"o{number}", {"user": name}) for number, name in enumerate(names)])
        all_done(made, namespace)
        tiers = {"u0": "tin", "u1": "gold", "u2": None, "u3": None}
        assert rows(made) == {f"o{number}": tiers[name] for number, name in enumerate(names)}
    with client(bootstrap, namespace, topology(namespace), tmp_path / "second", **processing) as made:
        run_until_done(made, [orders])
        send(
            bootstrap,
            users,
            [("u0", None), ("u1", {"tier": "none"}), ("u2", {"tier": "new"}), ("u3", {"tier": "zinc"})],
        )
        send(bootstrap, orders, [("o0", {"user": "u3"}), ("o1", {"user": None}), ("o2", None)])
        all_done(made, namespace)
        tiers = {"u0": None, "u1": None, "u2": "new", "u3": "zinc"}
        found = {f"o{number}": tiers[name] for number, name in enumerate(names)} | {"o0": "zinc", "o1": None}
        del found["o2"]
        assert rows(made) == found
        # A row that is gone is a tombstone, and one without a user a row like others.
        named = {f"o{number}": name for number, name in enumerate(names)} | {"o0": "u3", "o1": None}
        enriched = {key: {"user": named[key], "tier": tier} for key, tier in found.items()}
        assert last_values(bootstrap, f"{namespace}-enriched") == enriched | {"o2": None}
        prices = {"zinc": 3}
        priced = {key: row | {"price": prices.get(row["tier"])} for key, row in enriched.items()}
        assert last_values(bootstrap, f"{namespace}-priced") == priced | {"o2": None}
        shouted = {key: {"tier": tier and tier.upper()} for key, tier in found.items()}
        assert last_values(bootstrap, f"{namespace}-shouted") == shouted | {"o2": None}
        admin = Admin({"bootstrap.servers": bootstrap})
        try:
            topics = admin.describe_topics(
                [f"{namespace}-enriched-subscription-{kind}-topic" for kind in ("registration", "response")]
            )
        finally:
            admin.close()
        assert [topic.partitions for topic in topics.values()] == [2, 3]
