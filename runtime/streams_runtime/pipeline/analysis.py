"""A topology over no records: what Spark's analysis finds out, and refuses."""

from __future__ import annotations

from pyspark.sql import SparkSession

from streams_runtime.errors import InvalidApplicationException
from streams_runtime.pipeline.formats.schema_ids import Schemas
from streams_runtime.pipeline.kinds.spark_kinds import kind_of
from streams_runtime.pipeline.known import Known
from streams_runtime.pipeline.topology_traits import Traits
from streams_runtime.topology.aggregate_order import order_mistakes
from streams_runtime.topology.node_order import needed_first
from streams_runtime.topology.partitioners import partitioner_mistakes


def analysed(spark: SparkSession, traits: Traits, schemas: Schemas | None) -> Known:
    """What is known of every node. Nothing is read or run. `schemas`: needed for formats in a registry.

    Raises:
        InvalidApplicationException: what Spark's analysis refuses, all of it, each with its field.
    """
    known = Known(spark, traits, schemas)
    mistakes = [*order_mistakes(traits.topology), *partitioner_mistakes(traits.topology)]
    needs = {node.name: node.needs for node in traits.topology.nodes}
    for name in needed_first(needs):
        if any(each not in known.outputs for each in needs[name]):
            continue  # what it builds on is refused already
        node = traits.topology.node(name)
        try:
            known.outputs[name] = kind_of(node).analysed(node, known)
        except InvalidApplicationException as error:
            mistakes += error.mistakes
    if mistakes:
        raise InvalidApplicationException(mistakes)
    return known
