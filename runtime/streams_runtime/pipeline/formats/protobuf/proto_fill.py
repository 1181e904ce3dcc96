"""Rows into Protobuf messages, field by field, with the field's name where a value does not fit."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from decimal import Decimal
from functools import lru_cache
from typing import Any

from google.protobuf.descriptor import Descriptor, EnumDescriptor, FieldDescriptor
from google.protobuf.message import Message

from streams_runtime.pipeline.formats.protobuf.proto_messages import (
    TIMESTAMP,
    MessageType,
    is_map,
    is_wrapper,
    message_class,
    type_shown,
)

Fill = Callable[[Any, Any], None]
"""Puts a value into a message (of a field's own type)."""

_BAD = (TypeError, ValueError, AttributeError, OverflowError)


class UnfitValue(ValueError):
    """A value that a field does not hold; the text names the field."""


def filled(kind: MessageType, row: Any) -> bytes:
    """The row (a mapping by the names of fields) as the message's bytes, the same for the same row.

    Raises:
        UnfitValue: a value that does not fit.
    """
    message = message_class(kind)()
    _filler(kind)(message, row)
    if not message.IsInitialized():
        raise UnfitValue(f"the required fields {', '.join(message.FindInitializationErrors())} are missing")
    data: bytes = message.SerializeToString(deterministic=True)
    return data


@lru_cache(maxsize=256)
def _filler(kind: MessageType) -> Fill:
    return _message(message_class(kind).DESCRIPTOR, "")


def _message(kind: Descriptor, at: str) -> Fill:
    fields = {each.name: _field(each, f"{at}.{each.name}" if at else each.name) for each in kind.fields}

    def fill(message: Message, row: Any) -> None:
        if not isinstance(row, Mapping):
            raise UnfitValue(f"{at or 'it'} is {row!r}, and a message in the schema")
        for name, value in row.items():
            if name not in fields:
                raise UnfitValue(f"there is no field {f'{at}.{name}' if at else name}")
            fields[name](message, value)

    return fill


def _field(field: FieldDescriptor, at: str) -> Fill:
    """Of the message that the field is in."""
    put = _repeated(field, at) if field.is_repeated else _single(field, at)

    def fill(message: Any, value: Any) -> None:
        if value is None:
            # No list and an empty one are the same bytes; a number without presence would become 0.
            if field.has_presence or field.is_repeated:
                return
            raise UnfitValue(f"{at} is null, and no optional field of the schema")
        try:
            put(message, value)
        except UnfitValue:
            raise
        except _BAD as error:
            raise UnfitValue(f"{at} is {value!r}, and {type_shown(field)} in the schema ({error})") from error

    return fill


def _single(field: FieldDescriptor, at: str) -> Fill:
    name = field.name
    if field.message_type is None:
        convert = _scalar(field)
        return lambda message, value: setattr(message, name, convert(value))
    inside = _inside(field, at)

    def put(message: Any, value: Any) -> None:
        child = getattr(message, name)
        child.SetInParent()
        inside(child, value)

    return put


def _repeated(field: FieldDescriptor, at: str) -> Fill:
    name = field.name
    mapped = is_map(field)
    one = field.message_type.fields_by_name["value"] if mapped else field
    where = f"{at}{{}}" if mapped else f"{at}[]"
    inside = None if one.message_type is None else _inside(one, where)
    convert = _scalar(one)

    def put(message: Any, value: Any) -> None:
        target = getattr(message, name)
        items = value.items() if mapped else enumerate(value)
        for place, each in items:
            if each is None:
                raise UnfitValue(f"{where} is null, which Protobuf has no place for")
            if inside is not None:
                inside(target[place] if mapped else target.add(), each)
            elif mapped:
                target[place] = convert(each)
            else:
                target.append(convert(each))

    return put


def _inside(field: FieldDescriptor, at: str) -> Fill:
    """Of a field's own message: a time, a wrapper, or one of the user's."""
    kind = field.message_type
    if kind.full_name == TIMESTAMP:
        return _time
    if is_wrapper(kind):
        return _single(kind.fields_by_name["value"], at)
    return _message(kind, at)


def _time(message: Any, value: Any) -> None:
    if not isinstance(value, datetime):
        raise TypeError("give a datetime")
    message.FromDatetime(value)


def _scalar(field: FieldDescriptor) -> Callable[[Any], Any]:
    if field.enum_type is not None:
        return lambda value: _number(field.enum_type, value)
    return lambda value: int(value) if isinstance(value, Decimal) and value == value.to_integral_value() else value


def _number(kind: EnumDescriptor, value: Any) -> int:
    """A value of an enum by its name, or, as they are read where the schema has none, by its number as text."""
    if value in kind.values_by_name:
        number: int = kind.values_by_name[value].number
        return number
    if isinstance(value, str) and value.removeprefix("-").isdecimal() and not kind.is_closed:
        return int(value)
    raise ValueError(f"one of {', '.join(kind.values_by_name)}")
