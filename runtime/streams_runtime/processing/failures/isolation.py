"""A batch that failed by one of its records, once more in parts, until the records that fail stand alone.

Each part is a batch of its own, which is committed before the next one begins: what follows on a record finds all that
came before it in the stores. Parts begin where the one before ended, in the order in which the batch would have worked
off its records, so they may end anywhere: no result depends on where batches do.

A part that fails is halved, and half of what is left of it comes next; parts that pass double. So a record that fails
alone among N costs about log2(N) parts that fail and as many that pass, and where every record fails each of them is
tried once.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from streams_runtime.batch.columns import ORDER_TIME
from streams_runtime.batch.stream_times import stream_times
from streams_runtime.kafka.types import TopicPartition
from streams_runtime.pipeline.batch_input import BatchInput, OffsetRange

Vector = npt.NDArray[np.int64]
_NO_TIME = -1  # of a record that can't be read: its partition has come to the time of those before it


@dataclass(slots=True)
class Isolation:
    """The parts of one batch, one after the other: `part`, and then `passed`, or `failed` and `left_out`."""

    batch: BatchInput
    logs: Vector
    """Of each record, in order: which of the batch's ranges it is of."""
    offsets: Vector
    _starts: list[int] = field(init=False)
    _last: list[int] = field(init=False)
    """Where the last record of each range is; -1 where there is none."""
    _at: int = field(default=0, init=False)
    _size: int = field(init=False)
    _suspect: int = field(init=False)
    """Where the part ends that failed last; behind it nothing is known."""

    def __post_init__(self) -> None:
        self._starts = [each.start for each in self.batch.ranges]
        self._last = [-1] * len(self._starts)
        for at, number in enumerate(self.logs.tolist()):
            self._last[number] = at
        self._suspect = len(self.offsets)
        self._size = self._half()

    @property
    def is_done(self) -> bool:
        """Whether every record has passed, or was left out."""
        return self._at >= len(self.offsets)

    @property
    def left(self) -> int:
        """How many records are still to come."""
        return len(self.offsets) - self._at

    def part(self) -> BatchInput:
        """What comes next."""
        ranges = [each for _, each in self._ranges()]
        return BatchInput(tuple(ranges), None if self.batch.records is None else _within(self.batch.records, ranges))

    def passed(self) -> None:
        """The part is committed."""
        self._move_on()
        self._size = self._half() if self._at < self._suspect else 2 * self._size

    def failed(self) -> bool:
        """The part failed by one of its records. Whether it has no other: then `left_out` is to follow."""
        self._suspect = self._end
        alone = self._suspect - self._at == 1
        if not alone:
            self._size = self._half()
        return alone

    def left_out(self) -> None:
        """The one record that failed is dealt with, and that is committed."""
        self._move_on()

    @property
    def _end(self) -> int:
        return min(self._at + self._size, len(self.offsets))

    def _half(self) -> int:
        return max(1, (self._suspect - self._at) // 2)

    def _ranges(self) -> list[tuple[int, OffsetRange]]:
        """Of the part, with their numbers in the batch. Behind a range's last record there may be the marker of a
        transaction, which is read past with it; so is a range that has nothing else.
        """
        end, found = self._end, []
        logs, offsets = self.logs[self._at : end], self.offsets[self._at : end]
        for number, each in enumerate(self.batch.ranges):
            mine = offsets[logs == number]
            if self._last[number] < end:
                stop = each.end if len(mine) or end == len(self.offsets) else self._starts[number]
            else:
                stop = int(mine[-1]) + 1 if len(mine) else self._starts[number]
            if stop > self._starts[number]:
                found.append((number, OffsetRange(each.partition, self._starts[number], stop)))
        return found

    def _move_on(self) -> None:
        for number, each in self._ranges():
            self._starts[number] = each.end
        self._at = self._end


def isolation_of(batch: BatchInput, readable: pa.Table, tables: Collection[str]) -> Isolation:
    """The parts of a batch. `readable` has the time of each record that can be read (BatchRunner.order_times);
    `tables` are the topics of tables, whose turn is before that of others at one time.
    """
    times = _times_of(readable)
    logs, offsets, come = [], [], []
    for number, each in enumerate(batch.ranges):
        mine = _offsets_of(batch, each)
        known = np.full(len(mine), _NO_TIME, np.int64)
        if (found := times.get(each.partition)) is not None:
            at = np.searchsorted(mine, found[0])
            known[at] = found[1]
        logs.append(np.full(len(mine), number, np.int64))
        offsets.append(mine)
        come.append(stream_times(logs[-1], known))
    ranks = _ranks(batch, tables)
    by_log, all_offsets = np.concatenate(logs), np.concatenate(offsets)
    order = np.lexsort((all_offsets, ranks[by_log], np.concatenate(come)))
    return Isolation(batch, by_log[order], all_offsets[order])


def _times_of(readable: pa.Table) -> Mapping[TopicPartition, tuple[Vector, Vector]]:
    """Offsets and times by partition, in the order of offsets."""
    topics, partitions = readable["_topic"].to_pylist(), readable["_partition"].to_pylist()
    offsets = readable["_offset"].cast(pa.int64()).to_numpy()
    times = readable[ORDER_TIME].cast(pa.int64()).to_numpy()
    rows: dict[TopicPartition, list[int]] = {}
    for row, (topic, partition) in enumerate(zip(topics, partitions, strict=True)):
        rows.setdefault(TopicPartition(topic, partition), []).append(row)
    found = {}
    for each, mine in rows.items():
        order = np.array(mine)[np.argsort(offsets[mine], kind="stable")]
        found[each] = (offsets[order], times[order])
    return found


def _offsets_of(batch: BatchInput, log: OffsetRange) -> Vector:
    """Where records are, or may be where Spark reads them; in order."""
    if batch.records is None:
        return np.arange(log.start, log.end, dtype=np.int64)
    offsets: Vector = _within(batch.records, [log])["offset"].to_numpy()
    return np.sort(offsets)


def _ranks(batch: BatchInput, tables: Collection[str]) -> Vector:
    """Of each range: whose turn it is at one time, as of inputs that a batch reads together (alignment)."""
    ordered = sorted(
        range(len(batch.ranges)),
        key=lambda at: (
            batch.ranges[at].partition.topic not in tables,
            batch.ranges[at].partition.topic,
            batch.ranges[at].partition.partition,
        ),
    )
    ranks = np.empty(len(ordered), np.int64)
    ranks[ordered] = np.arange(len(ordered))
    return ranks


def _within(records: pa.Table, ranges: Collection[OffsetRange]) -> pa.Table:
    """The records of these ranges."""
    mask = pa.array(np.zeros(records.num_rows, bool))
    for each in ranges:
        mine = pc.and_(
            pc.equal(records["topic"], each.partition.topic), pc.equal(records["partition"], each.partition.partition)
        )
        inside = pc.and_(pc.greater_equal(records["offset"], each.start), pc.less(records["offset"], each.end))
        mask = pc.or_(mask, pc.and_(mine, inside))
    return records.filter(mask)
