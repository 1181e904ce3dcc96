"""Functions of a user's that decide on records that fail (guide/error-handlers.md)."""

from __future__ import annotations

import json
import re

import numpy as np

from streams_runtime import FailedProcessingException, FailedRecord, ProducerException, StreamsException

ASKED: list[tuple[str, FailedRecord]] = []
"""What `by_header` was asked of, with the error's class; in this process."""


def by_header(error: StreamsException, record: FailedRecord) -> str:
    """What the record's header `do` says."""
    ASKED.append((type(error).__name__, record))
    (said,) = (value for name, value in record.headers if name == "do")
    return str(said, "utf-8")


def as_they_say(error: StreamsException, record: FailedRecord) -> str:
    """What the record itself says: as its value, or as `said` in it."""
    said = json.loads(record.value or b"null")
    return str(said["said"] if isinstance(said, dict) else said)


def by_error(error: StreamsException, record: FailedRecord) -> str:
    """Letters for what is too large, and for orders of a user that is no number; all else is left out."""
    if isinstance(error, ProducerException):
        return "deadLetter" if error.refused_as == "RecordTooLargeException" else "continue"
    if isinstance(error, FailedProcessingException):
        return "deadLetter" if "CAST_INVALID_INPUT" in error.reason else "continue"
    return "deadLetter" if (record.value or b"").startswith(b"{") else "continue"


def not_of_order_2(_: StreamsException, record: FailedRecord) -> str:
    """The order 2 fails; all others are left out."""
    return "fail" if re.match(rb'{"id": ?2\b', record.value or b"") else "continue"


def raising(_: StreamsException, record: FailedRecord) -> str:
    """Fails itself."""
    raise KeyError(record.topic)


def unsure(_: StreamsException, __: FailedRecord) -> None:
    """Says nothing."""


def columnar(_: StreamsException, __: FailedRecord) -> object:
    """Says it as functions over batches do."""
    return np.array(["continue", "fail"])


SAYING = "continue"
