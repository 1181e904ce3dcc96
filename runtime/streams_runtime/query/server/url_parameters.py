"""The parameters of queries as they stand in URLs. An endpoint refuses those that it does not have by their names."""

from __future__ import annotations

import functools
from collections import Counter
from datetime import datetime
from typing import Annotated, Any
from urllib.parse import unquote_to_bytes

from fastapi import Path, Request
from fastapi.routing import APIRoute
from pydantic import BaseModel, Field
from starlette.convertors import Convertor, register_url_convertor

from streams_runtime.query.stores.store_target import StoreTarget
from streams_runtime.query.wire.moments import parse_time
from streams_runtime.query.wire.problems import InvalidQueryException
from streams_runtime.query.wire.windowed_keys import Window, first_ms, last_ms
from streams_runtime.state.window_keys import LATEST

_REPEATABLE = frozenset({"partition", "position"})

_INCLUSIVE = "inclusive; absent: open; as text in the store's key format"
_TIME = "RFC 3339 with an offset (2026-01-31T08:00:00Z), or milliseconds since 1970"

StoreName = Annotated[str, Path(description="Name of the store.")]
Key = Annotated[str, Path(description="The key as text in the store's key format; the whole rest of the path.")]


class StoreParameters(BaseModel):
    """Which partitions of a store to read, as every query of a store can say."""

    partition: list[int] | None = Field(None, description="Exactly these; absent: every one that is here.")
    position: list[str] = Field(
        default_factory=list,
        description="A record of an input that the answer has to contain, such as orders-2:57 (topic, partition,"
        " offset), with those before it. May be given for several partitions.",
    )
    stale: bool = Field(False, description="Also read copies that may lag behind: standby and restoring stores.")


class ReversibleParameters(StoreParameters):
    """And in which order."""

    reverse: bool = Field(False, description="From the last to the first.")


class LineParameters(BaseModel):
    """How many records to answer with, one a line, and whether with the bytes of their keys."""

    key_bytes: bool = Field(False, alias="keyBytes", description="Add the bytes by which lines are ordered, in base64.")
    limit: int | None = Field(
        None,
        ge=1,
        le=2**53,
        description="Records at most; absent: all. The last line says `more` where there are others: ask again from the"
        " last key on.",
    )


class KeyRange(BaseModel):
    """The keys between two."""

    from_key: str | None = Field(None, alias="from", description=f"First key, {_INCLUSIVE}.")
    to_key: str | None = Field(None, alias="to", description=f"Last key, {_INCLUSIVE}.")

    def key_bounds(self, target: StoreTarget) -> tuple[bytes | None, bytes | None]:
        """The bytes of both keys; None is an open end. Raises as StoreTarget.parse_key does."""
        first, last = (
            None if text is None else target.parse_key(name, text)[1]
            for name, text in (("from", self.from_key), ("to", self.to_key))
        )
        return first, last


class TimeRange(BaseModel):
    """The windows or sessions between two times."""

    from_time: str | None = Field(None, alias="fromTime", description=f"Earliest, inclusive: {_TIME}. Absent: open.")
    to_time: str | None = Field(None, alias="toTime", description=f"Latest, inclusive: {_TIME}. Absent: open.")

    def time_bounds(self) -> tuple[int, int]:
        """Both times in ms; an open end is the first or the last that a key can hold. Raises as parse_time does."""
        return (
            0 if self.from_time is None else first_ms("fromTime", parse_time("fromTime", self.from_time)),
            LATEST if self.to_time is None else last_ms("toTime", parse_time("toTime", self.to_time)),
        )


class KeyPrefix(BaseModel):
    """The keys that begin alike."""

    prefix: str = Field(description="What the keys' bytes begin with, as text in the store's key format.")


class AsOf(BaseModel):
    """A moment in the history of a key."""

    as_of: str | None = Field(None, alias="asOf", description=f"The moment: {_TIME}. Absent: the newest version.")

    def moment(self) -> int:
        """It in ms, the last of all times where there is none. Raises as parse_time does."""
        return LATEST if self.as_of is None else last_ms("asOf", parse_time("asOf", self.as_of))


class WindowStart(BaseModel):
    """One window of a key."""

    time: str = Field(description=f"Where the window or session begins: {_TIME}.")

    def start(self) -> datetime:
        """The window's start, in UTC. Raises as parse_time does."""
        return parse_time("time", self.time)


class SessionBounds(BaseModel):
    """One session of a key."""

    start: str = Field(description=f"Where the window or session begins: {_TIME}.")
    end: str = Field(description=f"Where the session ends, the time of its last record: {_TIME}.")

    def window(self) -> Window:
        """The session's start and end, in UTC. Raises as parse_time does."""
        return Window(parse_time("start", self.start), parse_time("end", self.end))


# Base classes stand from right to left in the order that the OpenAPI document has their parameters in.


class VersionParameters(StoreParameters, AsOf):
    """Of the endpoint of what one key had at a time."""


class WindowParameters(StoreParameters, WindowStart):
    """Of the endpoint of one window."""


class SessionParameters(StoreParameters, SessionBounds):
    """Of the endpoint of one session."""


class AllParameters(LineParameters, ReversibleParameters):
    """Of the endpoint of every record."""


class KeyRangeParameters(AllParameters, KeyRange):
    """Of the endpoint of the records between two keys."""


class PrefixParameters(LineParameters, StoreParameters, KeyPrefix):
    """Of the endpoint of the records whose keys begin alike."""


class TimeRangeParameters(AllParameters, TimeRange):
    """Of the endpoints of the windows or sessions between two times, of one key or of all."""


class WindowRangeParameters(TimeRangeParameters, KeyRange):
    """Of the endpoints of the windows or sessions between two keys and two times."""


class _TextConvertor(Convertor[str]):
    """The rest of the path, whatever it holds; Starlette's own `path` stops at a line break."""

    regex = r"[\s\S]*"

    def convert(self, value: str) -> str:
        return value

    def to_string(self, value: str) -> str:
        return value


register_url_convertor("text", _TextConvertor())


async def check_escapes(request: Request) -> None:
    """Refuse escapes that are not UTF-8: decoding would ask for another key.

    Raises:
        InvalidQueryException: says how bytes are written.
    """
    try:
        unquote_to_bytes(request.scope.get("raw_path", b"")).decode()
        unquote_to_bytes(request.scope["query_string"]).decode()
    except UnicodeDecodeError:
        raise InvalidQueryException(
            "the URL has percent escapes that are not UTF-8; write bytes keys in base64, all others in UTF-8"
        ) from None


async def check_parameters(request: Request) -> None:
    """Refuse parameters that the endpoint does not have or that are given twice: the answer to another question than
    the one that was meant would go unnoticed. And what `check_escapes` refuses.

    Raises:
        InvalidQueryException: names the parameter.
    """
    await check_escapes(request)
    route = request.scope.get("route")
    fields = route.dependant.query_params if isinstance(route, APIRoute) else ()
    models: list[Any] = [field.field_info.annotation for field in fields]
    known = _names(*models)
    given = Counter(name for name, _ in request.query_params.multi_items())
    for name, times in given.items():
        if name not in known:
            there = ", ".join(known) or "none"
            raise InvalidQueryException(f"{name}: no such parameter here, only: {there}; correct it or leave it out")
        if times > 1 and name not in _REPEATABLE:
            raise InvalidQueryException(f"{name}: given {times} times; give it once")


@functools.cache
def _names(*models: Any) -> tuple[str, ...]:
    """The names of the parameters that an endpoint with these models has, sorted."""
    return tuple(sorted(field.alias or name for model in models for name, field in model.model_fields.items()))
