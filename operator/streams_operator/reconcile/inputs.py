"""The contents of mounted Secrets and ConfigMaps, as far as `spec.restartOnChange` follows them: as digests, by name.

They are asked for, never watched: a watch would bring every Secret of a namespace. A digest is keyed by its object's
uid, which only who may read the object knows, so that it reveals nothing of a short secret.
"""

from __future__ import annotations

import asyncio
import hmac
import logging
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import orjson

from streams_operator.kube.api import Api, NotThere, Refused
from streams_operator.kube.kinds import kind_of
from streams_operator.model import Json, Key, Ref

_LOGGER = logging.getLogger("streams_operator.reconcile.inputs")
_FRESH = 10.0  # seconds; rounds may follow each other at once, and applications of a team share a Secret
_OLD = 600.0  # seconds after which what nobody asks for any more is forgotten
_DIGITS = 12


class _Read(NamedTuple):
    at: float
    digest: str | None
    refusal: str = ""


class Inputs:
    """The last content of each object that is followed. Belongs to the event loop's thread."""

    def __init__(self, api: Api) -> None:
        self._api = api
        self._reads: dict[tuple[str, Ref], _Read] = {}  # by namespace
        self._swept_at = 0.0

    async def of(self, key: Key, refs: Sequence[Ref]) -> Mapping[str, str]:
        """Digests by `Kind/name` of these objects. What is not there, or may not be read, is left out.

        Raises ApiError: the API server is away.
        """
        digests = await asyncio.gather(*(self._digest(key.namespace, ref) for ref in refs))
        self._sweep()
        return {"/".join(ref): each for ref, each in zip(refs, digests, strict=True) if each is not None}

    async def _digest(self, namespace: str, ref: Ref) -> str | None:
        now, last = asyncio.get_running_loop().time(), self._reads.get((namespace, ref))
        if last is None or now - last.at >= _FRESH:
            read = await self._read(namespace, ref, now)
            if read.refusal and (last is None or last.refusal != read.refusal):
                _LOGGER.warning("%s: spec.restartOnChange can't follow %s: %s", namespace, "/".join(ref), read.refusal)
            last = self._reads[namespace, ref] = read
        return last.digest

    async def _read(self, namespace: str, ref: Ref, now: float) -> _Read:
        kind, name = ref
        try:
            return _Read(now, digest(await self._api.get(kind_of(kind), namespace, name)))
        except NotThere:
            return _Read(now, None)  # pods that run have it; those that are made wait for it, and say so
        except Refused as error:
            return _Read(now, None, str(error))

    def _sweep(self) -> None:
        now = asyncio.get_running_loop().time()
        if now - self._swept_at >= _OLD:
            self._swept_at = now
            self._reads = {at: read for at, read in self._reads.items() if now - read.at < _OLD}


def digest(found: Json) -> str:
    """Of the content alone: labels and annotations reach no pod."""
    content = {field: found.get(field) or {} for field in ("data", "binaryData")}
    text = orjson.dumps(content, option=orjson.OPT_SORT_KEYS)
    return hmac.new(found["metadata"]["uid"].encode(), text, "sha256").hexdigest()[:_DIGITS]
