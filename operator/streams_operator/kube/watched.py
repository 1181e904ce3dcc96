"""The versions that the watches have brought, compared with a list now and then: a proof that the watches live."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Collection
from contextlib import suppress

from streams_operator.kube.api import Api, ApiError
from streams_operator.kube.kinds import APPLICATION, POD, Kind
from streams_operator.model import Json, Key
from streams_operator.names import LABEL_APPLICATION
from streams_operator.shards import Shard

_LOGGER = logging.getLogger("streams_operator.kube.watched")

_RESYNC = 20.0  # seconds between two comparisons
_MANY = 500  # objects; comparing more of them as often would take more than a hundredth of a processor
_FIRST_RESYNC = 1.0  # the same at the start; doubled each time until everything has come for the first time
_STALLED = 5.0  # seconds without any news after which a first list does not count as arriving
_PATIENCE = 30.0  # seconds for which one and the same change is unknown to the watch: it is dead, and begun anew
_DEAD = 120.0  # the same: beginning anew has not helped
_ALL = Shard()


def owner(kind: Kind, metadata: Json) -> Key | None:
    """The application that an object belongs to, by its label; None: none of ours."""
    namespace = str(metadata.get("namespace", ""))
    if kind is APPLICATION:
        return Key(namespace, str(metadata["name"]))
    name = (metadata.get("labels") or {}).get(LABEL_APPLICATION)
    return Key(namespace, name) if name else None


class Watched:
    """Versions of resources and pods as the watches brought them. Belongs to the event loop's thread.

    Costs two lists of metadata, page by page, every 20 s (two minutes for 3,000 objects) and writes nothing. A change
    that a watch has missed requeues its application all the same; a watch that goes on missing is begun anew, and then
    makes `alive` False.
    """

    def __init__(
        self,
        api: Api,
        namespaces: Collection[str],
        news: Callable[[Kind, Key], None],
        renew: Callable[[], None],
        resync: float = _RESYNC,
        patience: float = _PATIENCE,
        clock: Callable[[], float] = time.monotonic,
        shard: Shard = _ALL,
    ) -> None:
        """`news`: called for each application of which something was missed; `renew` begins all watches anew."""
        self._api = api
        self._namespaces: Collection[str | None] = namespaces or (None,)
        self._news = news
        self._renew = renew
        self._renewed_at = clock()
        self._resync = resync
        self._patience = patience
        self._clock = clock
        self._shard = shard
        self._versions: dict[str, dict[str, tuple[str, Key]]] = {APPLICATION.name: {}, POD.name: {}}
        self._missed: dict[tuple[str, str, str], float] = {}  # since when
        self._updated_at = dict.fromkeys(self._versions, clock())
        self.begun = False
        """Whether the watches have brought everything once."""

    def update(self, kind: Kind, metadata: Json, key: Key, gone: bool) -> None:
        """A watch brought this version of an object, or its end."""
        versions = self._versions.get(kind.name)
        if versions is None:
            return
        self._updated_at[kind.name] = self._clock()
        if gone:
            versions.pop(metadata["uid"], None)
        else:
            versions[metadata["uid"]] = (metadata["resourceVersion"], key)

    @property
    def keys(self) -> Collection[Key]:
        """All resources there are, as far as is known."""
        return [key for _, key in self._versions[APPLICATION.name].values()]

    @property
    def count(self) -> int:
        """How many there are, as far as is known."""
        return len(self._versions[APPLICATION.name])

    @property
    def interval(self) -> float:
        """Seconds until the next comparison: longer for many objects, unless the last one has missed something."""
        many = 0 if self._missed else sum(map(len, self._versions.values()))
        return max(self._resync, self._resync * many / _MANY)

    @property
    def alive(self) -> bool:
        """Whether the watches bring what happens."""
        return not self._longer_than(_DEAD)

    def _longer_than(self, seconds: float) -> bool:
        now = self._clock()
        # While first lists come, what has not come yet is not missed.
        return any(
            now - (since if self.begun else max(since, self._updated_at[kind])) >= seconds
            for (kind, _, _), since in self._missed.items()
        )

    async def run(self) -> None:
        """Compare, for ever."""
        pause = _FIRST_RESYNC
        while True:
            await asyncio.sleep(self.interval if self.begun else min(pause, self._resync))
            pause *= 2
            # A server that does not answer says nothing about the watches.
            with suppress(ApiError):
                await self.compare()

    async def compare(self) -> None:
        """One comparison. Raises ApiError: nothing was learnt."""
        missed: dict[tuple[str, str, str], float] = {}
        for kind in (APPLICATION, POD):
            before = dict(self._versions[kind.name])
            listed: dict[str, tuple[str, Key]] = {}
            labels = "" if kind is APPLICATION else LABEL_APPLICATION
            for namespace in self._namespaces:
                async for page, _ in self._api.pages(kind, namespace, labels, metadata_only=True):
                    for metadata in (each["metadata"] for each in page):
                        if (key := owner(kind, metadata)) and self._shard.has(key.namespace):
                            listed[metadata["uid"]] = (metadata["resourceVersion"], key)
            arriving = not self.begun and self._clock() - self._updated_at[kind.name] < _STALLED
            now = self._versions[kind.name]
            for uid in before.keys() | listed.keys():
                # What the watch brought during the list is newer than the list.
                if before.get(uid) != now.get(uid) or now.get(uid) == listed.get(uid):
                    continue
                version, key = listed.get(uid) or ("gone", before[uid][1])
                mark = (kind.name, uid, version)
                missed[mark] = self._missed.get(mark, self._clock())
                _LOGGER.debug("the watch of %s has not brought %s", kind.plural, mark)
                if not arriving:
                    self._news(kind, key)
                if version == "gone":
                    # The stream began anew after its end, and will not bring it.
                    now.pop(uid, None)
                    del missed[mark]
        self._missed = missed
        self.begun = self.begun or not missed
        if self._longer_than(self._patience) and self._clock() - self._renewed_at >= self._patience:
            _LOGGER.error("a watch has not brought %d changes; all watches begin anew", len(missed))
            self._renewed_at = self._clock()
            self._renew()
