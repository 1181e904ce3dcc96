"""Finds the instances that have what is asked for, and goes on until they answer, can't, or the deadline passes."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from streams_runtime.errors import StreamsException
from streams_runtime.query.client_http import Failed, Requests
from streams_runtime.query.client_records import Records, record_of, rows
from streams_runtime.query.iterators import KeyValue
from streams_runtime.query.problems import InstanceNotReachableException
from streams_runtime.query.relay import escaped
from streams_runtime.query.routing import (
    Directory,
    Failure,
    Next,
    copies_may_have_it,
    directory_of,
    next_step,
    pause,
)

T = TypeVar("T")
Parameters = Mapping[str, Any]


class Asker:
    """Asks the instances of one application for records, by the paths of their endpoints. Usable from several threads.

    Keys are text. Every method raises what StreamsQueryClient says.
    """

    def __init__(
        self,
        url: str,
        requests: Requests,
        deadline: float,
        clock: Callable[[], float],
        sleep: Callable[[float], None],
        jitter: Callable[[], float],
    ) -> None:
        self._requests = requests
        self._urls: dict[str, None] = {url.rstrip("/"): None}  # every instance heard of, in that order
        self._deadline = deadline
        self._clock = clock
        self._sleep = sleep
        self._jitter = jitter
        self._directories: dict[str, Directory] = {}
        self._redirected: set[str] = set()  # stores of which it is worth to know who has what

    def one(self, store: str, method: str, key: str, parameters: Parameters, stale: bool) -> KeyValue:
        """One record, from the instance that has its key."""
        path = f"{_path(store)}/{method}/{escaped(key)}"
        asked = {**parameters, **({"stale": "true"} if stale else {})}

        def follow(entry: str, until: float) -> KeyValue:
            url = self._owner_of(store, key, entry, until)
            visited: set[str] = set()
            while True:
                visited.add(url)
                try:
                    return record_of(self._requests.json(url, path, asked, until, "value"))
                except Failed as failed:
                    self._directories.pop(store, None)
                    owner = failed.failure.owner
                    if owner is None or owner in visited:
                        if stale and copies_may_have_it(failed.failure.error):
                            with contextlib.suppress(Failed):
                                self._look_up(entry, store, until)  # to hear of other instances
                            return self._from_a_copy(path, asked, until, visited, failed)
                        raise
                    self._urls.setdefault(owner)
                    self._redirected.add(store)
                    url = owner

        return self._persist(follow)

    def _from_a_copy(
        self, path: str, parameters: Parameters, until: float, visited: set[str], failed: Failed
    ) -> KeyValue:
        """The record from any other instance that has a copy of it; raises `failed` where none has."""
        for url in [each for each in self._urls if each not in visited]:
            with contextlib.suppress(Failed):
                return record_of(self._requests.json(url, path, parameters, until, "value"))
        raise failed

    def many(
        self, store: str, method: str, bounds: Parameters, reverse: bool, stale: bool, partition: int | None
    ) -> Records:
        """Records of several instances, merged."""
        parameters = {**bounds, "keyBytes": "true"}
        parameters |= {"reverse": "true"} if reverse else {}
        parameters |= {"stale": "true"} if stale else {}

        def open_all(url: str, until: float) -> Records:
            with contextlib.ExitStack() as opened:
                readers = []
                for owner, numbers in self._owners(url, store, until, partition).items():
                    path = f"{_path(store)}/{method}"
                    response = self._requests.send(owner, path, {**parameters, "partition": numbers}, until)
                    opened.callback(response.close)
                    readers.append(rows(owner, response))
                return Records(readers, opened.pop_all(), reverse)

        return self._persist(open_all)

    def total(self, store: str, method: str, stale: bool, partition: int | None) -> int:
        def add(url: str, until: float) -> int:
            path, more = f"{_path(store)}/{method}", {"stale": "true"} if stale else {}
            owners = self._owners(url, store, until, partition)
            return sum(
                int(self._requests.json(owner, path, {"partition": numbers, **more}, until, "count")["count"])
                for owner, numbers in owners.items()
            )

        return self._persist(add)

    def _persist(self, attempt: Callable[[str, float], T]) -> T:
        """Do `attempt(url, until)` until it succeeds, can't be mended, or the deadline passes."""
        until = self._clock() + self._deadline
        url = next(iter(self._urls))
        for failures in itertools.count(1):
            try:
                return attempt(url, until)
            except Failed as failed:
                failure = failed.failure
                step = next_step(failure.error)
                never_met = not self._requests.reached and isinstance(failure.error, InstanceNotReachableException)
                wait = pause(failure, failures, self._jitter())
                if step is Next.GIVE_UP or never_met or self._clock() + wait >= until:
                    raise failure.error from None
                if step is Next.REDISCOVER and failure.url == url:
                    url = self._another(url)
                self._sleep(wait)
        raise AssertionError("counting never ends")

    def _another(self, url: str) -> str:
        """The instance heard of after `url`; the first again after the last."""
        urls = list(self._urls)
        return urls[(urls.index(url) + 1) % len(urls)]

    def _owner_of(self, store: str, key: str, entry: str, until: float) -> str:
        """The instance to ask for a key. Until one query was sent elsewhere, the entry is as good as any."""
        if store not in self._redirected:
            return entry
        known = self._directories.get(store) or self._look_up(entry, store, until)
        return known.owner_of_key(key) or entry

    def _owners(self, url: str, store: str, until: float, partition: int | None) -> Mapping[str, tuple[int, ...]]:
        try:
            return self._look_up(url, store, until).partitions_by_url(partition)
        except StreamsException as error:
            raise Failed(Failure(error, url)) from error

    def _look_up(self, url: str, store: str, until: float) -> Directory:
        found = directory_of(self._requests.json(url, f"{_path(store)}/owners", {}, until, "owners"))
        for owner in found.urls.values():
            self._urls.setdefault(owner)
        self._directories[store] = found
        return found


def _path(store: str) -> str:
    return f"/stores/{escaped(store)}"
