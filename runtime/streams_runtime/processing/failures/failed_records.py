"""What becomes of a record over which a step fails, by the policy of the application."""

from __future__ import annotations

import logging
import time
import traceback

import pyarrow as pa

from streams_runtime.batch.encode import Headers
from streams_runtime.batch.stage import Emission
from streams_runtime.errors import FailedProcessingException
from streams_runtime.kafka.consumer.record_table import LATEST_TIME
from streams_runtime.processing.failures.error_policy import ErrorPolicy, FailedRecord

_LOGGER = logging.getLogger("streams_runtime.tasks")
_TRACE = 16_000  # characters of a stack trace that a header has; with Java's it may be larger than a record may be


def is_of_a_record(error: BaseException) -> bool:
    """Whether what ended a batch is to be blamed on one of its records: the one place where that is decided.

    It is if an expression or a function failed over values. It is not if brokers, disks, workers or memory did: then no
    record may be left out.
    """
    return isinstance(error, FailedProcessingException) and error.of_a_record


def letter_of(policy: ErrorPolicy, record: pa.Table, error: FailedProcessingException) -> Emission | None:
    """The letter for the one record that failed, if the policy sends one: as it came, with headers that say why, named
    as in KIP-1034. The log tells of it.

    Raises:
        FailedProcessingException: `error`, which the user's function lets fail.
        UserCodeException: it could not decide.
    """
    for row in record.to_pylist():
        at = int(row["timestamp"].timestamp() * 1000)
        where = f"{row['topic']}-{row['partition']}@{row['offset']}"
        sent = policy.sends_letter(error, FailedRecord.read(row, at))
        _LOGGER.warning("the record %s failed and was %s: %s", where, policy.done_with(sent, 1), error.reason)
        if sent and policy.topic is not None:
            own: Headers = [(each["key"], each["value"]) for each in row["headers"] or []]
            now = int(time.time() * 1000)
            times = [at if 0 <= at <= LATEST_TIME else now]
            return Emission(policy.topic, False, [row["key"]], [row["value"]], times, [[*own, *_why(row, error)]])
    return None


def _why(row: dict[str, object], error: FailedProcessingException) -> Headers:
    found = {
        "exception": type(error).__name__,
        "message": error.reason,
        "stacktrace": "".join(traceback.format_exception(error))[:_TRACE],
        "topic": row["topic"],
        "partition": row["partition"],
        "offset": row["offset"],
    }
    return [(f"__streams.errors.{name}", str(text).encode(errors="backslashreplace")) for name, text in found.items()]
