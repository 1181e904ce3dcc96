"""Keys and values as JSON, and what stands for the things that JSON does not have."""

from __future__ import annotations

import base64
import math
from datetime import UTC, datetime

import orjson

COMPLETE = "complete"
"""Member of the last line of a whole answer of many lines: `{"complete": {"records": 12}}`."""
PROBLEM = "problem"
"""Member of the last line of an answer that broke off: `{"problem": {…}}`."""

_PLAIN = frozenset({str, int, bool, type(None)})
"""Types of most members, which JSON has."""


def to_json(value: object) -> bytes:
    """`value` as a JSON document, of what `to_plain` gives."""
    return orjson.dumps(to_plain(value))


def to_plain(value: object) -> object:
    """`value` with what JSON does not have replaced by strings, as Spark writes them.

    Bytes become base64 (standard alphabet, padded); numbers that are not finite become NaN, Infinity,
    -Infinity; moments RFC 3339 in UTC, to the millisecond.
    """
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, dict):
        return {key: item if type(item) in _PLAIN else to_plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [to_plain(item) for item in value]
    return value
