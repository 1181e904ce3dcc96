"""The operator's own watches of parts and pods: a first list page by page, then each change, in the operator's loop.

The name is client-go's. Parts are watched by their metadata; what somebody else changed in one is asked for then.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Collection
from contextlib import suppress
from typing import Protocol

from streams_operator.kube.api import Api, ApiError, NotThere, TryLater
from streams_operator.kube.kinds import PARTS, POD, Kind
from streams_operator.kube.watched import owner
from streams_operator.model import Json, Key
from streams_operator.names import LABEL_APPLICATION

_LOGGER = logging.getLogger("streams_operator.kube.reflector")

_PAUSES = (0.5, 1.0, 2.0, 4.0, 8.0, 15.0)  # seconds between two attempts; the last one for ever
_LISTS = 2  # at once: pages are large while they are read
_RELIST = 3600.0  # seconds after which a list is taken anew, should a watch ever have lost something

OnChange = Callable[[Kind, Json, bool, Json | None], None]
"""Called with the kind, the metadata, whether it has gone, and the whole object if the watch brings it."""


class Sink(Protocol):
    """The cache, as far as it is used here."""

    def listed(self, kind: Kind, namespace: str | None, version: str, names: dict[Key, set[str]]) -> None: ...


class _Trouble:
    """The failure of one watch: logged once as long as it is the same, with a longer pause each time."""

    def __init__(self, kind: Kind) -> None:
        self._kind = kind
        self._logged = ""
        self.failures = 0
        """In a row."""

    def over(self) -> None:
        """The watch goes on."""
        self.failures, self._logged = 0, ""

    async def pause(self, error: ApiError, *, usual: bool = False) -> None:
        """Wait until the next attempt. `usual`: it is not worth a line."""
        if not usual:
            if str(error) != self._logged:
                _LOGGER.warning("the watch of %s is begun again: %s", self._kind.plural, error)
            self._logged = str(error)
        await asyncio.sleep(_PAUSES[min(self.failures, len(_PAUSES) - 1)])
        self.failures += 1


class Reflectors:
    """One watch for each kind and namespace."""

    def __init__(self, api: Api, namespaces: Collection[str], on_change: OnChange, sink: Sink) -> None:
        self._api = api
        self._on_change = on_change
        self._sink = sink
        scopes: Collection[str | None] = namespaces or (None,)
        self._left = {(kind.name, scope) for kind in (POD, *PARTS) for scope in scopes}
        self._scopes = scopes
        self._since: dict[tuple[str, str | None], str] = {}  # up to where each watch has come
        self._listing = asyncio.Semaphore(_LISTS)
        self._restart = asyncio.Event()
        self._page_at = time.monotonic()
        self.synced = asyncio.Event()
        """Set once every first list has come to its end."""

    async def first_lists(self, patience: float) -> None:
        """Wait until every first list has come to its end, or no page of any has come for `patience` seconds.

        A list that is refused keeps nobody for longer, and a large cluster has the time that its lists take.
        """
        self._page_at = time.monotonic()
        while not self.synced.is_set() and (left := self._page_at + patience - time.monotonic()) > 0:
            with suppress(TimeoutError):
                await asyncio.wait_for(self.synced.wait(), left)

    def restart(self) -> None:
        """Begin all watches anew, with a list."""
        self._restart.set()

    async def run(self) -> None:
        """Watch, for ever."""
        while True:
            self._restart.clear()
            async with asyncio.TaskGroup() as group:
                tasks = [group.create_task(self._one(kind, scope)) for kind in (POD, *PARTS) for scope in self._scopes]
                await self._restart.wait()
                for task in tasks:
                    task.cancel()

    async def _one(self, kind: Kind, namespace: str | None) -> None:
        trouble, scope = _Trouble(kind), (kind.name, namespace)
        while True:
            try:
                async with asyncio.timeout(_RELIST):
                    async with self._listing:
                        self._since[scope] = await self._list(kind, namespace)
                    while True:
                        try:
                            await self._follow(kind, namespace)
                            trouble.over()
                        except TryLater as error:
                            await trouble.pause(error)
            except TimeoutError:
                continue
            except ApiError as error:
                # The server may no longer know what has happened since then: usual once, trouble again and again.
                await trouble.pause(error, usual=isinstance(error, NotThere) and not trouble.failures)

    async def _list(self, kind: Kind, namespace: str | None) -> str:
        names: dict[Key, set[str]] = {}
        version = ""
        async for page, of_list in self._api.pages(kind, namespace, LABEL_APPLICATION):
            version, self._page_at = of_list, time.monotonic()
            for each in page:
                metadata = each["metadata"]
                if key := owner(kind, metadata):
                    names.setdefault(key, set()).add(metadata["name"])
                    self._on_change(kind, metadata, False, each)
        self._sink.listed(kind, namespace, version, names)
        self._left.discard((kind.name, namespace))
        if not self._left:
            self.synced.set()
        return version

    async def _follow(self, kind: Kind, namespace: str | None) -> None:
        """One stream, until the server ends it."""
        scope = kind.name, namespace
        stream = self._api.watch(kind, namespace, LABEL_APPLICATION, self._since[scope], metadata_only=kind is not POD)
        async for event in stream:
            found = event["object"]
            if event["type"] != "BOOKMARK":
                self._on_change(kind, found["metadata"], event["type"] == "DELETED", found if kind is POD else None)
            self._since[scope] = found["metadata"]["resourceVersion"]
