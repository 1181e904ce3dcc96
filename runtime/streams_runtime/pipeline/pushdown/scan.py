"""Spark's workers read ranges and answer with partial aggregates: what Spark gets of them is bytes, not rows."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import SparkSession

from streams_runtime.kafka.range_reader import shared_reader
from streams_runtime.pipeline.pushdown.partial import Answer, Gathering, Stage, together
from streams_runtime.pipeline.scan import Ranges, uncollected

_ANSWER = "partials binary, left binary, records bigint, dropped bigint, done boolean, late bigint"
_SCHEMA = pa.schema(
    [
        ("partials", pa.binary()),
        ("left", pa.binary()),
        ("records", pa.int64()),
        ("dropped", pa.int64()),
        ("done", pa.bool_()),
        ("late", pa.int64()),
    ]
)


def start_workers(spark: SparkSession, workers: int) -> None:
    """Have so many of Spark's Python workers ready: started, and with the modules that reading needs.

    Otherwise the first batch that Spark reads waits for that and for the first plan of its kind, three seconds on two
    cores. Spark ends workers that nothing needs for a minute.
    """
    spark.range(0, workers, 1, workers).mapInArrow(_nothing, _ANSWER).toArrow()


def answered_here(stage: Stage, records: pa.Table) -> Answer:
    """The answer about records that were fetched already, with RAW_SCHEMA."""
    gathering = Gathering(stage, records.num_rows)
    gathering.take(lambda name: records[name].combine_chunks())
    return gathering.answer()


def answered_by_workers(
    spark: SparkSession, properties: Mapping[str, str], topic: str, parts: Sequence[Ranges], stage: Stage
) -> Answer:
    """The answer about ranges of a topic, each part read by one task.

    `properties` are librdkafka's. Raises PythonException, with the text of what RangeReader.read raises.
    """
    most = sum(end - start for part in parts for start, end in part.values())
    task = _task(dict(properties), topic, tuple(parts), stage, most)
    found = spark.range(0, len(parts), 1, len(parts)).mapInArrow(task, _ANSWER).toArrow()
    rows = found.to_pylist()
    partials = [_opened(row["partials"]) for row in rows]
    return Answer(
        _put_together([each for each in partials if each.num_columns], stage),
        pa.concat_tables(_opened(row["left"]) for row in rows),
        sum(row["records"] for row in rows),
        sum(row["dropped"] for row in rows),
        all(row["done"] for row in rows),
        sum(row["late"] for row in rows),
    )


def _nothing(rows: Iterable[pa.RecordBatch]) -> Iterable[pa.RecordBatch]:
    """What a Python worker does that has imported this module by then."""
    deque(rows, 0)
    return iter(())


def _put_together(partials: Sequence[pa.Table], stage: Stage) -> pa.Table:
    """One table of the parts' ones, which have no key in common unless a partition was cut."""
    numbers = [pc.unique(each["_partition"]).to_pylist() for each in partials]
    if len({number for each in numbers for number in each}) == sum(map(len, numbers)) and partials:
        return pa.concat_tables(partials)
    return together(partials, stage)


def _task(
    properties: dict[str, str], topic: str, parts: tuple[Ranges, ...], stage: Stage, most: int
) -> Callable[[Iterable[pa.RecordBatch]], Iterable[pa.RecordBatch]]:
    """What a Python worker does with its row, the number of its part."""

    def read(rows: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in rows:
            for number in batch.column(0).to_pylist():
                gathering = Gathering(stage, most)
                with uncollected():
                    for records in shared_reader(properties).read(topic, parts[number]):
                        gathering.take(records.column)
                    answer = gathering.answer()
                counts = (answer.records, answer.dropped, answer.done, answer.late)
                columns = (_closed(answer.partials), _closed(answer.left), *counts)
                yield pa.RecordBatch.from_arrays(
                    [pa.array([value], field.type) for value, field in zip(columns, _SCHEMA, strict=True)],
                    schema=_SCHEMA,
                )

    return read


def _closed(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as stream:
        stream.write_table(table)
    data: bytes = sink.getvalue().to_pybytes()
    return data


def _opened(data: bytes) -> pa.Table:
    return pa.ipc.open_stream(data).read_all()
