"""Why a Spark query failed, as this project's exceptions."""

from __future__ import annotations

import re
from collections.abc import Sequence

from streams_runtime.errors import BrokerNotAvailableException, ConfigException, StreamsException
from streams_runtime.kafka.consumer.invalid_offset import InvalidOffsetException
from streams_runtime.kafka.types import TopicPartition
from streams_runtime.pipeline.batch_input import OffsetRange

# What a worker's scan of Kafka raised, the last line of its traceback.
_SCAN = re.compile(r"streams_runtime\.\S*?(\w+Exception): ([^\n]+)")
_MOST_PARTITIONS = 5  # partitions that a message names
_FUNCTION = re.compile(r"FunctionFailed: ([^\n]+)")
_CONDITION = re.compile(r"\[[A-Z][A-Z_.0-9]+\][^\n]*")


def is_spark_failure(error: BaseException) -> bool:
    """Whether Spark, or the bridge to its JVM, raised this."""
    # By names: where pyspark was not loaded yet, nothing of it was raised.
    spark = any(each.__name__ == "PySparkException" for each in type(error).__mro__)
    return spark or type(error).__module__.startswith("py4j")


def translated(error: BaseException, ranges: Sequence[OffsetRange] = ()) -> Exception:
    """The exception of this project for a failed query over `ranges`; raise it `from` the original.

    Of a scan of Kafka it is the one that RangeReader.read raised; otherwise a StreamsException.
    """
    text = str(error)
    if found := _SCAN.search(text):
        return _of_a_scan(found[1], found[2])
    if found := _FUNCTION.search(text):
        return StreamsException(
            f"{found[1].rstrip('. ')}; in the batch of {_read(ranges)}. Nothing of the batch was written; correct the"
            " function or the data"
        )
    condition = _CONDITION.search(text)
    reason = condition[0] if condition else text.strip().splitlines()[0]
    return StreamsException(
        f"a step failed in Spark: {reason.rstrip('. ')}. Nothing of the batch was written; correct the expression"
        " (try_… functions give NULL instead of failing) or the data"
    )


def expression_failed(error: BaseException, path: str) -> StreamsException | None:
    """The exception for a query in which nothing can have failed but the expression at the field `path`; None: it did
    not fail by itself, but Spark did.
    """
    condition = _CONDITION.search(str(error))
    if condition is None or condition[0].startswith("[SPARK_"):
        return None
    return StreamsException(
        f"{path}: the expression failed in Spark: {condition[0].rstrip('. ')}. Nothing of the batch was written;"
        " correct the expression (try_… functions give NULL instead of failing) or the data"
    )


def _of_a_scan(name: str, message: str) -> Exception:
    if name == InvalidOffsetException.__name__:
        return InvalidOffsetException(TopicPartition.parse(message.partition(":")[0]))
    if name == BrokerNotAvailableException.__name__:
        return BrokerNotAvailableException(f"{message.rstrip('. ')}. The batch is read again")
    return ConfigException(message) if name == ConfigException.__name__ else StreamsException(message)


def _read(ranges: Sequence[OffsetRange]) -> str:
    """The offsets of a batch: `orders-0@5 to 9, orders-1@0 to 3`."""
    some = [each for each in ranges if each.end > each.start]
    shown = ", ".join(f"{each.partition}@{each.start} to {each.end - 1}" for each in some[:_MOST_PARTITIONS])
    more = len(some) - _MOST_PARTITIONS
    return f"{shown} and {more} more partitions" if more > 0 else shown or "no records"
