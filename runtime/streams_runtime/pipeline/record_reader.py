"""Reads a batch's records of one source, as DataFrames or as what a stage of the scan makes of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from streams_runtime.pipeline.batch_input import BatchInput, OffsetRange
from streams_runtime.pipeline.kafka_scan import Ranges, Wanted, scan
from streams_runtime.pipeline.pushdown.scan_ranges import answered_by_workers
from streams_runtime.pipeline.pushdown.scan_stages import AnyStage, answered_here
from streams_runtime.pipeline.pushdown.scanned_records import Answer
from streams_runtime.pipeline.spark.frames import frame_of
from streams_runtime.topology.nodes.source_and_sink_nodes import FromTopicNode

ALL = Wanted()


class RecordReader:
    """Makes DataFrames of one source's part of a batch, with the columns of Wanted.schema."""

    def __init__(self, spark: SparkSession, properties: Mapping[str, str]) -> None:
        """`properties` are librdkafka's, with which Spark's workers read ranges by themselves."""
        self._spark = spark
        self._properties = properties
        self._cores = spark.sparkContext.defaultParallelism

    def read(self, source: FromTopicNode, batch: BatchInput, wanted: Wanted = ALL) -> DataFrame:
        """The batch's records of `source`, in offset order within each partition; empty when it has none."""
        ranges = batch.ranges_of(source)
        if batch.records is not None or not ranges:
            return frame_of(self._spark, self.fetched(source, batch, wanted))
        return scan(self._spark, self._properties, parts_by_topic(ranges, self._cores), wanted)

    def answer(self, source: FromTopicNode, batch: BatchInput, stage: AnyStage) -> Answer:
        """What the stage makes of the batch's records of `source`, which reads one topic, without Spark where they were
        fetched already.
        """
        ranges = batch.ranges_of(source)
        if batch.records is not None or not ranges:
            return answered_here(stage, batch.records_of(source))
        parts = parts_of(ranges, self._cores, stage.whole_partitions)
        return answered_by_workers(self._spark, self._properties, source.topic, parts, stage)

    def fetched(self, source: FromTopicNode, batch: BatchInput, wanted: Wanted = ALL) -> pa.Table:
        """The batch's records of `source` that were fetched already, with the columns of Wanted.schema."""
        # A range may have no record at all, only the marker of a transaction.
        records = batch.records_of(source) if batch.ranges_of(source) else None
        return wanted.read(records) if records else wanted.schema.empty_table()


def parts_by_topic(ranges: Sequence[OffsetRange], count: int) -> Sequence[tuple[str, Ranges]]:
    """Ranges of any topics, divided into about `count` parts of as many records, at least one for each topic."""
    total = sum(each.end - each.start for each in ranges)
    found: list[tuple[str, Ranges]] = []
    for topic in sorted({each.partition.topic for each in ranges}):
        own = [each for each in ranges if each.partition.topic == topic]
        share = count * sum(each.end - each.start for each in own) / total
        found += [(topic, part) for part in parts_of(own, max(1, round(share)))]
    return found


def parts_of(ranges: Sequence[OffsetRange], count: int, whole: bool = False) -> Sequence[Ranges]:
    """Ranges of one topic, divided into parts of about as many records each, at most `count`.

    Unless they are to stay `whole`, a partition may be cut: Spark gives the parts back in order, and with it the
    partition's records. It is not cut for the sake of a tenth of a part.
    """
    size = -(-sum(each.end - each.start for each in ranges) // count)
    parts: list[dict[int, tuple[int, int]]] = [{}]
    room = size  # records that the last part is still to get
    for each in sorted(ranges, key=lambda each: each.partition):
        start = each.start
        while start < each.end:
            if room <= size // 10 and len(parts) < count:
                parts.append({})
                room += size
            fits = whole or each.end - start <= room + size // 10 or len(parts) == count
            end = each.end if fits else start + room
            parts[-1][each.partition.partition] = (start, end)
            room -= end - start
            start = end
    return parts
