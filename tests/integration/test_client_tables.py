"""A whole client with a table that a stream becomes, and a join with an aggregate, after its stores were lost."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from clients import client, make_topics, read, run_until_done, send, until_done

from streams_runtime.query.stores.key_value_handle import StoreQueryParameters

pytestmark = pytest.mark.integration


def topology(prefix: str) -> str:
    value = '{format: json, schema: "user STRING, amount BIGINT"}'
    return f"""
sources: [{{name: orders, topic: {prefix}-orders, value: {value}}}]
steps:
  - {{name: by-user, from: orders, keyBy: user}}
  - {{name: last, from: by-user, where: "amount != 0", select: {{amount: amount}}}}
  - {{name: latest, from: last, toTable: {{store: latest}}}}
  - {{name: large, from: latest, where: "amount > 10"}}
  - {{name: changes, from: large, toStream: {{}}}}
  - {{name: counts, from: last, aggregate: {{n: count(*)}}, store: counts}}
  - {{name: numbered, from: changes, join: {{table: counts, type: left, select: {{n: counts.n}}}}}}
sinks:
  - {{from: numbered, topic: {prefix}-numbered}}
  - {{from: large, topic: {prefix}-large}}
"""


def found(bootstrap: str, topic: str) -> list[tuple[bytes, Any]]:
    return [(each.key(), each.value() and json.loads(each.value())) for each in read(bootstrap, topic)]


@pytest.mark.usefixtures("spark")
def test_a_table_of_a_stream_is_there_after_its_stores_were_lost(broker: Any, namespace: str, tmp_path: Path) -> None:
    bootstrap, orders = broker.bootstrap_servers, f"{namespace}-orders"
    inputs = [orders, f"{namespace}-by-user-repartition"]
    make_topics(bootstrap, **{orders: 2, f"{namespace}-numbered": 1, f"{namespace}-large": 1})
    settings = {"processing": {"guarantee": "exactly_once_v2"}}
    sent = [("ada", 11), ("bob", 5), ("ada", 12), ("ada", 0), (None, 20), ("cid", 30)]
    send(bootstrap, orders, [("k", {"user": user, "amount": amount}) for user, amount in sent])
    with client(bootstrap, namespace, topology(namespace), tmp_path / "first", **settings) as made:
        run_until_done(made, inputs[:1])
        until_done(made, inputs)
    with client(bootstrap, namespace, topology(namespace), tmp_path / "second", **settings) as made:
        run_until_done(made, inputs)
        with made.store(StoreQueryParameters("latest")).all() as entries:
            held = {each.key: each.value for each in entries}
        assert held == {
            "ada": {"amount": 12},
            "bob": {"amount": 5},
            "cid": {"amount": 30},
        }
        more = [("ada", 3), ("bob", 4), ("cid", 31), ("ada", 9)]
        send(bootstrap, orders, [("k", {"user": user, "amount": amount}) for user, amount in more])
        until_done(made, inputs[:1])
        until_done(made, inputs)
    large = found(bootstrap, f"{namespace}-large")
    assert [value and value["amount"] for key, value in large if key == b"ada"] == [11, 12, None]
    assert [value and value["amount"] for key, value in large if key == b"cid"] == [30, 31]
    assert [key for key, _ in large if key == b"bob"] == []
    numbered = found(bootstrap, f"{namespace}-numbered")
    assert [value for key, value in numbered if key == b"ada"] == [{"amount": 11, "n": 1}, {"amount": 12, "n": 2}]
    assert [value for key, value in numbered if key == b"cid"] == [{"amount": 30, "n": 1}, {"amount": 31, "n": 2}]
