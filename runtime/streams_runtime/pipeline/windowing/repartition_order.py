"""In which order a batch's rows go to a repartition topic: as if one task had read all partitions that they came of.

Whoever reads that topic knows one stream time of it. Partition after partition it would be that of the whole batch from
the first one's end on, and all others' records too late.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from streams_runtime.batch.stream_times import stream_times

Vector = npt.NDArray[np.int64]


def stream_time_order(partitions: pa.ChunkedArray, topics: pa.ChunkedArray, times: pa.ChunkedArray) -> pa.Array:
    """The rows, by their numbers, in the order of the stream time (ms) that each one's partition has come to with it.

    So Kafka Streams' PartitionGroup merges the partitions of a task: it takes the record with the smallest time among
    those that come next in each. The rows of one topic's partition keep their order, and lie as far behind the
    stream time of all as behind that of their own; of one time the first rows come first.
    """
    return pa.array(np.argsort(stream_times(_logs(partitions, topics), times.to_numpy()), kind="stable"))


def _logs(partitions: pa.ChunkedArray, topics: pa.ChunkedArray) -> Vector:
    """A number for each row that tells apart the topics' partitions; rows that lie nowhere have no topic."""
    codes: Vector = pc.fill_null(topics.combine_chunks().dictionary_encode().indices, -1).to_numpy().astype(np.int64)
    numbers: Vector = partitions.to_numpy().astype(np.int64)
    return (codes + 1) * (1 << 32) + numbers
