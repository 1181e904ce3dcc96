"""reduce in a whole client: queried, restored from its changelog, and stopped by a value that its lambda fails on."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from clients import client, last_values, make_topics, run_until_done, send
from waiting import DEADLINE, eventually

from streams_runtime.query.handles import StoreQueryParameters
from streams_runtime.states import ClientState

pytestmark = [pytest.mark.integration, pytest.mark.usefixtures("spark")]


def trails(name: str) -> str:
    trail = "reduce('', (trail, row) -> concat(trail, ',', cast(row.a as int)))"
    return f"""
sources: [{{name: orders, topic: {name}-orders, key: {{format: string}}, value: {{format: json, schema: a STRING}}}}]
steps:
  - {{name: trails, from: orders, aggregate: {{trail: "{trail}", all: count(*)}}, store: trails}}
sinks: [{{from: trails, topic: {name}-trails}}]
"""


def orders_of(*values: str) -> list[tuple[str | None, Any]]:
    return [("k", {"a": value}) for value in values]


def test_a_lambda_goes_on_from_what_is_stored_and_an_error_ends_the_client(
    broker: Any, namespace: str, tmp_path: Path
) -> None:
    bootstrap, orders = broker.bootstrap_servers, f"{namespace}-orders"
    make_topics(bootstrap, **{orders: 1, f"{namespace}-trails": 1})
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
        send(bootstrap, orders, orders_of("much"))
        eventually(lambda: made.state is ClientState.ERROR, lambda: f"the client ends; {made.state}", DEADLINE)
        assert "steps[0].aggregate.trail: the expression failed in Spark: [CAST_INVALID_INPUT]" in str(made.error)
    assert last_values(bootstrap, f"{namespace}-trails") == {"k": seen}
