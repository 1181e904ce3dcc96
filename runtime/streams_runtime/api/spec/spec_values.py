"""Durations, quantities and property maps: the small values that fields are made of."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from datetime import timedelta
from decimal import Decimal
from typing import Annotated, Any, Final, Literal

from pydantic import BeforeValidator, PlainSerializer, WithJsonSchema
from pydantic_core import PydanticCustomError

_MOST = 2**31 - 1  # of what Kubernetes counts in 32 bits
_UNITS_MS = {"d": 86_400_000, "h": 3_600_000, "m": 60_000, "s": 1_000, "ms": 1}
DURATION_PATTERN = r"^(\d{1,9}d)?(\d{1,9}h)?(\d{1,9}m)?(\d{1,9}s)?(\d{1,9}ms)?$"
_DURATION = re.compile(DURATION_PATTERN)
_RESETS: Final = ("earliest", "latest", "none")
OFFSET_RESET_PATTERN = rf"^({'|'.join(_RESETS)}|{DURATION_PATTERN[1:-1]})$"
LONGEST_DURATION = timedelta(days=36_500)
"""What windows add to a record's time, size, grace and retention together, stays in the range of times so."""
QUANTITY_PATTERN = r"^[0-9]+(\.[0-9]+)?(Ki|Mi|Gi|Ti|Pi|Ei|m|k|M|G|T|P|E|[eE][0-9]+)?$"
_QUANTITY = re.compile(QUANTITY_PATTERN)
_PARTS = re.compile(r"^([0-9.]+)(?:[eE]([+-]?)([0-9]+)|([A-Za-z]*))$")
_LONGEST_EXPONENT = 3  # digits
_SUFFIXES: Final = {
    "": Decimal(1),
    "m": Decimal(1) / 1000,
    "k": Decimal(1000),
    **{letter: Decimal(1000) ** power for power, letter in enumerate("MGTPE", 2)},
    **{f"{letter}i": Decimal(1024) ** power for power, letter in enumerate("KMGTPE", 1)},
}
COUNT_OR_PERCENT_PATTERN = r"^([0-9]|[1-9][0-9]|100)%$"
_COUNT_OR_PERCENT = re.compile(COUNT_OR_PERCENT_PATTERN)
OBJECT_NAME_PATTERN = r"^[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?$"
IMAGE_PATTERN = r"^[^\s@]+(@(sha256:[0-9a-f]{64}|sha512:[0-9a-f]{128}))?$"
_IMAGE = re.compile(IMAGE_PATTERN)
LABEL_VALUE_PATTERN = r"^([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?$"
_LABEL_VALUE = re.compile(LABEL_VALUE_PATTERN)
_OBJECT_NAME = re.compile(OBJECT_NAME_PATTERN)


def refusal(found: str, remedy: str) -> PydanticCustomError:
    """An error for a validator to raise: what stands there, and what would do."""
    return PydanticCustomError("refused", "{found}; {remedy}", {"found": found, "remedy": remedy})


