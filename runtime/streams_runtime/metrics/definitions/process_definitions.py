"""Metrics of the processes of an instance: its own, Spark's, and those that load stores."""

from __future__ import annotations

from streams_runtime.metrics.metric_definition import Metric

MEMORY = Metric(
    "kafka_streams_process_resident_memory_bytes",
    "gauge",
    "bytes",
    "Resident memory by kind: `client` (this process), `jvm` (Spark), `worker` (Python workers of Spark, and those that"
    " load stores). Pages that workers share count for each. On Linux only; executors elsewhere are not among them.",
    ("process",),
)
PROCESSES = Metric("kafka_streams_processes", "gauge", "processes", "How many of each kind there are.", ("process",))
PROCESS = (MEMORY, PROCESSES)
