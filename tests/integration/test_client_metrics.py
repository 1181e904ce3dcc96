"""What whole clients show at /metrics: exact numbers of what they did, and the catalogue's families and no others."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pytest
from clients import client, make_topics, run_until_done, send, until_done, until_running
from prometheus_client.parser import text_string_to_metric_families
from waiting import DEADLINE, eventually

from streams_runtime.client import StreamsClient
from streams_runtime.metrics.catalogue import CATALOGUE
from streams_runtime.metrics.metric_definition import Level

pytestmark = [pytest.mark.integration, pytest.mark.usefixtures("spark")]


def topology(n: str) -> str:
    columns = 'format: json, schema: "id STRING, user STRING, amount BIGINT"'
    return f"""
sources: [{{name: orders, topic: {n}-orders, key: {{format: string}}, value: {{{columns}}}}}]
steps:
  - {{name: once, from: orders, dedupe: {{by: id, within: 1h}}}}
  - {{name: by-user, from: once, keyBy: user}}
  - {{name: totals, from: by-user, aggregate: {{total: sum(amount), n: count(*)}}, store: totals}}
sinks: [{{from: totals, topic: {n}-totals}}]
"""


def orders(numbers: range) -> list[tuple[str | None, Any]]:
    return [(f"o{i}", {"id": f"o{i}", "user": f"u{i % 5}", "amount": i}) for i in numbers]


ODD = [
    ("o1", {"id": "o1", "user": "u1", "amount": 1}),  # seen already
    ("o2", {"id": "o2", "user": "u2", "amount": 2}),
    ("nobody", {"id": "nobody", "user": None, "amount": 3}),
    ("broken", b"{oops"),
]


class Scrape:
    """The samples of one answer of /metrics."""

    def __init__(self, made: StreamsClient) -> None:
        with urlopen(f"{made.url}/metrics", timeout=DEADLINE) as answer:
            families = list(text_string_to_metric_families(answer.read().decode()))
        self.families = {family.name for family in families}
        self._samples = [sample for family in families for sample in family.samples]

    def rows(self, name: str, *labels: str) -> dict[Any, float]:
        """The values of `kafka_streams_NAME` by these labels, one by its value and several as a tuple."""
        rows = [each for each in self._samples if each.name == f"kafka_streams_{name}"]
        found = {tuple(each.labels[label] for label in labels): each.value for each in rows}
        assert len(found) == len(rows), f"{labels} do not tell the series of {name} apart"
        return {key[0] if len(key) == 1 else key: value for key, value in found.items()}

    def value(self, name: str) -> float:
        """Of a metric without labels of its own."""
        (found,) = self.rows(name).values()
        return found


def shown_at(level: Level, snapshots: bool) -> set[str]:
    """Those of snapshots are shown where the application wants some."""
    shown = {each.name for each in CATALOGUE if level.shows(each.level)}
    return shown if snapshots else {name for name in shown if not name.startswith("kafka_streams_snapshot")}


def test_debug_shows_exactly_what_a_client_of_two_threads_did_exactly_once(
    broker: Any, namespace: str, tmp_path: Path
) -> None:
    bootstrap, n = broker.bootstrap_servers, namespace
    make_topics(bootstrap, **{f"{n}-orders": 4, f"{n}-totals": 1})
    processing = {
        "metricsRecordingLevel": "DEBUG",
        "guarantee": "exactly_once_v2",
        "streamThreads": 2,
        "onDeserializationError": "continue",
    }
    state = {"snapshots": {"url": f"file://{tmp_path}/bucket", "interval": "1d"}}
    with client(bootstrap, n, topology(n), tmp_path, processing=processing, state=state) as made:
        made.start()
        until_running(made)
        eventually(lambda: all(len(each.tasks.tasks) == 4 for each in made.threads), "both threads have their tasks")
        send(bootstrap, f"{n}-orders", orders(range(40)))
        until_done(made, [f"{n}-orders", f"{n}-by-user-repartition"])
        send(bootstrap, f"{n}-orders", ODD)
        until_done(made, [f"{n}-orders", f"{n}-by-user-repartition"])
        # A batch is counted after its stores are written and its positions move.
        eventually(
            lambda: Scrape(made).value("batches_total") == sum(commits(made).values()), "all batches are counted"
        )
        seen, account = Scrape(made), made.describe()
    assert seen.families == shown_at(Level.DEBUG, snapshots=True)
    dropped = {("once", "duplicate"): 2, ("by-user", "null-key"): 1, ("orders", "unreadable"): 1}
    assert seen.rows("step_dropped_records_total", "step", "reason") == dropped
    assert {(row["step"], row["reason"]): row["records"] for row in account["dropped"]} == dropped  # type: ignore[attr-defined]
    records = {f"{n}-orders": 44, f"{n}-by-user-repartition": 40}
    assert seen.rows("topic_records_consumed_total", "topic") == records
    produced = seen.rows("topic_records_produced_total", "topic")
    assert produced[f"{n}-by-user-repartition"] == 40
    assert seen.rows("topic_bytes_produced_total", "topic").keys() == produced.keys()
    assert seen.value("process_total") == 84
    assert sum(seen.rows("thread_process_total", "thread").values()) == 84
    assert seen.rows("task_process_total", "subtopology") == {"0": 44, "1": 40}
    nodes = seen.rows("processor_node_process_total", "node")
    assert (nodes["orders"], nodes["once"], nodes["by-user-repartition"]) == (44, 43, 40)
    assert (
        nodes[f"sink-{n}-totals"]
        == produced[f"{n}-totals"]
        == seen.rows("store_written_records_total", "store")["totals"]
    )
    assert seen.rows("store_written_records_total", "store")["once-dedupe-store"] == 41
    names = {thread.name for thread in made.threads}
    assert seen.rows("thread_commit_total", "thread").keys() == names
    closed = seen.rows("thread_task_closed_total", "thread")  # the first thread had all until the second joined
    created = seen.rows("thread_task_created_total", "thread")
    assert {name: created[name] - closed[name] for name in created} == dict.fromkeys(names, 4)
    # The records are of November 2023.
    ages = [seen.rows(f"processor_node_record_e2e_latency_{each}", "node") for each in ("min", "avg", "max")]
    assert {"orders", f"sink-{n}-totals"} <= ages[0].keys()
    assert all(
        6e10 < least <= mean <= most for least, mean, most in zip(*(each.values() for each in ages), strict=True)
    )
    # A key that several batches have written counts for each, until its memtable is flushed.
    keys, written = seen.rows("rocksdb_estimate_num_keys", "store"), seen.rows("store_written_records_total", "store")
    assert keys["once-dedupe-store"] == 41
    assert 5 <= keys["totals"] <= written["totals"]
    assert seen.rows("rocksdb_bytes_written_total", "store")["totals"] > 0
    assert seen.rows("store_get_total", "store")["totals"] >= 1
    assert seen.rows("process_resident_memory_bytes", "process")["client"] > 1e7
    assert sum(seen.rows("thread_state", "thread", "state").values()) == 2


def commits(made: StreamsClient) -> dict[str, float]:
    return Scrape(made).rows("thread_commit_total", "thread")


def test_info_shows_a_restoration_and_leaves_out_what_costs(broker: Any, namespace: str, tmp_path: Path) -> None:
    bootstrap, n = broker.bootstrap_servers, namespace
    make_topics(bootstrap, **{f"{n}-orders": 4, f"{n}-totals": 1})
    send(bootstrap, f"{n}-orders", orders(range(40)))
    with client(bootstrap, n, topology(n), tmp_path / "first") as first:
        run_until_done(first, [f"{n}-orders"])
        until_done(first, [f"{n}-by-user-repartition"])
    with client(bootstrap, n, topology(n), tmp_path / "second") as second:
        run_until_done(second, [f"{n}-orders"])
        seen = Scrape(second)
    assert seen.families == shown_at(Level.INFO, snapshots=False)
    assert seen.value("restore_total") >= 5
    assert set(seen.rows("restore_remaining_records", "store", "partition").values()) == {0}
    assert seen.rows("rocksdb_estimate_num_keys", "store")["totals"] >= 5
    assert seen.value("process_total") == 0
