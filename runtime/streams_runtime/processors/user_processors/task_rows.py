"""The rows of a batch that reach a process step, one by one as Python has them, or many of them in columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa

from streams_runtime.batch.columns import FROM_OFFSET, FROM_TOPIC, HIDDEN, NULL_VALUE
from streams_runtime.batch.record_order import fork_paths_of
from streams_runtime.processors.user_processors.declared_types import TIMESTAMP
from streams_runtime.processors.user_processors.processor_records import ProcessorRecord, RecordMetadata
from streams_runtime.processors.user_processors.record_batches import given_batch


@dataclass(slots=True)
class TaskRows:
    """Those of all tasks of a batch, by their numbers. `origins` are topic and offset of the record of each."""

    table: pa.Table
    partitions: list[int]
    origins: list[tuple[str, int]]
    elements: list[list[int]]
    by_partition: Mapping[int, list[int]]
    _records: list[ProcessorRecord] | None = field(default=None)

    @classmethod
    def of(cls, table: pa.Table) -> TaskRows:
        """Of a stage's rows; of none, with no columns either, where nothing has come."""
        if not table.num_rows:
            return cls(table, [], [], [], {})
        topic, offset = (FROM_TOPIC, FROM_OFFSET) if FROM_TOPIC in table.column_names else ("_topic", "_offset")
        origins = list(zip(table[topic].to_pylist(), table[offset].to_pylist(), strict=True))
        partitions = table["_partition"].to_pylist()
        by_partition: dict[int, list[int]] = {}
        for row, partition in enumerate(partitions):
            by_partition.setdefault(partition, []).append(row)
        return cls(table, partitions, origins, fork_paths_of(table), by_partition)

    def record(self, row: int) -> ProcessorRecord:
        """A row as `process` is given it."""
        if self._records is None:
            self._records = _records(self.table)
        return self._records[row]

    def metadata(self, row: int) -> RecordMetadata:
        """Where the record of a row was read."""
        topic, offset = self.origins[row]
        return RecordMetadata(topic, self.partitions[row], offset)

    def batch(self, rows: Sequence[int], stream_times: Sequence[int]) -> pa.RecordBatch:
        """Rows as `process_batch` is given them, with the task's stream time (ms) at each."""
        return given_batch(self.table.take(pa.array(rows, pa.int64())), stream_times)


def _records(table: pa.Table) -> list[ProcessorRecord]:
    names = [name for name in table.column_names if name not in HIDDEN]
    values = table.select(names).to_pylist() if names else [{}] * table.num_rows
    times = table["_timestamp"].cast(TIMESTAMP).cast(pa.int64()).to_pylist()
    columns = (table["_key"], table[NULL_VALUE], table["_headers"])
    parts = zip(*(column.to_pylist() for column in columns), values, times, strict=True)
    return [
        ProcessorRecord(
            key,
            None if is_null else value,
            time // 1000,
            tuple((header["key"], header["value"]) for header in headers or ()),
        )
        for key, is_null, headers, value, time in parts
    ]
