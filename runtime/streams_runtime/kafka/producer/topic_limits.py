"""Which records a topic takes, by its configuration, and how large a record is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Self

import pyarrow as pa

from streams_runtime.batch.encode import Headers

# Bytes of a record batch before its first record (KIP-98).
_BATCH_OVERHEAD = 61
# What librdkafka counts for a record beside its key, value and headers: seven numbers, each at its longest.
_LIBRDKAFKA_OVERHEAD = 36
# Attributes, and the distances to the first offset and time, which are 0 in a record that is alone in its batch.
_RECORD_OVERHEAD = 3
_NO_END = (1 << 63) - 1
# What librdkafka compresses with, as Arrow calls it. It may come to a few bytes more than Arrow does.
_CODECS = {"lz4": "lz4", "gzip": "gzip", "snappy": "snappy", "zstd": "zstd"}
_MARGIN = 64


@dataclass(frozen=True, slots=True)
class TopicLimits:
    """What the brokers check of each record: by LogValidator, as of Kafka 3.6 (KIP-937).

    `largest`: bytes of a record batch, compressed. `before` and `after`: how far a record's time may be behind and
    ahead of the brokers' clock (ms). `needs_key`: a topic that is compacted takes no record without one.
    """

    largest: int = _NO_END
    before: int = _NO_END
    after: int = _NO_END
    needs_key: bool = False

    @classmethod
    def of(cls, config: Mapping[str, str]) -> Self:
        """Those of a topic with this configuration, of which all defaults are part."""
        own_times = config.get("message.timestamp.type") != "LogAppendTime"
        return cls(
            int(config.get("max.message.bytes", _NO_END)),
            int(config.get("message.timestamp.before.max.ms", _NO_END)) if own_times else _NO_END,
            int(config.get("message.timestamp.after.max.ms", _NO_END)) if own_times else _NO_END,
            "compact" in config.get("cleanup.policy", "").split(","),
        )


def record_bytes(key: bytes | None, value: bytes | None, headers: Headers | None) -> int:
    """How large a record is that is alone in its batch, uncompressed: what max.message.bytes is compared with."""
    size = _RECORD_OVERHEAD + _field(key) + _field(value) + _varint(len(headers or ())) + _headers_bytes(headers)
    return _BATCH_OVERHEAD + _varint(size) + size


def handed_over_bytes(key: bytes | None, value: bytes | None, headers: Headers | None) -> int:
    """How large librdkafka takes it for: what message.max.bytes is compared with."""
    return _LIBRDKAFKA_OVERHEAD + len(key or b"") + len(value or b"") + _headers_bytes(headers)


def compressed_bytes(parts: Sequence[bytes | None], compression: str) -> int | None:
    """About how large a record of these parts is once the producer has compressed it; None where it does not."""
    codec = _CODECS.get(compression)
    if codec is None:
        return None
    whole = b"".join(part for part in parts if part)
    return _BATCH_OVERHEAD + _MARGIN + len(pa.Codec(codec).compress(whole, asbytes=True))


def _headers_bytes(headers: Headers | None) -> int:
    return sum(_field(name.encode()) + _field(encoded(content)) for name, content in headers or ())


def encoded(content: str | bytes | None) -> bytes | None:
    """A header's value as it is sent."""
    return content.encode() if isinstance(content, str) else content


def _field(content: bytes | None) -> int:
    """A length, and what it is of; -1 where there is nothing."""
    return 1 if content is None else _varint(len(content)) + len(content)


def _varint(number: int) -> int:
    """Bytes of a number from 0 as Kafka's protocol writes it: zigzag, 7 bits a byte."""
    return max(1, -(-(number << 1).bit_length() // 7))
