"""Which records of a sink its topic would refuse, and for what: before they are sent.

A broker refuses a whole request for one of its records, and under exactly once the transaction with it. So a record
that may be left out has to be known before it is sent with others.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from streams_runtime.batch.stage import Emission
from streams_runtime.kafka.producer.topic_limits import (
    TopicLimits,
    compressed_bytes,
    encoded,
    handed_over_bytes,
    record_bytes,
)


@dataclass(frozen=True, slots=True)
class Refusal:
    """`exception`: Kafka's class for it; `reason`: what is wrong with the record, in words."""

    exception: str
    reason: str


@dataclass(frozen=True, slots=True)
class Sending:
    """What is sent: `largest` is message.max.bytes, `compression` compression.type of the producer."""

    largest: int
    compression: str


def refusals(
    emission: Emission, limits: TopicLimits, sending: Sending, now: int, strict: bool = False
) -> Mapping[int, Refusal]:
    """The records that can't be written, by their places in the emission; `now` in ms.

    A record that is too large only uncompressed is taken for one that fits if it does compressed, unless `strict`: how
    the producer compresses it, and with which others, is not known for certain before.
    """
    found: dict[int, Refusal] = {}
    for row in _suspects(emission, limits, sending, now):
        refusal = (
            _without_key(emission, row, limits)
            or _by_time(emission.timestamps[row], limits, now)
            or _by_size(emission, row, limits, sending, strict)
        )
        if refusal is not None:
            found[row] = refusal
    return found


def _suspects(emission: Emission, limits: TopicLimits, sending: Sending, now: int) -> range:
    """All records, or none where the extremes of a batch say that none is to be refused, as almost always."""
    if not len(emission):
        return range(0)
    times = emission.timestamps
    in_time = _by_time(min(times), limits, now) is None and _by_time(max(times), limits, now) is None
    largest = max(len(key or b"") for key in emission.keys) + max(len(value or b"") for value in emission.values)
    small = emission.headers is None and _is_small(largest, limits, sending)
    have_keys = not limits.needs_key or None not in emission.keys
    return range(0) if in_time and small and have_keys else range(len(emission))


def _is_small(size: int, limits: TopicLimits, sending: Sending) -> bool:
    """Whether a record of so many bytes fits in any case."""
    return size + _OVERHEAD_AT_MOST <= min(limits.largest, sending.largest)


_OVERHEAD_AT_MOST = 128


def _without_key(emission: Emission, row: int, limits: TopicLimits) -> Refusal | None:
    if emission.keys[row] is not None or not limits.needs_key:
        return None
    return Refusal("InvalidRecordException", "it has no key, and the topic is compacted")


def _by_time(time: int, limits: TopicLimits, now: int) -> Refusal | None:
    reason = None
    if time < 0:
        reason = "is before 1970"
    elif time < now - limits.before:
        reason = f"is more than {limits.before} ms ago (message.timestamp.before.max.ms)"
    elif time > now + limits.after:
        reason = f"is more than {limits.after} ms ahead (message.timestamp.after.max.ms)"
    return None if reason is None else Refusal("InvalidTimestampException", f"its time {time} {reason}")


def _by_size(emission: Emission, row: int, limits: TopicLimits, sending: Sending, strict: bool) -> Refusal | None:
    key, value = emission.keys[row], emission.values[row]
    headers = None if emission.headers is None else emission.headers[row]
    size, reason = handed_over_bytes(key, value, headers), None
    if size > sending.largest:
        reason = (
            f"it has {size} bytes, and the producer sends {sending.largest} (message.max.bytes in spec.kafka.config)"
        )
    elif (size := record_bytes(key, value, headers)) > limits.largest:
        parts = [key, value, *(part for name, text in headers or () for part in (name.encode(), encoded(text)))]
        compressed = None if strict else compressed_bytes(parts, sending.compression)
        if compressed is None or compressed > limits.largest:
            reason = f"it has {size} bytes, and the topic takes {limits.largest} (max.message.bytes)"
    return None if reason is None else Refusal("RecordTooLargeException", reason)
