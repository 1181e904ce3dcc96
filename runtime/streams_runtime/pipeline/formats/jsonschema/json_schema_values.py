"""JSON texts into the columns that a schema declares, and rows into JSON: in any process.

One reading serves Spark's workers, queries and the words for a record that can't be read.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime
from functools import lru_cache
from typing import Any

import orjson

from streams_runtime.api.schemas.json_schema import parse_json_schema
from streams_runtime.api.schemas.json_types import JsonType
from streams_runtime.api.schemas.json_validity import Validity, pointer
from streams_runtime.pipeline.formats.plain_values import plain

Convert = Callable[[Any], Any]

_DATE = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)
# RFC 3339, which JSON Schema's date-time goes by.
_TIME = re.compile(r"\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d:\d\d(\.\d+)?([Zz]|[+-]\d\d:\d\d)", re.ASCII)
_LONG = 2**63
_EXACT = 2**53  # below which every integer is a double that no other becomes
_SHOWN = 80  # characters of a value that a message shows


class UnfitJson(ValueError):
    """What is no value of a schema. The text says why, in words that follow "it is"."""


class _Unfit(Exception):
    """A value that its column does not hold, and the path to it, from the inside to the outside."""

    def __init__(self, found: str) -> None:
        super().__init__(found)
        self.path: list[object] = []


class JsonValues:
    """Reads and writes the values of one schema."""

    def __init__(self, text: str) -> None:
        """`text` is a schema as it was declared.

        Raises:
            UnfitJson: it has no type of Spark; only one that a test gives was not looked at before.
        """
        schema = parse_json_schema(text)
        if schema.root is None:
            raise UnfitJson("; ".join(each.found for each in schema.problems))
        self._validity = Validity(schema.document)
        self._read = _reader(schema.root)
        self._write = _writer(schema.root)

    def read(self, body: bytes) -> Any:
        """The value as Spark's Python types, times in UTC; what the schema does not name is left out.

        Raises:
            UnfitJson: it is no JSON, not valid, or nothing that a column holds.
        """
        try:
            value = orjson.loads(body)
        except orjson.JSONDecodeError as error:
            shown = body[:_SHOWN].decode(errors="backslashreplace") + ("…" if len(body) > _SHOWN else "")
            raise UnfitJson(f"no JSON ({error}): {shown}") from error
        mistake = self._validity.mistake(value)
        if mistake is not None:
            raise UnfitJson(f"not valid by the source's schema: {mistake}")
        try:
            return self._read(value)
        except _Unfit as error:
            raise UnfitJson(f"{error} at {pointer(*reversed(error.path))}") from error

    def written(self, row: Any) -> bytes:
        """A row as JSON, the same for the same row. A null that the schema has no place for is left out.

        Raises:
            UnfitJson: it is not valid; the text begins with what is wrong.
        """
        try:
            value = self._write(row)
        except _Unfit as error:
            raise UnfitJson(f"{error} at {pointer(*reversed(error.path))}") from error
        mistake = self._validity.mistake(value)
        if mistake is not None:
            raise UnfitJson(mistake)
        return orjson.dumps(value)


@lru_cache(maxsize=256)
def values_of(text: str) -> JsonValues:
    """What reads and writes by a schema."""
    return JsonValues(text)


def _reader(kind: JsonType) -> Convert:
    """Of values that are valid; null, which is valid where the schema has it, stays null."""
    read = _one(kind)
    return lambda value: None if value is None else read(value)


def _one(kind: JsonType) -> Convert:
    if kind.name == "object":
        return _object({name: _reader(each) for name, each in kind.fields.items()})
    if kind.element is not None:
        element = _reader(kind.element)
        return _array(element) if kind.name == "array" else _map(element)
    return _SIMPLE[kind.name]


def _object(fields: Mapping[str, Convert]) -> Convert:
    def read(value: Any) -> dict[str, Any]:
        name = ""
        try:
            found = {}
            for name, inside in fields.items():
                found[name] = inside(value.get(name))
            return found
        except _Unfit as error:
            error.path.append(name)
            raise

    return read


def _map(element: Convert) -> Convert:
    def read(value: Any) -> dict[str, Any]:
        name = ""
        try:
            found = {}
            for name, each in value.items():
                found[name] = element(each)
            return found
        except _Unfit as error:
            error.path.append(name)
            raise

    return read


def _array(element: Convert) -> Convert:
    def read(value: Any) -> list[Any]:
        found: list[Any] = []
        try:
            for each in value:
                found.append(element(each))
        except _Unfit as error:
            error.path.append(len(found))
            raise
        return found

    return read


def _integer(value: Any) -> int:
    # The parser gives a double for 5.0, which is an integer in JSON Schema, and for more than 64 bits.
    if isinstance(value, float) and abs(value) >= _EXACT:
        raise _Unfit(f"{value!r}, whose digits a double does not keep, for a BIGINT")
    if not -_LONG <= value < _LONG:
        raise _Unfit(f"{value}, which is too large for a BIGINT,")
    return int(value)


def _date(value: str) -> date:
    try:
        if _DATE.fullmatch(value):
            return date.fromisoformat(value)
    except ValueError:
        pass
    raise _Unfit(f"{value[:_SHOWN]!r}, which is no date (2026-01-31),")


def _time(value: str) -> datetime:
    try:
        if _TIME.fullmatch(value):
            return datetime.fromisoformat(value.upper()).astimezone(UTC)
    except (ValueError, OverflowError):
        pass
    raise _Unfit(f"{value[:_SHOWN]!r}, which is no date-time (2026-01-31T08:00:00Z),")


def _as_it_is(value: Any) -> Any:
    return value


_SIMPLE: Mapping[str, Convert] = {
    "boolean": _as_it_is,
    "integer": _integer,
    "number": float,
    "string": _as_it_is,
    "date": _date,
    "date-time": _time,
}


def _writer(kind: JsonType) -> Convert:
    """To a value as JSON has it; what does not fit the type goes on as it is, and is not valid."""
    if kind.name == "object":
        return _written_object(kind)
    if kind.element is None:
        return _written_one
    element = _writer(kind.element)
    return _if_of(list, _array(element)) if kind.name == "array" else _if_of(dict, _map(element))


def _if_of(made: type, convert: Convert) -> Convert:
    return lambda value: convert(value) if isinstance(value, made) else _written_one(value)


def _written_object(kind: JsonType) -> Convert:
    writers = {name: _writer(each) for name, each in kind.fields.items()}
    # A null without a place in the schema is no property at all; a required one stays, and is refused.
    without = {name for name, each in kind.fields.items() if not each.nullable and name not in kind.required}

    def write(value: Any) -> dict[str, Any]:
        name = ""
        try:
            found = {}
            for name, each in value.items():
                if each is not None or name not in without:
                    found[name] = writers.get(name, _written_one)(each)
            return found
        except _Unfit as error:
            error.path.append(name)
            raise

    return _if_of(dict, write)


def _written_one(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        raise _Unfit(f"{value}, which JSON has no number for,")
    return value if value is None or isinstance(value, str | int | float) else plain(value)
