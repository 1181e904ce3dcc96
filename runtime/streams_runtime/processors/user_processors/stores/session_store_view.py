"""A processor's own view of one partition of a declared session store: typed, and with what the batch has written."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple, overload

from streams_runtime.processors.user_processors.processor_call import CurrentCall
from streams_runtime.processors.user_processors.stores.segmented_overlay import SegmentedOverlay
from streams_runtime.processors.user_processors.stores.stored_forms import StoredForms
from streams_runtime.state.window_keys import LATEST, session_key, split_session_key


class SessionKey(NamedTuple):
    """Whose session it is, and its first and last moment in ms (Windowed of a SessionWindow)."""

    key: Any
    start: int
    end: int


Sessions = Iterator[tuple[SessionKey, Any]]


class SessionStoreView:
    """org.apache.kafka.streams.state.SessionStore: values by key, start and end of a session, in ms.

    The processor chooses the times. The largest end that was put, or removed, is the store's time: a session that ends
    its retention or more before it is gone. Sessions come in the order of the keys' bytes, those of one key by their
    ends and then their starts. What is given is new each time. Iterators are as those of a key-value store.
    """

    def __init__(self, name: str, forms: StoredForms, store: SegmentedOverlay, current: CurrentCall) -> None:
        """What a call writes has its time in the changelog."""
        self.name = name
        self._forms, self._store, self._current = forms, store, current

    def put(self, key: Any, value: Mapping[str, Any] | None, start: int, end: int) -> None:
        """Set the value of a key's session; None removes it. It is gone at once where it has expired.

        One with other times stays beside it: who lets a session grow removes the old one.
        Raises TypeError or ValueError: key or value is not of the declared type, or these are not the times of a
        session.
        """
        data = self._session(key, start, end)
        self._store.write(data, None if value is None else self._forms.value_bytes(value), self._current.now.time)

    def remove(self, key: Any, start: int, end: int) -> None:
        """Remove a key's session, if it is there; `remove(*session)` one that was found. Raises as `put`."""
        self.put(key, None, start, end)

    def fetch_session(self, key: Any, start: int, end: int) -> Any:
        """The value of the key's session with exactly these times; None where it has none. Raises as `put`."""
        return self._forms.value(self._store.read(self._session(key, start, end)))

    @overload
    def fetch(self, key: Any, /, *, reverse: bool = False) -> Sessions: ...

    @overload
    def fetch(self, from_key: Any, to_key: Any, /, *, reverse: bool = False) -> Sessions: ...

    def fetch(self, *keys: Any, reverse: bool = False) -> Sessions:
        """All sessions of a key, or of all keys from one to another; None leaves that side open.

        Raises TypeError, at once: a key is not of the declared type.
        """
        return self._find(keys, 0, LATEST, reverse)

    @overload
    def find_sessions(
        self, key: Any, earliest_end: int, latest_start: int, /, *, reverse: bool = False
    ) -> Sessions: ...

    @overload
    def find_sessions(
        self, from_key: Any, to_key: Any, earliest_end: int, latest_start: int, /, *, reverse: bool = False
    ) -> Sessions: ...

    def find_sessions(self, *asked: Any, reverse: bool = False) -> Sessions:
        """Those sessions of a key, or of a range of keys, that end and start between two times, both inclusive.

        They end at `earliest_end` or later, and start at `latest_start` or earlier: with `time - gap` and `time + gap`
        those that a record of this time belongs to. Raises TypeError, at once: as `fetch`, or a time is no number.
        """
        if len(asked) not in (3, 4):
            raise TypeError(f"{len(asked)} arguments given; one or two keys and two times are needed")
        *keys, earliest, latest = asked
        for time in (earliest, latest):
            if isinstance(time, bool) or not isinstance(time, int):
                raise TypeError(f"sessions of the store {self.name!r} by the time {time!r}; give milliseconds")
        return self._find(tuple(keys), earliest, latest, reverse)

    def all(self, *, reverse: bool = False) -> Sessions:
        """All sessions of all keys."""
        return self._find((None, None), 0, LATEST, reverse)

    def _find(self, keys: tuple[Any, ...], earliest: int, latest: int, reverse: bool) -> Sessions:
        if len(keys) not in (1, 2):
            raise TypeError(f"{len(keys)} keys given; one, or the two ends of a range, are needed")
        ends = [None if key is None and len(keys) == 2 else self._forms.key_bytes(key) for key in keys]
        found = self._store.fetch(ends[0], ends[-1], earliest, latest, reverse)
        pairs = self._forms.during(self._current, found)
        return ((self._key(data), self._forms.value(value)) for data, value in pairs)

    def _key(self, data: bytes) -> SessionKey:
        key, start, end = split_session_key(data)
        return SessionKey(self._forms.key(key), start, end)

    def _session(self, key: Any, start: int, end: int) -> bytes:
        data = self._forms.key_bytes(key)
        for time in (start, end):
            if isinstance(time, bool) or not isinstance(time, int) or not 0 <= time <= LATEST:
                raise ValueError(
                    f"a session of the store {self.name!r} at {time!r}; give milliseconds since 1970, from 0"
                )
        if end < start:
            raise ValueError(f"a session of the store {self.name!r} from {start} to {end}; give its start first")
        return session_key(data, start, end)
