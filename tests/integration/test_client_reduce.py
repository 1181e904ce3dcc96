"""reduce in a whole client: queried, told one by one, restored, and stopped by a value that its lambda fails on."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from clients import client, last_values, make_topics, read, run_until_done, send
from waiting import DEADLINE, eventually

from streams_runtime.query.stores.key_value_handle import StoreQueryParameters
from streams_runtime.states import ClientState

pytestmark = [pytest.mark.integration, pytest.mark.usefixtures("spark")]


def trails(name: str) -> str:
    trail = "reduce('', (trail, row) -> concat(trail, ',', cast(row.a as int)))"
    return f"""
sources: [{{name: orders, topic: {name}-orders, key: {{format: string}}, value: {{format: json, schema: a STRING}}}}]
steps:
  - {{name: trails, from: orders, aggregate: {{trail: "{trail}", all: count(*)}}, store: trails}}
  - {{name: changes, from: trails, toStream: {{}}}}
sinks: [{{from: trails, topic: {name}-trails}}, {{from: changes, topic: {name}-changes}}]
"""


def orders_of(*values: str) -> list[tuple[str | None, Any]]:
    return [("k", {"a": value}) for value in values]


def test_a_lambda_goes_on_from_what_is_stored_and_an_error_ends_the_client(
    broker: Any, namespace: str, tmp_path: Path
) -> None:
    bootstrap, orders = broker.bootstrap_servers, f"{namespace}-orders"
    make_topics(bootstrap, **{orders: 1, f"{namespace}-trails": 1, f"{namespace}-changes": 1})
    settings = {"processing": {"guarantee": "exactly_once_v2"}}
    send(bootstrap, orders, orders_of("1", "2"))
    with client(bootstrap, namespace, trails(namespace), tmp_path / "first", **settings) as made:
        run_until_done(made, [orders])
    # Its stores are lost, so what it had comes from the changelog.
    send(bootstrap, orders, orders_of("3"))
    with client(bootstrap, namespace, trails(namespace), tmp_path / "second", **settings) as made:
        run_until_done(made, [orders])
        seen = {"trail": ",1,2,3", "all": 3}
        assert made.store(StoreQueryParameters("trails")).get("k") == seen
        assert last_values(bootstrap, f"{namespace}-trails") == {"k": seen}
        changes = read(bootstrap, f"{namespace}-changes", committed=True)
        told = [json.loads(each.value()) for each in changes]
        assert told == [{"trail": ",1,2,3"[: 2 * count], "all": count} for count in (1, 2, 3)]
        send(bootstrap, orders, orders_of("much"))
        eventually(lambda: made.state is ClientState.ERROR, lambda: f"the client ends; {made.state}", DEADLINE)
        assert "steps[0].aggregate.trail: the expression failed in Spark: [CAST_INVALID_INPUT]" in str(made.error)
    assert last_values(bootstrap, f"{namespace}-trails") == {"k": seen}
