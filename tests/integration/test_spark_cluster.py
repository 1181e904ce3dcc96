"""An instance whose records are read and computed with by the executors of a standalone Spark cluster."""

from __future__ import annotations

import shutil
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from clients import following_values, make_topics, send
from instances import Instance, write_application
from short_jvms import EXECUTOR_OPTIONS
from spark_cluster import EXECUTOR_MEMORY, spark_cluster
from waiting import eventually

if TYPE_CHECKING:
    from conftest import SharedBroker

pytestmark = [pytest.mark.integration, pytest.mark.timeout(600)]

# What only the scan makes, what rows go through Spark's executors for, and a function of a module that no executor has.
TOPOLOGY = """
functions:
  tier: {{python: "cluster_tiers:tier", returns: STRING}}
sources:
  - {{name: orders, topic: {orders}, key: {{format: string}},
     value: {{format: json, schema: "user STRING, amount BIGINT"}}}}
steps:
  - {{name: per-user, from: orders, keyBy: "user"}}
  - {{name: totals, from: per-user, aggregate: {{total: sum(amount), n: count(*)}}, store: totals}}
  - {{name: tiers, from: orders, keyBy: "tier(amount)"}}
  - {{name: per-tier, from: tiers, aggregate: {{n: count(*)}}, store: per-tier}}
sinks:
  - {{from: totals, topic: {totals}, value: {{format: json}}}}
  - {{from: per-tier, topic: {tiers}, value: {{format: json}}}}
"""
TIERS = """
def tier(amount):
    return "gold" if amount >= 500 else "plain"
"""
RECORDS, ROUNDS = 3000, 3


def orders(round_: int) -> list[tuple[str, dict[str, object]]]:
    numbers = range(round_ * RECORDS, (round_ + 1) * RECORDS)
    return [(f"o{number}", {"user": f"u{number % 97}", "amount": number * 7 % 1000}) for number in numbers]


@pytest.mark.long
def test_workers_may_die_and_come(broker: SharedBroker, namespace: str, tmp_path: Path) -> None:
    bootstrap = broker.bootstrap_servers
    topics = {name: f"{namespace}-{name}" for name in ("orders", "totals", "tiers")}
    make_topics(bootstrap, **{topics["orders"]: 4, topics["totals"]: 1, topics["tiers"]: 1})
    code = tmp_path / "code"
    code.mkdir()
    (code / "cluster_tiers.py").write_text(TIERS)
    with spark_cluster(tmp_path / "cluster", workers=2) as cluster:
        config = {
            "spark.cores.max": "2",
            "spark.executor.memory": EXECUTOR_MEMORY,
            "spark.executor.extraJavaOptions": EXECUTOR_OPTIONS,
        }
        write_application(
            code / "app.json",
            namespace,
            TOPOLOGY.format(**topics),
            processing={"commitInterval": "100ms", "maxBatchRecords": 1000},
            internalTopics={"replicationFactor": 1},
            spark={"master": cluster.master, "config": config},
        )
        instance = Instance(code / "app.json", bootstrap, "one", tmp_path)
        instance.start()
        try:
            eventually(lambda: state(instance) == "RUNNING", lambda: f"RUNNING: {log(tmp_path)}", 240)
            eventually(lambda: has_spark(instance), lambda: f"Spark is there: {log(tmp_path)}", 240)
            shutil.rmtree(code)  # the executors have the function from the driver

            sent: list[tuple[str, dict[str, object]]] = []
            totals, tiers = (following_values(bootstrap, topics[name]) for name in ("totals", "tiers"))

            def complete() -> bool:
                instance.check()
                return totals() == totals_of(sent) and tiers() == tiers_of(sent)

            for round_ in range(ROUNDS):
                sent += orders(round_)
                send(bootstrap, topics["orders"], orders(round_))
                if round_ == 1:
                    cluster.kill_worker()
                if round_ == 2:
                    cluster.kill_worker()  # none is left: batches wait
                    eventually(lambda: "runs no executor for this instance" in log(tmp_path), "the warning", 240)
                    assert state(instance) == "RUNNING"
                    cluster.add_worker()
                eventually(complete, lambda: f"results: {log(tmp_path)}", 240)
            assert state(instance) == "RUNNING"
            assert "runs 1 executors for this instance again" in log(tmp_path)
        finally:
            instance.stop()


def has_spark(instance: Instance) -> bool:
    instance.check()
    described = instance.described()
    return described is not None and described["spark_ready"]


def state(instance: Instance) -> str | None:
    instance.check()
    described = instance.described()
    return None if described is None else described["state"]


def log(folder: Path) -> str:
    return (folder / "one.log").read_text()


def totals_of(sent: list[tuple[str, dict[str, object]]]) -> dict[str, object]:
    totals, counts = Counter(), Counter()
    for _, order in sent:
        totals[order["user"]] += order["amount"]
        counts[order["user"]] += 1
    return {user: {"total": totals[user], "n": counts[user]} for user in counts}


def tiers_of(sent: list[tuple[str, dict[str, object]]]) -> dict[str, object]:
    counts = Counter("gold" if order["amount"] >= 500 else "plain" for _, order in sent)
    return {tier: {"n": count} for tier, count in counts.items()}
