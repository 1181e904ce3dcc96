"""Records whose `partitionBy` gives a partition that their topic does not have."""

from __future__ import annotations

from typing import Protocol

from streams_runtime.batch.stage import ChosenPartitions, Emission
from streams_runtime.errors import FailedProcessingException
from streams_runtime.topology.nodes.source_and_sink_nodes import SinkNode

_REMEDY = (
    "Correct the expression, such as pmod(…, {count}), or give the topic more partitions;"
    " spec.processing.onProcessingError may leave such records out. Nothing of this batch was committed"
)


class PartitionCounts(Protocol):
    """Who knows how many partitions topics have (BatchProducer)."""

    def partition_count(self, topic: str, more_than: int = 0) -> int:
        """Of a topic; asked for anew where it had not `more_than` so many."""


def check_partitions(emission: Emission, chosen_partitions: ChosenPartitions, counts: PartitionCounts) -> None:
    """Raise FailedProcessingException for the first record whose partition its topic does not have.

    A topic may have got more partitions: then they are asked for once more.
    """
    given = [each for each in chosen_partitions.numbers if each is not None]
    if not given:
        return
    count = counts.partition_count(emission.topic, max(given))
    for row, number in enumerate(chosen_partitions.numbers):
        if number is not None and not 0 <= number < count:
            node = chosen_partitions.node
            field = "partitionBy" if isinstance(node, SinkNode) else "repartition.partitionBy"
            raise FailedProcessingException(
                f"{node.path}.{field}: {node.partition_by} is {number} for the record of the key"
                f" {emission.keys[row]!r:.200}, and the topic {emission.topic} has {count} partitions, numbered from 0",
                _REMEDY.format(count=count),
            )
