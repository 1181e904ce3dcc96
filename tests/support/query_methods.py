"""Every method of the three read-only stores, as calls, with what each answers on the query stage."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any

from query_stage import (
    KEY_VALUE,
    PARTITIONS,
    SESSION,
    SESSIONS,
    SIZE,
    T0,
    WINDOW,
    WINDOW_STARTS,
    counts,
    key_in,
    ms,
    sessions,
    windows,
)

from streams_runtime.kafka.producer.partitioner import partition_for
from streams_runtime.query.wire.windowed_keys import Windowed

KEY = key_in(1)
"""The key that single-key methods ask for; it is in partition 1."""


@dataclass(frozen=True)
class Method:
    """`call(handle)` gives an answer, or an iterator; `answer(partitions)` is what it is with only those local."""

    name: str
    call: Callable[[Any], Any]
    answer: Callable[[Collection[int]], Any]
    one_key: bool
    iterates: bool = True


def _is_local(key: object, partitions: Collection[int]) -> bool:
    record_key = key.key if isinstance(key, Windowed) else key
    return partition_for(str(record_key).encode(), PARTITIONS) in partitions


def _many(
    name: str,
    call: Callable[[Any], Any],
    records: list[tuple[Any, object]],
    which: Callable[[Any], bool] = lambda _: True,
    one_key: bool = False,
    shown: Callable[[Any], object] = lambda key: key,
) -> Method:
    wanted = [pair for pair in records if which(pair[0])]
    if name.startswith(("backward", "reverse")):
        wanted.reverse()

    def answer(partitions: Collection[int]) -> list[tuple[object, object]]:
        return [(shown(key), value) for key, value in wanted if _is_local(key, partitions)]

    return Method(name, call, answer, one_key)


def _one(name: str, call: Callable[[Any], Any], value: object) -> Method:
    return Method(name, call, lambda _: value, one_key=True, iterates=False)


def _of_key(key: Any) -> bool:
    return bool(key.key == KEY)


def _key_value() -> list[Method]:
    between = lambda key: "A" <= key <= "Z"  # noqa: E731
    return [
        _one("get", lambda h: h.get(KEY), dict(counts())[KEY]),
        _many("range", lambda h: h.range("A", "Z"), counts(), between),
        _many("reverse_range", lambda h: h.reverse_range("A", "Z"), counts(), between),
        _many("all", lambda h: h.all(), counts()),
        _many("reverse_all", lambda h: h.reverse_all(), counts()),
        _many("prefix_scan", lambda h: h.prefix_scan(""), counts()),
        Method(
            "approximate_num_entries",
            lambda h: h.approximate_num_entries(),
            lambda partitions: sum(_is_local(key, partitions) for key, _ in counts()),
            one_key=False,
            iterates=False,
        ),
    ]


def _window() -> list[Method]:
    first, last = T0, T0 + SIZE
    early = lambda key: first <= key.window.start <= last  # noqa: E731
    of_key = lambda key: _of_key(key) and early(key)  # noqa: E731
    within = lambda key: "A" <= key.key <= "Z" and early(key)  # noqa: E731
    start = lambda key: key.window.start  # noqa: E731
    one = dict(windows())[next(key for key, _ in windows() if key.key == KEY)]
    found = windows()
    return [
        _one("fetch(key, time)", lambda h: h.fetch(KEY, first), one),
        _one("fetch(key, ms)", lambda h: h.fetch(KEY, ms(first)), one),
        _many("fetch(key, from, to)", lambda h: h.fetch(KEY, first, last), found, of_key, True, start),
        _many("fetch(key, ms, ms)", lambda h: h.fetch(KEY, ms(first), ms(last)), found, of_key, True, start),
        _many(
            "backward_fetch(key, from, to)", lambda h: h.backward_fetch(KEY, first, last), found, of_key, True, start
        ),
        _many("fetch(from, to, from, to)", lambda h: h.fetch("A", "Z", first, last), found, within),
        _many("fetch(from, to, ms, ms)", lambda h: h.fetch("A", "Z", ms(first), ms(last)), found, within),
        _many("backward_fetch(from, to, from, to)", lambda h: h.backward_fetch("A", "Z", first, last), found, within),
        _many("all", lambda h: h.all(), found),
        _many("backward_all", lambda h: h.backward_all(), found),
        _many("fetch_all(from, to)", lambda h: h.fetch_all(first, last), found, early),
        _many("fetch_all(ms, ms)", lambda h: h.fetch_all(ms(first), ms(last)), found, early),
        _many("backward_fetch_all(from, to)", lambda h: h.backward_fetch_all(first, last), found, early),
    ]


def _session() -> list[Method]:
    earliest_end, latest_start = SESSIONS[0][1], SESSIONS[1][0]
    both = lambda key: key.window.end >= earliest_end and key.window.start <= latest_start  # noqa: E731
    of_key = lambda key: _of_key(key) and both(key)  # noqa: E731
    between = lambda key: "A" <= key.key <= "Z"  # noqa: E731
    within = lambda key: between(key) and both(key)  # noqa: E731
    one = dict(sessions())[next(key for key, _ in sessions() if key.key == KEY)]
    times = (earliest_end, latest_start)
    found = sessions()
    return [
        _one("fetch_session", lambda h: h.fetch_session(KEY, *SESSIONS[0]), one),
        _many("fetch(key)", lambda h: h.fetch(KEY), found, _of_key, True),
        _many("backward_fetch(key)", lambda h: h.backward_fetch(KEY), found, _of_key, True),
        _many("find_sessions(key, …)", lambda h: h.find_sessions(KEY, *times), found, of_key, True),
        _many("backward_find_sessions(key, …)", lambda h: h.backward_find_sessions(KEY, *times), found, of_key, True),
        _many("fetch(from, to)", lambda h: h.fetch("A", "Z"), found, between),
        _many("backward_fetch(from, to)", lambda h: h.backward_fetch("A", "Z"), found, between),
        _many("find_sessions(from, to, …)", lambda h: h.find_sessions("A", "Z", *times), found, within),
        _many(
            "backward_find_sessions(from, to, …)", lambda h: h.backward_find_sessions("A", "Z", *times), found, within
        ),
    ]


METHODS = {KEY_VALUE: _key_value(), WINDOW: _window(), SESSION: _session()}
"""By store of the stage."""
assert WINDOW_STARTS[1] == T0 + SIZE
