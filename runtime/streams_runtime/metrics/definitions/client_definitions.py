"""Metrics of a client as a whole."""

from __future__ import annotations

from streams_runtime.metrics.metric_definition import Metric

_C = "client-metrics"

STATE = Metric(
    "kafka_streams_client_state",
    "gauge",
    "0 or 1",
    "1 for the state that the client is in.",
    ("state",),
    f"{_C}: state (KIP-444)",
)
INFO = Metric(
    "kafka_streams_client_info",
    "gauge",
    "1",
    "The version of this software and the level of recording, as labels.",
    ("version", "recording_level"),
    f"{_C}: version (KIP-444)",
)
PAUSED = Metric("kafka_streams_client_paused", "gauge", "0 or 1", "1 while the client is paused (KIP-834).")
SPARK_READY = Metric(
    "kafka_streams_client_spark_ready", "gauge", "0 or 1", "1 once Spark runs and has compiled the topology."
)
THREADS = Metric("kafka_streams_threads", "gauge", "threads", "Stream threads by state.", ("state",))
ALIVE = Metric(
    "kafka_streams_alive_stream_threads",
    "gauge",
    "threads",
    "Stream threads that are not DEAD.",
    kafka=f"{_C}: alive-stream-threads (KIP-444)",
)
FAILED = Metric(
    "kafka_streams_failed_stream_threads",
    "counter",
    "threads",
    "Stream threads that an error has ended, since the start.",
    kafka=f"{_C}: failed-stream-threads (KIP-444)",
)
TASKS = Metric(
    "kafka_streams_tasks", "gauge", "tasks", "Tasks that are assigned to this instance by state.", ("state",)
)
LAG = Metric(
    "kafka_streams_records_lag",
    "gauge",
    "records",
    "Records of a partition that are not processed yet.",
    ("topic", "partition"),
    "consumer-fetch-manager-metrics: records-lag",
)
PROCESS = Metric(
    "kafka_streams_process",
    "counter",
    "records",
    "Records that were processed.",
    kafka="stream-thread-metrics: process-total, over all threads",
)
DROPPED = Metric(
    "kafka_streams_dropped_records",
    "counter",
    "records",
    "Records that steps have left out, duplicates of a dedupe among them; not those that were late or unreadable.",
    kafka="stream-task-metrics: dropped-records-total, over all tasks",
)
LATE = Metric(
    "kafka_streams_late_records",
    "counter",
    "times",
    "Times that a record was too late for a window, or to be kept by a dedupe or a join.",
    kafka="stream-task-metrics: part of dropped-records-total",
)
RESTORE = Metric(
    "kafka_streams_restore",
    "counter",
    "records",
    "Records that were restored into stores.",
    kafka="stream-task-metrics: restore-total (KIP-869), over all tasks",
)
BATCHES = Metric("kafka_streams_batches", "counter", "batches", "Batches that were committed and stored.")
ERRORS = Metric(
    "kafka_streams_deserialization_errors", "counter", "records", "Records that could not be read with their format."
)
FAILED_RECORDS = Metric(
    "kafka_streams_processing_errors",
    "counter",
    "records",
    "Records that were left out because an expression or a function failed over them.",
)
REFUSED_RECORDS = Metric(
    "kafka_streams_production_errors",
    "counter",
    "records",
    "Records that were left out because the topic of a sink takes no such record.",
)
LETTERS = Metric("kafka_streams_dead_letters", "counter", "records", "Records that were sent to the dead letter topic.")
PEEK = Metric(
    "kafka_streams_peek",
    "summary",
    "records, and the sum of a value",
    "Records that passed a peek step with a metric, and the sum of its value over them.",
    ("step", "metric"),
)
COUNTERS = {
    "records_processed": PROCESS,
    "records_dropped": DROPPED,
    "late_records": LATE,
    "restored_records": RESTORE,
    "batches": BATCHES,
    "deserialization_errors": ERRORS,
    "processing_errors": FAILED_RECORDS,
    "production_errors": REFUSED_RECORDS,
    "dead_letters": LETTERS,
}
"""By the name that `/state` has for each among its counters."""
CLIENT = (STATE, INFO, PAUSED, SPARK_READY, THREADS, ALIVE, FAILED, TASKS, LAG, *COUNTERS.values(), PEEK)
