"""Why one record can't be read, in words; asked only about records that Spark has already refused."""

from __future__ import annotations

import orjson

from streams_runtime.pipeline.decode import Decoder
from streams_runtime.pipeline.registered import RegisteredFormat
from streams_runtime.topology.nodes import Format

_WIDTH = {"long": 8, "int": 4, "double": 8}
_SHOWN = 80  # characters of a value that a message shows


def reason(decoder: Decoder, key: bytes | None, value: bytes | None) -> str:
    """The first thing that is wrong with the record.

    Raises SchemaRegistryNotAvailableException, SchemaRegistryException: the registry has to say, and does not.
    """
    wrong = _wrong("key", decoder.key, key) or _wrong("value", decoder.value, value)
    if wrong is None and decoder.timestamp is not None:
        wrong = f"its timestamp {decoder.timestamp} is null"
    return wrong or f"it does not fit the declared formats ({decoder.key.name} key, {decoder.value.name} value)"


def _wrong(part: str, format: Format, data: bytes | None) -> str | None:
    if data is None:
        return None
    if isinstance(format, RegisteredFormat):
        why = format.unreadable(data)
        return None if why is None else f"its {part} is {why}"
    width = _WIDTH.get(format.name)
    if width is not None and len(data) != width:
        return f"its {part} has {len(data)} bytes, and a {format.name} has {width}"
    return _wrong_json(part, format, data) if format.name == "json" else None


def _wrong_json(part: str, format: Format, data: bytes) -> str | None:
    shown = data[:_SHOWN].decode(errors="replace") + ("…" if len(data) > _SHOWN else "")
    try:
        found = orjson.loads(data)
    except orjson.JSONDecodeError as error:
        return f"its {part} is not JSON ({error}): {shown}"
    if not isinstance(found, dict):
        return f"its {part} is JSON, but no object: {shown}"
    # A key that is unreadable for another reason is reported by the part that is.
    return f"its {part} does not fit the schema {format.schema}: {shown}" if part == "value" else None
