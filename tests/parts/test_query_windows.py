"""Handles of window and session stores: their times, their keys, their partitions, and what they give for them."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from query_methods import METHODS
from query_stage import (
    KEY_VALUE,
    KEYS,
    SESSION,
    SESSIONS,
    SIZE,
    SPECS,
    STORES,
    T0,
    WINDOW,
    WINDOW_STARTS,
    Place,
    QueryStage,
    key_in,
    ms,
    sessions,
    value_of,
    windows,
)

from streams_runtime.errors import IllegalStateException, InvalidStateStorePartitionException
from streams_runtime.query.stores.iterators import WindowStoreIterator
from streams_runtime.query.stores.key_value_handle import (
    ReadOnlyKeyValueStore,
    ReadOnlySessionStore,
    ReadOnlyWindowStore,
    StoreQueryParameters,
    open_store,
)
from streams_runtime.query.stores.views import StoreType
from streams_runtime.query.wire.windowed_keys import Window, Windowed, moment
from streams_runtime.state.store import Updates
from streams_runtime.state.window_keys import LATEST, window_key
from streams_runtime.states import ClientState

MICROSECOND = timedelta(microseconds=1)


@pytest.fixture
def window_store(stage: QueryStage) -> ReadOnlyWindowStore:
    handle = open_store(stage, StoreQueryParameters(WINDOW, StoreType.WINDOW))
    assert isinstance(handle, ReadOnlyWindowStore)
    return handle


@pytest.fixture
def session_store(stage: QueryStage) -> ReadOnlySessionStore:
    handle = open_store(stage, StoreQueryParameters(SESSION, "session"))
    assert isinstance(handle, ReadOnlySessionStore)
    return handle


def test_each_type_has_its_handle(stage: QueryStage) -> None:
    kinds = {name: type(open_store(stage, StoreQueryParameters(name, SPECS[name].kind))) for name in STORES}
    assert kinds == {KEY_VALUE: ReadOnlyKeyValueStore, WINDOW: ReadOnlyWindowStore, SESSION: ReadOnlySessionStore}


@pytest.mark.parametrize("name", [WINDOW, SESSION])
@pytest.mark.parametrize("partition", [0, 1, 2])
def test_a_narrowed_handle_reads_its_partition_alone(stage: QueryStage, name: str, partition: int) -> None:
    warnings.simplefilter("ignore", DeprecationWarning)
    handle: Any = open_store(stage, StoreQueryParameters(name, SPECS[name].kind, partition))
    for method in METHODS[name]:
        if method.one_key and partition != 1:
            with pytest.raises(InvalidStateStorePartitionException, match=r"partition 1, and the handle was made for"):
                method.call(handle)
        elif method.iterates:
            assert [tuple(record) for record in method.call(handle)] == method.answer({partition}), method.name


# --- times


def test_a_fetch_finds_windows_by_their_start_with_both_ends_inclusive(window_store: ReadOnlyWindowStore) -> None:
    first, second, last = WINDOW_STARTS
    starts = lambda *times: [start for start, _ in window_store.fetch("AA", *times)]  # noqa: E731
    assert starts(first, second) == [first, second]
    assert starts(first + MICROSECOND, last - MICROSECOND) == [second]
    assert starts(second, second) == [second]
    assert starts(second, first) == []
    assert starts(datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)) == [first, second, last]
    assert window_store.fetch("AA", second) == value_of(0, 1)
    for nowhere in (first + MICROSECOND, first + timedelta(milliseconds=1), datetime(1969, 1, 1, tzinfo=UTC)):
        assert window_store.fetch("AA", nowhere) is None
    assert isinstance(window_store.fetch("AA", first, last), WindowStoreIterator)


def test_times_of_any_zone_mean_the_same_moment(window_store: ReadOnlyWindowStore) -> None:
    india = timezone(timedelta(hours=5, minutes=30))
    assert window_store.fetch("AA", T0.astimezone(india)) == value_of(0, 0)
    assert list(window_store.fetch_all(T0.astimezone(india), T0)) == [r for r in windows() if r[0].window.start == T0]


def test_sessions_are_found_by_any_time_that_they_have_in_common(session_store: ReadOnlySessionStore) -> None:
    (start, end), (later_start, later_end) = SESSIONS
    found = lambda *times: [key.window for key, _ in session_store.find_sessions("AA", *times)]  # noqa: E731
    assert found(end, start) == [Window(start, end)]
    assert found(end + MICROSECOND, later_start) == [Window(later_start, later_end)]
    assert found(end, later_start - MICROSECOND) == [Window(start, end)]
    assert found(later_end + MICROSECOND, later_end) == []
    assert session_store.fetch_session("AA", later_start, later_end) == value_of(0, 1)
    assert session_store.fetch_session("AA", later_start, end) is None
    assert session_store.fetch_session("AA", start + MICROSECOND, end) is None
    assert session_store.fetch_session("AA", start, end + timedelta(seconds=1)) is None


NAIVE = T0.replace(tzinfo=None)
REFUSED: list[tuple[str, str, Callable[[Any], object]]] = [
    (WINDOW, "time", lambda h: h.fetch("AA", NAIVE)),
    (WINDOW, "from_time", lambda h: h.fetch("AA", NAIVE, T0)),
    (WINDOW, "to_time", lambda h: h.backward_fetch("AA", T0, NAIVE)),
    (WINDOW, "from_time", lambda h: h.fetch("A", "B", NAIVE, T0)),
    (WINDOW, "to_time", lambda h: h.fetch_all(T0, NAIVE)),
    (WINDOW, "from_time", lambda h: h.backward_fetch_all(NAIVE, T0)),
    (SESSION, "start", lambda h: h.fetch_session("AA", NAIVE, T0)),
    (SESSION, "end", lambda h: h.fetch_session("AA", T0, NAIVE)),
    (SESSION, "earliest_end", lambda h: h.find_sessions("AA", NAIVE, T0)),
    (SESSION, "latest_start", lambda h: h.backward_find_sessions("A", "B", T0, NAIVE)),
]


@pytest.mark.parametrize(("store", "argument", "call"), REFUSED)
def test_a_datetime_without_a_zone_is_refused_by_the_arguments_name(
    stage: QueryStage, store: str, argument: str, call: Callable[[Any], object]
) -> None:
    handle = open_store(stage, StoreQueryParameters(store, SPECS[store].kind))
    with pytest.raises(ValueError, match=rf"^{argument}: 2026-01-01 12:00:00 has no time zone; give an aware"):
        call(handle)


@pytest.mark.parametrize("wrong", ["2026-01-01", 1.5, None, SIZE])
def test_what_is_no_moment_is_refused_by_the_arguments_name(window_store: ReadOnlyWindowStore, wrong: Any) -> None:
    with pytest.raises(TypeError, match=rf"^to_time: {re.escape(repr(wrong))} is no moment"):
        window_store.fetch_all(T0, wrong)


def test_ints_of_milliseconds_are_taken_and_warn_where_they_are_written(
    window_store: ReadOnlyWindowStore, session_store: ReadOnlySessionStore
) -> None:
    first, last = ms(T0), ms(T0 + SIZE)
    calls: list[tuple[Callable[[], Any], Callable[[], Any]]] = [
        (lambda: window_store.fetch("AA", first), lambda: window_store.fetch("AA", T0)),
        (lambda: list(window_store.fetch("AA", first, last)), lambda: list(window_store.fetch("AA", T0, T0 + SIZE))),
        (
            lambda: list(window_store.backward_fetch("A", "Z", first, last)),
            lambda: list(window_store.backward_fetch("A", "Z", T0, T0 + SIZE)),
        ),
        (lambda: list(window_store.fetch_all(first, last)), lambda: list(window_store.fetch_all(T0, T0 + SIZE))),
        (
            lambda: list(session_store.find_sessions("AA", first, last)),
            lambda: list(session_store.find_sessions("AA", T0, T0 + SIZE)),
        ),
        (
            lambda: session_store.fetch_session("AA", *map(ms, SESSIONS[0])),
            lambda: session_store.fetch_session("AA", *SESSIONS[0]),
        ),
    ]
    for old, new in calls:
        with pytest.warns(DeprecationWarning, match="times as ints of ms are deprecated") as heard:
            answer = old()
        assert [warning.filename for warning in heard] == [__file__]
        assert answer == new()
    with pytest.warns(DeprecationWarning, match="deprecated"):
        assert list(window_store.fetch("AA", -(2**70), 2**70)) == list(
            window_store.fetch("AA", WINDOW_STARTS[0], WINDOW_STARTS[-1])
        )


def test_a_moment_that_datetime_does_not_have_is_shown_as_its_last() -> None:
    last = datetime.max.replace(tzinfo=UTC)
    assert moment(LATEST) == last
    assert moment(ms(T0) + 1) == T0 + timedelta(milliseconds=1)


def test_what_no_store_can_hold_is_absent_only_where_its_partition_is(stage: QueryStage) -> None:
    key, nowhere = key_in(1), T0 + MICROSECOND
    for store in (WINDOW, SESSION):
        handle: Any = open_store(stage, StoreQueryParameters(store, SPECS[store].kind, partition=0))
        call = handle.fetch if store == WINDOW else lambda *a, h=handle: h.fetch_session(*a, T0)
        assert call(key_in(0), nowhere) is None
        with pytest.raises(InvalidStateStorePartitionException):
            call(key, nowhere)


# --- keys and order


def test_ranges_of_keys_are_inclusive_and_may_be_open_or_reversed(
    window_store: ReadOnlyWindowStore, session_store: ReadOnlySessionStore
) -> None:
    keys = lambda *ends: list(dict.fromkeys(key.key for key, _ in session_store.fetch(*ends)))  # noqa: E731
    in_order = sorted(KEYS, key=str.encode)
    assert keys(None, None) == in_order
    assert keys("DL", "UA") == ["DL", "EV", "UA"]
    assert keys(None, "DL") == ["AA", "B6", "DL"]
    assert keys("hello", None) == ["hello", "ü"]
    assert keys("UA", "DL") == []
    assert [key.key for key, _ in window_store.fetch("DL", None, T0, T0)] == in_order[2:]


@pytest.mark.parametrize("store", [WINDOW, SESSION])
def test_records_of_all_partitions_come_in_order_of_key_and_time(stage: QueryStage, store: str) -> None:
    handle: Any = open_store(stage, StoreQueryParameters(store, SPECS[store].kind))
    everything, forth, back = (
        (windows(), handle.all, handle.backward_all)
        if store == WINDOW
        else (sessions(), lambda: handle.fetch(None, None), lambda: handle.backward_fetch(None, None))
    )
    assert list(forth()) == everything
    assert list(back()) == everything[::-1]


def test_a_window_says_its_end_by_the_stores_size_and_a_session_by_its_own(
    window_store: ReadOnlyWindowStore, session_store: ReadOnlySessionStore
) -> None:
    assert window_store.fetch("AA", "AA", T0, T0).next() == (Windowed("AA", Window(T0, T0 + SIZE)), value_of(0))
    assert session_store.fetch("AA").peek_next_key() == Windowed("AA", Window(*SESSIONS[0]))


@pytest.mark.parametrize(
    ("store", "call"),
    [
        (WINDOW, lambda h: h.fetch("AA")),
        (WINDOW, lambda h: h.backward_fetch("AA", T0)),
        (WINDOW, lambda h: h.fetch("AA", "AA", T0, T0, T0)),
        (SESSION, lambda h: h.fetch()),
        (SESSION, lambda h: h.fetch("AA", "AA", "AA")),
        (SESSION, lambda h: h.find_sessions("AA", T0)),
    ],
)
def test_a_wrong_number_of_arguments_is_a_type_error(stage: QueryStage, store: str, call: Callable[[Any], Any]) -> None:
    with pytest.raises(TypeError, match="given"):
        call(open_store(stage, StoreQueryParameters(store, SPECS[store].kind)))


@pytest.mark.parametrize("wrong", [5, None])
def test_a_key_of_another_type_is_a_value_error(
    window_store: ReadOnlyWindowStore, session_store: ReadOnlySessionStore, wrong: object
) -> None:
    for call in (
        lambda: window_store.fetch(wrong, T0),
        lambda: window_store.fetch(wrong, T0, T0),
        lambda: session_store.fetch(wrong),
        lambda: session_store.fetch_session(wrong, T0, T0),
    ):
        with pytest.raises(ValueError, match="string"):
            call()


# --- iterators


@pytest.mark.parametrize("method", ["next", "has_next", "peek_next_key"])
def test_a_closed_iterator_refuses_every_call(window_store: ReadOnlyWindowStore, method: str) -> None:
    with window_store.fetch("AA", T0, T0 + SIZE) as records:
        assert (records.has_next(), records.peek_next_key()) == (True, T0)
        assert list(records) == [(T0, value_of(0)), (T0 + SIZE, value_of(0, 1))]
        assert not records.has_next()
        with pytest.raises(StopIteration):
            records.peek_next_key()
    with pytest.raises(IllegalStateException, match="was closed"):
        getattr(records, method)()


# --- what goes on underneath


def test_windows_that_expire_are_gone_from_the_next_answer(
    stage: QueryStage, window_store: ReadOnlyWindowStore
) -> None:
    key = key_in(1)
    written = window_key(key.encode(), ms(T0) + 61 * 60_000)
    stage.store(WINDOW, 1).write(Updates([written], [b'{"n":99}'], [1]), 2)
    try:
        found = [start for start, _ in window_store.fetch(key, T0, T0 + 100 * SIZE)]
        assert found == [WINDOW_STARTS[2], T0 + 61 * SIZE]
        assert window_store.fetch(key, T0) is None
        assert len(list(window_store.fetch(key_in(0), T0, T0))) == 1  # each partition has a stream time of its own
    finally:
        stage.put(1, Place.ELSEWHERE)
        stage.forget(1)


def test_a_stale_handle_reads_what_a_restoration_has_come_to(stage: QueryStage) -> None:
    stage.put(1, Place.RESTORING)
    stage.state = ClientState.REBALANCING
    handle: Any = open_store(stage, StoreQueryParameters(WINDOW, "window", stale=True))
    key = key_in(1)
    start = T0 + 2 * SIZE
    assert handle.fetch(key, start) is None
    stage.store(WINDOW, 1).write(Updates([window_key(key.encode(), ms(start))], [b'{"n":5}'], [1]), 3)
    try:
        assert handle.fetch(key, start) == {"n": 5}
    finally:
        stage.put(1, Place.ELSEWHERE)
        stage.forget(1)
