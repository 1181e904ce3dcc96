"""Topologies compiled over the tests' Spark session, and records to run through them without a broker."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from streams_runtime.api import parse_application
from streams_runtime.kafka.types import TopicPartition
from streams_runtime.pipeline.compile import Compiler
from streams_runtime.pipeline.runner import Emission, StageResult, SubTopologyRunner
from streams_runtime.pipeline.source import RAW_SCHEMA, BatchInput, OffsetRange, RecordReader
from streams_runtime.state.store import KeyValueStore
from streams_runtime.tasks.updates import Merged, merged
from streams_runtime.topology.build import build_topology
from streams_runtime.topology.plan import Topology

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Headers = Sequence[tuple[str, bytes | None]]


@dataclass(frozen=True)
class Record:
    """A record of a topic; `offset` None is the next one of its partition, `time` is in ms."""

    key: bytes | None
    value: bytes | None
    topic: str = "in"
    partition: int = 0
    offset: int | None = None
    time: int = 1000
    headers: Headers | None = None


def batch(*records: Record) -> BatchInput:
    """The records as the member would have fetched them."""
    ends: dict[TopicPartition, int] = {}
    starts: dict[TopicPartition, int] = {}
    rows: list[list[Any]] = []
    for each in records:
        partition = TopicPartition(each.topic, each.partition)
        offset = ends.get(partition, 0) if each.offset is None else each.offset
        starts.setdefault(partition, offset)
        ends[partition] = offset + 1
        headers = None if each.headers is None else [{"key": key, "value": value} for key, value in each.headers]
        rows.append([each.key, each.value, each.topic, each.partition, offset, each.time * 1000, headers])
    columns = list(zip(*rows, strict=True)) if rows else [[] for _ in RAW_SCHEMA]
    arrays = [pa.array(column, field.type) for column, field in zip(columns, RAW_SCHEMA, strict=True)]
    ranges = tuple(OffsetRange(each, starts[each], end) for each, end in ends.items())
    return BatchInput(ranges, pa.table(arrays, schema=RAW_SCHEMA))


def topology_of(
    sources: Sequence[Mapping[str, Any]],
    steps: Sequence[Mapping[str, Any]] = (),
    sinks: Sequence[Mapping[str, Any]] = (),
) -> Topology:
    """The plan of an application with this topology, named `app`."""
    document = {
        "apiVersion": "streamsoperator.io/v1alpha1",
        "kind": "StreamsApplication",
        "metadata": {"name": "app"},
        "spec": {"topology": {"sources": list(sources), "steps": list(steps), "sinks": list(sinks)}},
    }
    return build_topology(parse_application(document))


def source(value: str = "json", schema: str | None = None, key: str | None = "string", **more: Any) -> dict[str, Any]:
    """A source named `in` of the topic `in`, unless `more` says otherwise."""
    formats: dict[str, Any] = {"value": {"format": value} | ({"schema": schema} if schema else {})}
    if key is not None:
        formats["key"] = {"format": key}
    return {"name": "in", "topic": "in"} | formats | more


class Pipeline:
    """A compiled topology."""

    def __init__(self, spark: SparkSession, topology: Topology, kafka: Mapping[str, str] | None = None) -> None:
        """`kafka` are the Java client properties with which Spark reads by itself."""
        self.topology = topology
        self.compiler = Compiler(spark, topology)
        reader = RecordReader(spark, kafka or {})
        self.runners = {sub.id: SubTopologyRunner(self.compiler, reader, sub) for sub in topology.subtopologies}

    def run(self, *records: Record, sub: int = 0) -> StageResult:
        """The first stage of a batch of these records."""
        return self.runners[sub].run(batch(*records))

    def merge(self, result: StageResult, stores: Mapping[int, KeyValueStore], at: int = 0) -> Merged:
        """The state side of one of the batch's aggregates."""
        keyed = result.keyed[at]
        return merged(self.compiler.aggregate(keyed.node.name), keyed, stores)


def sent(emissions: Iterable[Emission], topic: str) -> list[tuple[bytes | None, bytes | None, int]]:
    """Key, value and time of what goes to a topic, in order."""
    return [
        row
        for each in emissions
        if each.topic == topic
        for row in zip(each.keys, each.values, each.timestamps, strict=True)
    ]
