"""Keys of windows and sessions as users see them, and moments as the stores write them."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MS = timedelta(milliseconds=1)
_LAST = datetime.max.replace(tzinfo=UTC)

Moment = datetime | int
"""An aware datetime; an int, in ms since 1970, is deprecated and warns."""


class Window(NamedTuple):
    """From `start` to `end`, aware and in UTC. The end is exclusive of a window and inclusive of a session.

    A moment that datetime can't hold is shown as the last one that it can.
    """

    start: datetime
    end: datetime


class Windowed(NamedTuple):
    """A record's key in one of its windows or sessions."""

    key: object
    window: Window


def moment(ms: int) -> datetime:
    """The moment `ms` after 1970, in UTC; the last one that a datetime can hold for all that are later."""
    try:
        return _EPOCH + ms * _MS
    except OverflowError:
        return _LAST


def first_ms(name: str, value: Moment) -> int:
    """The first whole ms at or after `value`.

    Raises ValueError for a naive datetime and TypeError for what is no moment, both naming the argument.
    """
    return value if isinstance(value, int) else -((_EPOCH - _aware(name, value)) // _MS)


def last_ms(name: str, value: Moment) -> int:
    """The last whole ms at or before `value`. Raises as `first_ms` does."""
    return value if isinstance(value, int) else (_aware(name, value) - _EPOCH) // _MS


def is_whole_ms(value: Moment) -> bool:
    """Whether `value` is a whole ms; windows and sessions begin and end at nothing else."""
    return isinstance(value, int) or not (value - _EPOCH) % _MS


def warn_of_ms(moments: Iterable[object]) -> None:
    """Warn the caller's caller of each moment that is given as an int."""
    if any(isinstance(each, int) for each in moments):
        warnings.warn("times as ints of ms are deprecated: give aware datetimes", DeprecationWarning, stacklevel=3)


def _aware(name: str, value: object) -> datetime:
    if not isinstance(value, datetime):
        raise TypeError(f"{name}: {value!r} is no moment; give an aware datetime, such as datetime.now(UTC)")
    if value.utcoffset() is None:
        raise ValueError(f"{name}: {value} has no time zone; give an aware datetime, such as datetime.now(UTC)")
    return value
