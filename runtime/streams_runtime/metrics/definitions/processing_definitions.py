"""Metrics of sub-topologies, nodes and topics, over all threads and partitions of an instance."""

from __future__ import annotations

from streams_runtime.metrics.metric_definition import Kind, Level, Metric

_NODE, _TOPIC, _SUB = ("node",), ("topic",), ("subtopology",)


def _task(name: str, kind: Kind, unit: str, meaning: str, kafka: str, level: Level = Level.DEBUG) -> Metric:
    theirs = f"stream-task-metrics: {kafka}, by sub-topology"
    return Metric(f"kafka_streams_task_{name}", kind, unit, meaning, _SUB, theirs, level)


def _latency(name: str, meaning: str) -> Metric:
    theirs = f"stream-processor-node-metrics: record-e2e-latency-{name} (KIP-613)"
    return Metric(f"kafka_streams_processor_node_record_e2e_latency_{name}", "gauge", "ms", meaning, _NODE, theirs)


ACTIVE_RATIO = _task(
    "active_process_ratio",
    "gauge",
    "part",
    "What the sub-topology has of the time that threads spend processing.",
    "active-process-ratio",
    Level.INFO,
)
TASK_PROCESS_RATE = _task("process_rate", "gauge", "records/s", "Records that were processed.", "process-rate")
TASK_PROCESS_TOTAL = _task("process", "counter", "records", "Records that were processed.", "process-total")
TASK_LATENCY_AVG = _task("process_latency_avg", "gauge", "ms", "Of a batch.", "process-latency-avg")
TASK_LATENCY_MAX = _task("process_latency_max", "gauge", "ms", "Of the slowest batch.", "process-latency-max")
TASK_COMMIT_RATE = _task("commit_rate", "gauge", "commits/s", "Commits of its batches.", "commit-rate")
TASK_COMMIT_TOTAL = _task("commit", "counter", "commits", "Commits of its batches.", "commit-total")
STEP_DROPPED = Metric(
    "kafka_streams_step_dropped_records",
    "counter",
    "records",
    "Records that a declared step or source has left out, by reason; the page on metrics has the reasons.",
    ("step", "reason"),
    "stream-task-metrics: dropped-records-total, by step",
)
STEP_DROPPED_RATE = Metric(
    "kafka_streams_step_dropped_records_rate",
    "gauge",
    "records/s",
    "The same a second.",
    ("step", "reason"),
    "stream-task-metrics: dropped-records-rate, by step",
)
E2E_AVG = _latency("avg", "How old records are at a source, and at the end of their way: a sink, or a store.")
E2E_MIN = _latency("min", "The youngest record.")
E2E_MAX = _latency("max", "The oldest record.")
NODE_RATE = Metric(
    "kafka_streams_processor_node_process_rate",
    "gauge",
    "records/s",
    "Records that came to a source, a sink, or a step that meets stores or merges.",
    _NODE,
    "stream-processor-node-metrics: process-rate",
    Level.DEBUG,
)
NODE_TOTAL = Metric(
    "kafka_streams_processor_node_process",
    "counter",
    "records",
    "The same in all.",
    _NODE,
    "stream-processor-node-metrics: process-total",
    Level.DEBUG,
)
CONSUMED = Metric(
    "kafka_streams_topic_records_consumed",
    "counter",
    "records",
    "Records that sources have read, unreadable ones included.",
    _TOPIC,
    "stream-topic-metrics: records-consumed-total (KIP-846)",
)
PRODUCED = Metric(
    "kafka_streams_topic_records_produced",
    "counter",
    "records",
    "Records that were handed to the producer; those of batches that were given up too. Without changelogs.",
    _TOPIC,
    "stream-topic-metrics: records-produced-total (KIP-846)",
)
PRODUCED_BYTES = Metric(
    "kafka_streams_topic_bytes_produced",
    "counter",
    "bytes",
    "Bytes of their keys and values. Kafka Streams has it at INFO; here each record has to be looked at for it.",
    _TOPIC,
    "stream-topic-metrics: bytes-produced-total (KIP-846)",
    Level.DEBUG,
)
PROCESSING = (
    ACTIVE_RATIO,
    TASK_PROCESS_RATE,
    TASK_PROCESS_TOTAL,
    TASK_LATENCY_AVG,
    TASK_LATENCY_MAX,
    TASK_COMMIT_RATE,
    TASK_COMMIT_TOTAL,
    STEP_DROPPED,
    STEP_DROPPED_RATE,
    E2E_AVG,
    E2E_MIN,
    E2E_MAX,
    NODE_RATE,
    NODE_TOTAL,
    CONSUMED,
    PRODUCED,
    PRODUCED_BYTES,
)
