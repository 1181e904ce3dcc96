"""A merge behind a dedupe and a join in whole clients: in order, and gone on with after all stores were lost."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import orjson
import pytest
from clients import client, make_topics, read, run_until_done, send

pytestmark = pytest.mark.integration

START = int(time.time()) * 1000 - 600_000  # ms; of late, since brokers delete what windows no longer need


def merged(prefix: str) -> str:
    value = '{format: json, schema: "n BIGINT, at BIGINT"}'
    return f"""
sources:
  - {{name: orders, topic: {prefix}-orders, key: {{format: string}}, value: {value}, timestamp: at}}
  - name: users
    topic: {prefix}-users
    key: {{format: string}}
    value: {value}
    timestamp: at
    table: {{store: users}}
steps:
  - {{name: once, from: orders, dedupe: {{within: 10s}}}}
  - {{name: beside, from: once, join: {{table: users, select: {{n: n + users.n}}}}}}
  - {{name: all, merge: [orders, beside]}}
  - {{name: counts, from: all, aggregate: {{n: count(*)}}, store: counts}}
  - {{name: changes, from: counts, toStream: {{}}}}
sinks: [{{from: all, topic: {prefix}-all}}, {{from: changes, topic: {prefix}-counts}}]
"""


def at(seconds: int, key: str, number: int) -> tuple[str, dict[str, Any]]:
    return key, {"n": number, "at": START + seconds * 1000}


def numbers(bootstrap: str, topic: str) -> list[int]:
    return [orjson.loads(each.value())["n"] for each in read(bootstrap, topic)]


@pytest.mark.usefixtures("spark")
def test_rows_of_several_stages_are_in_order_before_and_after_all_stores_were_lost(
    broker: Any, namespace: str, tmp_path: Path
) -> None:
    bootstrap, orders, users = broker.bootstrap_servers, f"{namespace}-orders", f"{namespace}-users"
    make_topics(bootstrap, **{orders: 1, users: 1, f"{namespace}-all": 1, f"{namespace}-counts": 1})
    settings = {"processing": {"guarantee": "exactly_once_v2"}}
    send(bootstrap, users, [at(0, "a", 100)])
    send(bootstrap, orders, [at(1, "a", 1), at(2, "a", 2), at(20, "a", 3)])
    with client(bootstrap, namespace, merged(namespace), tmp_path / "first", **settings) as made:
        run_until_done(made, [orders, users])
    assert numbers(bootstrap, f"{namespace}-all") == [101, 1, 2, 103, 3]
    send(bootstrap, orders, [at(21, "a", 4), at(40, "a", 5)])
    with client(bootstrap, namespace, merged(namespace), tmp_path / "second", **settings) as made:
        run_until_done(made, [orders, users])
    assert numbers(bootstrap, f"{namespace}-all")[5:] == [4, 105, 5]
    assert numbers(bootstrap, f"{namespace}-counts") == list(range(1, 9))
