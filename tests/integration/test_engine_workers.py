"""Spark's Python workers, which a client's engine has started beside everything else."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from clients import client
from pyspark.sql import SparkSession
from waiting import eventually

from streams_runtime.pipeline.pushdown import scan_ranges

pytestmark = pytest.mark.integration

TOPOLOGY = """
sources:
  - {name: orders, topic: orders, key: {format: string}, value: {format: json, schema: "user string, amount bigint"}}
steps:
  - {name: totals, from: orders, aggregate: {total: sum(amount)}, store: totals}
"""


def test_an_engine_that_closes_ends_a_start_of_workers_that_takes_its_time(
    spark: SparkSession, broker: Any, namespace: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun = threading.Event()

    def for_ever(rows: Iterable[pa.RecordBatch]) -> Iterable[pa.RecordBatch]:
        while True:
            time.sleep(0.1)
            yield from ()

    def never_ready(session: SparkSession, workers: int) -> None:
        begun.set()
        session.range(0, workers, 1, workers).mapInArrow(for_ever, "id long").toArrow()

    monkeypatch.setattr(scan_ranges, "start_workers", never_ready)
    with client(broker.bootstrap_servers, namespace, TOPOLOGY, tmp_path) as made:
        made.context.engine.start()
        eventually(lambda: made.context.engine.ready() is not None, "the topology is compiled meanwhile")
        assert begun.is_set()
        eventually(lambda: spark.sparkContext.statusTracker().getActiveJobsIds(), "Spark starts workers")
        made.context.engine.close()
        assert not [each for each in threading.enumerate() if each.name == "workers"]
    eventually(lambda: not spark.sparkContext.statusTracker().getActiveJobsIds(), "no job is left")


def test_a_failed_start_of_workers_keeps_nobody_from_working(
    spark: SparkSession, broker: Any, namespace: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(session: SparkSession, workers: int) -> None:
        raise OSError("no more processes")

    monkeypatch.setattr(scan_ranges, "start_workers", fails)
    with client(broker.bootstrap_servers, namespace, TOPOLOGY, tmp_path) as made:
        made.context.engine.start()
        eventually(lambda: made.context.engine.ready() is not None, "the topology is compiled")
