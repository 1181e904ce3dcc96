"""Joins of two streams of whole clients: both sides repartitioned, what is kept restored, what waits passed on."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import orjson
import pytest
from clients import client, make_topics, read, run_until_done, send, until_done

from streams_runtime.client import StreamsClient
from streams_runtime.errors import UnknownStateStoreException
from streams_runtime.query.stores.key_value_handle import StoreQueryParameters

pytestmark = pytest.mark.integration

# ms; of late, since the broker deletes from a windowed changelog what is older than its retention.
START = int(time.time()) * 1000 - 600_000


def settled(prefix: str) -> str:
    value = '{format: json, schema: "user STRING, n BIGINT, at BIGINT"}'
    return f"""
sources:
  - {{name: orders, topic: {prefix}-orders, value: {value}, timestamp: at}}
  - {{name: payments, topic: {prefix}-payments, value: {value}, timestamp: at}}
steps:
  - {{name: ordered, from: orders, keyBy: user}}
  - {{name: paid, from: payments, keyBy: user}}
  - name: settled
    from: ordered
    join: {{stream: paid, type: outer, within: {{before: 10s, after: 1m}}, grace: 5s, select: {{paid: paid.n}}}}
  - {{name: short, from: settled, select: {{n: n, paid: paid}}}}
sinks: [{{from: short, topic: {prefix}-settled}}]
"""


def at(seconds: int, user: str | None, number: int) -> tuple[str | None, dict[str, Any]]:
    return user, {"user": user, "n": number, "at": START + seconds * 1000}


def results(bootstrap: str, namespace: str) -> list[tuple[str | None, int | None, int | None, int]]:
    """Key, order, payment and time (s) of the sink's records."""
    found = []
    for message in read(bootstrap, f"{namespace}-settled"):
        key, value = message.key(), orjson.loads(message.value())
        found.append((key and key.decode(), value["n"], value["paid"], (message.timestamp()[1] - START) // 1000))
    return sorted(found, key=repr)


def late(made: StreamsClient) -> int:
    found: int = made.describe()["counters"]["late_records"]  # type: ignore[index]
    return found


@pytest.mark.usefixtures("spark")
def test_what_two_streams_have_kept_is_there_after_all_stores_were_lost(
    broker: Any, namespace: str, tmp_path: Path
) -> None:
    bootstrap, orders, payments = broker.bootstrap_servers, f"{namespace}-orders", f"{namespace}-payments"
    make_topics(bootstrap, **{orders: 2, payments: 2, f"{namespace}-settled": 1})
    inputs = [orders, payments, f"{namespace}-ordered-repartition", f"{namespace}-paid-repartition"]
    send(bootstrap, orders, [at(0, "ada", 1), at(0, "ada", 2), at(1, "bob", 3), at(2, None, 4)])
    with client(bootstrap, namespace, settled(namespace), tmp_path / "first") as made:
        run_until_done(made, inputs[:2])
        until_done(made, inputs)
        assert results(bootstrap, namespace) == [(None, 4, None, 2)]
        with pytest.raises(UnknownStateStoreException):
            made.store(StoreQueryParameters("settled-this-join-store", type="window"))
    with client(bootstrap, namespace, settled(namespace), tmp_path / "second") as made:
        send(bootstrap, payments, [at(50, "ada", 7)])
        run_until_done(made, inputs[:2])
        until_done(made, inputs)
        assert [each for each in results(bootstrap, namespace) if each[0]] == [("ada", 1, 7, 50), ("ada", 2, 7, 50)]
    with client(bootstrap, namespace, settled(namespace), tmp_path / "third") as made:
        # Each partition has its own stream time: users are told by their own records.
        send(bootstrap, payments, [at(200, user, 8) for user in ("ada", "bob")])
        run_until_done(made, inputs[:2])
        until_done(made, inputs)
        assert [each for each in results(bootstrap, namespace) if each[0]] == [
            ("ada", 1, 7, 50),
            ("ada", 2, 7, 50),
            ("bob", 3, None, 1),
        ]
        send(bootstrap, payments, [at(10, "bob", 9)])
        until_done(made, inputs[:2])
        until_done(made, inputs)
        assert late(made) == 1
