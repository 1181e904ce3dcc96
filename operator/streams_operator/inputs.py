"""The contents of mounted Secrets and ConfigMaps, as far as `spec.restartOnChange` follows them: as digests, by name.

They are asked for, never watched: a watch would bring every Secret of a namespace. A digest is keyed by its object's
uid, which only who may read the object knows, so that it tells others nothing of a short secret.
"""

from __future__ import annotations

import asyncio
import hmac
import logging
from collections.abc import Mapping
from dataclasses import dataclass

import orjson

from streams_operator.api import Api, NotThere, Refused
from streams_operator.kinds import kind_of
from streams_operator.model import Json
from streams_operator.plan import Ref, followed
from streams_operator.wake import Key
from streams_runtime.api import StreamsApplication

_LOGGER = logging.getLogger("streams_operator.inputs")
_FRESH = 10.0  # seconds; rounds may follow each other at once
_DIGITS = 12


@dataclass(frozen=True, slots=True)
class _Look:
    at: float
    refs: tuple[Ref, ...]
    found: Mapping[str, str]


class Inputs:
    """The last look at each application's inputs. Belongs to the event loop's thread."""

    def __init__(self, api: Api) -> None:
        self._api = api
        self._looks: dict[Key, _Look] = {}
        self._told: dict[Key, set[str]] = {}

    async def of(self, key: Key, application: StreamsApplication | None) -> Mapping[str, str]:
        """Digests by `Kind/name`. What is not there, or may not be read, is left out.

        Raises ApiError: the API server is away.
        """
        refs = () if application is None else followed(application)
        if not refs:
            self.forget(key)
            return {}
        now, last = asyncio.get_running_loop().time(), self._looks.get(key)
        if last is not None and last.refs == refs and now - last.at < _FRESH:
            return last.found
        digests = await asyncio.gather(*(self._digest(key, *ref) for ref in refs))
        found = {f"{kind}/{name}": each for (kind, name), each in zip(refs, digests, strict=True) if each is not None}
        self._looks[key] = _Look(now, refs, found)
        return found

    def forget(self, key: Key) -> None:
        """The resource has gone, or follows nothing any more."""
        self._looks.pop(key, None)
        self._told.pop(key, None)

    async def _digest(self, key: Key, kind: str, name: str) -> str | None:
        try:
            found = await self._api.get(kind_of(kind), key.namespace, name)
        except NotThere:
            return None  # pods that run have it; those that are made wait for it, and say so
        except Refused as error:
            self._tell(key, f"{kind}/{name}", error)
            return None
        self._told.get(key, set()).discard(f"{kind}/{name}")
        return digest(found)

    def _tell(self, key: Key, name: str, error: Refused) -> None:
        told = self._told.setdefault(key, set())
        if name not in told:
            told.add(name)
            _LOGGER.warning("%s: spec.restartOnChange can't follow %s: %s", key, name, error)


def digest(found: Json) -> str:
    """Of the content alone: labels and annotations reach no pod."""
    content = {field: found.get(field) or {} for field in ("data", "binaryData")}
    text = orjson.dumps(content, option=orjson.OPT_SORT_KEYS)
    return hmac.new(found["metadata"]["uid"].encode(), text, "sha256").hexdigest()[:_DIGITS]
