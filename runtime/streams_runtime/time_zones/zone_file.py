"""Time zones as the package `tzdata` has them.

Every instance, every worker of Spark's and the operator have this one database, whatever their systems and Java bring.
"""

from __future__ import annotations

import struct
from bisect import bisect_right
from collections.abc import Iterator
from datetime import UTC, datetime
from functools import lru_cache
from importlib import resources
from io import BytesIO
from typing import NamedTuple
from zoneinfo import ZoneInfo

_HEADER = struct.Struct(">4s1s15x6L")
_KIND = struct.Struct(">lBB")
_WEEK = 7 * 86_400
_YEAR = 366 * 86_400
CYCLE = 146_097 * 86_400
"""Seconds in 400 years, after which dates, days of the week and so the rules of a zone come again."""


class OffsetChange(NamedTuple):
    """A moment (s since 1970) from which on a zone's clock is `offset` s ahead of UTC."""

    moment: int
    offset: int


class ZoneHistory(NamedTuple):
    """A zone's offset (s) a year before 1970, its changes since then, and from which moment on (s) they come again
    after each CYCLE. The changes are there until a year after the first of these cycles.
    """

    first: int
    changes: tuple[OffsetChange, ...]
    repeats_from: int


@lru_cache(maxsize=1)
def zone_names() -> frozenset[str]:
    """The names of all zones."""
    return frozenset((resources.files("tzdata") / "zones").read_text().split()) - {"Factory"}


def zone_history(name: str) -> ZoneHistory:
    """The offsets of the zone `name`, which has to be one of `zone_names`."""
    data = resources.files("tzdata").joinpath("zoneinfo", *name.split("/")).read_bytes()
    zone = ZoneInfo.from_file(BytesIO(data), name)
    first = _offset(zone, -_YEAR)
    listed = [each for each in _listed(data) if each.moment > -_YEAR]
    last = max(0, listed[-1].moment if listed else 0)
    by_rule = list(_by_rule(zone, last, last + CYCLE + 3 * _YEAR))
    changes, offset = [], first
    for each in [*listed, *by_rule]:
        if each.offset != offset:
            changes.append(each)
            offset = each.offset
    return ZoneHistory(first, tuple(changes), _between_changes([each.moment for each in by_rule], last + _YEAR))


def _listed(data: bytes) -> Iterator[OffsetChange]:
    """The changes that a file lists; of the later ones it has a rule (RFC 8536, the part with 64 bits)."""
    *_, is_ut, is_standard, leaps, times, kinds, letters = _HEADER.unpack_from(data)
    at = _HEADER.size + times * 5 + kinds * _KIND.size + letters + leaps * 8 + is_standard + is_ut
    *_, times, kinds, letters = _HEADER.unpack_from(data, at)
    at += _HEADER.size
    moments = struct.unpack_from(f">{times}q", data, at)
    at += 8 * times
    which = data[at : at + times]
    offsets = [offset for offset, *_ in _KIND.iter_unpack(data[at + times : at + times + kinds * _KIND.size])]
    yield from (OffsetChange(moment, offsets[kind]) for moment, kind in zip(moments, which, strict=True))


def _by_rule(zone: ZoneInfo, start: int, end: int) -> Iterator[OffsetChange]:
    """The changes between two moments by the file's rule: no two of them are within a week."""
    before = _offset(zone, start)
    for week in range(start, end, _WEEK):
        after = _offset(zone, week + _WEEK)
        if after != before:
            later = bisect_right(range(week, week + _WEEK), False, key=lambda at: _offset(zone, at) == after)
            yield OffsetChange(week + later, after)
            before = after


def _between_changes(moments: list[int], earliest: int) -> int:
    """A moment far from the changes by a rule, when the rule is in force."""
    later = [each for each in moments if each > earliest]
    return (later[0] + later[1]) // 2 if later else earliest


def _offset(zone: ZoneInfo, moment: int) -> int:
    offset = datetime.fromtimestamp(moment, UTC).astimezone(zone).utcoffset()
    assert offset is not None, "every zone has one"
    return round(offset.total_seconds())
