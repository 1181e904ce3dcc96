"""The parameters of queries as they stand in URLs; those that there are not are refused by their names."""

from __future__ import annotations

from collections import Counter
from typing import Annotated
from urllib.parse import unquote_to_bytes

from fastapi import Path, Query, Request
from fastapi.routing import APIRoute
from starlette.convertors import Convertor, register_url_convertor

from streams_runtime.query.problems import InvalidQueryException
from streams_runtime.query.views import StoreCodec

_REPEATABLE = frozenset({"partition"})

_INCLUSIVE = "inclusive; absent: open; as text in the store's key format"
_TIME = "RFC 3339 with an offset (2026-01-31T08:00:00Z), or milliseconds since 1970"

StoreName = Annotated[str, Path(description="Name of the store.")]
Key = Annotated[str, Path(description="The key as text in the store's key format; the whole rest of the path.")]
FromKey = Annotated[str | None, Query(alias="from", description=f"First key, {_INCLUSIVE}.")]
ToKey = Annotated[str | None, Query(alias="to", description=f"Last key, {_INCLUSIVE}.")]
Prefix = Annotated[str, Query(description="What the keys' bytes begin with, as text in the store's key format.")]
Partitions = Annotated[list[int] | None, Query(description="Exactly these; absent: every one that is here.")]
Stale = Annotated[bool, Query(description="Also read copies that may lag behind: standby and restoring stores.")]
Reverse = Annotated[bool, Query(description="From the last to the first.")]
KeyBytes = Annotated[bool, Query(alias="keyBytes", description="Add the bytes by which lines are ordered, in base64.")]
Limit = Annotated[
    int | None,
    Query(
        ge=1,
        le=2**53,
        description="Records at most; absent: all. The last line says `more` where there are others: ask again from the"
        " last key on.",
    ),
]
Time = Annotated[str, Query(description=f"Where the window or session begins: {_TIME}.")]
SessionEnd = Annotated[str, Query(description=f"Where the session ends, the time of its last record: {_TIME}.")]
FromTime = Annotated[str | None, Query(alias="fromTime", description=f"Earliest, inclusive: {_TIME}. Absent: open.")]
ToTime = Annotated[str | None, Query(alias="toTime", description=f"Latest, inclusive: {_TIME}. Absent: open.")]


class _TextConvertor(Convertor[str]):
    """The rest of the path, whatever it holds; Starlette's own `path` stops at a line break."""

    regex = r"[\s\S]*"

    def convert(self, value: str) -> str:
        return value

    def to_string(self, value: str) -> str:
        return value


register_url_convertor("text", _TextConvertor())


def parse_key(codec: StoreCodec, store: str, name: str, text: str) -> tuple[object, bytes]:
    """The key that the parameter `name` gives as `text`, and its bytes.

    Raises:
        InvalidQueryException: it is none of the store's key format.
    """
    try:
        key = codec.key.parse(text)
        return key, codec.key.encode(key)
    except ValueError as error:
        raise InvalidQueryException(f"{name}: {text!r} can't be a key of store {store!r}: {error}") from error


async def known_text(request: Request) -> None:
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


async def known_parameters(request: Request) -> None:
    """Refuse parameters that the endpoint does not have or that are given twice: an answer to another question than the
    one that was meant would not be noticed. And what `known_text` refuses.

    Raises:
        InvalidQueryException: names the parameter.
    """
    await known_text(request)
    route = request.scope.get("route")
    known = {field.alias for field in route.dependant.query_params} if isinstance(route, APIRoute) else set()
    given = Counter(name for name, _ in request.query_params.multi_items())
    for name, times in given.items():
        if name not in known:
            there = ", ".join(sorted(known)) or "none"
            raise InvalidQueryException(f"{name}: no such parameter here, only: {there}; correct it or leave it out")
        if times > 1 and name not in _REPEATABLE:
            raise InvalidQueryException(f"{name}: given {times} times; give it once")
