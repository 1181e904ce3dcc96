"""Why one record can't be read, in words; asked only about records that Spark has already refused."""

from __future__ import annotations

import orjson

from streams_runtime.kafka.consumer.record_table import LATEST_TIME
from streams_runtime.pipeline.formats.decode import Decoder
from streams_runtime.pipeline.formats.registered_format import RegisteredFormat
from streams_runtime.topology.nodes.source_and_sink_nodes import Format

_WIDTH = {"long": 8, "int": 4, "double": 8}
_TEXT = frozenset({"string", "json"})
_SHOWN = 80  # characters of a value that a message shows


def reason(decoder: Decoder, key: bytes | None, value: bytes | None, time: int | None = None) -> str:
    """The first thing that is wrong with the record. `time` (ms) is its own, where no record may have such a time.

    Raises SchemaRegistryNotAvailableException, SchemaRegistryException: the registry has to say, and does not.
    """
    if time is not None:
        which = "time" if decoder.timestamp is None or value is None else f"timestamp {decoder.timestamp}"
        return f"its {which} is {time} ms, and records have times from 0 (1970) to {LATEST_TIME} ms"
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
    if format.name in _TEXT and (where := _no_utf8(data)) is not None:
        return f"its {part} is not UTF-8 ({where}): {data[:_SHOWN].decode(errors='backslashreplace')}"
    width = _WIDTH.get(format.name)
    if width is not None and len(data) != width:
        return f"its {part} has {len(data)} bytes, and a {format.name} has {width}"
    return _wrong_json(part, format, data) if format.name == "json" else None


def _no_utf8(data: bytes) -> str | None:
    try:
        data.decode()
    except UnicodeDecodeError as error:
        return f"{error.reason} at byte {error.start}"
    return None


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
