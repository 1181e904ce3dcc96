"""Why a step leaves a record out: the reasons that `/state` and the metrics name."""

from __future__ import annotations

from enum import StrEnum


class DropReason(StrEnum):
    """A reason. MEANINGS says what each of them means to whoever wrote the topology."""

    NULL_KEY = "null-key"
    NULL_VALUE = "null-value"
    UNREADABLE = "unreadable"
    FAILED = "failed"
    LATE = "late"
    DUPLICATE = "duplicate"
    NOT_KEPT = "not-kept"
    EXPIRED = "expired"
    REFUSED = "refused"


MEANINGS = {
    DropReason.NULL_KEY: "The record has no key, and the step needs one; of a join with `on` or `key`, what it gives.",
    DropReason.NULL_VALUE: "The record has no value, and the step needs one.",
    DropReason.UNREADABLE: "The source could not read the record with its format; with `deadLetter` it was sent on.",
    DropReason.FAILED: "An expression or a function failed over the record; with `deadLetter` it was sent on.",
    DropReason.LATE: "The record came after a window had closed. One that misses several windows counts for each.",
    DropReason.DUPLICATE: "A dedupe has seen the record's id.",
    DropReason.NOT_KEPT: "The record came too late to be kept for those after it. It went on all the same.",
    DropReason.EXPIRED: "The record is older than the history of the table that it would change reaches back.",
    DropReason.REFUSED: "The sink's topic takes no such record; with `deadLetter` it was sent on.",
}
