"""Days by the clocks of time zones: the same as Python's zoneinfo says day by day, and the same in every arithmetic."""

from __future__ import annotations

import io
import time
from datetime import datetime
from functools import cache
from importlib import resources
from zoneinfo import ZoneInfo

import numpy as np
import pytest
import zone_days
from hypothesis import given, settings
from hypothesis import strategies as st
from zone_days import day_bounds, local

from streams_runtime.batch.window_bounds import VECTORS, bounds_of, ends_of
from streams_runtime.time_zones.day_calendar import DAY, calendar_of
from streams_runtime.time_zones.zone_clock import clock_of
from streams_runtime.time_zones.zone_file import CYCLE, zone_names
from streams_runtime.topology.nodes.window_kinds import TimeWindows

HOUR = 3_600_000
LAST = np.iinfo(np.int64).max // 1000
"""The largest time (ms) that Spark's timestamps hold."""
ZONES = (
    "UTC",
    "Europe/Berlin",
    "Europe/London",
    "Europe/Dublin",
    "America/Sao_Paulo",
    "America/Havana",
    "America/St_Johns",
    "America/New_York",
    "America/Nuuk",
    "America/Caracas",
    "Asia/Beirut",
    "Asia/Kathmandu",
    "Asia/Gaza",
    "Asia/Tehran",
    "Asia/Pyongyang",
    "Pacific/Apia",
    "Pacific/Kwajalein",
    "Pacific/Kiritimati",
    "Pacific/Chatham",
    "Australia/Lord_Howe",
    "Antarctica/Troll",
    "Antarctica/Casey",
    "Africa/Casablanca",
    "Africa/Cairo",
    "Africa/Monrovia",
    "Etc/GMT-14",
)


