"""Sends a query to the instances that have its partitions, and goes on until they answer, can't, or time is up."""

from __future__ import annotations

import contextlib
import copy
import itertools
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from streams_runtime.errors import StreamsException
from streams_runtime.query.client.client_http import RequestFailed, Requests
from streams_runtime.query.client.client_records import Records, record_of, rows
from streams_runtime.query.client.routing import (
    Directory,
    Failure,
    Next,
    copies_may_have_it,
    directory_of,
    next_step,
    pause,
)
from streams_runtime.query.stores.iterators import KeyValue
from streams_runtime.query.stores.position_bound import PositionBound, bound_texts
from streams_runtime.query.wire.problems import InstanceNotReachableException
from streams_runtime.query.wire.relay import store_path

T = TypeVar("T")
Parameters = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class RemoteQuery:
    """What is sent to instances: a store, its endpoint with the parameters there, and the partition that is meant.

    `partition` None: every one of the store. Keys are text.
    """

    store: str
    endpoint: str
    bounds: Parameters = field(default_factory=dict)
    reverse: bool = False
    stale: bool = False
    partition: int | None = None

    @property
    def parameters(self) -> dict[str, Any]:
        """The parameters of the URL, but for the partitions, which differ by instance."""
        flags = {"reverse": self.reverse, "stale": self.stale}
        return {**self.bounds, **{name: "true" for name, is_set in flags.items() if is_set}}


class QueryDispatcher:
    """Sends queries to the instances of one application. Usable from several threads.

    Every method raises what StreamsQueryClient says.
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
        self._urls: dict[str, None] = {url.rstrip("/"): None}  # every known instance, in the order of discovery
        self._deadline = deadline
        self._clock = clock
        self._sleep = sleep
        self._jitter = jitter
        self._directories: dict[str, Directory] = {}
        self._redirected: set[str] = set()  # stores whose directory is worth a request
        self._position: Parameters = {}

    def bounded(self, bound: PositionBound) -> QueryDispatcher:
        """One that shares all with this one, and whose answers contain `bound`."""
        made = copy.copy(self)
        made._position = {"position": bound_texts(bound)} if bound else {}
        return made

    def one(self, query: RemoteQuery, key: str) -> KeyValue:
        """One record, from the instance that has its key."""
        store, path = query.store, store_path(query.store, query.endpoint, key)
        parameters = {**query.parameters, **self._position}

        def follow(entry: str, until: float) -> KeyValue:
            url = self._owner_of(store, key, entry, until)
            visited: set[str] = set()
            while True:
                visited.add(url)
                try:
                    return record_of(self._requests.json(url, path, parameters, until, "value"))
                except RequestFailed as failed:
                    self._directories.pop(store, None)
                    owner = failed.failure.owner
                    if owner is None or owner in visited:
                        if query.stale and copies_may_have_it(failed.failure.error):
                            with contextlib.suppress(RequestFailed):
                                self._read_directory(entry, store, until)  # names other instances
                            return self._from_a_copy(path, parameters, until, visited, failed)
                        raise
                    self._urls.setdefault(owner)
                    self._redirected.add(store)
                    url = owner

        return self._persist(follow)

    def _from_a_copy(
        self, path: str, parameters: Parameters, until: float, visited: set[str], failed: RequestFailed
    ) -> KeyValue:
        """The record from any other instance that has a copy of it; raises `failed` where none has."""
        for url in [each for each in self._urls if each not in visited]:
            with contextlib.suppress(RequestFailed):
                return record_of(self._requests.json(url, path, parameters, until, "value"))
        raise failed

    def many(self, query: RemoteQuery) -> Records:
        """Records of several instances, merged."""
        path, parameters = (
            store_path(query.store, query.endpoint),
            {**query.parameters, **self._position, "keyBytes": "true"},
        )

        def open_all(url: str, until: float) -> Records:
            with contextlib.ExitStack() as opened:
                readers = []
                for owner, numbers in self._owners(url, query, until).items():
                    response = self._requests.send(owner, path, {**parameters, "partition": numbers}, until)
                    opened.callback(response.close)
                    readers.append(rows(owner, response))
                return Records(readers, opened.pop_all(), query.reverse)

        return self._persist(open_all)

    def total(self, query: RemoteQuery) -> int:
        """The counts of several instances, added."""
        path, parameters = store_path(query.store, query.endpoint), {**query.parameters, **self._position}

        def add(url: str, until: float) -> int:
            owners = self._owners(url, query, until)
            return sum(
                int(self._requests.json(owner, path, {"partition": numbers, **parameters}, until, "count")["count"])
                for owner, numbers in owners.items()
            )

        return self._persist(add)

    def _persist(self, attempt: Callable[[str, float], T]) -> T:
        """Do `attempt(url, until)` until it succeeds, fails for good, or the deadline passes."""
        until = self._clock() + self._deadline
        url = next(iter(self._urls))
        for failures in itertools.count(1):
            try:
                return attempt(url, until)
            except RequestFailed as failed:
                failure = failed.failure
                step = next_step(failure.error)
                unreachable = not self._requests.reached and isinstance(failure.error, InstanceNotReachableException)
                wait = pause(failure, failures, self._jitter())
                if step is Next.GIVE_UP or unreachable or self._clock() + wait >= until:
                    raise failure.error from None
                if step is Next.REDISCOVER and failure.url == url:
                    url = self._another(url)
                self._sleep(wait)
        raise AssertionError("counting never ends")

    def _another(self, url: str) -> str:
        """The known instance after `url`; after the last one the first."""
        urls = list(self._urls)
        return urls[(urls.index(url) + 1) % len(urls)]

    def _owner_of(self, store: str, key: str, entry: str, until: float) -> str:
        """The instance to send a key to. Until one query was redirected, the entry is as good as any."""
        if store not in self._redirected:
            return entry
        known = self._directories.get(store) or self._read_directory(entry, store, until)
        return known.owner_of_key(key) or entry

    def _owners(self, url: str, query: RemoteQuery, until: float) -> Mapping[str, tuple[int, ...]]:
        """The partitions of the query by the instances that have them."""
        try:
            return self._read_directory(url, query.store, until).partitions_by_url(query.partition)
        except StreamsException as error:
            raise RequestFailed(Failure(error, url)) from error

    def _read_directory(self, url: str, store: str, until: float) -> Directory:
        found = directory_of(self._requests.json(url, store_path(store, "owners"), {}, until, "owners"))
        for owner in found.urls.values():
            self._urls.setdefault(owner)
        self._directories[store] = found
        return found
