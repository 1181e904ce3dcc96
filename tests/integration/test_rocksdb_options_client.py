"""spec.state.rocksdb in whole clients: in stores of tasks, in files of bulk loads, at a restart, and at /metrics."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pytest
from clients import client, make_topics, run_until_done, send, until_done
from waiting import DEADLINE

from streams_runtime.client import StreamsClient
from streams_runtime.query.stores.key_value_handle import StoreQueryParameters
from streams_runtime.testing import TopologyTestDriver

pytestmark = [pytest.mark.integration, pytest.mark.usefixtures("spark")]
CHOSEN = {"memory": "64Mi", "compression": "lz4", "compaction": "universal", "maxBackgroundJobs": 3}
OTHERS = {"memory": "128Mi", "writeBufferSize": "4Mi", "compression": "zstd", "blockSize": "32Ki"}
MIB = 1024 * 1024


def topology(n: str) -> str:
    users = f"topic: {n}-users, key: {{format: string}}, value: {{format: json, schema: 'name STRING'}}"
    return f"""
sources:
  - {{name: orders, topic: {n}-orders, key: {{format: string}}, value: {{format: json, schema: "amount BIGINT"}}}}
  - {{name: users, {users}, table: {{store: users, global: true}}}}
steps:
  - {{name: totals, from: orders, aggregate: {{n: count(*)}}, store: totals}}
  - {{name: minutes, from: orders, window: {{tumbling: {{size: 1m}}}}, aggregate: {{n: count(*)}}, store: minutes}}
sinks: [{{from: totals, topic: {n}-totals}}]
"""


def opened(root: Path, name: str) -> dict[str, set[str]]:
    """By store the values of an option in the newest OPTIONS files of its databases, those of all families."""
    found: dict[str, set[str]] = {}
    for folder in root.glob("*/rocksdb/*"):
        newest = max(folder.glob("OPTIONS-*"), key=lambda file: int(file.name.removeprefix("OPTIONS-")))
        found.setdefault(folder.name, set()).update(re.findall(rf"^  {name}=(.*)$", newest.read_text(), re.MULTILINE))
    return found


def all_stores(value: str) -> dict[str, set[str]]:
    return {store: {value} for store in ("totals", "minutes", "users")}


def cache(made: StreamsClient) -> dict[str, float]:
    with urlopen(f"{made.url}/metrics", timeout=DEADLINE) as answer:
        text = answer.read().decode()
    found = re.findall(r"^kafka_streams_rocksdb_(block_cache_\w+)(?:\{.*\})? (\S+)$", text, re.MULTILINE)
    return {name: float(value) for name, value in found}


def counts(made: StreamsClient) -> dict[str, Any]:
    with made.store(StoreQueryParameters("totals")).all() as entries:
        return {key: value["n"] for key, value in entries}


def test_every_store_has_the_options_and_a_restart_with_others_keeps_what_it_holds(
    broker: Any, namespace: str, tmp_path: Path
) -> None:
    bootstrap, n, root = broker.bootstrap_servers, namespace, tmp_path / namespace
    make_topics(bootstrap, **{f"{n}-orders": 2, f"{n}-users": 1, f"{n}-totals": 1})
    send(bootstrap, f"{n}-users", [(f"u{i}", {"name": "x"}) for i in range(10)])
    send(bootstrap, f"{n}-orders", [(f"u{i % 50}", {"amount": i}) for i in range(1000)])
    with client(bootstrap, n, topology(n), tmp_path, state={"rocksdb": CHOSEN}) as first:
        run_until_done(first, [f"{n}-orders"])
        assert opened(root, "compression") == all_stores("kLZ4Compression")
        assert opened(root, "compaction_style") == all_stores("kCompactionStyleUniversal")
        assert opened(root, "max_background_jobs") == all_stores("3")
        figures = cache(first)
        assert figures["block_cache_capacity"] == 64 * MIB
        assert 0 < figures["block_cache_pinned_usage"] <= figures["block_cache_usage"] < 64 * MIB
    with client(bootstrap, n, topology(n), tmp_path, state={"rocksdb": OTHERS}) as second:
        run_until_done(second, [f"{n}-orders"])
        assert second.describe()["counters"]["restored_records"] == 0  # type: ignore[index]
        assert counts(second) == {f"u{i}": 20 for i in range(50)}
        assert opened(root, "compression") == all_stores("kZSTD")
        assert opened(root, "compaction_style") == all_stores("kCompactionStyleLevel")
        assert opened(root, "block_size") == all_stores("32768")
        assert opened(root, "write_buffer_size") == all_stores(str(4 * MIB))
        assert cache(second)["block_cache_capacity"] == 128 * MIB
        send(bootstrap, f"{n}-orders", [("u7", {"amount": 1})])
        until_done(second, [f"{n}-orders"])
        assert counts(second)["u7"] == 21


def test_the_driver_s_stores_have_them_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    file = tmp_path / "app.yaml"
    spec = f"spec:\n  state: {{rocksdb: {{compression: zstd, blockSize: 8Ki}}}}\n  topology:{topology('n')}"
    lines = "apiVersion: streamsoperator.io/v1alpha1\nkind: StreamsApplication\nmetadata: {name: app}\n"
    file.write_text(lines + spec.replace("\n  - ", "\n      - ").replace("\ns", "\n    s"))
    with TopologyTestDriver(file) as driver:
        driver.input_topic("n-orders").pipe("a", {"amount": 1})
        (root,) = (each / "app" for each in tmp_path.glob("topology-test-driver-*"))
        assert opened(root, "compression") == all_stores("kZSTD")
        assert opened(root, "block_size") == all_stores("8192")
        assert driver.store("totals").get("a") == {"n": 1}
