"""A table grouped by another key of a whole client: restored stores, rows that leave, both guarantees."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from clients import client, last_values, make_topics, run_until_done, send, until_done

from streams_runtime.client import StreamsClient
from streams_runtime.kafka.admin.kafka_admin import Admin
from streams_runtime.query.stores.key_value_handle import StoreQueryParameters

pytestmark = pytest.mark.integration

USERS = 30


def topology(prefix: str) -> str:
    return f"""
sources:
  - {{name: users, topic: {prefix}-users, key: {{format: string}}, table: {{store: users}},
      value: {{format: json, schema: "tier STRING, n INT"}}}}
steps:
  - {{name: known, from: users, where: tier != 'none'}}
  - name: tiers
    from: known
    groupBy: tier
    aggregate: {{users: count(*), total: sum(n), mean: avg(n)}}
    store: tiers
  - {{name: sizes, from: tiers, groupBy: users, aggregate: {{tiers: count(*)}}, store: sizes}}
sinks:
  - {{from: tiers, topic: {prefix}-tiers}}
"""


def rows(made: StreamsClient, store: str) -> dict[Any, Any]:
    return {each.key: each.value for each in made.store(StoreQueryParameters(store, "key-value")).all()}


def all_done(made: StreamsClient, prefix: str) -> None:
    for topic in (f"{prefix}-users", f"{prefix}-tiers-repartition", f"{prefix}-sizes-repartition"):
        until_done(made, [topic])


def groups(users: Mapping[str, Mapping[str, Any]], *gone: str) -> dict[str, dict[str, Any]]:
    """What the users come to; `gone`: groups of which none is left."""
    found = {name: {"users": 0, "total": None, "mean": None} for name in gone}
    for tier in sorted({each["tier"] for each in users.values()} - {"none", None}):
        numbers = [each["n"] for each in users.values() if each["tier"] == tier]
        found[tier] = {"users": len(numbers), "total": sum(numbers), "mean": sum(numbers) / len(numbers)}
    return found


def sizes(tiers: Mapping[str, Mapping[str, Any]]) -> dict[int, int]:
    found: dict[int, int] = {}
    for each in tiers.values():
        found[each["users"]] = found.get(each["users"], 0) + 1
    return found


@pytest.mark.usefixtures("spark")
@pytest.mark.parametrize("guarantee", ["at_least_once", "exactly_once_v2"])
def test_groups_are_what_their_rows_are_now_also_after_all_stores_were_lost(
    broker: Any, namespace: str, tmp_path: Path, guarantee: str
) -> None:
    bootstrap, topic = broker.bootstrap_servers, f"{namespace}-users"
    make_topics(bootstrap, **{topic: 3, f"{namespace}-tiers": 1})
    processing = {"processing": {"guarantee": guarantee}}
    tiers = ("tin", "gold", "zinc", "none")
    users: dict[str, Any] = {f"u{number}": {"tier": tiers[number % 4], "n": number} for number in range(USERS)}
    with client(bootstrap, namespace, topology(namespace), tmp_path / "first", **processing) as made:
        send(bootstrap, topic, [*users.items()])
        run_until_done(made, [topic])
        all_done(made, namespace)
        assert rows(made, "tiers") == groups(users)
    with client(bootstrap, namespace, topology(namespace), tmp_path / "second", **processing) as made:
        run_until_done(made, [topic])
        moved: dict[str, Any] = {f"u{number}": {"tier": "gold", "n": 100 + number} for number in range(0, USERS, 4)}
        moved |= {"u1": None, "u2": {"tier": None, "n": 1}, "u3": {"tier": "new", "n": 2}}
        # Each twice in a batch: the first time in a group that nothing is left in.
        send(bootstrap, topic, [*((name, {"tier": "never", "n": 7}) for name in moved), *moved.items()])
        all_done(made, namespace)
        users |= moved
        expected = groups({name: row for name, row in users.items() if row is not None}, "tin", "never")
        assert rows(made, "tiers") == expected
        assert {key: row["tiers"] for key, row in rows(made, "sizes").items() if row["tiers"]} == sizes(expected)
        assert last_values(bootstrap, f"{namespace}-tiers") == expected
        admin = Admin({"bootstrap.servers": bootstrap})
        try:
            (found,) = admin.describe_topics([f"{namespace}-tiers-repartition"]).values()
        finally:
            admin.close()
        assert found.partitions == 3
