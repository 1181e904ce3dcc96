"""Which partition a key belongs to: the Java client's murmur2, so that both put a key into the same place."""

from __future__ import annotations

_SEED = 0x9747B28C
_MULTIPLIER = 0x5BD1E995
_SHIFT = 24
_UNSIGNED = 0xFFFFFFFF
_POSITIVE = 0x7FFFFFFF


def murmur2(data: bytes) -> int:
    """The hash of `org.apache.kafka.common.utils.Utils.murmur2`, as Java's signed 32-bit int."""
    length = len(data)
    whole = length & ~3
    h = _SEED ^ length
    for start in range(0, whole, 4):
        k = int.from_bytes(data[start : start + 4], "little") * _MULTIPLIER & _UNSIGNED
        k = (k ^ k >> _SHIFT) * _MULTIPLIER & _UNSIGNED
        h = (h * _MULTIPLIER & _UNSIGNED) ^ k
    if whole < length:
        h = (h ^ int.from_bytes(data[whole:], "little")) * _MULTIPLIER & _UNSIGNED
    h = (h ^ h >> 13) * _MULTIPLIER & _UNSIGNED
    h ^= h >> 15
    return h - (1 << 32) if h > _POSITIVE else h


def partition_for(key: bytes, partitions: int) -> int:
    """The partition, 0 to `partitions` - 1, that the Java producer's default partitioner gives a record
    with this key.
    """
    return (murmur2(key) & _POSITIVE) % partitions
