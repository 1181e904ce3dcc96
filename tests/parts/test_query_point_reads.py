"""Reads of single keys that need no route: their answers are those of the routes, and all else is left to these."""

from __future__ import annotations

import asyncio
from typing import Any

import asgi
import pytest
from prometheus_client import CollectorRegistry
from query_stage import KEYS, PARTITIONS, STORES, Place, QueryStage, key_in

from streams_runtime.kafka.producer.partitioner import partition_for
from streams_runtime.query.server.http_app import create_app
from streams_runtime.query.server.point_reads import PointReads
from streams_runtime.query.wire.problems import QueryNotAuthenticatedException
from streams_runtime.state.store import Updates
from streams_runtime.states import ClientState


class Routes:
    """In place of the routes: counts what is left to them."""

    def __init__(self) -> None:
        self.asked = 0

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        self.asked += 1
        await send({"type": "http.response.start", "status": 418, "headers": []})
        await send({"type": "http.response.body", "body": b""})


class Refusing:
    """A gate that lets one token in."""

    async def admit(self, authorization: str | None, address: str) -> None:
        if authorization != "Bearer right":
            raise QueryNotAuthenticatedException("no")


def left_to_the_routes(stage: QueryStage, path: str, gate: Any = None, **asked: Any) -> bool:
    routes = Routes()
    asyncio.run(asgi.get(PointReads(routes, stage, gate), path, **asked))
    return bool(routes.asked)


def test_what_is_answered_is_what_the_routes_answer(stage: QueryStage) -> None:
    app = create_app(stage, CollectorRegistry())
    for key in (*KEYS, "none", "", "a/b"):
        here, there = (
            asyncio.run(asgi.get(app, f"/stores/counts/keys/{key}{asked}")) for asked in ("", "?stale=false")
        )
        assert (here.status, here.body, here.headers) == (there.status, there.body, there.headers)
        assert here.status == 200
    assert not left_to_the_routes(stage, "/stores/counts/keys/UA")


@pytest.mark.parametrize(
    "path",
    [
        "/stores/counts/keys/UA?stale=false",
        "/stores/counts/keys/%55A",
        "/stores/counts/key/UA",
        "/stores/counts/range",
        "/stores/nothing/keys/UA",
        *(f"/stores/{store}/keys/UA" for store in STORES if store != "counts"),
        "/readyz",
    ],
)
def test_what_is_asked_otherwise(stage: QueryStage, path: str) -> None:
    assert left_to_the_routes(stage, path)


@pytest.mark.parametrize("place", [place for place in Place if place not in {Place.ACTIVE, Place.REOPENED}])
def test_a_partition_that_is_not_at_hand(stage: QueryStage, place: Place) -> None:
    stage.put(1, place)
    assert left_to_the_routes(stage, f"/stores/counts/keys/{key_in(1)}")
    assert not left_to_the_routes(stage, f"/stores/counts/keys/{key_in(0)}")


@pytest.mark.parametrize("state", [state for state in ClientState if state is not ClientState.RUNNING])
def test_a_client_that_is_not_running(stage: QueryStage, state: ClientState) -> None:
    stage.state = state
    assert left_to_the_routes(stage, "/stores/counts/keys/UA")


def test_a_client_that_stops_running_while_it_reads(stage: QueryStage, monkeypatch: pytest.MonkeyPatch) -> None:
    codec = stage.codec

    def rebalanced(store: str) -> Any:
        stage.state = ClientState.REBALANCING
        return codec(store)

    monkeypatch.setattr(stage, "codec", rebalanced)
    assert left_to_the_routes(stage, "/stores/counts/keys/UA")


def test_a_value_that_is_on_the_disk(stage: QueryStage) -> None:
    """The routes' read brings it into memory."""
    # More than a block of them, of which opening reads the first one.
    keys = [b"fresh%05d" % number for number in range(5000)]
    path, partition = f"/stores/counts/keys/{keys[-1].decode()}", partition_for(keys[-1], PARTITIONS)
    stage.store("counts", partition).write(Updates(keys, [b'{"n":1}'] * len(keys), [0] * len(keys)), None)
    assert not left_to_the_routes(stage, path)
    stage.put(partition, Place.ELSEWHERE)  # closes the store, which flushes it
    stage.put(partition, Place.ACTIVE)
    assert left_to_the_routes(stage, path)
    asyncio.run(asgi.get(create_app(stage, CollectorRegistry()), path))
    assert not left_to_the_routes(stage, path)


def test_the_gate_is_asked(stage: QueryStage) -> None:
    right, wrong = ({"Authorization": f"Bearer {token}"} for token in ("right", "wrong"))
    assert not left_to_the_routes(stage, "/stores/counts/keys/UA", Refusing(), headers=right)
    assert left_to_the_routes(stage, "/stores/counts/keys/UA", Refusing(), headers=wrong)
    assert left_to_the_routes(stage, "/stores/counts/keys/UA", Refusing())
