"""Spark's scan of Kafka: its Python workers read ranges of offsets, and the JSON in them.

Spark's own source for Kafka hands each record to the JVM as bytes, to be parsed there. Here a worker parses, and what
it sends to the JVM are columns (json_read.py).
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from zipimport import zipimporter

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_schema

from streams_runtime.kafka.consumer.range_reader import shared_reader
from streams_runtime.kafka.consumer.record_table import RAW_SCHEMA
from streams_runtime.pipeline.formats.json_read import JsonReader

Ranges = Mapping[int, tuple[int, int]]
"""Of one topic: start <= offset < end, by partition."""
FIELDS, READ = "fields", "read"  # what JSON was read outside the JVM, and of which records


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is wanted of records beside key, place and time.

    With `json` they have FIELDS and READ too, and unless `values` are wanted those that are READ have no value's bytes.
    """

    headers: bool = True
    json: JsonReader | None = None
    values: bool = True

    @property
    def schema(self) -> pa.Schema:
        """The columns, with those that are left null."""
        return (
            RAW_SCHEMA if self.json is None else pa.schema([*RAW_SCHEMA, (FIELDS, self.json.type), (READ, pa.bool_())])
        )

    def read(self, raw: pa.Table) -> pa.Table:
        """The columns, of records with RAW_SCHEMA."""
        if self.json is None:
            return raw
        values, fields, read = self._parsed(raw["value"].combine_chunks())
        raw = raw.set_column(raw.schema.get_field_index("value"), "value", values)
        return raw.append_column(FIELDS, fields).append_column(READ, read)

    def arrays(self, column: Callable[[str], pa.Array], sent: Sequence[pa.Field]) -> list[pa.Array]:
        """The columns that are `sent`; `column` gives one of RAW_SCHEMA."""
        found: dict[str, pa.Array] = {}
        if self.json is not None:
            found = dict(zip(("value", FIELDS, READ), self._parsed(column("value")), strict=True))
        return [found[each.name] if each.name in found else column(each.name) for each in sent]

    def _parsed(self, values: pa.Array) -> tuple[pa.Array, pa.StructArray, pa.BooleanArray]:
        """Values as far as they are wanted, FIELDS and READ."""
        assert self.json is not None
        fields, read = self.json.read(values)
        if not self.values:
            if read.true_count == len(values):
                return pa.nulls(len(values), pa.binary()), fields, read
            values = pc.if_else(read, pa.scalar(None, values.type), values)
        return values, fields, read


def scan(
    spark: SparkSession, properties: Mapping[str, str], parts: Sequence[tuple[str, Ranges]], wanted: Wanted
) -> DataFrame:
    """The records of the parts, ranges of one topic each, every part read by one task; a partition's in offset order
    where its part is one.

    `properties` are librdkafka's. A query over it raises PythonException, with the text of what RangeReader.read
    raises.
    """
    topics = {topic for topic, _ in parts}
    known = {"topic"} if len(topics) == 1 else set()  # what is the same of all records need not be sent
    known |= set() if wanted.headers else {"headers"}
    sent = [field for field in wanted.schema if field.name not in known]
    task = _task(dict(properties), tuple(parts), wanted, pa.schema(sent))
    found = spark.range(0, len(parts), 1, len(parts)).mapInArrow(task, from_arrow_schema(pa.schema(sent)))
    made = {"topic": F.lit(min(topics)).alias("topic"), "headers": F.lit(None).cast(_HEADERS_TYPE).alias("headers")}
    made = {name: column for name, column in made.items() if name in known}
    return found.select(*(made.get(field.name, F.col(field.name)) for field in wanted.schema))


_HEADERS_TYPE = "array<struct<key: string, value: binary>>"


def _task(
    properties: dict[str, str], parts: tuple[tuple[str, Ranges], ...], wanted: Wanted, sent: pa.Schema
) -> Callable[[Iterable[pa.RecordBatch]], Iterable[pa.RecordBatch]]:
    """What a Python worker does with its row, the number of its part."""

    def read(rows: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        forget_archives()
        with uncollected():
            for batch in rows:
                for number in batch.column(0).to_pylist():
                    topic, ranges = parts[number]
                    for records in shared_reader(properties).read(topic, ranges):
                        columns = wanted.arrays(records.column, list(sent))
                        yield pa.RecordBatch.from_arrays(columns, schema=sent)

    return read


def forget_archives() -> None:
    """Let a worker not read the directories of PySpark's own archives at the beginning of its next task.

    It invalidates all caches of importers then, and an archive's is its directory: 35 ms a task. Whoever imports
    something makes the importer anew.
    """
    for path, finder in list(sys.path_importer_cache.items()):
        if isinstance(finder, zipimporter):
            del sys.path_importer_cache[path]


@contextmanager
def uncollected() -> Iterator[None]:
    """Without looking for cycles of objects: records are in none, and looking at each takes a third of the time."""
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()
