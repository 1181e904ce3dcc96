"""Windows of whole days by a zone's clock, worked out with Python's zoneinfo, one wall clock time after another."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from functools import lru_cache
from zoneinfo import ZoneInfo

_EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001 - what a clock on a wall shows has no zone
_MS = timedelta(milliseconds=1)


def day_bounds(zone: str, size: int, offset: int, time: int) -> tuple[int, int]:
    """Start and end of the window that a moment lies in; all in ms."""
    number = (time - offset) // size + 3
    while start(zone, number * size + offset) > time:
        number -= 1
    begins = start(zone, number * size + offset)
    following = number + 1
    while start(zone, following * size + offset) == begins:  # days that nobody has had
        following += 1
    return begins, start(zone, following * size + offset)


def local(zone: str, text: str) -> int:
    """The moment (ms) of a wall clock's time."""
    return _ms(datetime.fromisoformat(text).replace(tzinfo=ZoneInfo(zone)))


@lru_cache(maxsize=100_000)
def start(zone: str, wall: int) -> int:
    """The first moment at which a clock on a wall there shows a time, or a later one."""
    clock, shown = ZoneInfo(zone), _EPOCH + wall * _MS
    found = shown.replace(tzinfo=clock)
    if found.astimezone(UTC).astimezone(clock).replace(tzinfo=None) == shown:
        return _ms(found)
    # It is left out: the clock jumps over it between what the two offsets around the jump make of it.
    early, late = sorted(_ms(shown.replace(tzinfo=clock, fold=fold)) // 1000 for fold in (0, 1))
    while early < late:
        between = (early + late) // 2
        if datetime.fromtimestamp(between, clock).replace(tzinfo=None) >= shown:
            late = between
        else:
            early = between + 1
    return late * 1000


def _ms(moment: datetime) -> int:
    return (moment - datetime(1970, 1, 1, tzinfo=UTC)) // _MS
