"""The six exceptions over HTTP: every client state, every state of the store, every method, on real stores.

The tables are those of the handles (test_query_every_cell): a request is a look-up and one call.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from datetime import datetime
from typing import Any
from urllib.parse import quote

import asgi
import pytest
from prometheus_client import CollectorRegistry
from query_cells import ENDING, HELD, LOOKUP, PLACES, STARTED
from query_methods import KEY, METHODS
from query_stage import (
    KEY_VALUE,
    SESSION,
    SESSIONS,
    SIZE,
    STORES,
    T0,
    WINDOW,
    Place,
    QueryStage,
    ms,
)

from streams_runtime.query.server.http_app import create_app
from streams_runtime.query.stores.views import Owner
from streams_runtime.query.wire import record_lines
from streams_runtime.query.wire.windowed_keys import Window, Windowed
from streams_runtime.states import ClientState

TOLD = {  # letter of the table: class, status, category, remedy
    "S": ("StreamsNotStartedException", 503, "retryable", "retry"),
    "B": ("StreamsRebalancingException", 503, "retryable", "retry"),
    "M": ("StateStoreMigratedException", 409, "retryable", "rediscover"),
    "N": ("StateStoreNotAvailableException", 410, "fatal", "do-not-retry"),
    "U": ("UnknownStateStoreException", 404, "fatal", "fix-the-name"),
    "P": ("InvalidStateStorePartitionException", 421, "fatal", "go-to"),
}


def _between(first: object, last: object) -> str:
    return f"fromTime={quote(str(first))}&toTime={quote(str(last))}"


_START, _LAST = T0.isoformat(), (T0 + SIZE).isoformat()
_TIMES, _MS = _between(_START, _LAST), _between(ms(T0), ms(T0 + SIZE))
_OVERLAP = _between(SESSIONS[0][1].isoformat(), SESSIONS[1][0].isoformat())
_BOUNDS = f"start={quote(SESSIONS[0][0].isoformat())}&end={ms(SESSIONS[0][1])}"
TARGETS = {
    KEY_VALUE: {
        "get": f"keys/{KEY}?",
        "range": "range?from=A&to=Z",
        "reverse_range": "range?from=A&to=Z&reverse=true",
        "all": "all?",
        "reverse_all": "all?reverse=true",
        "prefix_scan": "prefix?prefix=",
        "approximate_num_entries": "approximate-count?",
    },
    WINDOW: {
        "fetch(key, time)": f"window/{KEY}?time={quote(_START)}",
        "fetch(key, ms)": f"window/{KEY}?time={ms(T0)}",
        "fetch(key, from, to)": f"windows/keys/{KEY}?{_TIMES}",
        "fetch(key, ms, ms)": f"windows/keys/{KEY}?{_MS}",
        "backward_fetch(key, from, to)": f"windows/keys/{KEY}?{_TIMES}&reverse=true",
        "fetch(from, to, from, to)": f"windows/range?from=A&to=Z&{_TIMES}",
        "fetch(from, to, ms, ms)": f"windows/range?from=A&to=Z&{_MS}",
        "backward_fetch(from, to, from, to)": f"windows/range?from=A&to=Z&{_TIMES}&reverse=true",
        "all": "windows/all?",
        "backward_all": "windows/all?reverse=true",
        "fetch_all(from, to)": f"windows/all?{_TIMES}",
        "fetch_all(ms, ms)": f"windows/all?{_MS}",
        "backward_fetch_all(from, to)": f"windows/all?{_TIMES}&reverse=true",
    },
    SESSION: {
        "fetch_session": f"session/{KEY}?{_BOUNDS}",
        "fetch(key)": f"sessions/keys/{KEY}?",
        "backward_fetch(key)": f"sessions/keys/{KEY}?reverse=true",
        "find_sessions(key, …)": f"sessions/keys/{KEY}?{_OVERLAP}",
        "backward_find_sessions(key, …)": f"sessions/keys/{KEY}?{_OVERLAP}&reverse=true",
        "fetch(from, to)": "sessions/range?from=A&to=Z",
        "backward_fetch(from, to)": "sessions/range?from=A&to=Z&reverse=true",
        "find_sessions(from, to, …)": f"sessions/range?from=A&to=Z&{_OVERLAP}",
        "backward_find_sessions(from, to, …)": f"sessions/range?from=A&to=Z&{_OVERLAP}&reverse=true",
    },
}
THERE = "http://there:2"


@pytest.fixture(scope="module")
def app(shared_stage: QueryStage) -> Any:
    return create_app(shared_stage, CollectorRegistry())


def letter(answer: asgi.Answer) -> str:
    """What the answer is in the tables; everything that a problem says besides is compared here."""
    if answer.status == 200:
        return "."
    document = answer.json()
    (found,) = (letter for letter, told in TOLD.items() if told[0] == document["title"])
    assert answer.headers["content-type"] == "application/problem+json"
    assert (document["title"], answer.status, document["category"], document["remedy"]) == TOLD[found]
    assert (document["type"], document["status"]) == (f"urn:streamsoperator:{document['title']}", answer.status)
    assert ("retry-after" in answer.headers) == (answer.status == 503)
    assert document["detail"]
    return found


def record(line: dict[str, Any], by_start: bool) -> tuple[object, object]:
    """A line as handles give the record."""
    if "window" not in line:
        return line["key"], line["value"]
    bounds = Window(*(datetime.fromisoformat(line["window"][end]) for end in ("start", "end")))
    return bounds.start if by_start else Windowed(line["key"], bounds), line["value"]


def shown(answer: asgi.Answer, method: str) -> object:
    """An answer as the method of the handle gives it."""
    if answer.headers["content-type"] == "application/x-ndjson":
        *found, last = answer.lines()
        assert last == {"complete": {"records": len(found)}}
        by_start = method in ("fetch(key, from, to)", "fetch(key, ms, ms)", "backward_fetch(key, from, to)")
        return [record(line, by_start) for line in found]
    document = answer.json()
    return document["count"] if "count" in document else document["value"]


def ask_all(app: Any, stage: QueryStage, asked: list[tuple[Any, ClientState, str]]) -> dict[Any, asgi.Answer]:
    """One loop for all: a loop for each would take longer than the requests."""

    async def each() -> dict[Any, asgi.Answer]:
        answers = {}
        for cell, state, target in asked:
            stage.state = state
            answers[cell] = await asgi.get(app, target)
        return answers

    return asyncio.run(each())


def test_every_method_of_the_handles_has_its_endpoint() -> None:
    assert {store: set(targets) for store, targets in TARGETS.items()} == {
        store: {method.name for method in methods} for store, methods in METHODS.items()
    }


@pytest.mark.parametrize("store", STORES)
@pytest.mark.parametrize("place", PLACES)
def test_every_cell_gives_class_status_category_and_remedy(
    app: Any, stage: QueryStage, store: str, place: Place
) -> None:
    stage.put(1, place)
    cells = {}
    for method in METHODS[store]:
        for state in ClientState:
            more = state in (ClientState.REBALANCING, ClientState.RUNNING)
            for stale, partition in LOOKUP if more else [(False, None)]:
                target = f"/stores/{store}/{TARGETS[store][method.name]}"
                target += "&stale=true" * stale + ("" if partition is None else f"&partition={partition}")
                # A key's own partition is all that its request needs.
                rows = LOOKUP[stale, 1 if method.one_key else partition] | ENDING
                cells[state, method.name, stale, partition] = (target, rows[state][PLACES.index(place)])
    answers = ask_all(app, stage, [(cell, cell[0], target) for cell, (target, _) in cells.items()])
    assert {cell: letter(answer) for cell, answer in answers.items()} == {
        cell: expected for cell, (_, expected) in cells.items()
    }
    by_name = {method.name: method for method in METHODS[store]}
    for (_, name, stale, partition), answer in answers.items():
        if answer.status == 200:
            read = local(place, stale) if partition is None else {partition}
            assert shown(answer, name) == by_name[name].answer(read), name


def local(place: Place, stale: bool) -> Collection[int]:
    here = place not in (Place.ELSEWHERE, Place.STANDBY) or (place is Place.STANDBY and stale)
    return {0, 1, 2} if here else {0, 2}


@pytest.mark.parametrize("store", STORES)
def test_an_unknown_name_and_another_kind_of_store_are_told(app: Any, stage: QueryStage, store: str) -> None:
    asked = [(name, ClientState.RUNNING, f"/stores/nothing/{target}") for name, target in TARGETS[store].items()]
    assert {letter(answer) for answer in ask_all(app, stage, asked).values()} == {"U"}
    for other in set(STORES) - {store}:
        asked = [(name, ClientState.RUNNING, f"/stores/{other}/{target}") for name, target in TARGETS[store].items()]
        for answer in ask_all(app, stage, asked).values():
            assert (answer.status, answer.json()["title"]) == (400, "StoreTypeMismatch")


@pytest.mark.parametrize("store", STORES)
@pytest.mark.parametrize("place", [Place.ELSEWHERE, Place.CLOSED])
def test_a_partition_that_is_elsewhere_comes_with_the_same_query_at_its_owner(
    app: Any, stage: QueryStage, store: str, place: Place
) -> None:
    stage.put(1, place)
    stage.known_owners = {0: Owner("app-0", stage.url), 1: Owner("app-1", THERE), 2: Owner("app-0", stage.url)}
    for target in TARGETS[store].values():
        path = f"/stores/{store}/{target}&partition=1"
        (answer,) = ask_all(app, stage, [(0, ClientState.RUNNING, path)]).values()
        assert (answer.json()["owner"], answer.headers["location"]) == (THERE, THERE + path)
    stage.known_owners = {1: Owner("app-1", stage.url)}  # news that is old
    (answer,) = ask_all(app, stage, [(0, ClientState.RUNNING, f"/stores/{store}/{target}&partition=1")]).values()
    assert ("owner" in answer.json(), "location" in answer.headers) == (False, False)


@pytest.mark.parametrize("store", STORES)
@pytest.mark.parametrize("stale", [False, True])
def test_what_happens_in_mid_answer_is_its_last_line(
    app: Any, stage: QueryStage, store: str, stale: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(record_lines, "_CHUNK_BYTES", 1)
    method = {KEY_VALUE: "all", WINDOW: "all", SESSION: "fetch(from, to)"}[store]
    for state in STARTED:
        for place in PLACES:
            stage.reset()
            expected = (HELD[stale] | ENDING)[state][PLACES.index(place)]
            lines = _interrupted(app, stage, f"/stores/{store}/{TARGETS[store][method]}&stale={stale}", state, place)
            last = lines[-1]
            if expected == ".":
                assert last == {"complete": {"records": len(lines) - 1}}, (state, place)
            else:
                told = last["problem"]
                assert (told["title"], told["status"], told["category"], told["remedy"]) == TOLD[expected]
                assert len(lines) == 2, "one record, then the problem"


def _interrupted(app: Any, stage: QueryStage, target: str, state: ClientState, place: Place) -> list[Any]:
    """An answer during which, after its first record, partition 1 goes to `place` and the client to `state`."""
    taken = []

    async def spied(scope: Any, receive: Any, send: Any) -> None:
        async def after_the_first(message: Any) -> None:
            taken.append(message)
            await send(message)
            if len(taken) == 2:
                stage.put(1, place)
                stage.state = state

        await app(scope, receive, after_the_first)

    return asyncio.run(asgi.get(spied, target)).lines()
