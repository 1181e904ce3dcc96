"""Keys and values of the store of a join's records that have met no other record so far.

As in Kafka Streams a key is 8 bytes of time (ms, big-endian), one byte of the side, and the record's key, so that the
store's order is the order in which such records are passed on; records that agree in all of that share one value. The
value is theirs in their order, each behind 4 bytes of its length. One key more holds how far stream time has come.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from streams_runtime.topology.nodes.stream_join_node import Side

Ordinal = tuple[int, Side, bytes]
"""Time (ms), side and key of records without a match: sorts as the store does."""

STREAM_TIME = b"\xff"
"""The key of stream time, behind those of all records: no time since 1970 begins with this byte."""
_TIME_BYTES = 8
_LENGTH_BYTES = 4


def unjoined_key(place: Ordinal) -> bytes:
    """The key of the records at a place."""
    time, side, key = place
    return time.to_bytes(_TIME_BYTES, "big") + bytes([side]) + key


def ordinal_of(data: bytes) -> Ordinal:
    """The place whose key this is."""
    return int.from_bytes(data[:_TIME_BYTES], "big"), Side(data[_TIME_BYTES]), data[_TIME_BYTES + 1 :]


def first_key_after(time: int) -> bytes:
    """A key that no record up to this time comes behind, and every later one does."""
    return (time + 1).to_bytes(_TIME_BYTES, "big")


def joined_values(values: Sequence[bytes]) -> bytes:
    """Several values as one."""
    return b"".join(len(value).to_bytes(_LENGTH_BYTES, "big") + value for value in values)


def split_values(data: bytes) -> list[bytes]:
    """The values that one was made of."""
    return list(_values(data))


def _values(data: bytes) -> Iterator[bytes]:
    at = 0
    while at < len(data):
        start = at + _LENGTH_BYTES
        at = start + int.from_bytes(data[at:start], "big")
        yield data[start:at]
