"""The one order of what a batch has of several topics: which record's turn it is.

By the time that each topic's partition has come to, as Kafka Streams chooses among partitions; then tables before
streams, and of one topic by the offsets.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from streams_runtime.batch.columns import ELEMENT, FROM_OFFSET, FROM_TOPIC, ORDER_TIME
from streams_runtime.batch.stream_times import stream_times

Ordinal = tuple[int, int, int, str, int, int]
"""Partition, time that its topic has come to, rank of the topic, topic, offset, rank: sorts by turn."""
Vector = npt.NDArray[np.int64]
Rows = tuple[Sequence[int] | Vector, pa.Table]
"""The partition of each row, and the rows' topics, offsets and times, beside whatever else they have."""


def ordinals(partitions: Sequence[int], rows: pa.Table) -> list[Ordinal]:
    """The place of each row."""
    return ordinals_among((partitions, rows))[0]


def ordinals_among(*several: Rows) -> list[list[Ordinal]]:
    """The place of each row of several tables or streams: what one record changes, it changes in their order.

    A topic has the rank of the first of them that has records of it.
    """
    if not several:
        return []
    found = _placed(several)
    columns = (found.partitions, found.come, found.ranks, found.topics, found.offsets, found.numbers)
    whole = list(zip(*(each.tolist() for each in columns), strict=True))
    return [whole[start:end] for start, end in found.parts]


def order_among(*several: Rows) -> list[Vector]:
    """A number for each row, by which they have their turns; rows at one place in the order in which they are given."""
    found = _placed(several)
    by_name = np.unique(found.topics, return_inverse=True)[1]
    order = np.lexsort((found.numbers, found.offsets, by_name, found.ranks, found.come, found.partitions))
    numbers_in_order = np.empty(len(order), np.int64)
    numbers_in_order[order] = np.arange(len(order))
    return [numbers_in_order[start:end] for start, end in found.parts]


@dataclass(frozen=True, slots=True)
class _Placed:
    """The rows of several, one after the other, by the parts of their places; `parts`: from where to where each is."""

    partitions: Vector
    come: Vector
    ranks: Vector
    topics: npt.NDArray[np.object_]
    offsets: Vector
    numbers: Vector
    parts: list[tuple[int, int]]


def _placed(several: Sequence[Rows]) -> _Placed:
    sizes = [len(rows) for _, rows in several]
    ends = np.cumsum(sizes).tolist()
    partitions = np.concatenate([np.asarray(each, np.int64) for each, _ in several])
    topics = pa.chunked_array([each for _, rows in several for each in _own(rows, FROM_TOPIC, "_topic").chunks])
    encoded = topics.combine_chunks().dictionary_encode()
    names, codes = encoded.dictionary.to_pylist(), encoded.indices.to_numpy().astype(np.int64)
    offsets = np.concatenate([_integers(_own(rows, FROM_OFFSET, "_offset")) for _, rows in several])
    times = np.concatenate([_integers(_own(rows, ORDER_TIME, "_timestamp").cast(pa.int64())) for _, rows in several])
    numbers = np.repeat(np.arange(len(several)), sizes)
    ranks = np.full(len(names), len(several))
    np.minimum.at(ranks, codes, numbers)
    come = _come_to(partitions * len(names) + codes, offsets, times, numbers)
    named = np.array([*names, None], object)[:-1]
    return _Placed(partitions, come, ranks[codes], named[codes], offsets, numbers, list(pairwise([0, *ends])))


def _own(rows: pa.Table, name: str, other: str) -> pa.ChunkedArray:
    """What the rows came of, where they have it; else what they are."""
    return rows[name if name in rows.column_names else other]


def _integers(column: pa.ChunkedArray) -> Vector:
    assert not column.null_count, "rows without a place have no turn"
    return np.concatenate([np.empty(0, np.int64), *(each.to_numpy() for each in column.chunks)])


def _come_to(logs: Vector, offsets: Vector, times: Vector, numbers: Vector) -> Vector:
    """The largest time of each row's log up to it."""
    order = np.lexsort((numbers, times, offsets))
    come = np.empty(len(order), np.int64)
    come[order] = stream_times(logs[order], times[order])
    return come


def fork_paths_of(rows: pa.Table) -> list[list[int]]:
    """Which of its record's rows each one is, as lists that sort; the same for all if nothing tells them apart."""
    if ELEMENT not in rows.column_names:
        return [[]] * len(rows)
    return [each or [] for each in rows[ELEMENT].to_pylist()]
