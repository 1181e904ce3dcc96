"""Whole topologies over records in memory: what each sink has in the end, wherever batches begin."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from typing import Any

from case_marks import BY_TIME, Marks, Row
from pipeline_bench import Case, Sinks, sinks_apart, together
from pipeline_kit import Pipeline, Record
from shared_cases import batches
from state_kit import memory_folder

from streams_runtime.processing.failures.error_policy import ErrorPolicy
from streams_runtime.testing.mock_producer import Sent
from streams_runtime.testing.topology_runner import TopologyRunner
from streams_runtime.topology.partition_counts import partition_counts

_FAIL = ErrorPolicy("fail")


def sinks_of(pipeline: Pipeline, records: Sequence[Record], cuts: list[int], partitions: int) -> Sinks:
    """Each sink's records in order."""
    return _sinks(pipeline, [records[first:end] for first, end in batches(len(records), cuts)], partitions)


def sinks_each(pipeline: Pipeline, cases: Sequence[Case], partitions: int = 1, marks: Marks = BY_TIME) -> list[Sinks]:
    """The same of cases that share batches; see pipeline_bench.together."""
    return sinks_apart(_sinks(pipeline, together(cases, marks, partitions), len(cases) * partitions), marks, len(cases))


def _sinks(pipeline: Pipeline, parts: Iterable[Sequence[Record]], partitions: int) -> Sinks:
    topology = pipeline.topology
    sinks: Sinks = {topic: [] for topic in topology.sink_topics}
    counts = dict(partition_counts(topology, dict.fromkeys(topology.source_topics, partitions)))
    with ExitStack() as stack:
        folder = stack.enter_context(memory_folder())
        counts |= dict.fromkeys(sinks, 1)
        machine = TopologyRunner(topology, pipeline.compiled, (_FAIL, _FAIL), counts, folder)
        stack.callback(machine.close)
        for part in parts:
            for each in part:
                machine.logs.append(Sent(each.topic, each.partition, each.key, each.value, each.time), each.key)
            machine.work()
            for topic in sinks:
                sinks[topic] += _taken(machine, topic)
    return sinks


def _taken(machine: TopologyRunner, topic: str) -> Iterator[Row]:
    unread = machine.logs.unread(topic)
    while unread:
        each = unread.popleft()
        yield each.key, each.value and json.loads(each.value), each.timestamp


def of_keys(sinks: Mapping[str, Sequence[Any]]) -> dict[tuple[str, bytes | None], list[Any]]:
    found: dict[tuple[str, bytes | None], list[Any]] = {}
    for topic, rows in sinks.items():
        for key, value, time in rows:
            found.setdefault((topic, key), []).append((value, time))
    return found


def asked(records: Sequence[Record]) -> list[dict[str, Any]]:
    """The records as the oracle's driver takes them."""
    return [
        {
            "topic": each.topic,
            "key": each.key and each.key.decode(),
            "value": each.value and each.value.decode(),
            "time": each.time,
        }
        for each in records
    ]
