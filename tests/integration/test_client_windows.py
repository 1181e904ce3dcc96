"""Windowed aggregates of whole clients: counted, queried, and the same after their stores were lost."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from clients import client, make_topics, read, run_until_done, send, until_done

from streams_runtime.client import StreamsClient
from streams_runtime.query.stores.key_value_handle import StoreQueryParameters

pytestmark = pytest.mark.integration

# Of a minute, ms; of late, since the broker deletes from a windowed changelog what is older than its retention.
START = int(time.time()) // 60 * 60_000 - 600_000


def per_minute(prefix: str) -> str:
    value = '{format: json, schema: "at BIGINT"}'
    return f"""
sources:
  - {{name: clicks, topic: {prefix}-clicks, key: {{format: string}}, value: {value}, timestamp: at}}
steps:
  - name: per-minute
    from: clicks
    window: {{tumbling: {{size: 1m, grace: 10s}}, retention: 1h}}
    aggregate: {{clicks: count(*)}}
    store: per-minute
sinks: [{{from: per-minute, topic: {prefix}-counts}}]
"""


def at(seconds: int) -> dict[str, int]:
    return {"at": START + seconds * 1000}


def when(seconds: int) -> datetime:
    return datetime.fromtimestamp(START / 1000 + seconds, UTC)


def counted(made: StreamsClient, key: str) -> dict[datetime, int]:
    """Clicks by the beginnings of their minutes."""
    store: Any = made.store(StoreQueryParameters("per-minute", type="window"))
    with store.fetch(key, when(-3600), when(3600)) as found:
        return {moment: value["clicks"] for moment, value in found}


def late(made: StreamsClient) -> int:
    found: int = made.describe()["counters"]["late_records"]  # type: ignore[index]
    return found


@pytest.mark.usefixtures("spark")
def test_minutes_are_counted_queried_and_still_closed_after_the_store_was_lost(
    broker: Any, namespace: str, tmp_path: Path
) -> None:
    bootstrap, clicks = broker.bootstrap_servers, f"{namespace}-clicks"
    make_topics(bootstrap, **{clicks: 2, f"{namespace}-counts": 3})
    send(bootstrap, clicks, [("ada", at(0)), ("ada", at(59)), ("ada", at(60)), ("ada", at(3)), ("bob", at(10))])
    with client(bootstrap, namespace, per_minute(namespace), tmp_path / "first") as made:
        run_until_done(made, [clicks])
        assert counted(made, "ada") == {when(0): 3, when(60): 1}
        assert counted(made, "bob") == {when(0): 1}
        send(bootstrap, clicks, [("ada", at(70)), ("ada", at(59))])
        until_done(made, [clicks])
        assert counted(made, "ada") == {when(0): 3, when(60): 2}, "the second 59 came when its minute had closed"
        assert late(made) == 1
    with client(bootstrap, namespace, per_minute(namespace), tmp_path / "second") as made:
        run_until_done(made, [clicks])
        assert counted(made, "ada") == {when(0): 3, when(60): 2}
        send(bootstrap, clicks, [("ada", at(58)), ("ada", at(61))])
        until_done(made, [clicks])
        assert counted(made, "ada") == {when(0): 3, when(60): 3}
        assert late(made) == 1, "closed minutes stay closed"
    # A key's windows are in one partition of the sink, the one of the key.
    places = {(message.key()[:-8], message.partition()) for message in read(bootstrap, f"{namespace}-counts")}
    assert {key for key, _ in places} == {b"ada", b"bob"}
    assert len(places) == 2


def visits(prefix: str) -> str:
    value = '{format: json, schema: "at BIGINT"}'
    return f"""
sources:
  - {{name: clicks, topic: {prefix}-clicks, key: {{format: string}}, value: {value}, timestamp: at}}
steps:
  - name: visits
    from: clicks
    window: {{session: {{gap: 30s, grace: 10s}}, retention: 1h}}
    aggregate: {{clicks: count(*)}}
    store: visits
sinks: [{{from: visits, topic: {prefix}-visits}}]
"""


def visited(made: StreamsClient, key: str) -> dict[tuple[datetime, datetime], int]:
    """Clicks by the first and the last moment of a visit."""
    store: Any = made.store(StoreQueryParameters("visits", type="session"))
    with store.fetch(key) as found:
        return {(session.window.start, session.window.end): value["clicks"] for session, value in found}


@pytest.mark.usefixtures("spark")
def test_visits_grow_together_are_queried_and_are_the_same_after_the_store_was_lost(
    broker: Any, namespace: str, tmp_path: Path
) -> None:
    bootstrap, clicks = broker.bootstrap_servers, f"{namespace}-clicks"
    make_topics(bootstrap, **{clicks: 2, f"{namespace}-visits": 3})
    send(bootstrap, clicks, [("ada", at(0)), ("ada", at(20)), ("ada", at(100)), ("bob", at(10)), ("ada", at(60))])
    with client(bootstrap, namespace, visits(namespace), tmp_path / "first") as made:
        run_until_done(made, [clicks])
        assert visited(made, "ada") == {(when(0), when(20)): 2, (when(60), when(60)): 1, (when(100), when(100)): 1}
        assert visited(made, "bob") == {(when(10), when(10)): 1}
    with client(bootstrap, namespace, visits(namespace), tmp_path / "second") as made:
        run_until_done(made, [clicks])
        send(bootstrap, clicks, [("ada", at(45)), ("ada", at(200)), ("ada", at(150))])
        until_done(made, [clicks])
        assert visited(made, "ada") == {
            (when(0), when(60)): 4,
            (when(100), when(100)): 1,
            (when(200), when(200)): 1,
        }
        assert late(made) == 1, "150 and its gap had closed by 200"
    # What two visits were is deleted where the one stands that they became; all of a key in its partition.
    found = read(bootstrap, f"{namespace}-visits")
    assert len({(message.key()[:-16], message.partition()) for message in found}) == 2
    last = {message.key(): message.value() for message in found if message.key().startswith(b"ada")}
    assert sorted(value is None for value in last.values()) == [False, False, False, True, True]
