"""Keys and values as bytes: Kafka's own serializers byte for byte, and JSON."""

from __future__ import annotations

import base64
import binascii
import math
import re
import struct
from typing import Protocol

import orjson

from streams_runtime.errors import ConfigException, StreamsException
from streams_runtime.topology.nodes.source_and_sink_nodes import Format

_CANONICAL_NAN = bytes.fromhex("7ff8000000000000")  # Java's doubleToLongBits writes this for every NaN
_WHOLE_NUMBER = re.compile(r"-?[0-9]+")
_NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?|NaN|[+-]?Infinity")
_JSON_OPTIONS = orjson.OPT_PASSTHROUGH_DATACLASS | orjson.OPT_PASSTHROUGH_DATETIME | orjson.OPT_PASSTHROUGH_SUBCLASS


class SerdeException(StreamsException, ValueError):
    """Data does not fit the format. The message names format and finding, the caller names the place."""


class Serde(Protocol):
    """One format. Every method raises SerdeException for what does not fit."""

    def encode(self, value: object) -> bytes:
        """The bytes that Kafka's serializer of this format writes for `value`."""

    def decode(self, data: bytes) -> object:
        """The value that `data` stands for."""

    def parse(self, text: str) -> object:
        """The value that a user writes as `text` in a URL or on a command line."""


def key_serde(key_format: Format) -> Serde:
    """The serde of a key.

    A JSON key is compared by its bytes: `parse` and `encode` write it compactly, fields in the order given,
    as Spark does. A key that another producer wrote with spaces has other bytes and is another key.

    Raises:
        ConfigException: there is no format of this name.
    """
    return _serde(key_format)


def value_serde(value_format: Format) -> Serde:
    """The serde of a value. A primitive decodes to the bare value, JSON to what the document says.

    Raises:
        ConfigException: there is no format of this name.
    """
    return _serde(value_format)


def _serde(named: Format) -> Serde:
    try:
        return _SERDES[named.name]
    except KeyError:
        known = ", ".join(_SERDES)
        raise ConfigException(f"there is no format named {named.name!r}; use one of {known}") from None


class _String:
    """UTF-8. Bytes that are not are read as Kafka's StringDeserializer reads them: with U+FFFD in their place."""

    def encode(self, value: object) -> bytes:
        if not isinstance(value, str):
            raise _unfit("string", value, "a str")
        try:
            return value.encode()
        except UnicodeEncodeError as error:
            raise SerdeException(f"string: {value!r} can't be written as UTF-8: {error.reason}") from error

    def decode(self, data: bytes) -> str:
        return data.decode(errors="replace")

    def parse(self, text: str) -> str:
        return text


class _Bytes:
    """Bytes as they are; as text, base64 (RFC 4648): standard or URL-safe alphabet, padding optional."""

    def encode(self, value: object) -> bytes:
        if not isinstance(value, bytes | bytearray | memoryview):
            raise _unfit("bytes", value, "bytes")
        return bytes(value)

    def decode(self, data: bytes) -> bytes:
        return bytes(data)

    def parse(self, text: str) -> bytes:
        standard = text.rstrip("=").replace("-", "+").replace("_", "/")
        try:
            return base64.b64decode(standard + "=" * (-len(standard) % 4), validate=True)
        except (binascii.Error, ValueError) as error:
            raise SerdeException(f"bytes: {text!r} is not base64 ({error}); write the bytes in base64") from error


class _Integer:
    """A signed big-endian integer of fixed width: Kafka's LongSerializer and IntegerSerializer."""

    def __init__(self, name: str, size: int) -> None:
        self._name = name
        self._size = size

    def encode(self, value: object) -> bytes:
        if not isinstance(value, int) or isinstance(value, bool):
            raise _unfit(self._name, value, "an int")
        try:
            return value.to_bytes(self._size, "big", signed=True)
        except OverflowError as error:
            limit = 2 ** (8 * self._size - 1)
            raise SerdeException(f"{self._name}: {value} is not between {-limit} and {limit - 1}") from error

    def decode(self, data: bytes) -> int:
        _check_size(self._name, data, self._size)
        return int.from_bytes(data, "big", signed=True)

    def parse(self, text: str) -> int:
        # 20 characters hold every 64-bit number; longer ones would only cost time before they are refused.
        if len(text) > 20 or not _WHOLE_NUMBER.fullmatch(text):
            raise SerdeException(f"{self._name}: {text!r} is not a whole number")
        number = int(text)
        self.encode(number)
        return number


class _Double:
    """IEEE 754 double, big-endian; every NaN as Java writes it."""

    def encode(self, value: object) -> bytes:
        if not isinstance(value, int | float) or isinstance(value, bool):
            raise _unfit("double", value, "a float or an int")
        try:
            number = float(value)
        except OverflowError as error:
            raise SerdeException("double: the int is larger than a double can hold") from error
        return _CANONICAL_NAN if math.isnan(number) else struct.pack(">d", number)

    def decode(self, data: bytes) -> float:
        _check_size("double", data, 8)
        number: float = struct.unpack(">d", data)[0]
        return number

    def parse(self, text: str) -> float:
        if not _NUMBER.fullmatch(text):
            raise SerdeException(f"double: {text!r} is not a number (NaN, Infinity and -Infinity are)")
        return float(text)


class _Json:
    """A JSON document in UTF-8, written compactly."""

    def encode(self, value: object) -> bytes:
        try:
            _check_finite(value)
            return orjson.dumps(value, option=_JSON_OPTIONS)
        except (TypeError, RecursionError) as error:
            raise SerdeException(f"json: the value can't be written as JSON: {error}") from error

    def decode(self, data: bytes) -> object:
        try:
            return orjson.loads(data)
        except orjson.JSONDecodeError:
            return self._loads(data.decode(errors="replace"))

    def parse(self, text: str) -> object:
        return self._loads(text)

    def _loads(self, document: bytes | str) -> object:
        try:
            value: object = orjson.loads(document)
        except orjson.JSONDecodeError as error:
            raise SerdeException(f'json: not a JSON document: {error} (text is written in quotes, as "AA")') from error
        return value


_SERDES: dict[str, Serde] = {
    "string": _String(),
    "bytes": _Bytes(),
    "long": _Integer("long", 8),
    "int": _Integer("int", 4),
    "double": _Double(),
    "json": _Json(),
}


def _unfit(name: str, value: object, wanted: str) -> SerdeException:
    return SerdeException(f"{name}: a value of type {type(value).__name__} can't be written; give {wanted}")


def _check_size(name: str, data: bytes, size: int) -> None:
    if len(data) != size:
        raise SerdeException(
            f"{name}: {len(data)} bytes found where a {name} has {size};"
            " declare the format that the data was written with"
        )


def _check_finite(value: object) -> None:
    """Refuse NaN and infinities, which JSON does not have and which would silently become null."""
    if isinstance(value, float) and not math.isfinite(value):
        raise SerdeException(f"json: {value} has no form in JSON")
    if isinstance(value, dict):
        for item in value.values():
            _check_finite(item)
    elif isinstance(value, list | tuple):
        for item in value:
            _check_finite(item)
