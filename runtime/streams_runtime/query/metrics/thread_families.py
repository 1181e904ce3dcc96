"""Families of single stream threads."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from streams_runtime.metrics.definitions import thread_definitions as defined
from streams_runtime.metrics.sampled import Reading, Sampled
from streams_runtime.metrics.thread_recorder import ThreadRecorder
from streams_runtime.query.metrics.families import Families, milliseconds
from streams_runtime.states import ThreadState

# The recorder's field, and the metrics of how often, how long on average and at most, and which part of the time.
_TIMES = (
    ("poll", None, defined.POLL_LATENCY_AVG, defined.POLL_LATENCY_MAX, defined.POLL_RATIO),
    ("process", None, defined.PROCESS_LATENCY_AVG, defined.PROCESS_LATENCY_MAX, defined.PROCESS_RATIO),
    ("commit", defined.COMMIT_RATE, defined.COMMIT_LATENCY_AVG, defined.COMMIT_LATENCY_MAX, defined.COMMIT_RATIO),
)


def add_threads(families: Families, rows: Iterable[Mapping[str, Any]], recorders: Mapping[str, ThreadRecorder]) -> None:
    """All families with the label `thread`; `rows` are the threads of `/state`."""
    states = [((row["name"], state), float(row["state"] == state)) for row in rows for state in ThreadState]
    families.add(defined.STATE, states)
    started = {name: each.started_at for name, each in recorders.items()}
    families.add(defined.START, [((name,), milliseconds(at)) for name, at in started.items()])
    families.add(defined.BLOCKED, [((name,), each.blocked * 1e9) for name, each in recorders.items()])
    for field, rate, average, highest, ratio in _TIMES:
        read = {name: _read(each, getattr(each, field)) for name, each in recorders.items()}
        if rate is not None:
            families.add(rate, [((name,), each.rate) for name, each in read.items()])
        families.add(average, [((name,), milliseconds(each.average)) for name, each in read.items()])
        families.add(highest, [((name,), milliseconds(each.highest)) for name, each in read.items()])
        # A poll or a batch that ends counts as a whole, though it may have begun before the window.
        families.add(ratio, [((name,), min(each.total_rate, 1.0)) for name, each in read.items()])
    _add_counts(families, recorders)
    stages = [
        ((name, stage), reading.count, reading.total)
        for name, each in recorders.items()
        for stage, sampled in each.stages.items()
        for reading in [_read(each, sampled)]
    ]
    families.add_summaries(defined.STAGES, stages)


def _add_counts(families: Families, recorders: Mapping[str, ThreadRecorder]) -> None:
    polls = {name: _read(each, each.poll) for name, each in recorders.items()}
    families.add(defined.POLL_RATE, [((name,), each.rate) for name, each in polls.items()])
    families.add(defined.POLL_TOTAL, [((name,), each.count) for name, each in polls.items()])
    polled = {name: _read(each, each.poll_records) for name, each in recorders.items()}
    families.add(defined.POLL_RECORDS_AVG, [((name,), each.average) for name, each in polled.items()])
    families.add(defined.POLL_RECORDS_MAX, [((name,), each.highest) for name, each in polled.items()])
    processed = {name: _read(each, each.process_records) for name, each in recorders.items()}
    families.add(defined.PROCESS_RATE, [((name,), each.total_rate) for name, each in processed.items()])
    families.add(defined.PROCESS_TOTAL, [((name,), each.total) for name, each in processed.items()])
    families.add(defined.PROCESS_RECORDS_AVG, [((name,), each.average) for name, each in processed.items()])
    families.add(defined.PROCESS_RECORDS_MAX, [((name,), each.highest) for name, each in processed.items()])
    commits = {name: _read(each, each.commit) for name, each in recorders.items()}
    families.add(defined.COMMIT_TOTAL, [((name,), each.count) for name, each in commits.items()])
    created = {name: _read(each, each.tasks_created) for name, each in recorders.items()}
    families.add(defined.CREATED_RATE, [((name,), each.rate) for name, each in created.items()])
    families.add(defined.CREATED_TOTAL, [((name,), each.count) for name, each in created.items()])
    closed = {name: _read(each, each.tasks_closed) for name, each in recorders.items()}
    families.add(defined.CLOSED_RATE, [((name,), each.rate) for name, each in closed.items()])
    families.add(defined.CLOSED_TOTAL, [((name,), each.count) for name, each in closed.items()])


def _read(recorder: ThreadRecorder, sampled: Sampled) -> Reading:
    return sampled.reading(recorder.clock())
