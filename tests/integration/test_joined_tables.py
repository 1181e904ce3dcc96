"""Joins of tables of windows, and of a table with itself: in a whole client, and before and behind other steps."""

from __future__ import annotations

import json
import time
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from clients import client, make_topics, read, run_until_done, send, until_done
from topology_drivers import Made

from streams_runtime.builder import StreamsBuilder, session, tumbling
from streams_runtime.builder import json as json_value
from streams_runtime.testing import START, Record

pytestmark = [pytest.mark.integration, pytest.mark.usefixtures("spark")]

# Of a minute, ms; of late, since the broker deletes from a windowed changelog what is older than its retention.
BEGIN = int(time.time()) // 60 * 60_000 - 600_000


def topology(prefix: str) -> str:
    value = '{format: json, schema: "v BIGINT"}'
    window = "window: {tumbling: {size: 1m}, retention: 1h}"
    return f"""
sources:
  - {{name: ones, topic: {prefix}-ones, key: {{format: string}}, value: {value}}}
  - {{name: twos, topic: {prefix}-twos, key: {{format: string}}, value: {value}}}
  - {{name: users, topic: {prefix}-users, key: {{format: string}}, value: {value}, table: {{store: users}}}}
steps:
  - {{name: one, from: ones, {window}, aggregate: {{v: sum(v)}}, store: one}}
  - {{name: two, from: twos, {window}, aggregate: {{v: sum(v)}}, store: two}}
  - {{name: both, from: one, join: {{table: two, select: {{w: two.v}}}}}}
  - {{name: large, from: users, where: "v > 2"}}
  - {{name: again, from: users, join: {{table: large, type: left, select: {{w: large.v}}}}}}
  - {{name: changes, from: again, toStream: {{}}}}
  - {{name: last, from: changes, toTable: {{store: last}}}}
  - {{name: counted, from: last, groupBy: cast(w is null as string), aggregate: {{n: count(*)}}, store: counted}}
sinks:
  - {{from: both, topic: {prefix}-both}}
  - {{from: changes, topic: {prefix}-again}}
  - {{from: counted, topic: {prefix}-counted}}
"""


def found(bootstrap: str, topic: str) -> list[tuple[bytes, Any]]:
    return [(each.key(), each.value() and json.loads(each.value())) for each in read(bootstrap, topic)]


def test_both_sides_are_there_after_their_stores_were_lost(broker: Any, namespace: str, tmp_path: Path) -> None:
    bootstrap = broker.bootstrap_servers
    ones, twos, users = inputs = [f"{namespace}-{name}" for name in ("ones", "twos", "users")]
    make_topics(bootstrap, **dict.fromkeys(inputs, 1))
    make_topics(bootstrap, **{f"{namespace}-{name}": 1 for name in ("both", "again", "counted")})
    settings = {"processing": {"guarantee": "exactly_once_v2"}}
    groups = [f"{namespace}-counted-repartition"]
    send(bootstrap, ones, [("a", {"v": 1}), ("b", {"v": 7})], times=[BEGIN + 1, BEGIN + 60_001])
    send(bootstrap, twos, [("a", {"v": 2}), ("a", {"v": 9})], times=[BEGIN + 2, BEGIN + 60_001])
    send(bootstrap, users, [("a", {"v": 3}), ("b", {"v": 1})])
    with client(bootstrap, namespace, topology(namespace), tmp_path / "first", **settings) as made:
        run_until_done(made, inputs)
        until_done(made, groups)
    with client(bootstrap, namespace, topology(namespace), tmp_path / "second", **settings) as made:
        run_until_done(made, inputs)
        send(bootstrap, ones, [("a", {"v": 4})], times=[BEGIN + 60_002])
        send(bootstrap, twos, [("b", {"v": 5})], times=[BEGIN + 60_003])
        send(bootstrap, users, [("a", {"v": 5}), ("b", None), ("a", {"v": 2})])
        until_done(made, inputs)
        until_done(made, groups)
    at = {minute: (BEGIN + minute * 60_000).to_bytes(8, "big") for minute in (0, 1)}
    assert found(bootstrap, f"{namespace}-both") == [
        (b"a" + at[0], {"v": 1, "w": 2}),
        (b"a" + at[1], {"v": 4, "w": 9}),
        (b"b" + at[1], {"v": 7, "w": 5}),
    ]
    again = found(bootstrap, f"{namespace}-again")
    rows = {key: [value and (value["v"], value["w"]) for name, value in again if name == key] for key in (b"a", b"b")}
    assert rows == {b"a": [(3, 3)] * 2 + [(5, 5)] * 2 + [(2, None)] * 2, b"b": [(1, None), None]}
    counted = {key: value["n"] for key, value in found(bootstrap, f"{namespace}-counted")}
    assert counted == {b"false": 0, b"true": 1}


def test_changes_of_both_sides_meet_in_python_in_the_test_driver_too(made: Made) -> None:
    builder = StreamsBuilder()
    clicks = builder.stream("clicks", key="long", value=json_value("n BIGINT"))
    by_key = clicks.group_by_key()
    few = by_key.windowed_by(tumbling("1m")).aggregate(least="min(n)", store="few")
    many = by_key.windowed_by(tumbling("1m", grace="1m")).aggregate(most="max(n)", store="many")
    joined = few.outer_join(many, {"most": "many.most", "begun": "minute(_window_start)"}, name="joined")
    joined.to("out")
    joined.filter("least is null").to_stream().to("late")
    visits = by_key.windowed_by(session("5s")).aggregate(n="count(*)", store="visits")
    visits.join(visits.filter("n > 1"), {"length": "unix_seconds(_window_end) - unix_seconds(_window_start)"}).to(
        "long"
    )
    driver = made(builder)
    with driver.batch():
        for at, number in ((1, 5), (3, 2), (70, 1), (50, 9), (4, 3)):
            record = Record(7, {"n": number}, timestamp=START + timedelta(seconds=at))
            driver.input_topic("clicks").pipe_all([record])
    rows: list[Any] = driver.output_topic("out").read_all()
    first = [(each.value["least"], each.value["most"]) for each in rows if each.value["begun"] == 0]
    # A record changes the left side first. The left window has expired when the right one still takes records.
    assert first == [(5, None), (5, 5), (2, 5), (2, 5), (None, 9), (None, 9)]
    assert [each.key.key for each in rows] == [7] * len(rows)
    assert [each.value["most"] for each in driver.output_topic("late").read_all() if each.value] == [9, 9]
    lengths = [
        each.value and (each.value["n"], each.value["length"]) for each in driver.output_topic("long").read_all()
    ]
    assert lengths == [(2, 2), (2, 2)]
