"""Rows as records of the topics that they go to."""

from __future__ import annotations

import pyarrow as pa
from pyspark.sql import DataFrame

from streams_runtime.batch.columns import (
    ORIGIN,
    OUT_CHOSEN,
    OUT_KEY,
    OUT_ORDER_TIME,
    OUT_PARTITION,
    OUT_TIME,
    OUT_TOPIC,
    OUT_VALUE,
    OUT_WINDOW,
    OUT_WINDOW_END,
)
from streams_runtime.batch.encode import encoded, windowed_keys
from streams_runtime.batch.stage import ChosenPartitions, ChosenTopics, Emission
from streams_runtime.pipeline.steps.written_rows import written, written_in_order
from streams_runtime.pipeline.windowing.repartition_order import stream_time_order
from streams_runtime.pipeline.without_spark.column_emissions import ColumnEmissions, headers_in
from streams_runtime.topology.nodes.source_and_sink_nodes import RepartitionSinkNode, SinkNode


class Emissions(ColumnEmissions):
    """Makes the records that a sub-topology writes, of Spark's rows too."""

    def written(self, node: SinkNode | RepartitionSinkNode, rows: DataFrame) -> DataFrame:
        """Spark's rows as they go to the node's topic."""
        if isinstance(node, RepartitionSinkNode):
            return written_in_order(rows, "json", node.partition_by)
        return written(rows, self._formats.value_format(node), node.topic_by, node.partition_by)

    def of_written(self, node: SinkNode | RepartitionSinkNode, table: pa.Table) -> Emission:
        """What these come to in the topic; for a repartition topic in the order of stream time."""
        internal = isinstance(node, RepartitionSinkNode)
        if internal:
            table = table.take(stream_time_order(table["_partition"], table[OUT_TOPIC], table[OUT_ORDER_TIME]))
        headers = table["_headers"]
        starts, ends = (table[name] if name in table.column_names else None for name in (OUT_WINDOW, OUT_WINDOW_END))
        keys = encoded(table[OUT_KEY]) if isinstance(node, RepartitionSinkNode) else self.keys(node, table[OUT_KEY])
        column = table[OUT_VALUE]
        return Emission(
            node.topic if isinstance(node, RepartitionSinkNode) else node.one_topic,
            internal,
            keys if starts is None else windowed_keys(keys, starts, ends if self.in_sessions(node.input) else None),
            encoded(column) if isinstance(node, RepartitionSinkNode) else self.values(node, column),
            table[OUT_TIME].to_pylist(),
            headers_in(headers),
            None if starts is None else keys,
            chosen=_chosen(node, table) if isinstance(node, SinkNode) and node.topic_by is not None else None,
            chosen_partitions=None
            if node.partition_by is None
            else ChosenPartitions(node, table[OUT_PARTITION].to_pylist()),
        )


def _chosen(node: SinkNode, table: pa.Table) -> ChosenTopics:
    topic, partition, offset = (table[name].to_pylist() for name in ORIGIN)
    return ChosenTopics(node, table[OUT_CHOSEN].to_pylist(), (topic, partition, offset))
