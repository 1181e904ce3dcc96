"""Why a Spark query failed, as this project's exceptions."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from streams_runtime.errors import (
    BrokerNotAvailableException,
    ConfigException,
    FailedProcessingException,
    StreamsException,
)
from streams_runtime.kafka.consumer.invalid_offset import InvalidOffsetException
from streams_runtime.kafka.types import TopicPartition
from streams_runtime.pipeline.batch_input import OffsetRange

# What a worker's scan of Kafka raised, the last line of its traceback.
_SCAN = re.compile(r"streams_runtime\.\S*?(\w+Exception): ([^\n]+)")
_MOST_PARTITIONS = 5  # partitions that a message names
_FUNCTION = re.compile(r"Function(Failed|Ended): ([^\n]+)")
_CONDITION = re.compile(r"\[[A-Z][A-Z_.0-9]+\][^\n]*")
_BEHIND = re.compile(r"\n(?:== SQL|\s+at |Caused by: |JVM stacktrace|Driver stacktrace)")
_STATE = re.compile(r"SQLSTATE: ([0-9A-Z]{5})")
# SQL's class of states "data exception", and what raise_error and assert_true raise.
_OF_DATA, _RAISED = "22", "P0001"
# Spark counts among these, too, what no record can be blamed for: a setting of the session, a jar that is missing.
_OF_SETTINGS = frozenset({"22022", "22KD3"})
_REMEDY = (
    "Nothing of the batch was written; correct the expression (try_… functions give NULL instead of failing) or the"
    " data"
)


def is_spark_failure(error: BaseException) -> bool:
    """Whether Spark, or the bridge to its JVM, raised this."""
    # By names: where pyspark was not loaded yet, nothing of it was raised.
    spark = any(each.__name__ == "PySparkException" for each in type(error).__mro__)
    return spark or type(error).__module__.startswith("py4j")


def translated(error: BaseException, ranges: Sequence[OffsetRange] = ()) -> Exception:
    """The exception of this project for a failed query over `ranges`; raise it `from` the original.

    Of a scan of Kafka it is the one that RangeReader.read raised; of an expression or a function a
    FailedProcessingException, which says whether a record's values are to blame (`is_of_data`); otherwise a
    StreamsException.
    """
    text = str(error)
    if found := _SCAN.search(text):
        return _of_a_scan(found[1], found[2])
    if found := _FUNCTION.search(text):
        return FailedProcessingException(
            f"{found[2].rstrip('. ')}; in the batch of {_read(ranges)}",
            "Nothing of the batch was written; correct the function or the data",
            found[1] == "Failed",
        )
    condition = _CONDITION.search(text)
    if condition is not None and is_of_data(text):
        return FailedProcessingException(f"a step failed in Spark: {condition[0]}", _REMEDY)
    reason = condition[0] if condition else text.strip().splitlines()[0]
    return StreamsException(f"a step failed in Spark: {reason.rstrip('. ')}. {_REMEDY}")


@contextmanager
def translating(ranges: Sequence[OffsetRange] = ()) -> Iterator[None]:
    """Raise as this project's exception what Spark raises in the block, over records of these ranges."""
    try:
        yield
    except Exception as error:
        if is_spark_failure(error):
            raise translated(error, ranges) from error
        raise


def is_of_data(text: str) -> bool:
    """Whether an error of Spark's, `[NAME] what happened. SQLSTATE: state`, comes of the values that an expression was
    given. What fails for want of memory, of a worker or of a file has another state, or none.
    """
    begin = _CONDITION.search(text)
    # What happened may quote a record, of several lines, and is followed by the query or by Java's stack.
    states = [] if begin is None else _STATE.findall(_BEHIND.split(text[begin.start() :], 1)[0])
    state = states[-1] if states else ""
    return state == _RAISED or (state.startswith(_OF_DATA) and state not in _OF_SETTINGS)


def expression_failed(error: BaseException, path: str) -> FailedProcessingException | None:
    """The exception for a query in which nothing can have failed but the expression at the field `path`; None: it did
    not fail by itself, but Spark did.
    """
    condition = _CONDITION.search(str(error))
    if condition is None or condition[0].startswith("[SPARK_"):
        return None
    reason = f"{path}: the expression failed in Spark: {condition[0]}"
    return FailedProcessingException(reason, _REMEDY, is_of_data(str(error)))


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
