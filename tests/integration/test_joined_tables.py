"""Joins of a table with itself, in a whole client."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from clients import client, make_topics, read, run_until_done, send, until_done

pytestmark = [pytest.mark.integration, pytest.mark.usefixtures("spark")]


def topology(prefix: str) -> str:
    value = '{format: json, schema: "v BIGINT"}'
    return f"""
sources:
  - {{name: users, topic: {prefix}-users, key: {{format: string}}, value: {value}, table: {{store: users}}}}
steps:
  - {{name: large, from: users, where: "v > 2"}}
  - {{name: again, from: users, join: {{table: large, type: left, select: {{w: large.v}}}}}}
  - {{name: changes, from: again, toStream: {{}}}}
  - {{name: last, from: changes, toTable: {{store: last}}}}
  - {{name: counted, from: last, groupBy: cast(w is null as string), aggregate: {{n: count(*)}}, store: counted}}
sinks:
  - {{from: changes, topic: {prefix}-again}}
  - {{from: counted, topic: {prefix}-counted}}
"""


def found(bootstrap: str, topic: str) -> list[tuple[bytes, Any]]:
    return [(each.key(), each.value() and json.loads(each.value())) for each in read(bootstrap, topic)]


def test_a_table_that_meets_itself_is_there_after_a_restart(
    broker: Any, namespace: str, tmp_path: Path
) -> None:
    bootstrap = broker.bootstrap_servers
    (users,) = inputs = [f"{namespace}-users"]
    make_topics(bootstrap, **{f"{namespace}-{name}": 1 for name in ("users", "again", "counted")})
    settings = {"processing": {"guarantee": "exactly_once_v2"}}
    groups = [f"{namespace}-counted-repartition"]
    send(bootstrap, users, [("a", {"v": 3}), ("b", {"v": 1})])
    with client(bootstrap, namespace, topology(namespace), tmp_path / "first", **settings) as made:
        run_until_done(made, inputs)
        until_done(made, groups)
    with client(bootstrap, namespace, topology(namespace), tmp_path / "second", **settings) as made:
        run_until_done(made, inputs)
        send(bootstrap, users, [("a", {"v": 5}), ("b", None), ("a", {"v": 2})])
        until_done(made, inputs)
        until_done(made, groups)
    again = found(bootstrap, f"{namespace}-again")
    rows = {key: [value and (value["v"], value["w"]) for name, value in again if name == key] for key in (b"a", b"b")}
    assert rows == {b"a": [(3, 3)] * 2 + [(5, 5)] * 2 + [(2, None)] * 2, b"b": [(1, None), None]}
    counted = {key: value["n"] for key, value in found(bootstrap, f"{namespace}-counted")}
    assert counted == {b"false": 0, b"true": 1}
