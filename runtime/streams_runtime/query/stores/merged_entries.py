"""Entries of several partitions as one iterator."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator
from operator import itemgetter

from streams_runtime.errors import IllegalStateException
from streams_runtime.query.stores.views import Entry, EntryIterator, ViewClosed


class MergedEntries:
    """Entries of several partitions in key order. `guard` is called before each step, and raises to forbid it.

    A step that was refused because the client is REBALANCING may be tried again on the same iterator.
    """

    def __init__(self, scans: list[EntryIterator], reverse: bool, guard: Callable[[bool], None]) -> None:
        self._scans = scans
        self._entries: Iterator[Entry] = (
            scans[0] if len(scans) == 1 else heapq.merge(*scans, key=itemgetter(0), reverse=reverse)
        )
        self._guard = guard
        self._next: Entry | None = None
        self._broken = False
        self._ended = False
        self._closed = False

    def __iter__(self) -> MergedEntries:
        return self

    def __next__(self) -> Entry:
        entry = self.peek()
        if entry is None:
            raise StopIteration
        self._next = None
        return entry

    def peek(self) -> Entry | None:
        """The entry that the next step gives, or None at the end.

        Raises:
            IllegalStateException: the iterator was closed by its user.
            InvalidStateStoreException: a subclass, as `guard` says.
        """
        if self._closed:
            raise IllegalStateException("the iterator was closed; make another one from the store's handle")
        if self._ended:
            return None
        self._guard(self._broken)
        if self._next is None:
            self._advance()
        return self._next

    def take(self, most: int) -> list[Entry]:
        """The next entries, `most` at most; fewer are the last ones. `guard` is called once, before the first.

        To call it for each entry would check every partition each time. Raises as `peek` does.
        """
        found: list[Entry] = []
        while len(found) < most:
            if found:
                self._advance()
            entry = self._next if found else self.peek()
            if entry is None:
                break
            found.append(entry)
            self._next = None
        return found

    def _advance(self) -> None:
        try:
            self._next = next(self._entries)
        except StopIteration:
            self._ended = True
            self._release()
        except ViewClosed:
            # A merge that has raised is over and would look like the end of the store from now on.
            self._broken = True
            self._release()
            self._guard(self._broken)
            raise

    def close(self) -> None:
        """Give the store's resources back. May be called twice."""
        self._closed = True
        self._next = None
        self._release()

    def _release(self) -> None:
        for scan in self._scans:
            scan.close()

    def __enter__(self) -> MergedEntries:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
