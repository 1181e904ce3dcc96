"""Where a batch's records come from: offset ranges that Spark reads itself, or records that were fetched already."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from streams_runtime.kafka.types import TopicPartition

RAW_SCHEMA = pa.schema(
    [
        ("key", pa.binary()),
        ("value", pa.binary()),
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("offset", pa.int64()),
        ("timestamp", pa.timestamp("us", tz="UTC")),
        ("headers", pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))),
    ]
)

_HEADERS_TYPE = "array<struct<key: string, value: binary>>"


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
    def size(self) -> int:
        """How many offsets the batch covers; compaction may have left fewer records."""
        return sum(each.end - each.start for each in self.ranges)


class RecordReader:
    """Makes raw DataFrames (columns of RAW_SCHEMA) of one topic's part of a batch."""

    def __init__(self, spark: SparkSession, kafka_options: Mapping[str, str]) -> None:
        """`kafka_options` are Java client properties, without the `kafka.` prefix."""
        self._spark = spark
        self._options = {f"kafka.{name}": value for name, value in kafka_options.items()}
        # More than the default of 500: with small records the poll loop is what limits the scan.
        self._options.setdefault("kafka.max.poll.records", "20000")
        self._cores = spark.sparkContext.defaultParallelism

    def read(self, topic: str, batch: BatchInput, headers: bool = True) -> DataFrame:
        """The batch's records of `topic`, in offset order within each partition; empty when it has none.

        Without `headers` Spark may leave that column null, which spares it the conversion of every record's.
        """
        ranges = [each for each in batch.ranges if each.partition.topic == topic and each.end > each.start]
        if batch.records is not None:
            mine = batch.records.filter(pc.equal(batch.records["topic"], topic)) if ranges else None
            return self.from_records(mine)
        return self._from_brokers(ranges, headers) if ranges else self.from_records(None)

    def from_records(self, records: pa.Table | None) -> DataFrame:
        """A DataFrame of fetched records; None: of no records."""
        # A range may have no record at all, only the marker of a transaction; a table without chunks is refused.
        some = records is not None and records.num_rows > 0
        return self._spark.createDataFrame(records if some else RAW_SCHEMA.empty_table())

    def _from_brokers(self, ranges: Sequence[OffsetRange], headers: bool) -> DataFrame:
        reader = self._spark.read.format("kafka").options(**self._options)
        reader = reader.option("assign", _partitions(ranges)).option("includeHeaders", str(headers).lower())
        reader = reader.option("startingOffsets", _offsets((each.partition, each.start) for each in ranges))
        reader = reader.option("endingOffsets", _offsets((each.partition, each.end) for each in ranges))
        if len(ranges) < self._cores:
            reader = reader.option("minPartitions", str(self._cores))
        loaded = reader.load()
        if not headers:
            loaded = loaded.withColumn("headers", F.lit(None).cast(_HEADERS_TYPE))
        return loaded.select(*(F.col(field.name) for field in RAW_SCHEMA))


def _partitions(ranges: Sequence[OffsetRange]) -> str:
    """Spark's JSON for partitions: {"topic": [0, 1]}."""
    found: dict[str, list[int]] = defaultdict(list)
    for each in ranges:
        found[each.partition.topic].append(each.partition.partition)
    return json.dumps(found)


def _offsets(offsets: Iterable[tuple[TopicPartition, int]]) -> str:
    """Spark's JSON for offsets: {"topic": {"0": 12}}."""
    found: dict[str, dict[str, int]] = defaultdict(dict)
    for partition, offset in offsets:
        found[partition.topic][str(partition.partition)] = offset
    return json.dumps(found)
