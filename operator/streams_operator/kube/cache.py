"""The objects of each application, from the watches and this process's own writes; read in place of the API server."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import orjson

from streams_operator.kube.api import Api, NotThere
from streams_operator.kube.kinds import APPLICATION, PARTS, POD, Kind
from streams_operator.kube.pod_state import pod_state
from streams_operator.model import Json, Key, PodState
from streams_operator.names import LABEL_APPLICATION


@dataclass(frozen=True, slots=True)
class _Entry:
    """One version of an object. `value` is JSON, which takes a tenth of the memory, or of a pod what is read of it.

    None: a watch of metadata brought the version, and its content has to be asked for.
    """

    version: int
    uid: str
    value: bytes | PodState | None


_Event = tuple[Json, bool, Json | None]  # metadata, whether it has gone, the whole object


class Cache:
    """Objects by kind, application and name. Belongs to the event loop's thread.

    Versions are compared as numbers, which Kubernetes' API conventions allow within one kind. So news that is older
    than what is known says nothing, and an own write that comes back by the watch requeues nobody.
    """

    def __init__(self, api: Api, news: Callable[[Kind, Key], None]) -> None:
        """`news`: called when a watch brought what was not known yet."""
        self._api = api
        self._news = news
        self._objects: dict[str, dict[Key, dict[str, _Entry]]] = {kind.name: {} for kind in (APPLICATION, POD, *PARTS)}
        self._floors: dict[tuple[str, Key], int] = {}  # version of the last list of one application's objects
        self._doubted: set[tuple[str, Key]] = set()
        self._writing: dict[tuple[str, Key, str], list[_Event]] = {}
        self._synced: set[tuple[str, str | None]] = set()

    # What the watches bring

    def update(self, kind: Kind, key: Key, metadata: Json, gone: bool, whole: Json | None) -> None:
        """A watch brought this version of an object, or its end; `whole` None: its metadata only."""
        held = self._writing.get((kind.name, key, str(metadata["name"])))
        if held is not None:
            held.append((metadata, gone, whole))
        elif self._take(kind, key, metadata, gone, whole):
            self._news(kind, key)

    def listed(self, kind: Kind, namespace: str | None, version: str, names: Mapping[Key, set[str]]) -> None:
        """A first list is complete, and `update` had every object of it: others have gone."""
        for key, entries in self._objects[kind.name].items():
            if namespace not in (None, key.namespace):
                continue
            for name in entries.keys() - names.get(key, set()):
                # What was written after the list is not in it.
                if entries[name].version <= int(version):
                    del entries[name]
                    self._news(kind, key)
        self._synced.add((kind.name, namespace))

    def is_synced(self, kind: Kind, namespace: str) -> bool:
        """Whether all objects of this kind in this namespace have come."""
        return not {(kind.name, namespace), (kind.name, None)}.isdisjoint(self._synced)

    def doubt(self, key: Key, kind: Kind) -> None:
        """A watch has missed something: ask the API server the next time."""
        self._doubted.add((kind.name, key))

    def forget(self, key: Key) -> None:
        """The resource has gone."""
        self._objects[APPLICATION.name].pop(key, None)
        for kind in (APPLICATION, POD, *PARTS):
            if not self._objects[kind.name].get(key):
                self._objects[kind.name].pop(key, None)
            self._floors.pop((kind.name, key), None)
            self._doubted.discard((kind.name, key))

    # What this process writes

    @contextmanager
    def writing(self, kind: Kind, key: Key, name: str) -> Iterator[None]:
        """A write of one object is under way: what the watch brings of it counts after `wrote`."""
        held = self._writing[kind.name, key, name] = []
        try:
            yield
        finally:
            del self._writing[kind.name, key, name]
            for metadata, gone, whole in held:
                self.update(kind, key, metadata, gone, whole)

    def wrote(self, kind: Kind, key: Key, obj: Json) -> None:
        """The answer to an own write: the object as it is since."""
        self._take(kind, key, obj["metadata"], False, obj)

    # What rounds read

    async def resource(self, key: Key) -> Json:
        """The resource. Raises ApiError; NotThere: it has gone."""
        entry = self._objects[APPLICATION.name].get(key, {}).get(key.name)
        if entry is None or self._is_doubted(APPLICATION, key):
            return await self._get(key)
        return _object(entry)

    async def pods(self, key: Key) -> Sequence[PodState]:
        """The pods. Raises ApiError."""
        if self._is_doubted(POD, key):
            await self._list(POD, key)
        found = self._objects[POD.name].get(key, {}).values()
        return [entry.value for entry in found if isinstance(entry.value, PodState)]

    async def refresh(self, key: Key) -> bool:
        """Read the resource and its pods from the API server; whether that brought anything that was not known.

        For decisions that can't be undone. Raises ApiError; NotThere: the resource has gone.
        """
        before = self._versions(key)
        await asyncio.gather(self._get(key), self._list(POD, key))
        return self._versions(key) != before

    async def parts(self, key: Key) -> Mapping[tuple[str, str], Json]:
        """Everything else, by (kind, name). Raises ApiError."""
        await asyncio.gather(*(self._list(kind, key) for kind in PARTS if self._lacks(kind, key)))
        return {
            (kind.name, name): _object(entry)
            for kind in PARTS
            for name, entry in self._objects[kind.name].get(key, {}).items()
            if entry.value is not None
        }

    async def _get(self, key: Key) -> Json:
        self._doubted.discard((APPLICATION.name, key))
        try:
            found = await self._api.get(APPLICATION, key.namespace, key.name)
        except NotThere:
            self._objects[APPLICATION.name].pop(key, None)
            raise
        except BaseException:
            self.doubt(key, APPLICATION)
            raise
        self.wrote(APPLICATION, key, found)
        return found

    def _versions(self, key: Key) -> Mapping[tuple[str, str], int]:
        return {
            (kind.name, entry.uid): entry.version
            for kind in (APPLICATION, POD)
            for entry in self._objects[kind.name].get(key, {}).values()
        }

    def _is_doubted(self, kind: Kind, key: Key) -> bool:
        return (kind.name, key) in self._doubted or (
            kind is not APPLICATION and not self.is_synced(kind, key.namespace)
        )

    def _lacks(self, kind: Kind, key: Key) -> bool:
        entries = self._objects[kind.name].get(key, {}).values()
        return self._is_doubted(kind, key) or any(entry.value is None for entry in entries)

    async def _list(self, kind: Kind, key: Key) -> None:
        self._doubted.discard((kind.name, key))
        try:
            found, version = await self._api.list(kind, key.namespace, f"{LABEL_APPLICATION}={key.name}")
        except BaseException:
            self.doubt(key, kind)
            raise
        listed, known = int(version), self._objects[kind.name].get(key, {})
        entries = {name: entry for name, entry in known.items() if entry.version > listed}
        for each in found:
            entries.setdefault(each["metadata"]["name"], _entry(kind, key, each["metadata"], each))
        self._objects[kind.name][key] = entries
        # Older news that is still on its way by the watch says nothing.
        self._floors[kind.name, key] = max(listed, self._floors.get((kind.name, key), 0))

    def _take(self, kind: Kind, key: Key, metadata: Json, gone: bool, whole: Json | None) -> bool:
        """Whether it is news."""
        version, name = int(metadata["resourceVersion"]), str(metadata["name"])
        if version <= self._floors.get((kind.name, key), 0):
            return False
        entries = self._objects[kind.name].setdefault(key, {})
        known = entries.get(name)
        if known is not None and known.version >= version and not (gone and known.uid == metadata["uid"]):
            return False
        if not gone:
            entries[name] = _entry(kind, key, metadata, whole)
            return True
        entries.pop(name, None)
        if not entries:
            del self._objects[kind.name][key]
        return True


def _entry(kind: Kind, key: Key, metadata: Json, whole: Json | None) -> _Entry:
    value: bytes | PodState | None = None
    if whole is not None:
        value = pod_state(whole, key.name) if kind is POD else orjson.dumps(lean(kind, whole))
    return _Entry(int(metadata["resourceVersion"]), str(metadata["uid"]), value)


def _object(entry: _Entry) -> Json:
    assert isinstance(entry.value, bytes)
    found: dict[str, Any] = orjson.loads(entry.value)
    return found


def lean(kind: Kind, obj: Json) -> Json:
    """An object with its apiVersion and kind, and without its managed fields."""
    metadata = {name: value for name, value in obj["metadata"].items() if name != "managedFields"}
    return {"apiVersion": kind.api_version, "kind": kind.name, **obj, "metadata": metadata}
