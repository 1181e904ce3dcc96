"""What the two sides of a join by a foreign key tell each other, and how subscriptions are kept.

Laid out as Kafka Streams lays them out (CombinedKey, SubscriptionWrapper, SubscriptionResponseWrapper), but for the
hash, which is of another kind: both ends are of one application.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from enum import IntEnum

from streams_runtime.errors import StreamsException

_LENGTH_BYTES = 4
_PARTITION_BYTES = 4
_HASH_BYTES = 16
_VERSION = 1  # of subscriptions, with the partition; the first bit of the same byte says that there is no hash
_RESPONSE_VERSION = 0
_NO_HASH = 0x80


class Instruction(IntEnum):
    """What a subscription asks for, by Kafka Streams' numbers; the two that are used here."""

    DELETE_KEY_NO_PROPAGATE = 0
    PROPAGATE_NULL_IF_NO_FK_VAL_AVAILABLE = 2


@dataclass(frozen=True, slots=True)
class Subscription:
    """A row of the left table, by its `key` and `partition`, names a row of the right one, or no longer does.

    `hash` is that of the left row (`hash_of`), by which answers to an older one are known.
    """

    instruction: Instruction
    hash: bytes | None
    key: bytes
    partition: int

    def to_bytes(self) -> bytes:
        """As it travels, and as the store keeps it."""
        head = bytes([_VERSION | (_NO_HASH if self.hash is None else 0), self.instruction])
        return head + (self.hash or b"") + self.key + self.partition.to_bytes(_PARTITION_BYTES, "big")

    @classmethod
    def of(cls, data: bytes) -> Subscription:
        """The reverse of `to_bytes`. Raises StreamsException for what another version has written."""
        _check(data, _VERSION, "subscription")
        start = 2 if data[0] & _NO_HASH else 2 + _HASH_BYTES
        partition = int.from_bytes(data[-_PARTITION_BYTES:], "big")
        return cls(Instruction(data[1]), data[2:start] or None, data[start:-_PARTITION_BYTES], partition)


@dataclass(frozen=True, slots=True)
class Response:
    """What a row of the right table holds (JSON; None: there is none), for the left row with this hash."""

    hash: bytes | None
    row: bytes | None

    def to_bytes(self) -> bytes:
        """As it travels."""
        head = bytes([_RESPONSE_VERSION | (_NO_HASH if self.hash is None else 0)])
        return head + (self.hash or b"") + (self.row or b"")

    @classmethod
    def of(cls, data: bytes) -> Response:
        """The reverse of `to_bytes`. Raises StreamsException for what another version has written."""
        _check(data, _RESPONSE_VERSION, "answer to a subscription")
        start = 1 if data[0] & _NO_HASH else 1 + _HASH_BYTES
        return cls(data[1:start] or None, data[start:] or None)


def _check(data: bytes, version: int, what: str) -> None:
    if not data or data[0] & ~_NO_HASH != version:
        raise StreamsException(
            f"a record in an internal topic is no {what} of this version: {data[:8].hex()}…. Run the version that wrote"
            " it until it has processed the topic, and then this one"
        )


def hash_of(stored: bytes | None) -> bytes | None:
    """The hash of a left row, which is that of what its source's store holds, time included; None of none."""
    return None if stored is None else hashlib.blake2b(stored, digest_size=_HASH_BYTES).digest()


def prefix_of(foreign_key: bytes) -> bytes:
    """What the store's keys of all that subscribe to one row begin with, and no others."""
    return len(foreign_key).to_bytes(_LENGTH_BYTES, "big") + foreign_key


def behind(prefix: bytes) -> bytes:
    """The first key behind all that begin with `prefix`, which is one of `prefix_of`."""
    whole = prefix.rstrip(b"\xff")
    return whole[:-1] + bytes([whole[-1] + 1])


def combined_key(foreign_key: bytes, key: bytes) -> bytes:
    """The store's key of a subscription."""
    return prefix_of(foreign_key) + key
