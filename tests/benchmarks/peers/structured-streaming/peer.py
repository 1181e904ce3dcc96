"""The benchmark's work on Spark Structured Streaming with RocksDB as its state store: until SIGTERM."""

from __future__ import annotations

import argparse
import os
import signal
import sys
import threading
from datetime import datetime
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).parents[1]))

from printed import Printed
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

BATCH = 500_000
"""Records of a batch of a backlog: this project's own limit."""
LOOK_S = 0.1
_ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"


def main() -> None:
    """Run until SIGTERM; with `--until-end` the backlog is worked off as such, and then nothing more is done."""
    arguments = _arguments()
    ending = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: ending.set())
    printed = Printed()
    printed.mark("created")
    spark = _session(arguments)
    result = TASKS[arguments.task](_accepted(spark, arguments))
    writer = result.writeStream.format("kafka").outputMode("update").option("topic", arguments.output)
    writer = writer.option("kafka.bootstrap.servers", arguments.bootstrap_servers)
    writer = writer.option("checkpointLocation", arguments.state_dir)
    query = (writer.trigger(availableNow=True) if arguments.until_end else writer).start()
    printed.start()
    counted = -1
    while not ending.wait(LOOK_S):
        counted = _count(query, printed, counted)
        if query.exception() is not None:
            raise query.exception()
    query.stop()
    spark.stop()
    printed.mark("closed")
    printed.line()


def _count(query: Any, printed: Printed, counted: int) -> int:
    """Add what batches after the number `counted` have read, and return the last one's number."""
    for progress in query.recentProgress:
        if progress["batchId"] > counted and progress["numInputRows"]:
            counted = progress["batchId"]
            begin = int(datetime.fromisoformat(progress["timestamp"]).timestamp() * 1000)
            printed.moments.setdefault("first_record", begin)
            printed.moments["last_record"] = begin + progress["batchDuration"]
            printed.processed += progress["numInputRows"]
    return counted


def _session(arguments: argparse.Namespace) -> SparkSession:
    os.environ["JAVA_HOME"] = str(Path(arguments.java).parents[1])
    config = {
        "spark.jars": arguments.jars,
        "spark.driver.memory": arguments.heap,
        "spark.ui.enabled": "false",
        "spark.sql.session.timeZone": "UTC",
        # Its guide: no more partitions of state than cores, RocksDB, and its changes instead of whole snapshots.
        "spark.sql.shuffle.partitions": str(os.cpu_count()),
        "spark.sql.streaming.stateStore.providerClass": _ROCKSDB,
        "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
        "spark.sql.streaming.numRecentProgressUpdates": "1000",
    }
    builder = SparkSession.builder.master("local[*]").appName(arguments.application_id)
    for name, value in config.items():
        builder = builder.config(name, value)
    spark: SparkSession = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    return spark


def _accepted(spark: SparkSession, arguments: argparse.Namespace) -> DataFrame:
    reader = spark.readStream.format("kafka").option("kafka.bootstrap.servers", arguments.bootstrap_servers)
    reader = reader.option("subscribe", arguments.orders).option("startingOffsets", "earliest")
    if arguments.until_end:
        reader = reader.option("maxOffsetsPerTrigger", BATCH)
    value = F.from_json(F.col("value").cast("string"), "user STRING, amount BIGINT, ts BIGINT").alias("order")
    return reader.load().select(F.col("key").cast("string").alias("key"), "timestamp", value).where("order.amount >= 0")


def totals(orders: DataFrame) -> DataFrame:
    """Sum and count per key."""
    return (
        orders.groupBy("key")
        .agg(F.sum("order.amount").alias("total"), F.count("*").alias("n"))
        .select("key", F.to_json(F.struct("total", "n")).alias("value"))
    )


def windowed(orders: DataFrame) -> DataFrame:
    """Count per key and window, as in topologies/windowed.yaml."""
    counted = orders.withWatermark("timestamp", "1 minute").groupBy(F.window("timestamp", "10 minutes"), "key")
    start = F.unix_millis("window.start").alias("start")
    return counted.agg(F.count("*").alias("n")).select("key", F.to_json(F.struct(start, "n")).alias("value"))


TASKS = {"totals": totals, "windowed": windowed}


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--task", choices=TASKS, required=True)
    for name in ("bootstrap-servers", "application-id", "state-dir", "orders", "output", "jars", "java", "heap"):
        parser.add_argument(f"--{name}", required=True)
    parser.add_argument("--guarantee", choices=("at_least_once",), required=True)
    parser.add_argument("--until-end", action="store_true")
    return parser.parse_args()


if __name__ == "__main__":
    main()
