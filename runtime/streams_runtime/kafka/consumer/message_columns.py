"""Messages of librdkafka as columns: fields as vectors, keys and values as Arrow arrays, without a loop in Python.

A message lies where librdkafka has put it, and its key and value in the answer of the broker that it came with. Nothing
of a message may be looked at once it is freed, so what leaves here is a copy.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from streams_runtime.batch.vectors import integers
from streams_runtime.kafka.client.librdkafka import Message, message_destroy, message_timestamp

_WORD = 8  # bytes; pointers and lengths have as many wherever RocksDB's wheels run
# Messages whose fields are read one after the other while they are in the processor's cache, some hundred bytes each.
_NEAR = 4096
_ROOM = 64  # bytes; Arrow's buffers have multiples of it
Vector = npt.NDArray[np.int64]


_ASKED = 32  # messages at either end of several whose times are asked for
_BEHIND = range(Message.private.offset + _WORD, Message.private.offset + 9 * _WORD, _WORD)  # a message's own words
_FIELDS = tuple(
    getattr(Message, name).offset
    for name in ("err", "topic", "partition", "offset", "key", "key_len", "payload", "len")
)


@dataclass(frozen=True, slots=True)
class Messages:
    """Messages that are not freed yet, by field. Null keys and values have the address 0."""

    addresses: Vector
    errors: Vector
    topics: Vector
    """Addresses of topics, for librdkafka.topic_name."""
    partitions: Vector
    offsets: Vector
    keys: Vector
    key_lengths: Vector
    values: Vector
    value_lengths: Vector

    def __len__(self) -> int:
        return len(self.addresses)

    def at(self, rows: npt.NDArray[np.intp]) -> Messages:
        """Some of the messages, in the order of `rows`."""
        return Messages(*(getattr(self, name)[rows] for name in self.__slots__))


@dataclass(frozen=True, slots=True)
class Latest:
    """The last record of each key: keys once each, in no order; null values delete; times in ms since 1970."""

    keys: pa.LargeBinaryArray
    values: pa.LargeBinaryArray
    timestamps: Vector

    def __len__(self) -> int:
        return len(self.keys)

    @property
    def nbytes(self) -> int:
        """Memory that it takes."""
        return int(self.keys.nbytes + self.values.nbytes + self.timestamps.nbytes)


def messages_at(addresses: Vector) -> Messages:
    """The messages with these addresses, at least one."""
    words = _words_of(addresses, _FIELDS)

    def ints_of(field: int) -> Vector:
        # An int of 4 bytes has a word for itself here, whose other half is undefined.
        halves: npt.NDArray[np.int32] = words[field].view(np.int32)
        return halves[:: _WORD // 4].astype(np.int64)

    return Messages(addresses, ints_of(0), words[1], ints_of(2), *words[3:])


def _words_of(addresses: Vector, offsets: Sequence[int]) -> npt.NDArray[np.int64]:
    """The words that lie so many bytes behind these addresses: a row for each offset."""
    lowest = int(addresses.min())
    size = int(addresses.max()) + max(offsets) + _WORD - lowest
    # A view of all the memory that they lie in; of that between them nothing is touched.
    words = np.frombuffer(pa.foreign_buffer(lowest, size), np.int64)
    found: npt.NDArray[np.int64] = np.empty((len(offsets), len(addresses)), np.int64)
    for start in range(0, len(addresses), _NEAR):
        first = (addresses[start : start + _NEAR] - lowest) // _WORD
        for row, offset in enumerate(offsets):
            found[row, start : start + _NEAR] = words[first + offset // _WORD]
    return found


def free(addresses: Vector) -> None:
    """Free the messages with these addresses."""
    deque(map(message_destroy, addresses.tolist()), 0)


def latest_of(messages: Messages) -> Latest:
    """The last record of each key among records of one partition; those without a key are passed over."""
    with_keys = np.flatnonzero(messages.keys)
    if len(with_keys) < len(messages):
        messages = messages.at(with_keys)
    keys = bytes_at(messages.keys, messages.key_lengths)
    last = last_rows(keys)
    kept = messages.at(last)
    values = bytes_at(kept.values, kept.value_lengths)
    return Latest(keys.take(integers(last)), values, timestamps_of(kept.addresses))


def may_have_headers(messages: Messages) -> npt.NDArray[np.bool_]:
    """Of which messages librdkafka has to be asked for headers; the others have none.

    A value that is not empty lies where the broker's answer has it, or what that was compressed from. In a batch of
    records the number of headers comes right behind it, as a varint (protocol guide, "Record"). In message sets, of
    which there are none since Kafka 0.11, no headers are, and what is there does not matter.
    """
    asked: npt.NDArray[np.bool_] = messages.value_lengths <= 0
    filled = np.flatnonzero(~asked)
    if len(filled):
        behind = messages.values[filled] + messages.value_lengths[filled]
        lowest = int(behind.min())
        memory = np.frombuffer(pa.foreign_buffer(lowest, int(behind.max()) + 1 - lowest), np.uint8)
        asked[filled] = memory[behind - lowest] != 0
    return asked


def timestamps_of(addresses: Vector) -> Vector:
    """The times (ms since 1970) of the messages with these addresses.

    A call for each costs as much as all else that is read of them. So the place behind what is public of a message is
    looked for where librdkafka keeps the time; where not exactly one fits what it answers for some, all are asked for.
    """
    asked = addresses if len(addresses) <= 2 * _ASKED else np.r_[addresses[:_ASKED], addresses[-_ASKED:]]
    times = np.fromiter((message_timestamp(each, None) for each in asked.tolist()), np.int64, len(asked))
    if len(asked) == len(addresses):
        return times
    fitting = [place for place, words in zip(_BEHIND, _words_of(asked, _BEHIND), strict=True) if (words == times).all()]
    if len(fitting) == 1:
        return _words_of(addresses, fitting).reshape(len(addresses))
    return np.fromiter((message_timestamp(each, None) for each in addresses.tolist()), np.int64, len(addresses))


def merged(parts: Sequence[Latest]) -> Latest:
    """The last of each key in parts, at least one, of which a later one wins."""
    return parts[0] if len(parts) == 1 else taken(parts, last_rows(pa.concat_arrays([each.keys for each in parts])))


def taken(parts: Sequence[Latest], rows: npt.NDArray[np.intp]) -> Latest:
    """These rows of all parts, which are counted one behind the other; the only copy that is made of them."""
    (found,) = in_pieces(parts, rows, max(1, len(rows)))
    return found


def in_pieces(parts: Sequence[Latest], rows: npt.NDArray[np.intp], size: int) -> Iterator[Latest]:
    """The same, `size` at a time, in the order of `rows`; for no rows one piece, which is empty."""
    keys, values = (_lying([getattr(each, name) for each in parts]) for name in ("keys", "values"))
    times = np.concatenate([each.timestamps for each in parts])
    for start in range(0, max(1, len(rows)), size):
        piece = rows[start : start + size]
        key_bytes, value_bytes = (bytes_at(addresses[piece], lengths[piece]) for addresses, lengths in (keys, values))
        yield Latest(key_bytes, value_bytes, times[piece])


def _lying(arrays: Sequence[pa.LargeBinaryArray]) -> tuple[Vector, Vector]:
    addresses, lengths = zip(*map(where, arrays), strict=True)
    return np.concatenate(addresses), np.concatenate(lengths)


def where(array: pa.LargeBinaryArray) -> tuple[Vector, Vector]:
    """Addresses (0: null) and lengths of an array's elements, for `bytes_at` while the array is there."""
    _, offsets, content = array.buffers()
    ends = np.frombuffer(offsets, np.int64)[array.offset : array.offset + len(array) + 1]
    # An empty one lies nowhere, and is not null for that.
    base = content.address if content is not None and content.address else 1
    return np.where(array.is_valid().to_numpy(zero_copy_only=False), ends[:-1] + base, 0), np.diff(ends)


