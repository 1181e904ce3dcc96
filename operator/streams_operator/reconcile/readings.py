"""Resources as they are read, once a generation: small ones in the loop, large ones beside it.

A specification of a megabyte takes seconds to read. Whoever writes it must not keep the loop, and with it the lease and
everybody else's resources, waiting for that long.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import orjson

from streams_operator.model import Json, Key
from streams_runtime.api import Reading, StreamsApplication, read_application
from streams_runtime.api.spec.limits import DEEPEST

T = TypeVar("T")
SMALL = 16 << 10
"""Bytes of JSON that are read in the loop: some hundredths of a second. Applications of fifty steps are smaller."""
_MOST_LARGE = 64  # readings of large resources; one takes some ten times the memory of its JSON
_MOST_SMALL = 1500  # of small ones, of 12 KiB each or so; a round of one whose reading is here takes half the time


@dataclass(frozen=True, slots=True)
class _Known:
    version: tuple[str, int]  # uid and generation
    reading: Reading
    document: bytes


class Readings:
    """The last readings of resources. All methods belong to the event loop's thread."""

    def __init__(
        self,
        read: Callable[[Json], Reading] | None = None,
        document: Callable[[StreamsApplication, str], bytes] | None = None,
    ) -> None:
        """`document`: what pods read of an application in a namespace; absent: nobody asks for it."""
        self._read = read or read_resource
        self._document = document
        self._large: OrderedDict[Key, _Known] = OrderedDict()
        self._small: OrderedDict[Key, _Known] = OrderedDict()
        # One thread: large resources wait for each other, and share one processor with the loop at most.
        self._beside = ThreadPoolExecutor(1, "readings")

    def close(self) -> None:
        """Begin no more readings."""
        self._beside.shutdown(wait=False, cancel_futures=True)

    async def of(self, key: Key, resource: Json) -> Reading:
        """The resource as it is read, or what is wrong with it."""
        metadata = resource["metadata"]
        version = str(metadata["uid"]), int(metadata.get("generation", 0))
        small = is_small(resource)
        readings, others, most = (
            (self._small, self._large, _MOST_SMALL) if small else (self._large, self._small, _MOST_LARGE)
        )
        others.pop(key, None)
        known = readings.get(key)
        if known is None or known.version != version:
            reading, text = self._both(resource) if small else await self._in_thread(self._both, resource)
            known = readings[key] = _Known(version, reading, text)
            if len(readings) > most:
                readings.popitem(last=False)
        readings.move_to_end(key)
        return known.reading

    def document(self, key: Key) -> bytes:
        """The application of the last reading as its pods read it; empty where there is none."""
        known = self._small.get(key) or self._large.get(key)
        return known.document if known is not None else b""

    async def beside(self, resource: Json, function: Callable[..., T], *arguments: Any) -> T:
        """What `function` gives, which takes as long as the resource is large."""
        if is_small(resource):
            return function(*arguments)
        return await self._in_thread(function, *arguments)

    def forget(self, key: Key) -> None:
        """The resource has gone."""
        self._large.pop(key, None)
        self._small.pop(key, None)

    def _both(self, resource: Json) -> tuple[Reading, bytes]:
        reading = self._read(resource)
        text = b""
        if reading.application is not None and self._document is not None:
            text = self._document(reading.application, str(resource["metadata"]["namespace"]))
        # Without the resource as it was given, which the cache has.
        return replace(reading, document={}, sql=(), kafka=None), text

    async def _in_thread(self, function: Callable[..., T], *arguments: Any) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._beside, function, *arguments)


def is_small(resource: Json) -> bool:
    """Whether it is read in hundredths of a second.

    What can't be written as JSON is nested so deeply that it is refused at once.
    """
    try:
        return len(orjson.dumps(resource.get("spec"))) <= SMALL
    except orjson.JSONEncodeError:
        return True


def without_nones(value: Any, deepest: int = DEEPEST) -> Any:
    """The same without the fields that are null, which say nothing; as it is below where a resource is read."""
    if not deepest:
        return value
    if isinstance(value, Mapping):
        return {name: without_nones(each, deepest - 1) for name, each in value.items() if each is not None}
    if isinstance(value, Sequence) and not isinstance(value, str | bytes):
        return [without_nones(each, deepest - 1) for each in value]
    return value


def read_resource(resource: Json) -> Reading:
    """A resource as the API server gives it. Takes as long as it is large."""
    return read_application(without_nones(resource), "the resource")
