"""What an application is made of, as the API server last listed it; believed until something speaks against it."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import orjson

from streams_operator.api import Api
from streams_operator.kinds import PARTS, POD, Kind
from streams_operator.model import Json
from streams_operator.names import LABEL_APPLICATION
from streams_operator.wake import Key

_BELIEVED = 300.0  # seconds, should an event ever have been missed


@dataclass(slots=True)
class _Listed:
    """The objects of one kind; as JSON, which takes a tenth of the memory."""

    objects: tuple[bytes, ...]
    at: float


class Lists:
    """Lists by label. A kind is listed again when an object of it had an event, or when this process wrote one.

    Pods are listed in every round, and not from the server's memory: on them hang decisions that can't be undone.
    """

    def __init__(self, api: Api) -> None:
        self._api = api
        self._listed: dict[tuple[Key, str], _Listed] = {}
        self._reading: dict[tuple[Key, str], bool] = {}  # whether the answer will do

    def doubt(self, key: Key, kind: str) -> None:
        """Something of this kind may have changed."""
        self._listed.pop((key, kind), None)
        if (key, kind) in self._reading:
            self._reading[key, kind] = False

    def forget(self, key: Key) -> None:
        """The resource has gone."""
        for kind in (POD, *PARTS):
            self._listed.pop((key, kind.name), None)

    def clear(self) -> None:
        """Believe nothing."""
        for entry in [*self._listed, *self._reading]:
            self.doubt(*entry)

    async def pods(self, key: Key) -> Sequence[Json]:
        """The pods, as they are now. Raises ApiError."""
        return await self._api.list(POD, key.namespace, _selector(key))

    async def parts(self, key: Key) -> Mapping[tuple[str, str], Json]:
        """Everything else, by (kind, name). Raises ApiError."""
        listed = await asyncio.gather(*(self._objects(key, kind) for kind in PARTS))
        return {(each["kind"], each["metadata"]["name"]): each for objects in listed for each in objects}

    async def _objects(self, key: Key, kind: Kind) -> Sequence[Json]:
        now = asyncio.get_running_loop().time()
        known = self._listed.get((key, kind.name))
        if known is None or now - known.at > _BELIEVED:
            self._reading[key, kind.name] = True
            try:
                found = await self._api.list(kind, key.namespace, _selector(key), cached=True)
            finally:
                undoubted = self._reading.pop((key, kind.name))
            known = _Listed(tuple(orjson.dumps(_lean(each)) for each in found), now)
            if undoubted:
                self._listed[key, kind.name] = known
        return [orjson.loads(each) for each in known.objects]


def _selector(key: Key) -> str:
    return f"{LABEL_APPLICATION}={key.name}"


def _lean(obj: Json) -> Json:
    metadata = {name: value for name, value in obj["metadata"].items() if name != "managedFields"}
    return {**obj, "metadata": metadata}
