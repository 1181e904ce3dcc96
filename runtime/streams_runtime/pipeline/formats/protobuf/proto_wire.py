"""What stands before the body of a Protobuf record: the magic byte, the schema's id, and which message of it that is.

The message is a list of numbers as zigzag varints, with their count before them: its place among the messages of the
file, then among those inside. A single 0 byte stands for the first message, (0,).
"""

from __future__ import annotations

from streams_runtime.pipeline.formats.schema_ids import PREFIX, id_in, prefix_of

FIRST = (0,)
_MOST = 10  # bytes of a varint of 64 bits


def framed(id: int, indexes: tuple[int, ...]) -> bytes:
    """The bytes before the body."""
    if indexes == FIRST:
        return prefix_of(id) + b"\0"
    return prefix_of(id) + b"".join(_varint(_zigzag(each)) for each in (len(indexes), *indexes))


def unframed(data: bytes) -> tuple[int, tuple[int, ...], bytes] | None:
    """The schema's id, the message's numbers and the body; None where the bytes do not begin so."""
    number = id_in(data)
    if number is None:
        return None
    found = _read(data, PREFIX)
    if found is None or found[0] < 0:
        return None
    count, at = found
    indexes = []
    for _ in range(count):
        found = _read(data, at)
        if found is None or found[0] < 0:
            return None
        index, at = found
        indexes.append(index)
    return number, tuple(indexes) or FIRST, data[at:]


def _zigzag(number: int) -> int:
    return number << 1 if number >= 0 else (-number << 1) - 1


def _varint(number: int) -> bytes:
    found = bytearray()
    while number > 0x7F:
        found.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*found, number])


def _read(data: bytes, at: int) -> tuple[int, int] | None:
    """A zigzag varint, and where it ends."""
    number = 0
    for place, byte in enumerate(data[at : at + _MOST]):
        number |= (byte & 0x7F) << (7 * place)
        if byte < 0x80:
            return (number >> 1) ^ -(number & 1), at + place + 1
    return None
