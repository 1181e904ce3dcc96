"""Topologies compiled over the tests' Spark session, and records to run through them without a broker."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import orjson
import pytest

from streams_runtime.api import parse_application
from streams_runtime.batch.stage import Emission, StageOutput
from streams_runtime.errors import InvalidApplicationException
from streams_runtime.pipeline.batch_input import BatchInput
from streams_runtime.pipeline.compiled_topology import compiled
from streams_runtime.pipeline.formats.schema_ids import Schemas
from streams_runtime.processors.aggregates.store_updates import Merged, merged
from streams_runtime.state.store import KeyValueStore
from streams_runtime.testing.memory_topics import Logged, batch_of
from streams_runtime.topology.declared.build_topology import build_topology
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
    ends: Counter[tuple[str, int]] = Counter()
    logged = []
    for each in records:
        offset = ends[each.topic, each.partition] if each.offset is None else each.offset
        ends[each.topic, each.partition] = offset + 1
        headers = None if each.headers is None else list(each.headers)
        logged.append(Logged(each.topic, each.partition, offset, each.key, each.value, each.time, headers))
    return batch_of(logged)


BY_SPARK: Mapping[str, Any] = {"spark": {"config": {"spark.sql.ansi.enabled": "true"}}}
"""Of a spec: types that only Spark's analysis judges, as with any configuration of its SQL."""


def topology_of(
    sources: Sequence[Mapping[str, Any]],
    steps: Sequence[Mapping[str, Any]] = (),
    sinks: Sequence[Mapping[str, Any]] = (),
    **spec: Any,
) -> Topology:
    """The plan of an application with this topology, named `app`."""
    document = {
        "apiVersion": "streamsoperator.io/v1alpha1",
        "kind": "StreamsApplication",
        "metadata": {"name": "app"},
        "spec": {"topology": {"sources": list(sources), "steps": list(steps), "sinks": list(sinks)}, **spec},
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

    def __init__(
        self,
        spark: SparkSession,
        topology: Topology,
        kafka: Mapping[str, str] | None = None,
        schemas: Schemas | None = None,
    ) -> None:
        """`kafka` are librdkafka's properties, with which Spark's workers read."""
        self.topology = topology
        self.compiled = compiled(spark, topology, kafka or {}, schemas)
        self.compiler, self.runners = self.compiled.compiler, self.compiled.runners

    def run(self, *records: Record, sub: int = 0) -> StageOutput:
        """The first stage of a batch of these records."""
        return self.runners[sub].run(batch(*records))

    def merge(self, result: StageOutput, stores: Mapping[int, KeyValueStore], at: int = 0) -> Merged:
        """The state side of one of the batch's aggregates."""
        keyed = result.store_batches[at]
        return merged(self.compiler.aggregate(keyed.node.name), keyed, stores)


def mistakes_of(spark: SparkSession, topology: Topology) -> dict[str, str]:
    """What is found wrong with the topology when it is compiled, by field path."""
    with pytest.raises(InvalidApplicationException) as refused:
        Pipeline(spark, topology)
    return {mistake.path: f"{mistake.found}; {mistake.remedy}" for mistake in refused.value.mistakes}


def sent(emissions: Iterable[Emission], topic: str) -> list[tuple[bytes | None, bytes | None, int]]:
    """Key, value and time of what goes to a topic, in order."""
    return [
        row
        for each in emissions
        if each.topic == topic
        for row in zip(each.keys, each.values, each.timestamps, strict=True)
    ]


def values(result: StageOutput, topic: str = "out") -> list[tuple[bytes | None, Any]]:
    """Keys and JSON values that go to a topic, in order."""
    return [(key, None if value is None else orjson.loads(value)) for key, value, _ in sent(result.emissions, topic)]


def json(**columns: Any) -> bytes:
    """A JSON object of these columns."""
    return orjson.dumps(columns)


def loaded(value: bytes | None) -> Any:
    """The column `v` of a JSON value; None of none."""
    return None if value is None else orjson.loads(value)["v"]
