"""Keys and values as bytes, in the formats that made topologies have. JSON keys stay texts: they are known by these."""

from __future__ import annotations

import json
import struct
from typing import Any


class UnreadableError(Exception):
    """The bytes are none of the format."""


def read_key(format: str | None, data: bytes | None) -> Any:
    """A record's key. Raises UnreadableError."""
    if data is None or format in (None, "bytes"):
        return data
    if format == "long":
        if len(data) != 8:
            raise UnreadableError
        return struct.unpack(">q", data)[0]
    text = _text(data)
    if format == "json":
        _object(text)
    return text


def write_key(key: Any) -> bytes | None:
    """A key's bytes, by which partitions are chosen."""
    if key is None or isinstance(key, bytes):
        return key
    return struct.pack(">q", key) if isinstance(key, int) else str(key).encode()


def read_value(schema: str, data: bytes | None) -> dict[str, Any] | None:
    """A record's value: a JSON object of columns, those that it lacks being null. Raises UnreadableError."""
    if data is None:
        return None
    found, value = _object(_text(data)), {}
    for name, kind in (each.split() for each in schema.split(",")):
        value[name] = found.get(name)
        wanted = int if kind == "BIGINT" else str
        if value[name] is not None and (not isinstance(value[name], wanted) or value[name] is True):
            raise UnreadableError
    return value


def _text(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise UnreadableError from None


def _object(text: str) -> dict[str, Any]:
    try:
        found = json.loads(text)
    except ValueError:
        raise UnreadableError from None
    if not isinstance(found, dict):
        raise UnreadableError
    return found
