"""A topology over a Spark session: what runs its batches, and what was found out about it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pyspark.sql import SparkSession

from streams_runtime.pipeline.compile import Compiler
from streams_runtime.pipeline.formats.schema_ids import Schemas
from streams_runtime.pipeline.record_reader import RecordReader
from streams_runtime.pipeline.runner import SubTopologyRunner
from streams_runtime.pipeline.spark.registered_functions import with_functions
from streams_runtime.pipeline.without_spark.findings import Findings
from streams_runtime.topology.nodes.aggregate_node import AggregateNode
from streams_runtime.topology.nodes.foreign_key_nodes import ForeignKeyJoinNode
from streams_runtime.topology.nodes.source_and_sink_nodes import SinkNode
from streams_runtime.topology.nodes.table_nodes import ToTableNode
from streams_runtime.topology.plan import Topology

_WITH_STORES = AggregateNode | ToTableNode | ForeignKeyJoinNode


@dataclass(frozen=True, slots=True)
class Compiled:
    """The compiler, which knows formats, and what runs the batches of each sub-topology, by its number."""

    compiler: Compiler
    runners: Mapping[int, SubTopologyRunner]

    def findings(self, topology: Topology) -> Findings:
        """What Spark's analysis has found out that needs no Spark; not of a topology with formats in a registry."""
        compiler, nodes = self.compiler, topology.nodes
        return Findings(
            {node.name: compiler.key_format(node.name).name for node in nodes if isinstance(node, _WITH_STORES)},
            {
                node.name: compiler.decoder(node.name).value.name
                for node in nodes
                if isinstance(node, ToTableNode | ForeignKeyJoinNode)
            },
            {node.name: compiler.aggregate(node.name) for node in nodes if isinstance(node, AggregateNode)},
            {node.name: compiler.value_format(node) for node in nodes if isinstance(node, SinkNode)},
            {number: runner.taken_over for number, runner in self.runners.items()},
            {number: runner.after_joins for number, runner in self.runners.items()},
        )


def compiled(
    session: SparkSession, topology: Topology, properties: Mapping[str, str], schemas: Schemas | None = None
) -> Compiled:
    """Compile a topology; `properties` are librdkafka's, with which Spark's workers read Kafka, `schemas` a registry's.

    Raises:
        InvalidApplicationException: Spark's analysis refuses expressions, or a function can't be loaded.
        EnvironmentException: functions need what is not installed.
    """
    session = with_functions(session, topology.functions)
    compiler, reader = Compiler(session, topology, schemas), RecordReader(session, properties)
    return Compiled(compiler, {sub.id: SubTopologyRunner(compiler, reader, sub) for sub in topology.every_subtopology})
