"""The fast path of reads by key: most queries ask for one key's value, which is answered where the request arrives.

Routes, validated parameters and a worker thread take more than a millisecond of the processor, all of it with Python's
lock, which the threads that process records need too; a read by key takes some microseconds. The fast path answers only
for a client in state RUNNING that has the key's partition, with the value in memory, since the server's own thread may
not wait for a disk. All else goes through the routes.
"""

from __future__ import annotations

import re
from typing import Final, cast

from starlette.types import ASGIApp, Receive, Scope, Send

from streams_runtime.query.server.access import Gate
from streams_runtime.query.stores.store_target import StoreTarget, parse_key, target_of
from streams_runtime.query.stores.views import Queryable, StoreType, StoreView
from streams_runtime.query.wire.json_values import to_json
from streams_runtime.states import ClientState

_PATH: Final = re.compile(r"/stores/([^/]+)/keys/([\s\S]*)")


class PointReads:
    """Answers `GET /stores/{store}/keys/{key}` without parameters; `app` answers everything else.

    `gate` admits a request before anything is answered, as in the routes.
    """

    def __init__(self, app: ASGIApp, queryable: Queryable, gate: Gate | None = None) -> None:
        self._app = app
        self._queryable = queryable
        self._gate = gate
        self._targets: dict[str, StoreTarget] = {}  # of key-value stores: a topology's stores never change

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        answer = await self._answer(scope)
        if answer is None:
            await self._app(scope, receive, send)
            return
        headers = [(b"content-length", b"%d" % len(answer)), (b"content-type", b"application/json")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": answer})

    async def _answer(self, scope: Scope) -> bytes | None:
        """None: it is not answered here."""
        # Escapes are left to the routes, which refuse what is not UTF-8.
        if scope["type"] != "http" or scope["method"] != "GET" or scope["query_string"] or b"%" in scope["raw_path"]:
            return None
        found = _PATH.fullmatch(scope["path"])
        if found is None:
            return None
        try:
            answer = self._value(found[1], found[2])
            if answer is not None and self._gate is not None:  # else the routes ask it
                await self._gate.admit(_authorization(scope), (scope.get("client") or ("",))[0])
            return answer
        except Exception:  # the routes meet it again, and say what it is
            return None

    def _value(self, store: str, text: str) -> bytes | None:
        target = self._targets.get(store)
        if target is None:
            target = self._targets[store] = target_of(self._queryable, store, StoreType.KEY_VALUE)
        client, codec = self._queryable, target.codec
        key, data = parse_key(codec, store, "key", text)
        view = client.active_view(store, target.partition_of(data))
        if view is None:
            return None
        known, value = cast("StoreView", view).at_hand(data)  # `target_of` has compared the store's type
        # Last, since the state changes before partitions go elsewhere.
        if not known or client.state is not ClientState.RUNNING:
            return None
        return to_json({"key": key, "value": None if value is None else codec.decode_value(value)})


def _authorization(scope: Scope) -> str | None:
    return next((value.decode("latin-1") for name, value in scope["headers"] if name == b"authorization"), None)