def sorted_rows(keys: pa.LargeBinaryArray) -> Vector:
    """The numbers of the keys, sorted by the keys."""
    return np.frombuffer(pc.sort_indices(keys).buffers()[1], np.int64, len(keys))


def last_rows(keys: pa.LargeBinaryArray) -> npt.NDArray[np.intp]:
    """Where each key is last, in the order in which the keys come first."""
    encoded = keys.dictionary_encode()
    last = np.empty(len(encoded.dictionary), np.intp)
    # Of several values for one place the last one stays; numpy promises that.
    last[np.frombuffer(encoded.indices.buffers()[1], np.int32, len(keys))] = np.arange(len(keys))
    return last


def bytes_at(addresses: Vector, lengths: Vector) -> pa.LargeBinaryArray:
    """A copy of what lies at these addresses; null where that is 0."""
    count = len(addresses)
    filled = lengths > 0  # an empty one may have any address
    lowest = int(addresses[filled].min()) if filled.any() else 0
    starts = np.where(filled, addresses - lowest, 0)
    ends = starts + lengths
    size = int(ends.max(initial=0))
    # One array over all the memory that they lie in: each is an element, and so is what is between it and the next one,
    # which may have no length that makes sense, and is not looked at.
    offsets = np.zeros(2 * count + 2, np.int64)
    offsets[1:-1:2], offsets[2:-1:2] = starts, ends
    offsets[-1] = _bounded(int(lengths.sum()), count)
    memory = pa.foreign_buffer(lowest, max(size, int(offsets[-1]))) if size else pa.py_buffer(b"")
    view = pa.LargeBinaryArray.from_buffers(pa.large_binary(), 2 * count + 1, [None, pa.py_buffer(offsets), memory])
    return view.take(integers(np.arange(1, 2 * count, 2), addresses != 0))


def _bounded(size: int, count: int) -> int:
    """The end of the last of 2n + 1 elements, with which Arrow makes just as much room as n with `size` bytes take.

    It judges that by the mean of all, and moves what it has copied if the room was too small, or is too large at the
    end: each a copy of everything. Room is made in steps of 64 bytes; this tells a little less than the next one.
    """
    room = -(-size // _ROOM) * _ROOM
    return (2 * room - 1) * (2 * count + 1) // (2 * count) if size else 0
