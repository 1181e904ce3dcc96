"""Keys of window and session stores as Kafka Streams writes them, in changelogs and in stores.

Window: the record's key, 8 bytes of start, 4 bytes of sequence number. Session: the key, 8 bytes of end, 8 bytes of
start. All numbers big-endian, times in ms since 1970. The bytes sort by key and then by time, but for keys of which
one is the beginning of another that goes on with zero bytes.
"""

from __future__ import annotations

from typing import Protocol

LATEST = 2**63 - 1
"""The largest time that a key can hold."""
_TIME_BYTES = 8
START_BYTES = _TIME_BYTES
"""How many bytes follow the record's key in a topic of windows, which has no sequence numbers."""
_SEQUENCE_BYTES = 4


def window_key(key: bytes, start: int, sequence: int = 0) -> bytes:
    """The key of the window that starts at `start`; `sequence` tells apart records of a stream that is joined."""
    return key + start.to_bytes(_TIME_BYTES, "big") + sequence.to_bytes(_SEQUENCE_BYTES, "big")


def session_key(key: bytes, start: int, end: int) -> bytes:
    """The key of the session from `start` to `end`, both inclusive."""
    return key + end.to_bytes(_TIME_BYTES, "big") + start.to_bytes(_TIME_BYTES, "big")


class KeySchema(Protocol):
    """How one kind of store writes its keys."""

    suffix_bytes: int
    """How many bytes follow the record's key."""

    def segment_time(self, data: bytes) -> int:
        """The time by which a record is kept or expired."""

    def earliest_suffix(self, earliest: int) -> bytes:
        """The smallest suffix of a record that `is_between(…, earliest, …)` can be true of."""

    def latest_suffix(self, latest: int) -> bytes:
        """The largest suffix of a record that `is_between(…, …, latest)` can be true of."""

    def last_segment_time(self, latest: int) -> int:
        """The largest segment time of a record that `is_between(…, …, latest)` can be true of."""

    def is_between(self, data: bytes, earliest: int, latest: int) -> bool:
        """Whether the record is asked for by these two times, both inclusive."""


class _WindowKeys:
    """Windows are kept and asked for by their start."""

    suffix_bytes = _TIME_BYTES + _SEQUENCE_BYTES

    def segment_time(self, data: bytes) -> int:
        return int.from_bytes(data[-12:-4], "big")

    def earliest_suffix(self, earliest: int) -> bytes:
        return earliest.to_bytes(_TIME_BYTES, "big") + bytes(_SEQUENCE_BYTES)

    def latest_suffix(self, latest: int) -> bytes:
        return latest.to_bytes(_TIME_BYTES, "big") + b"\xff" * _SEQUENCE_BYTES

    def last_segment_time(self, latest: int) -> int:
        return latest

    def is_between(self, data: bytes, earliest: int, latest: int) -> bool:
        return earliest <= int.from_bytes(data[-12:-4], "big") <= latest


class _SessionKeys:
    """Sessions are kept by their end; asked for are those that end at `earliest` or later and start by `latest`."""

    suffix_bytes = 2 * _TIME_BYTES

    def segment_time(self, data: bytes) -> int:
        return int.from_bytes(data[-16:-8], "big")

    def earliest_suffix(self, earliest: int) -> bytes:
        return earliest.to_bytes(_TIME_BYTES, "big") + bytes(_TIME_BYTES)

    def latest_suffix(self, latest: int) -> bytes:
        return LATEST.to_bytes(_TIME_BYTES, "big") + latest.to_bytes(_TIME_BYTES, "big")

    def last_segment_time(self, latest: int) -> int:  # noqa: ARG002
        return LATEST

    def is_between(self, data: bytes, earliest: int, latest: int) -> bool:
        return earliest <= int.from_bytes(data[-16:-8], "big") and int.from_bytes(data[-8:], "big") <= latest


WINDOW_KEYS: KeySchema = _WindowKeys()
SESSION_KEYS: KeySchema = _SessionKeys()


def split_window_key(data: bytes) -> tuple[bytes, int, int]:
    """Record's key, start (ms) and sequence number of a window's key."""
    return data[:-12], int.from_bytes(data[-12:-4], "big"), int.from_bytes(data[-4:], "big")


def split_start(data: bytes) -> tuple[bytes, int]:
    """Record's key and start (ms) of a window's key in a topic (Kafka Streams' TimeWindowedSerializer)."""
    return data[:-START_BYTES], int.from_bytes(data[-START_BYTES:], "big")


def split_session_key(data: bytes) -> tuple[bytes, int, int]:
    """Record's key, start and end (ms) of a session's key."""
    return data[:-16], int.from_bytes(data[-8:], "big"), int.from_bytes(data[-16:-8], "big")


def largest_with_suffix(to_key: bytes, suffix: bytes) -> bytes:
    """The largest of all `key + suffix` with key <= `to_key`.

    A key that is the beginning of `to_key` can come after it once the suffix is there.
    """
    length = len(suffix)
    first = next(at for at in range(len(to_key) + 1) if suffix > to_key[at : at + length])
    # From `first` on, only while the suffix and to_key still overlap can a longer beginning give more.
    ends = [*range(first, min(first + length, len(to_key)) + 1), len(to_key)]
    return max(to_key[:end] + suffix for end in ends)