def parse_duration(text: str) -> timedelta:
    """`100ms`, `1m`, `1h30m` as a timedelta; of what is too long for one, the longest.

    Raises ValueError for anything else, a bare number included.
    """
    match = _DURATION.match(text)
    if match is None or not any(match.groups()):
        raise ValueError(f"{text!r} is not a duration")
    parts = (re.fullmatch(r"(\d+)([a-z]+)", part) for part in match.groups() if part)
    milliseconds = sum(int(part[1]) * _UNITS_MS[part[2]] for part in parts if part)
    return timedelta(milliseconds=min(milliseconds, timedelta.max // timedelta(milliseconds=1)))


def format_duration(duration: timedelta) -> str:
    """The shortest text that `parse_duration` reads back as the same whole milliseconds."""
    left = duration // timedelta(milliseconds=1)
    text = ""
    for unit, size in _UNITS_MS.items():
        count, left = divmod(left, size)
        text += f"{count}{unit}" if count else ""
    return text or "0ms"


def between(least: timedelta, most: timedelta) -> Callable[[timedelta], timedelta]:
    """A validator that refuses durations outside of a range, which includes its ends."""

    def checked(value: timedelta) -> timedelta:
        if not least <= value <= most:
            remedy = f"give {format_duration(least)} to {format_duration(most)}"
            raise refusal(f"found {format_duration(value)}", remedy)
        return value

    return checked


def _duration(value: Any) -> timedelta:
    if isinstance(value, timedelta):
        return value
    # A bare number is refused: 100 could be milliseconds (Kafka's habit) or seconds (everybody else's).
    try:
        duration = parse_duration(value)
    except (ValueError, TypeError):
        raise refusal(
            f"found {value!r}, which is not a duration",
            "write numbers with their units d, h, m, s, ms from large to small, such as 100ms, 30s or 1h30m",
        ) from None
    if duration > LONGEST_DURATION:
        raise refusal(f"found {value!r}, which is longer than a century", f"give at most {LONGEST_DURATION.days}d")
    return duration


def _offset_reset(value: Any) -> Any:
    if value in _RESETS:
        return value
    try:
        return _duration(value)
    except PydanticCustomError:
        if isinstance(value, str) and _DURATION.match(value) and value:
            raise  # a duration, and too long
        remedy = "give earliest, latest, none, or a duration that is counted back from now, such as 30m or 1d"
        raise refusal(f"found {value!r}", remedy) from None


def format_offset_reset(reset: OffsetReset) -> str:
    """The text that stands for it in a resource."""
    return format_duration(reset) if isinstance(reset, timedelta) else reset


def _quantity(value: Any) -> str:
    if isinstance(value, str) and _QUANTITY.match(value):
        return value
    if isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < math.inf:
        return str(value)
    raise refusal(f"found {value!r}, which is not a quantity", "write it as Kubernetes does, such as 10Gi or 500m")


def quantity_value(quantity: str) -> Decimal:
    """What a checked quantity stands for, in bytes where it is a size; what is beyond any size is only very large."""
    number, sign, exponent, suffix = _PARTS.findall(quantity)[0]
    if not exponent:
        return Decimal(number) * _SUFFIXES[suffix]
    digits = exponent.lstrip("0") or "0"
    power = int(digits) if len(digits) <= _LONGEST_EXPONENT else 10**_LONGEST_EXPONENT
    return Decimal(number).scaleb(-power if sign == "-" else power)


def between_sizes(least: str, most: str) -> Callable[[str], str]:
    """A validator that refuses quantities outside of a range, which includes its ends."""

    def checked(value: str) -> str:
        if not quantity_value(least) <= quantity_value(value) <= quantity_value(most):
            raise refusal(f"found {value}", f"give {least} to {most}")
        return value

    return checked


def _count_or_percent(value: Any) -> int | str:
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= _MOST:
        return value
    if isinstance(value, str) and _COUNT_OR_PERCENT.fullmatch(value):
        return value
    raise refusal(f"found {value!r}, which is neither a number nor a part", "write a number, or a part such as 25%")


def _object_name(value: Any) -> str:
    if isinstance(value, str) and _OBJECT_NAME.match(value):
        return value
    remedy = "use small letters, digits, and - or . between them"
    raise refusal(f"found {value!r}, which is no name of a Kubernetes object", remedy)


def _image(value: Any) -> str:
    if isinstance(value, str) and _IMAGE.fullmatch(value):
        return value
    remedy = "write NAME:TAG, or NAME@sha256: with 64 hexadecimal digits"
    raise refusal(f"found {value!r}, which is no image", remedy)


def _label_value(value: Any) -> str:
    if isinstance(value, str) and _LABEL_VALUE.fullmatch(value):
        return value
    remedy = "use at most 63 letters, digits, and - _ or . between them; numbers, true and false belong in quotes"
    raise refusal(f"found {value!r}, which is no value of a label", remedy)


def _property(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str | int | float):
        return str(value)
    raise refusal(f"found {value!r}, which is not the value of a property", "give text, a number, true or false")


Duration = Annotated[
    timedelta,
    BeforeValidator(_duration),
    PlainSerializer(format_duration, return_type=str),
    WithJsonSchema({"type": "string", "pattern": DURATION_PATTERN}),
]
"""A length of time, to the millisecond."""

OffsetReset = Annotated[
    Literal["earliest", "latest", "none"] | timedelta,
    BeforeValidator(_offset_reset),
    PlainSerializer(format_offset_reset, return_type=str),
    WithJsonSchema({"type": "string", "pattern": OFFSET_RESET_PATTERN}),
]
"""Where a partition begins that has no committed offset; a duration is counted back from now (KIP-1106)."""

# The API server knows no "text, number or boolean": a schema without a type, and no room for lists and mappings.
_SCALAR = {"x-kubernetes-preserve-unknown-fields": True, "maxItems": 0, "maxProperties": 0}

Quantity = Annotated[
    str,
    BeforeValidator(_quantity),
    WithJsonSchema({**_SCALAR, "pattern": QUANTITY_PATTERN, "minimum": 0}),
]
"""A Kubernetes quantity, kept as it is written."""

CountOrPercent = Annotated[
    int | str,
    BeforeValidator(_count_or_percent),
    WithJsonSchema({"x-kubernetes-int-or-string": True, "pattern": COUNT_OR_PERCENT_PATTERN, "minimum": 0}),
]
"""A number of something, or a part of all of them: 1 or 25%."""

ObjectName = Annotated[
    str, BeforeValidator(_object_name), WithJsonSchema({"type": "string", "pattern": OBJECT_NAME_PATTERN})
]
"""The name of a Kubernetes object."""

Image = Annotated[str, BeforeValidator(_image), WithJsonSchema({"type": "string", "pattern": IMAGE_PATTERN})]
"""An image as the kubelet pulls it, by a tag or a digest."""

LabelValue = Annotated[
    str, BeforeValidator(_label_value), WithJsonSchema({"type": "string", "pattern": LABEL_VALUE_PATTERN})
]
"""The value of a label of a Kubernetes object."""

Property = Annotated[str, BeforeValidator(_property), WithJsonSchema(_SCALAR)]
"""The value of a client's, topic's or Spark's property; numbers and booleans become their text."""
