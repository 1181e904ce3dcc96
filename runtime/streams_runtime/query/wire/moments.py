"""Moments as users write them, in URLs and on command lines."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

from streams_runtime.query.wire.problems import InvalidQueryException

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECONDS = re.compile(r"\d+")


def parse_time(name: str, text: str) -> datetime:
    """The moment that the parameter `name` gives as `text`, in UTC.

    Raises:
        InvalidQueryException: it is neither an RFC 3339 time with an offset nor milliseconds since 1970.
    """
    try:
        if _MILLISECONDS.fullmatch(text):
            return _EPOCH + timedelta(milliseconds=int(text))
        moment = datetime.fromisoformat(text)
    except (ValueError, OverflowError):
        hint = "; a + in a URL is written %2B" if re.search(r"\d \d\d:?\d\d$", text) else ""
        raise InvalidQueryException(
            f"{name}: {text!r} is no time; write RFC 3339 (2026-01-31T08:00:00Z) or milliseconds since 1970{hint}"
        ) from None
    if moment.tzinfo is None:
        raise InvalidQueryException(f"{name}: {text!r} does not say its offset from UTC; add Z, or +01:00 as %2B01:00")
    moment = moment.astimezone(UTC)
    if moment < _EPOCH:
        raise InvalidQueryException(f"{name}: {text!r} is before 1970; records have no such times, give a later one")
    return moment
