"""What an instance does with the stores of tasks that went to another one (state.cleanupDelay)."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import pytest
from clients import client, make_topics, run_until_done, send, until_running
from waiting import eventually

from streams_runtime.client import StreamsClient
from streams_runtime.query.stores.key_value_handle import StoreQueryParameters
from streams_runtime.states import ClientState

pytestmark = pytest.mark.integration


def totals(prefix: str) -> str:
    return f"""
sources:
  - {{name: orders, topic: {prefix}-orders, key: {{format: string}}, value: {{format: json, schema: "amount BIGINT"}}}}
steps: [{{name: totals, from: orders, aggregate: {{n: count(*)}}, store: totals}}]
sinks: [{{from: totals, topic: {prefix}-totals}}]
"""


def active(made: StreamsClient) -> list[str]:
    return sorted(row["id"] for row in made.describe()["tasks"])  # type: ignore[attr-defined]


def read(made: StreamsClient) -> dict[str, Any]:
    with made.store(StoreQueryParameters("totals")).all() as entries:
        return {key: value["n"] for key, value in entries}


@pytest.mark.usefixtures("spark")
def test_stores_of_tasks_that_went_elsewhere_are_deleted_and_restored_when_the_tasks_come_back(
    broker: Any, namespace: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    bootstrap, orders = broker.bootstrap_servers, f"{namespace}-orders"
    make_topics(bootstrap, **{orders: 4, f"{namespace}-totals": 1})
    send(bootstrap, orders, [(f"u{i % 50}", {"amount": i}) for i in range(1000)])
    caplog.set_level(logging.INFO, "streams_runtime.state")
    root, spec = tmp_path / "0" / namespace, {"state": {"cleanupDelay": "1s"}}
    with client(bootstrap, namespace, totals(namespace), tmp_path / "0", "i-0", **spec) as first:
        run_until_done(first, [orders])
        assert active(first) == ["0_0", "0_1", "0_2", "0_3"]
        with client(bootstrap, namespace, totals(namespace), tmp_path / "1", "i-1", **spec) as second:
            second.start()
            until_running(second, 90)
            eventually(lambda: len(active(second)) == 2 and len(active(first)) == 2, "two tasks have moved")
            moved, kept = active(second), active(first)
            eventually(lambda: not any((root / task).exists() for task in moved), "their folders have gone")
            assert all((root / task / "rocksdb" / "totals").is_dir() for task in kept)
            assert f"Deleting obsolete state directory {root / moved[0]}" in caplog.text
            restored: int = first.describe()["counters"]["restored_records"]  # type: ignore[index]
            assert {**read(first), **read(second)} == {f"u{i}": 20 for i in range(50)}
        eventually(lambda: len(active(first)) == 4 and first.state is ClientState.RUNNING, "they are back")
        assert read(first) == {f"u{i}": 20 for i in range(50)}
        assert first.describe()["counters"]["restored_records"] > restored  # type: ignore[index]
