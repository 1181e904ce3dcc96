"""Whole clients that copy their stores to a folder, and others that begin with these copies."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import pytest
from clients import client, last_values, make_topics, run_until_done, send, until_done
from waiting import eventually

from streams_runtime.client import StreamsClient
from streams_runtime.query.stores.key_value_handle import StoreQueryParameters
from streams_runtime.snapshots.bucket import open_bucket
from streams_runtime.snapshots.snapshot_catalogue import list_snapshots, verify

pytestmark = pytest.mark.integration
KEYS = 12_000  # a shorter changelog is read without a look into the bucket


def topology(n: str) -> str:
    row = 'key: {format: string}, value: {format: json, schema: "amount BIGINT"}'
    return f"""
sources:
  - {{name: orders, topic: {n}-orders, {row}}}
  - {{name: limits, topic: {n}-limits, {row}, table: {{store: limits}}}}
steps:
  - {{name: totals, from: orders, aggregate: {{total: sum(amount), n: count(*)}}, store: totals}}
  - {{name: enriched, from: orders, join: {{table: limits, type: left, select: {{most: limits.amount}}}}}}
sinks:
  - {{from: totals, topic: {n}-totals}}
  - {{from: enriched, topic: {n}-enriched}}
"""


def stored(made: StreamsClient, store: str) -> dict[str, Any]:
    with made.store(StoreQueryParameters(store)).all() as entries:
        return dict(entries)


def copied(made: StreamsClient) -> bool:
    """Whether each store has a snapshot at the offset at which it is."""
    snapshots = made.context.snapshots
    assert snapshots is not None
    accounts = snapshots.snapshotter.accounts
    stores = {
        store.name: store
        for thread in made.threads
        for task in thread.tasks.tasks.values()
        for store in task.stores.values()
    }
    assert not snapshots.snapshotter.totals.failures
    return len(accounts) == 2 and all(each.offset == stores[each.store].offset() for each in accounts)


@pytest.mark.usefixtures("spark")
@pytest.mark.parametrize("guarantee", ["at_least_once", "exactly_once_v2"])
def test_an_instance_without_stores_begins_with_snapshots_and_reads_what_came_since(
    broker: Any, namespace: str, tmp_path: Path, guarantee: str, caplog: pytest.LogCaptureFixture
) -> None:
    bootstrap, orders, limits = broker.bootstrap_servers, f"{namespace}-orders", f"{namespace}-limits"
    make_topics(bootstrap, **{orders: 1, f"{namespace}-totals": 1, f"{namespace}-enriched": 1})
    make_topics(bootstrap, {"cleanup.policy": "compact"}, **{limits: 1})
    url = f"file://{tmp_path}/bucket"
    spec: dict[str, Any] = {
        "processing": {"guarantee": guarantee},
        "state": {"snapshots": {"url": url, "interval": "1s", "keep": 2}},
    }
    caplog.set_level(logging.WARNING, "streams_runtime.snapshots")
    send(bootstrap, limits, [(f"u{i}", {"amount": i}) for i in range(KEYS)])
    send(bootstrap, orders, [(f"u{i}", {"amount": 1}) for i in range(KEYS)])
    with client(bootstrap, namespace, topology(namespace), tmp_path / "0", "i-0", **spec) as first:
        run_until_done(first, [orders, limits])
        eventually(lambda: copied(first), "both stores have snapshots", 60)
    bucket = open_bucket(url, {})
    assert {each.store for each in list_snapshots(bucket, namespace)} == {"totals", "limits"}
    assert verify(bucket, namespace) == []
    send(bootstrap, limits, [("u1", {"amount": -1}), ("u2", None)])
    send(bootstrap, orders, [(f"u{i}", {"amount": 10}) for i in range(50)])
    with client(bootstrap, namespace, topology(namespace), tmp_path / "1", "i-0", **spec) as second:
        run_until_done(second, [orders, limits])
        until_done(second, [orders, limits])
        context: Any = second.context
        assert (context.snapshots.fetcher.totals.fetched, context.snapshots.fetcher.totals.put_aside) == (2, 0)
        assert context.progress.restored_total <= 2, "the tails alone; the group had processed no more"
        expected = {f"u{i}": {"total": 11 if i < 50 else 1, "n": 2 if i < 50 else 1} for i in range(KEYS)}
        assert stored(second, "totals") == expected
        kept = {f"u{i}": {"amount": i} for i in range(KEYS) if i != 2}
        assert stored(second, "limits") == {**kept, "u1": {"amount": -1}}
    assert last_values(bootstrap, f"{namespace}-totals", committed=True) == expected
    assert [each for each in caplog.records if each.levelno >= logging.WARNING] == []
