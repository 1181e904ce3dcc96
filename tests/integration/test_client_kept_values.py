"""Sketches and lists of whole clients: queried as values, and the same after their stores were lost."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from clients import client, last_values, make_topics, run_until_done, send, until_done

from streams_runtime.query.stores.key_value_handle import StoreQueryParameters

pytestmark = [pytest.mark.integration, pytest.mark.usefixtures("spark")]


def purchases(name: str) -> str:
    schema = 'format: json, schema: "user STRING, item STRING, amount BIGINT"'
    return f"""
sources: [{{name: orders, topic: {name}-orders, key: {{format: string}}, value: {{{schema}}}}}]
steps:
  - name: by-user
    from: orders
    keyBy: user
  - name: habits
    from: by-user
    aggregate:
      items: approx_count_distinct(item)
      high: approx_percentile(amount, 0.9)
      latest: collect_list(item, 2)
      kinds: collect_set(item, 2)
      dearest: top(item, amount, 2)
    store: habits
sinks: [{{from: habits, topic: {name}-habits}}]
"""


def ordered(item: str, amount: int) -> tuple[str, Any]:
    return "order", {"user": "ada", "item": item, "amount": amount}


def shown(made: Any) -> Any:
    with made.store(StoreQueryParameters("habits")).all() as entries:
        return dict(entries)


@pytest.mark.parametrize("guarantee", ["at_least_once", "exactly_once_v2"])
def test_what_is_kept_is_queried_as_values_and_goes_on_from_its_changelog(
    broker: Any, namespace: str, tmp_path: Path, guarantee: str
) -> None:
    settings = {"processing": {"guarantee": guarantee}}
    bootstrap, orders = broker.bootstrap_servers, f"{namespace}-orders"
    again = f"{namespace}-by-user-repartition"
    make_topics(bootstrap, **{orders: 1, f"{namespace}-habits": 1})
    send(bootstrap, orders, [ordered("pen", 10), ordered("ink", 100), ordered("ink", 20)])
    first = {
        "items": 2,
        "high": pytest.approx(100, rel=0.01),
        "latest": ["ink", "ink"],
        "kinds": ["pen", "ink"],
        "dearest": ["ink", "ink"],
    }
    with client(bootstrap, namespace, purchases(namespace), tmp_path / "first", **settings) as made:
        run_until_done(made, [orders])
        until_done(made, [again])
        assert shown(made) == {"ada": first}
    with client(bootstrap, namespace, purchases(namespace), tmp_path / "second", **settings) as made:
        run_until_done(made, [orders])
        until_done(made, [again])
        assert shown(made) == {"ada": first}, "restored from the changelog"
        send(bootstrap, orders, [ordered("pen", 1000), ordered("cap", 1000)])
        until_done(made, [orders])
        until_done(made, [again])
        then = {"items": 3, "high": pytest.approx(1000, rel=0.01), "latest": ["pen", "cap"], "kinds": ["pen", "cap"]}
        then["dearest"] = ["pen", "cap"]
        assert shown(made) == last_values(bootstrap, f"{namespace}-habits") == {"ada": then}
