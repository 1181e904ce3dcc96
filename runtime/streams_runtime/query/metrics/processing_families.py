"""Families of sub-topologies, steps, nodes and topics: what all threads have measured, added up."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypeVar

from streams_runtime.metrics.definitions import processing_definitions as defined
from streams_runtime.metrics.sampled import Reading, Sampled
from streams_runtime.metrics.thread_recorder import ThreadRecorder
from streams_runtime.query.metrics.families import Families, milliseconds

K = TypeVar("K")
_Get = Callable[[ThreadRecorder], Mapping[K, Sampled]]
_Numbers = Callable[[ThreadRecorder], Mapping[str, int]]


def add_processing(families: Families, recorders: Sequence[ThreadRecorder]) -> None:
    """All of them."""
    _add_tasks(families, recorders)
    dropped = readings(recorders, lambda each: each.dropped)
    families.add(defined.STEP_DROPPED, [(labels, each.count) for labels, each in dropped.items()])
    families.add(defined.STEP_DROPPED_RATE, [(labels, each.rate) for labels, each in dropped.items()])
    ages = readings(recorders, lambda each: each.latency)
    families.add(defined.E2E_AVG, [((node,), each.average) for node, each in ages.items()])
    families.add(defined.E2E_MIN, [((node,), each.lowest) for node, each in ages.items()])
    families.add(defined.E2E_MAX, [((node,), each.highest) for node, each in ages.items()])
    nodes = readings(recorders, lambda each: each.node_records)
    families.add(defined.NODE_RATE, [((node,), each.total_rate) for node, each in nodes.items()])
    families.add(defined.NODE_TOTAL, [((node,), each.total) for node, each in nodes.items()])
    for metric, get in (
        (defined.CONSUMED, lambda each: each.consumed),
        (defined.PRODUCED, lambda each: each.produced),
        (defined.PRODUCED_BYTES, lambda each: each.produced_bytes),
    ):
        families.add(metric, [((topic,), number) for topic, number in totals(recorders, get).items()])


def _add_tasks(families: Families, recorders: Sequence[ThreadRecorder]) -> None:
    times = readings(recorders, lambda each: each.task_process)
    whole = sum(each.recent.total for each in times.values())
    ratios = [((sub,), each.recent.total / whole if whole else 0.0) for sub, each in times.items()]
    families.add(defined.ACTIVE_RATIO, ratios)
    families.add(defined.TASK_LATENCY_AVG, [((sub,), milliseconds(each.average)) for sub, each in times.items()])
    families.add(defined.TASK_LATENCY_MAX, [((sub,), milliseconds(each.highest)) for sub, each in times.items()])
    records = readings(recorders, lambda each: each.task_records)
    families.add(defined.TASK_PROCESS_RATE, [((sub,), each.total_rate) for sub, each in records.items()])
    families.add(defined.TASK_PROCESS_TOTAL, [((sub,), each.total) for sub, each in records.items()])
    commits = readings(recorders, lambda each: each.task_commit)
    families.add(defined.TASK_COMMIT_RATE, [((sub,), each.rate) for sub, each in commits.items()])
    families.add(defined.TASK_COMMIT_TOTAL, [((sub,), each.count) for sub, each in commits.items()])


def readings(recorders: Iterable[ThreadRecorder], get: _Get[K]) -> dict[K, Reading]:
    """What all of them have measured, by what `get` has it by."""
    found: dict[K, Reading] = {}
    for recorder in recorders:
        now = recorder.clock()
        # One call, in which the recording thread has no turn: a loop over it would meet a new key.
        for key, sampled in dict(get(recorder)).items():
            found[key] = found.get(key, Reading()) + sampled.reading(now)
    return found


def totals(recorders: Iterable[ThreadRecorder], get: _Numbers) -> Mapping[str, int]:
    """The sums of what all of them have counted."""
    found: Counter[str] = Counter()
    for recorder in recorders:
        found.update(dict(get(recorder)))
    return found
