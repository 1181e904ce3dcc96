"""A class in Python in whole clients, exactly once: restored, failing, and mended."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import custom_classes
import pytest
from clients import client, last_values, make_topics, run_until_done, send, until_done
from waiting import DEADLINE, eventually

from streams_runtime.errors import UserCodeException
from streams_runtime.query.stores.key_value_handle import StoreQueryParameters
from streams_runtime.states import ClientState

pytestmark = pytest.mark.integration


def trails(prefix: str) -> str:
    return f"""
sources: [{{name: orders, topic: {prefix}-orders, key: {{format: string}}, value: {{format: json, schema: a BIGINT}}}}]
steps:
  - {{name: trails, from: orders, aggregate: {{t: "python('custom_classes:Failing', a)"}}, store: trails}}
sinks: [{{from: trails, topic: {prefix}-trails}}]
"""


def numbers(*values: int) -> list[tuple[str | None, Any]]:
    return [("k", {"a": value}) for value in values]


@pytest.mark.usefixtures("spark")
def test_a_failure_ends_the_client_and_the_mended_class_goes_on_from_there(
    broker: Any, namespace: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bootstrap, orders = broker.bootstrap_servers, f"{namespace}-orders"
    make_topics(bootstrap, **{orders: 1, f"{namespace}-trails": 1})
    settings = {"processing": {"guarantee": "exactly_once_v2"}}
    send(bootstrap, orders, numbers(1, 2))
    with client(bootstrap, namespace, trails(namespace), tmp_path / "first", **settings) as made:
        run_until_done(made, [orders])
    # Its stores are lost, so what it had comes from the changelog.
    with client(bootstrap, namespace, trails(namespace), tmp_path / "second", **settings) as made:
        send(bootstrap, orders, numbers(3))
        run_until_done(made, [orders])
        assert last_values(bootstrap, f"{namespace}-trails") == {"k": {"t": {"trail": ",1,2,3", "n": 3}}}
        send(bootstrap, orders, numbers(13))
        eventually(lambda: made.state is ClientState.ERROR, lambda: f"the client ends; {made.state}", DEADLINE)
        assert isinstance(made.error, UserCodeException)
        assert "custom_classes:Failing failed in add for the key 'k' in partition 0" in str(made.error)
        assert f"records of {orders} at the offsets 3 to 3: KeyError: 'thirteen'" in str(made.error)
    monkeypatch.setattr(custom_classes.Failing, "add", custom_classes.Trail.add)
    with client(bootstrap, namespace, trails(namespace), tmp_path / "second", **settings) as made:
        run_until_done(made, [orders])
        send(bootstrap, orders, numbers(4))
        until_done(made, [orders])
        seen = {"t": {"trail": ",1,2,3,13,4", "n": 5}}
        assert last_values(bootstrap, f"{namespace}-trails") == {"k": seen}
        assert made.store(StoreQueryParameters("trails")).get("k") == seen
