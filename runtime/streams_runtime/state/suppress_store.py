"""The store of changes that wait before they are passed on, with an index of them in memory.

A key of the store is a byte and a key's bytes, its value the time of the first change that waits, and the last change.
One key more holds how far stream time has come. Each key is right by itself, so that a changelog which ends between
two of a batch's keys is one of an earlier moment, and no index or number in it can disagree with the rest.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from streams_runtime.errors import ProcessorStateException
from streams_runtime.state.store import KeyValueStore, Updates

Place = tuple[int, bytes]
"""When the first change of a key came that waits (ms), and the key: changes go on in this order."""

NO_TIME = -1
"""Stream time before the first change, as in Kafka Streams."""
STREAM_TIME = b"s"
"""The store's key of stream time."""
_CHANGE = b"k"
_TIME = struct.Struct(">q")
_CONTEXT = struct.Struct(">qqI")  # time, offset, bytes of the topic
_LENGTH = struct.Struct(">i")
_NOTHING = -1  # the length of what is null
_TIME_BYTES = _TIME.size


@dataclass(frozen=True, slots=True)
class Change:
    """A row that a table has got, with the metadata of the record that brought it about: `value` None deletes it.

    `headers` are as a row has them: a mapping of `key` and `value` each. Time in ms.
    """

    time: int
    topic: str
    offset: int
    headers: Sequence[Mapping[str, Any]] | None
    value: bytes | None


def packed(change: Change) -> bytes:
    """A change as it waits in the store."""
    topic = change.topic.encode()
    parts = [_CONTEXT.pack(change.time, change.offset, len(topic)), topic]
    headers = change.headers
    parts.append(_LENGTH.pack(_NOTHING if headers is None else len(headers)))
    for each in headers or ():
        parts += [_part(each["key"].encode()), _part(each["value"])]
    parts.append(_part(change.value))
    return b"".join(parts)


def unpacked(data: bytes) -> Change:
    """The change that `packed` gave this for."""
    time, offset, length = _CONTEXT.unpack_from(data)
    at = _CONTEXT.size + length
    topic = data[_CONTEXT.size : at].decode()
    (number,) = _LENGTH.unpack_from(data, at)
    at += _LENGTH.size
    headers: list[Mapping[str, Any]] | None = None if number == _NOTHING else []
    for _ in range(max(number, 0)):
        name, at = _read(data, at)
        value, at = _read(data, at)
        assert headers is not None
        headers.append({"key": (name or b"").decode(), "value": value})
    value, _ = _read(data, at)
    return Change(time, topic, offset, headers, value)


def change_key(key: bytes) -> bytes:
    """The store's key of a key's change."""
    return _CHANGE + key


def placed(first: int, change: bytes) -> bytes:
    """The store's value of a packed change of a key whose first one came at `first` (ms)."""
    return _TIME.pack(first) + change


def change_of(value: bytes) -> bytes:
    """The packed change in a value of the store."""
    return value[_TIME_BYTES:]


def size_of(key: bytes, change: bytes) -> int:
    """What a packed change counts for in a buffer's bytes: its key, the time by which it is ordered, and itself."""
    return _TIME_BYTES + len(key) + len(change)


def stream_time_value(time: int) -> bytes:
    """The store's value of stream time."""
    return _TIME.pack(time)


@dataclass(slots=True)
class Waiting:
    """What waits in a store: of each key the time of its first change and the bytes that it counts for.

    `order` are the keys in the order in which their changes go on; `size` the bytes that all count for.
    """

    first: dict[bytes, int] = field(default_factory=dict)
    sizes: dict[bytes, int] = field(default_factory=dict)
    order: list[Place] = field(default_factory=list)
    size: int = 0
    stream_time: int = NO_TIME

    @classmethod
    def of(cls, pairs: Iterable[tuple[bytes, bytes]]) -> Waiting:
        """The index of a store's contents."""
        found = cls()
        found.take(pairs)
        return found

    def take(self, pairs: Iterable[tuple[bytes, bytes | None]]) -> None:
        """Follow what was written to the store. Raises ProcessorStateException: it is not what a suppress writes."""
        new: list[Place] = []
        stale = 0
        for data, value in pairs:
            if data == STREAM_TIME:
                self.stream_time = NO_TIME if value is None else _TIME.unpack(value)[0]
                continue
            if not data.startswith(_CHANGE):
                raise ProcessorStateException(
                    f"a key {data[:20]!r} in the store of a suppress, which no suppress has written. Its changelog was"
                    " written by something else: give the step another name, or reset the application"
                )
            key = data[len(_CHANGE) :]
            before = self.first.pop(key, None)
            self.size -= self.sizes.pop(key, 0)
            if value is not None:
                (time,) = _TIME.unpack_from(value)
                self.first[key], self.sizes[key] = time, size_of(key, change_of(value))
                self.size += self.sizes[key]
            if before != self.first.get(key):
                stale += before is not None
                new += [(self.first[key], key)] if value is not None else []
        self._leave_out(stale)
        self.order += sorted(new)
        self.order.sort()  # two runs, which it puts together

    def _leave_out(self, stale: int) -> None:
        """Take so many places out of the order that are none any more. As a rule they are the first ones."""
        first = 0
        while first < stale and not self._is_place(self.order[first]):
            first += 1
        del self.order[:first]
        if first < stale:
            self.order = [place for place in self.order if self._is_place(place)]

    def _is_place(self, place: Place) -> bool:
        time, key = place
        return self.first.get(key) == time


class SuppressStore(KeyValueStore):
    """One partition of the changes that a suppress holds back."""

    _waiting: Waiting | None

    def waiting(self) -> Waiting:
        """What waits here; not to be changed. Read from the database the first time, and kept up with each write.

        Raises ProcessorStateException: the store can't be read.
        """
        if self._waiting is None:
            self._waiting = Waiting.of(self.scan(None, None))
        return self._waiting

    def properties(self) -> dict[str, int]:
        """RocksDB's properties, and how much waits, once that has been asked for. May be called on any thread."""
        found, waiting = super().properties(), self._waiting
        if waiting is not None:
            found |= {"suppression-buffer-count": len(waiting.first), "suppression-buffer-size": waiting.size}
        return found

    def write(self, updates: Updates, offset: int | None) -> None:
        waiting, self._waiting = self._waiting, None  # a write that fails leaves no index of what is not there
        super().write(updates, offset)
        if waiting is not None:
            waiting.take(zip(updates.keys, updates.values, strict=True))
        self._waiting = waiting

    def ingest(self, files: Sequence[Path], offset: int) -> None:
        self._waiting = None
        super().ingest(files, offset)

    def _open(self) -> None:
        self._waiting = None
        super()._open()


def _part(data: bytes | None) -> bytes:
    return _LENGTH.pack(_NOTHING) if data is None else _LENGTH.pack(len(data)) + data


def _read(data: bytes, at: int) -> tuple[bytes | None, int]:
    (length,) = _LENGTH.unpack_from(data, at)
    at += _LENGTH.size
    return (None, at) if length == _NOTHING else (data[at : at + length], at + length)