@pytest.fixture(autouse=True)
def zoneinfo_of_the_package(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is compared with is of the same year as what is tested, whatever the system has."""
    monkeypatch.setattr(zone_days, "ZoneInfo", packaged)


@cache
def packaged(name: str) -> ZoneInfo:
    data = resources.files("tzdata").joinpath("zoneinfo", *name.split("/")).read_bytes()
    return ZoneInfo.from_file(io.BytesIO(data), name)


@pytest.mark.parametrize("zone", ZONES[1::3])
def test_every_day_until_2040_begins_and_ends_where_zoneinfo_says(zone: str) -> None:
    calendar = calendar_of(zone, DAY, 0)
    moment, number = calendar.start_of(0), 0 if zone_days.start(zone, 0) <= 0 else -1
    assert moment == zone_days.start(zone, number * DAY) <= 0
    longest = 0
    while number < 70 * 365:
        number += 1
        following = zone_days.start(zone, number * DAY)
        if following == moment:
            continue  # a day that nobody has had
        assert (calendar.start_of(following - 1), calendar.end_of(moment)) == (moment, following)
        longest = max(longest, following - moment)
        moment = following
    assert longest <= calendar.longest


@pytest.mark.parametrize("zone", ZONES)
@pytest.mark.parametrize(("days", "offset"), [(1, 2 * HOUR + HOUR // 2), (1, 23 * HOUR), (7, 4 * DAY), (2, 0)])
def test_windows_around_each_change_of_clocks_are_those_of_zoneinfo(zone: str, days: int, offset: int) -> None:
    calendar = calendar_of(zone, days * DAY, offset)
    for change in clock_of(zone).changes:
        for moment in (change - DAY, change - 1, change, change + HOUR, change + DAY):
            if 0 <= change < 2 * 10**12:
                found = calendar.start_of(moment), calendar.end_of(moment)
                assert found == day_bounds(zone, days * DAY, offset, moment)


@pytest.mark.parametrize(
    ("zone", "day", "begins", "hours"),
    [
        ("Europe/Berlin", "2024-03-31", "2024-03-31T00:00+01:00", 23),
        ("Europe/Berlin", "2024-10-27", "2024-10-27T00:00+02:00", 25),
        # No midnight: the day begins with its first moment.
        ("America/Sao_Paulo", "2018-11-04", "2018-11-04T01:00-02:00", 23),
        ("Asia/Beirut", "2022-03-27", "2022-03-27T01:00+03:00", 23),
        # Two midnights: it begins with the first; so too where the clock goes back to the day before a minute later.
        ("America/Havana", "2022-11-06", "2022-11-06T00:00-04:00", 25),
        ("America/St_Johns", "2006-10-29", "2006-10-29T00:00-02:30", 25),
        # Nobody has had the day after.
        ("Pacific/Apia", "2011-12-29", "2011-12-29T00:00-10:00", 24),
        ("Pacific/Apia", "2011-12-31", "2011-12-31T00:00+14:00", 24),
        ("Australia/Lord_Howe", "2024-04-07", "2024-04-07T00:00+11:00", 24.5),
        ("Antarctica/Troll", "2024-03-31", "2024-03-31T00:00+00:00", 22),
    ],
)
def test_a_day_on_which_the_clock_is_set_is_as_long_as_it_is_there(
    zone: str, day: str, begins: str, hours: float
) -> None:
    calendar, noon = calendar_of(zone, DAY, 0), local(zone, f"{day}T12:00")
    start = round(datetime.fromisoformat(begins).timestamp() * 1000)
    assert (calendar.start_of(noon), calendar.end_of(noon)) == (start, start + hours * HOUR)


@given(st.sampled_from(sorted(zone_names())), st.integers(-(2**47), LAST), st.integers(1, 400), st.integers(0, 86_399))
@settings(max_examples=100, deadline=None)
def test_any_moment_lies_in_its_window_in_every_arithmetic(zone: str, moment: int, days: int, offset: int) -> None:
    windows = TimeWindows(days * DAY, days * DAY, 0, days * DAY, offset=offset * 1000, timezone=zone)
    start = windows.aligned(moment)
    end = windows.end_of(start)
    assert start <= moment < end <= start + windows.longest
    assert (windows.aligned(start), windows.aligned(end - 1), windows.aligned(end)) == (start, start, end)
    assert windows.starts_of_ended(end, end) == (start, end - 1)
    assert windows.starts_of_ended(start + 1, end - 1)[1] < windows.starts_of_ended(start + 1, end - 1)[0]
    moments = np.array([moment, start, end - 1, end], np.int64)
    starts, ends = [start, start, start, end], [end, end, end, windows.end_of(end)]
    assert windows.aligned(moments, VECTORS).tolist() == starts
    assert windows.end_of(np.array(starts, np.int64), VECTORS).tolist() == ends
    assert [each.tolist() for each in bounds_of(windows, moments)] == [starts, ends]
    assert ends_of(windows, moments).tolist() == ends
    apart = np.array([moment, 10**12, -(10**14)], np.int64)
    assert [each.tolist()[0] for each in bounds_of(windows, apart)] == [start, end]


@given(st.sampled_from(ZONES), st.integers(0, 4 * 10**12))
@settings(max_examples=100, deadline=None)
def test_four_hundred_years_later_clocks_are_set_alike(zone: str, moment: int) -> None:
    clock, cycle = clock_of(zone), CYCLE * 1000
    later = max(moment, clock.repeats_from)
    assert clock.shown(later + cycle) == clock.shown(later) + cycle
    assert clock.first_moment(clock.shown(later) + cycle) == clock.first_moment(clock.shown(later)) + cycle
    assert clock.shown(later) >= later + packaged(zone).utcoffset(_when(later)).total_seconds() * 1000 - 1  # type: ignore[union-attr]


def _when(moment: int) -> datetime:
    return datetime.fromtimestamp(moment / 1000, packaged("UTC"))


@pytest.mark.parametrize("year", [2100, 2437, 2800, 5000, 9998])
def test_the_far_future_has_the_last_known_rule(year: int) -> None:
    for zone in ("Europe/Berlin", "America/Havana", "Africa/Cairo"):
        calendar = calendar_of(zone, DAY, 0)
        moment = calendar.start_of(local(zone, f"{year}-01-01"))
        for _ in range(366):
            following = calendar.end_of(moment)
            assert (moment, following) == day_bounds(zone, DAY, 0, moment)
            moment = following


def test_the_last_time_before_a_clock_is_set_back_is_the_first_that_is_shown_so() -> None:
    set_back = local("America/Havana", "2022-11-06") + HOUR
    for offset in (HOUR - 1, HOUR):
        calendar = calendar_of("America/Havana", DAY, offset)
        assert (
            calendar.start_of(local("America/Havana", "2022-11-06T12:00"))
            == day_bounds("America/Havana", DAY, offset, set_back + DAY // 2)[0]
        )
    assert calendar_of("America/Havana", DAY, HOUR - 1).start_of(set_back) == set_back - 1
    assert calendar_of("America/Havana", DAY, HOUR).start_of(set_back + DAY // 2) == set_back + HOUR


def test_any_time_takes_no_longer_than_another() -> None:
    windows = TimeWindows(DAY, DAY, 0, DAY, timezone="Europe/Berlin")
    moments = np.linspace(-(10**15), LAST, 200_000).astype(np.int64)
    began = time.perf_counter()
    ends = ends_of(windows, windows.aligned(moments, VECTORS))
    assert time.perf_counter() - began < 5, "so many days one after the other take minutes"
    assert (ends > moments).all()


def test_every_zone_of_the_package_has_a_clock() -> None:
    for zone in sorted(zone_names())[::30]:
        clock = clock_of(zone)
        assert list(clock.changes) == sorted(set(clock.changes))
        assert list(clock.firsts) == sorted(clock.firsts)
        assert not clock.changes or clock.changes[-1] < clock.repeats_from + (CYCLE + 4 * 366 * 86_400) * 1000


def test_windows_that_begin_before_1970_are_told_from_others() -> None:
    assert not TimeWindows(DAY, DAY, 0, DAY).may_begin_before_1970
    assert TimeWindows(DAY, DAY, 0, DAY, offset=1).may_begin_before_1970
    assert TimeWindows(DAY, DAY, 0, DAY, timezone="Europe/Berlin").may_begin_before_1970
    assert TimeWindows(DAY, DAY, 0, DAY, timezone="Europe/Berlin").aligned(0) == -HOUR
