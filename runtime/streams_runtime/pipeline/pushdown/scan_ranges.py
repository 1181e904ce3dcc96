"""Spark's workers read ranges and answer with what a stage makes of them: what Spark gets of it is bytes, not rows."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import astuple

import pyarrow as pa
from pyspark.sql import SparkSession

from streams_runtime.kafka.consumer.range_reader import shared_reader
from streams_runtime.metrics.sampled import NOTHING, Spread
from streams_runtime.pipeline.kafka_scan import Ranges, forget_archives, uncollected
from streams_runtime.pipeline.pushdown.scan_stages import AnyStage
from streams_runtime.pipeline.pushdown.scanned_records import Answer

_ANSWER = "made binary, left binary, records bigint, dropped bigint, done boolean, late bigint, times string"
_SCHEMA = pa.schema(
    [
        ("made", pa.binary()),
        ("left", pa.binary()),
        ("records", pa.int64()),
        ("dropped", pa.int64()),
        ("done", pa.bool_()),
        ("late", pa.int64()),
        ("times", pa.string()),  # a Spread as JSON
    ]
)


def start_workers(spark: SparkSession, workers: int) -> None:
    """Have so many of Spark's Python workers ready: started, and with the modules that reading needs.

    Otherwise the first batch that Spark reads waits for that and for the first plan of its kind, three seconds on two
    cores. Spark ends workers that nothing needs for a minute.
    """
    spark.range(0, workers, 1, workers).mapInArrow(_nothing, _ANSWER).toArrow()


def answered_by_workers(
    spark: SparkSession, properties: Mapping[str, str], topic: str, parts: Sequence[Ranges], stage: AnyStage
) -> Answer:
    """The answer about ranges of a topic, each part read by one task.

    `properties` are librdkafka's. Raises PythonException, with the text of what RangeReader.read raises.
    """
    most = sum(end - start for part in parts for start, end in part.values())
    task = _task(dict(properties), topic, tuple(parts), stage, most)
    found = spark.range(0, len(parts), 1, len(parts)).mapInArrow(task, _ANSWER).toArrow()
    rows = found.to_pylist()
    return Answer(
        stage.together([_opened(row["made"]) for row in rows]),
        # A part of which none is left does not say their turns.
        pa.concat_tables((_opened(row["left"]) for row in rows), promote_options="default"),
        sum(row["records"] for row in rows),
        sum(row["dropped"] for row in rows),
        all(row["done"] for row in rows),
        sum(row["late"] for row in rows),
        sum((Spread(*json.loads(row["times"])) for row in rows), NOTHING),
    )


def _nothing(rows: Iterable[pa.RecordBatch]) -> Iterable[pa.RecordBatch]:
    """What a Python worker does that has imported this module by then."""
    deque(rows, 0)
    return iter(())


def _task(
    properties: dict[str, str], topic: str, parts: tuple[Ranges, ...], stage: AnyStage, most: int
) -> Callable[[Iterable[pa.RecordBatch]], Iterable[pa.RecordBatch]]:
    """What a Python worker does with its row, the number of its part."""

    def read(rows: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        forget_archives()
        for batch in rows:
            for number in batch.column(0).to_pylist():
                merges_stages = stage.merges_stages(most)
                with uncollected():
                    for records in shared_reader(properties).read(topic, parts[number]):
                        merges_stages.take(records.column)
                    answer = merges_stages.answer()
                counts = (answer.records, answer.dropped, answer.done, answer.late, json.dumps(astuple(answer.times)))
                columns = (_closed(answer.made), _closed(answer.left), *counts)
                yield pa.RecordBatch.from_arrays(
                    [pa.array([value], field.type) for value, field in zip(columns, _SCHEMA, strict=True)],
                    schema=_SCHEMA,
                )

    return read


def _closed(table: pa.Table) -> bytes:
    size = pa.MockOutputStream()
    _write(table, size)
    # As large as it gets: a buffer that grows is copied again and again.
    data = pa.allocate_buffer(size.size())
    _write(table, pa.FixedSizeBufferWriter(data))
    closed: bytes = data.to_pybytes()
    return closed


def _write(table: pa.Table, sink: pa.NativeFile) -> None:
    with pa.ipc.new_stream(sink, table.schema) as stream:
        stream.write_table(table)


def _opened(data: bytes) -> pa.Table:
    return pa.ipc.open_stream(data).read_all()
