"""Windows of which every change goes on as a record of a stream: under the test driver, and in a whole client."""

from __future__ import annotations

import json
import time
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from clients import client, make_topics, read, run_until_done, send, until_done
from topology_drivers import Made

from streams_runtime.builder import StreamsBuilder, tumbling
from streams_runtime.builder import json as json_value
from streams_runtime.testing import START, Record

pytestmark = [pytest.mark.integration, pytest.mark.usefixtures("spark")]

# Of a minute, ms; of late, since the broker deletes from a windowed changelog what is older than its retention.
BEGIN = int(time.time()) // 60 * 60_000 - 600_000


def test_every_change_goes_on_with_its_window_the_later_time_and_the_headers_of_its_record(made: Made) -> None:
    builder = StreamsBuilder()
    orders = builder.stream("orders", key="string", value=json_value("user STRING, amount BIGINT"))
    minutes = orders.group_by_key().windowed_by(tumbling("1m")).aggregate(n="count(*)", store="minutes")
    begun = minutes.filter("n != 2").select(n="n", minute="cast(minute(_window_start) as string)")
    changes = begun.to_stream().peek(metric="told")
    changes.to("windows")
    changes.filter("n = 1").merge(changes).to("both")
    changes.group_by("minute", name="by-minute").aggregate(times="count(*)", store="times").to("times")
    driver = made(builder)
    with driver.batch():
        sent = [("a", 5, b"1"), ("a", 3, b"2"), ("b", 61, b"3"), ("a", 59, b"4"), ("a", 62, b"5")]
        for key, at, header in sent:
            when = START + timedelta(seconds=at)
            record = Record(key, {"user": "u", "amount": 1}, timestamp=when, headers=(("h", header),))
            driver.input_topic("orders").pipe_all([record])
    windows: list[Any] = driver.output_topic("windows").read_all()
    found = [(each.key.key, each.key.window.start - START, each.value, each.headers) for each in windows]
    minute = timedelta(minutes=1)
    assert found == [
        ("a", 0 * minute, {"n": 1, "minute": "0"}, (("h", b"1"),)),
        ("a", 0 * minute, None, (("h", b"2"),)),
        ("b", minute, {"n": 1, "minute": "1"}, (("h", b"3"),)),
        ("a", minute, {"n": 1, "minute": "1"}, (("h", b"5"),)),
    ]
    both: list[Any] = driver.output_topic("both").read_all()
    assert [(each.key, each.value) for each in both] == [
        (each.key, each.value) for each in windows for _ in range(1 if each.value is None else 2)
    ]
    assert [each.timestamp - START for each in windows[:2]] == [timedelta(seconds=5)] * 2
    assert {each.key: each.value for each in driver.store("times").all()} == {"0": {"times": 1}, "1": {"times": 2}}
    assert [sums[0] for sums in driver.counters.peeks.values()] == [4]
    assert driver.counters.late_records == 1


def topology(prefix: str) -> str:
    value = '{format: json, schema: "at BIGINT"}'
    return f"""
sources:
  - {{name: clicks, topic: {prefix}-clicks, key: {{format: string}}, value: {value}, timestamp: at}}
steps:
  - name: per-minute
    from: clicks
    window: {{tumbling: {{size: 1m, grace: 10s}}, retention: 1h, late: {{topic: {prefix}-late}}}}
    aggregate: {{n: count(*)}}
    store: per-minute
  - {{name: odd, from: per-minute, where: "n != 2"}}
  - {{name: minutes, from: odd, toStream: {{}}}}
  - name: visits
    from: clicks
    window: {{session: {{gap: 30s, grace: 1m}}, retention: 1h}}
    aggregate: {{n: count(*)}}
    store: visits
  - {{name: sessions, from: visits, toStream: {{}}}}
sinks:
  - {{from: minutes, topic: {prefix}-minutes}}
  - {{from: sessions, topic: {prefix}-sessions}}
"""


def at(*seconds: int) -> list[tuple[str, dict[str, int]]]:
    return [("ada", {"at": BEGIN + each * 1000}) for each in seconds]


def told(bootstrap: str, topic: str, numbers: int) -> list[Any]:
    """Of each record the times in its key, in seconds, and what the window has counted."""
    found = []
    for each in read(bootstrap, topic):
        times = [each.key()[begin : begin + 8] for begin in range(3, 3 + 8 * numbers, 8)]
        seconds = [(int.from_bytes(data, "big") - BEGIN) // 1000 for data in times]
        found.append((*seconds, each.value() and json.loads(each.value())["n"]))
    return found


def test_windows_go_on_being_told_after_their_stores_were_lost(broker: Any, namespace: str, tmp_path: Path) -> None:
    bootstrap, clicks = broker.bootstrap_servers, f"{namespace}-clicks"
    late, minutes, sessions = (f"{namespace}-{name}" for name in ("late", "minutes", "sessions"))
    make_topics(bootstrap, **{clicks: 2, late: 1, minutes: 1, sessions: 1})
    settings = {"processing": {"guarantee": "exactly_once_v2"}}
    send(bootstrap, clicks, at(0, 59, 60, 3))
    with client(bootstrap, namespace, topology(namespace), tmp_path / "first", **settings) as made:
        run_until_done(made, [clicks])
    send(bootstrap, clicks, at(70, 58))
    with client(bootstrap, namespace, topology(namespace), tmp_path / "second", **settings) as made:
        run_until_done(made, [clicks])
        send(bootstrap, clicks, at(57, 61))
        until_done(made, [clicks])
    assert told(bootstrap, minutes, 1) == [(0, 1), (0, None), (60, 1), (0, 3), (60, None), (60, 3)]
    assert told(bootstrap, sessions, 2) == [
        *((0, 0, 1), (59, 59, 1), (59, 59, None), (60, 59, 2), (0, 0, None), (3, 0, 2)),  # ends come before starts
        *((60, 59, None), (70, 59, 3), (70, 59, None), (70, 58, 4)),
        *((70, 58, None), (70, 57, 5), (70, 57, None), (70, 57, 6)),
    ]
    assert [json.loads(each.value()) for each in read(bootstrap, late)] == [value for _, value in at(58, 57)]
