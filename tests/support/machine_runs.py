"""Whole topologies over records in memory: what each sink has in the end, wherever batches begin."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from typing import Any

from pipeline_bench import batches
from pipeline_kit import Pipeline, Record
from state_kit import memory_folder

from streams_runtime.tasks.unreadable import ErrorPolicy
from streams_runtime.testing.machine import Machine
from streams_runtime.testing.outbox import Sent
from streams_runtime.topology.partitions import partition_counts

Rows = dict[str, list[tuple[bytes | None, Any, int]]]


def sinks_of(pipeline: Pipeline, records: Sequence[Record], cuts: list[int], partitions: int) -> Rows:
    """Each sink's records in order."""
    topology = pipeline.topology
    sinks: Rows = {topic: [] for topic in topology.sink_topics}
    counts = dict(partition_counts(topology, dict.fromkeys(topology.source_topics, partitions)))
    with ExitStack() as stack:
        folder = stack.enter_context(memory_folder())
        counts |= dict.fromkeys(sinks, 1)
        machine = Machine(topology, pipeline.compiled, ErrorPolicy("fail", None), counts, folder)
        stack.callback(machine.close)
        for first, end in batches(len(records), cuts):
            for each in records[first:end]:
                machine.logs.append(Sent(each.topic, each.partition, each.key, each.value, each.time), each.key)
            machine.work()
            for topic in sinks:
                sinks[topic] += _taken(machine, topic)
    return sinks


def _taken(machine: Machine, topic: str) -> Iterator[tuple[bytes | None, Any, int]]:
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
