"""Metrics of single stream threads."""

from __future__ import annotations

from streams_runtime.metrics.metric_definition import Kind, Metric

_LABELS = ("thread",)


def _thread(name: str, kind: Kind, unit: str, meaning: str, kafka: str = "") -> Metric:
    theirs = f"stream-thread-metrics: {kafka}" if kafka else ""
    return Metric(f"kafka_streams_thread_{name}", kind, unit, meaning, _LABELS, theirs)


STATE = Metric(
    "kafka_streams_thread_state",
    "gauge",
    "0 or 1",
    "1 for the state that the thread is in.",
    ("thread", "state"),
    "stream-thread-metrics: thread-state (KIP-1091)",
)
START = _thread("start_time", "gauge", "ms since 1970", "When the thread began.", "thread-start-time (KIP-761)")
BLOCKED = _thread(
    "blocked_time_ns",
    "counter",
    "ns",
    "Time in which it waited for the brokers: for records, acknowledgements, commits and the ends of changelogs."
    " Without the wait for room among the records that are to be sent.",
    "blocked-time-ns-total (KIP-761)",
)
POLL_RATE = _thread("poll_rate", "gauge", "polls/s", "Looks for the next batch.", "poll-rate")
POLL_TOTAL = _thread("poll", "counter", "polls", "Looks for the next batch.", "poll-total")
POLL_LATENCY_AVG = _thread(
    "poll_latency_avg", "gauge", "ms", "Of a poll, the wait for records included.", "poll-latency-avg"
)
POLL_LATENCY_MAX = _thread("poll_latency_max", "gauge", "ms", "The longest poll.", "poll-latency-max")
POLL_RECORDS_AVG = _thread(
    "poll_records_avg", "gauge", "records", "Of a poll; behind a backlog offsets, as Spark reads.", "poll-records-avg"
)
POLL_RECORDS_MAX = _thread("poll_records_max", "gauge", "records", "The most of a poll.", "poll-records-max")
POLL_RATIO = _thread("poll_ratio", "gauge", "part of the time", "What polls take.", "poll-ratio (KIP-444)")
PROCESS_RATE = _thread("process_rate", "gauge", "records/s", "Records that were processed.", "process-rate")
PROCESS_TOTAL = _thread("process", "counter", "records", "Records that were processed.", "process-total")
PROCESS_LATENCY_AVG = _thread(
    "process_latency_avg",
    "gauge",
    "ms",
    "Of a batch of a sub-topology: the wait for Spark, stores read, output handed over.",
    "process-latency-avg, of a batch",
)
PROCESS_LATENCY_MAX = _thread(
    "process_latency_max", "gauge", "ms", "The longest of these.", "process-latency-max, of a batch"
)
PROCESS_RECORDS_AVG = _thread(
    "process_records_avg", "gauge", "records", "The size of a batch of a sub-topology.", "process-records-avg"
)
PROCESS_RECORDS_MAX = _thread("process_records_max", "gauge", "records", "The largest batch.", "process-records-max")
PROCESS_RATIO = _thread(
    "process_ratio", "gauge", "part of the time", "What processing takes.", "process-ratio (KIP-444)"
)
COMMIT_RATE = _thread("commit_rate", "gauge", "commits/s", "Commits that held.", "commit-rate")
COMMIT_TOTAL = _thread("commit", "counter", "commits", "Commits that held.", "commit-total")
COMMIT_LATENCY_AVG = _thread(
    "commit_latency_avg",
    "gauge",
    "ms",
    "From the end of processing until output is acknowledged, and offsets or transaction are committed.",
    "commit-latency-avg",
)
COMMIT_LATENCY_MAX = _thread("commit_latency_max", "gauge", "ms", "The longest of these.", "commit-latency-max")
COMMIT_RATIO = _thread("commit_ratio", "gauge", "part of the time", "What commits take.", "commit-ratio (KIP-444)")
CREATED_RATE = _thread("task_created_rate", "gauge", "tasks/s", "Active tasks that were opened.", "task-created-rate")
CREATED_TOTAL = _thread("task_created", "counter", "tasks", "Active tasks that were opened.", "task-created-total")
CLOSED_RATE = _thread("task_closed_rate", "gauge", "tasks/s", "Active tasks that were closed.", "task-closed-rate")
CLOSED_TOTAL = _thread("task_closed", "counter", "tasks", "Active tasks that were closed.", "task-closed-total")
STAGES = Metric(
    "kafka_streams_batch_stage_seconds",
    "summary",
    "s",
    "Where the time of batches goes: `spark` (the wait for Spark), `process` (stores read, output handed over),"
    " `commit`, `changelog-ends` (the brokers asked where changelogs end), `store` (stores written).",
    ("thread", "stage"),
)
THREAD = (
    STATE,
    START,
    BLOCKED,
    POLL_RATE,
    POLL_TOTAL,
    POLL_LATENCY_AVG,
    POLL_LATENCY_MAX,
    POLL_RECORDS_AVG,
    POLL_RECORDS_MAX,
    POLL_RATIO,
    PROCESS_RATE,
    PROCESS_TOTAL,
    PROCESS_LATENCY_AVG,
    PROCESS_LATENCY_MAX,
    PROCESS_RECORDS_AVG,
    PROCESS_RECORDS_MAX,
    PROCESS_RATIO,
    COMMIT_RATE,
    COMMIT_TOTAL,
    COMMIT_LATENCY_AVG,
    COMMIT_LATENCY_MAX,
    COMMIT_RATIO,
    CREATED_RATE,
    CREATED_TOTAL,
    CLOSED_RATE,
    CLOSED_TOTAL,
    STAGES,
)
