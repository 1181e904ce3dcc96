"""Where a batch's records come from: offset ranges that Spark reads itself, or records that were fetched already."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from streams_runtime.kafka.consumer.record_table import RAW_SCHEMA
from streams_runtime.kafka.types import TopicPartition
from streams_runtime.topology.nodes.source_and_sink_nodes import FromTopicNode


@dataclass(frozen=True, slots=True)
class OffsetRange:
    """Records start <= offset < end of one partition."""

    partition: TopicPartition
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class BatchInput:
    """What one batch of a sub-topology reads: its offset ranges, and the records where they were fetched already.

    `records` has RAW_SCHEMA, each partition's rows in offset order; None: Spark reads the ranges from the brokers.
    """

    ranges: tuple[OffsetRange, ...]
    records: pa.Table | None = None

    @property
    def has_records(self) -> bool:
        """Whether a record may be read; without one, offsets are to be committed all the same."""
        return self.records is None or self.records.num_rows > 0

    @property
    def length(self) -> int:
        """How many records were fetched, or how many offsets Spark is to read."""
        return self.size if self.records is None else int(self.records.num_rows)

    @property
    def size(self) -> int:
        """How many offsets the batch covers; compaction may have left fewer records."""
        return sum(each.end - each.start for each in self.ranges)

    def ranges_of(self, source: FromTopicNode) -> list[OffsetRange]:
        """The ranges of a source's topics in which records may be."""
        return [each for each in self.ranges if each.end > each.start and source.reads(each.partition.topic)]

    def records_of(self, source: FromTopicNode) -> pa.Table:
        """The records of a source's topics that were fetched already."""
        if self.records is None:
            return RAW_SCHEMA.empty_table()
        if not source.by_pattern:
            return self.records.filter(pc.equal(self.records["topic"], source.topic))
        topics = {each.partition.topic for each in self.ranges}
        read = pa.array([each for each in topics if source.reads(each)], pa.string())
        return self.records.filter(pc.is_in(self.records["topic"], read))


def batch_of_nothing(positions: Mapping[TopicPartition, int]) -> BatchInput:
    """A batch without records, which ends where it begins: at these offsets, which come next."""
    ranges = tuple(OffsetRange(each, offset, offset) for each, offset in sorted(positions.items()))
    return BatchInput(ranges, RAW_SCHEMA.empty_table())
