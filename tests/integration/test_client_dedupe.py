"""A dedupe of whole clients, exactly once: what it remembers is there after its stores were lost."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import orjson
import pytest
from clients import client, make_topics, read, run_until_done, send, until_done

from streams_runtime.client import StreamsClient

pytestmark = pytest.mark.integration

# ms; of late, since the broker deletes from a windowed changelog what is older than its retention.
START = int(time.time()) * 1000 - 600_000


def once(prefix: str) -> str:
    value = '{format: json, schema: "id STRING, n BIGINT, at BIGINT"}'
    return f"""
sources: [{{name: orders, topic: {prefix}-orders, value: {value}, timestamp: at}}]
steps:
  - {{name: by-id, from: orders, keyBy: id}}
  - {{name: once, from: by-id, dedupe: {{within: 10s}}}}
  - {{name: short, from: once, select: {{n: n}}}}
sinks: [{{from: short, topic: {prefix}-once}}]
"""


def at(seconds: int, key: str | None, number: int) -> tuple[str | None, dict[str, Any]]:
    return key, {"id": key, "n": number, "at": START + seconds * 1000}


def passed(bootstrap: str, namespace: str) -> list[tuple[bytes | None, int]]:
    found = [(each.key(), orjson.loads(each.value())["n"]) for each in read(bootstrap, f"{namespace}-once")]
    return sorted(found, key=lambda each: each[1])


def dropped(made: StreamsClient) -> int:
    found: int = made.describe()["counters"]["records_dropped"]  # type: ignore[index]
    return found


@pytest.mark.usefixtures("spark")
def test_ids_are_remembered_after_all_stores_were_lost(broker: Any, namespace: str, tmp_path: Path) -> None:
    bootstrap, orders = broker.bootstrap_servers, f"{namespace}-orders"
    inputs = [orders, f"{namespace}-by-id-repartition"]
    make_topics(bootstrap, **{orders: 2, f"{namespace}-once": 1})
    send(bootstrap, orders, [at(0, "a", 1), at(5, "b", 2), at(10, "a", 3), at(10, None, 4), at(10, None, 5)])
    settings = {"processing": {"guarantee": "exactly_once_v2"}}
    with client(bootstrap, namespace, once(namespace), tmp_path / "first", **settings) as made:
        run_until_done(made, inputs[:1])
        until_done(made, inputs)
        assert passed(bootstrap, namespace) == [(b"a", 1), (b"b", 2), (None, 4), (None, 5)]
        assert dropped(made) == 1
    with client(bootstrap, namespace, once(namespace), tmp_path / "second", **settings) as made:
        send(bootstrap, orders, [at(15, "b", 6), at(1, "a", 7), at(16, "b", 8), at(11, "a", 9)])
        run_until_done(made, inputs[:1])
        until_done(made, inputs)
        assert passed(bootstrap, namespace)[4:] == [(b"b", 8), (b"a", 9)]
        assert dropped(made) == 2
