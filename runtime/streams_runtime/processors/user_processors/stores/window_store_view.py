"""A processor's own view of one partition of a declared window store: typed, and with what the batch has written."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, overload

from streams_runtime.processors.user_processors.processor_call import CurrentCall
from streams_runtime.processors.user_processors.stores.segmented_overlay import SegmentedOverlay
from streams_runtime.processors.user_processors.stores.stored_forms import StoredForms
from streams_runtime.state.window_keys import LATEST, split_window_key, window_key


class WindowStoreView:
    """org.apache.kafka.streams.state.WindowStore: values by key and start of a window, in ms.

    The largest start that was put, or deleted, is the store's time: a window that starts its retention or more before
    it is gone. What is given is new each time. Iterators are as those of a key-value store.
    """

    def __init__(self, name: str, forms: StoredForms, store: SegmentedOverlay, current: CurrentCall) -> None:
        """What a call writes has its time in the changelog."""
        self.name = name
        self._forms, self._store, self._current = forms, store, current

    def put(self, key: Any, value: Mapping[str, Any] | None, window_start: int) -> None:
        """Set the value of a key's window; None deletes it. It is gone at once where it has expired.

        Raises TypeError or ValueError: key or value is not of the declared type, or the start is no time in ms.
        """
        data = window_key(self._forms.key_bytes(key), self._start(window_start))
        self._store.write(data, None if value is None else self._forms.value_bytes(value), self._current.now.time)

    @overload
    def fetch(self, key: Any, start: int) -> Any: ...

    @overload
    def fetch(self, key: Any, start: int, end: int, *, reverse: bool = False) -> Iterator[tuple[int, Any]]: ...

    def fetch(self, key: Any, start: int, end: int | None = None, *, reverse: bool = False) -> Any:
        """The value of the key's window that starts at `start`; None where it has none.

        With `end` start and value of all its windows that start from `start` to `end`, both inclusive, in their order.
        Raises as `put`, at once.
        """
        data = self._forms.key_bytes(key)
        if end is None:
            return self._forms.value(self._store.read(window_key(data, self._start(start))))
        found = self._store.fetch(data, data, start, end, reverse)
        pairs = self._forms.during(self._current, found)
        return ((split_window_key(each)[1], self._forms.value(value)) for each, value in pairs)

    def fetch_all(self, start: int, end: int, *, reverse: bool = False) -> Iterator[tuple[tuple[Any, int], Any]]:
        """Key and start, and value, of all windows that start from `start` to `end`, both inclusive.

        In the order of the keys' bytes, and of each key in that of the starts.
        """
        pairs = self._forms.during(self._current, self._store.fetch(None, None, start, end, reverse))
        return ((self._window(each), self._forms.value(value)) for each, value in pairs)

    def all(self, *, reverse: bool = False) -> Iterator[tuple[tuple[Any, int], Any]]:
        """All of them, likewise."""
        return self.fetch_all(0, LATEST, reverse=reverse)

    def _window(self, data: bytes) -> tuple[Any, int]:
        key, start, _ = split_window_key(data)
        return self._forms.key(key), start

    def _start(self, time: int) -> int:
        if isinstance(time, bool) or not isinstance(time, int) or not 0 <= time <= LATEST:
            raise ValueError(f"a window of the store {self.name!r} at {time!r}; give milliseconds since 1970, from 0")
        return time
