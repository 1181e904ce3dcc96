"""A proxy between Kafka's clients and one broker that reads the protocol, and lets single requests go wrong.

    with KafkaProxy() as proxy:
        broker = EmbeddedBroker(folder, advertised_port=proxy.port)
        proxy.upstream_port = broker.port
        proxy.faults = [Fault("EndTxn", LATE, after="Produce", where=lambda request: request.body.committed)]

Clients that reach the broker by the proxy's port find all of its connections there, since the broker advertises it. A
broker's own connections do not pass. What was done to requests stands in `events`.
"""

from __future__ import annotations

import asyncio
import random
import socket
import struct
import threading
from collections.abc import Callable, Coroutine, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from enum import Enum
from functools import cache
from types import TracebackType
from typing import Any, Self

from kio.index import load_request_schema, load_response_schema
from kio.schema.index import api_key_map
from kio.serial import entity_reader

_HOST = "127.0.0.1"
_LIMIT = 2**20
_ANSWER_SECONDS = 10.0  # that the broker has to answer a request whose client is gone


class Mode(Enum):
    """What becomes of a request."""

    LATE = "the client's connection is reset, and the request reaches the broker later, on its old connection"
    LOST_ANSWER = "the request reaches the broker, and the client's connection is reset before the answer"
    DROPPED = "the client's connection is reset, and the request reaches nobody"
    DELAYED = "the request, and all behind it on its connection, wait; the connection stays"
    REPEATED = "the request reaches the broker once more later, on a connection of its own"


@dataclass(frozen=True, slots=True)
class Request:
    """One request as it arrives. `api` is spelled as Kafka's documents do: `EndTxn`."""

    api: str
    key: int
    version: int
    correlation: int
    client: str
    frame: bytes

    @property
    def body(self) -> Any:
        """The request as kio's dataclass, its fields in snake case."""
        schema = load_request_schema(self.key, self.version)
        _header, at = entity_reader(schema.__header_schema__)(self.frame, 0)
        return entity_reader(schema)(self.frame, at)[0]

    def answer(self, frame: bytes) -> Any:
        """The answer to it, as kio's dataclass."""
        schema = load_response_schema(self.key, self.version)
        _header, at = entity_reader(schema.__header_schema__)(frame, 0)
        return entity_reader(schema)(frame, at)[0]


@dataclass(slots=True)
class Fault:
    """Which requests meet which mode.

    `client` is a part of the client id. Of the requests that `where` lets through the first `grace` pass, and then each
    `every`-th one meets the fault, at most `limit` times; with a `chance` (0 to 1) the dice decide instead.

    LATE and REPEATED requests arrive once the same client has sent another request of the same API, and one of `after`
    has been answered behind that. `delay`, drawn from its two bounds in seconds, is the longest that they wait for
    that, and how long DELAYED ones wait.
    """

    api: str
    mode: Mode
    client: str = ""
    where: Callable[[Request], bool] = lambda _: True
    every: int = 1
    chance: float | None = None
    grace: int = 0
    limit: int = 2**31
    after: str | None = None
    delay: tuple[float, float] = (0.0, 5.0)
    seen: int = field(default=0, init=False)
    fired: int = field(default=0, init=False)

    def meets(self, request: Request, dice: random.Random) -> bool:
        """Whether this request meets it; counts."""
        if request.api != self.api or self.client not in request.client or not self.where(request):
            return False
        self.seen += 1
        if self.seen <= self.grace or self.fired >= self.limit:
            return False
        hit = (self.seen - self.grace) % self.every == 0 if self.chance is None else dice.random() < self.chance
        self.fired += hit
        return hit


@dataclass(frozen=True, slots=True)
class Event:
    """A request that met a fault. `answer` is the broker's, where there was one; `in_time`: `after` came first."""

    mode: Mode
    request: Request
    in_time: bool = False
    answer: Any = None


class _Watch:
    """Waits until a client has repeated a request, and another one of an API has been answered behind that."""

    def __init__(self, request: Request, after: str) -> None:
        self._request, self._after, self._repeated = request, after, False
        self.came = asyncio.Event()

    def waits_for(self, request: Request) -> bool:
        """Whether it is the answer to this request."""
        if request.client != self._request.client:
            return False
        found = self._repeated and request.api == self._after
        self._repeated = self._repeated or request.api == self._request.api
        return found


class KafkaProxy:
    """Listens on a port of this machine's loopback address; `faults` may be replaced at any time, as a whole."""

    def __init__(self, upstream_port: int | None = None, seed: int = 1) -> None:
        self.upstream_port = upstream_port
        self.faults: Sequence[Fault] = ()
        self.events: list[Event] = []
        self.port = 0
        self._dice = random.Random(seed)
        self._watches: set[_Watch] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._cut = False
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="kafka-proxy", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        self._server = self._do(asyncio.start_server(self._serve, _HOST, 0, limit=_LIMIT))
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._do(self._end())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def of(self, mode: Mode) -> list[Event]:
        """What met a mode so far."""
        return [event for event in self.events if event.mode is mode]

    @property
    def cut(self) -> bool:
        """Whether nothing passes: connections are reset, and new ones too."""
        return self._cut

    @cut.setter
    def cut(self, cut: bool) -> None:
        self._cut = cut
        if cut:
            self._do(self._reset_all())

    async def _reset_all(self) -> None:
        for task in list(self._tasks):
            task.cancel()

    async def _end(self) -> None:
        self._server.close()
        await self._reset_all()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _do(self, work: Coroutine[Any, Any, Any]) -> Any:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(30)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self._cut or self.upstream_port is None:
            _reset(writer)
            return
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            await _Connection(self, reader, writer).run()
        except (asyncio.CancelledError, asyncio.IncompleteReadError, OSError):
            pass
        finally:
            self._tasks.discard(task)
            _reset(writer)

    def _watches_of(self, request: Request) -> list[_Watch]:
        return [watch for watch in self._watches if watch.waits_for(request)]

    def _fault_of(self, request: Request) -> Fault | None:
        return next((each for each in self.faults if each.meets(request, self._dice)), None)

    async def _moment(self, fault: Fault, request: Request) -> bool:
        """Wait until a late request is to arrive; whether what it waits for came."""
        longest = self._dice.uniform(*fault.delay)
        if fault.after is None:
            await asyncio.sleep(longest)
            return False
        watch = _Watch(request, fault.after)
        self._watches.add(watch)
        try:
            await asyncio.wait_for(watch.came.wait(), longest)
        except TimeoutError:
            return False
        finally:
            self._watches.discard(watch)
        return True


class _Connection:
    """One connection of a client, and the one to the broker that stands for it."""

    def __init__(self, proxy: KafkaProxy, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._proxy, self._reader, self._writer = proxy, reader, writer
        self._waiting: dict[int, asyncio.Future[bytes]] = {}
        self._watched: dict[int, list[_Watch]] = {}
        self._gone = False

    async def run(self) -> None:
        upstream_reader, self._upstream = await self._connect()
        answering = asyncio.create_task(self._answer(upstream_reader))
        try:
            while not self._gone:
                request = _parsed(await _frame(self._reader))
                if watches := self._proxy._watches_of(request):
                    self._watched[request.correlation] = watches
                fault = self._proxy._fault_of(request)
                await self._pass(request, fault)
        finally:
            self._upstream.transport.abort()
            answering.cancel()
            with suppress(asyncio.CancelledError, OSError, asyncio.IncompleteReadError):
                await answering

    async def _connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        return await asyncio.open_connection(_HOST, self._proxy.upstream_port, limit=_LIMIT)

    async def _pass(self, request: Request, fault: Fault | None) -> None:
        """Hand the request on as its fault says."""
        mode = None if fault is None else fault.mode
        if fault is None or mode is None:
            await _send(self._upstream, request.frame)
            return
        in_time, answer = False, None
        if mode is not Mode.DELAYED and mode is not Mode.REPEATED:
            self._gone = True
        if mode is Mode.LOST_ANSWER:
            answer = await self._asked(request)
            _reset(self._writer)
        elif mode is Mode.DROPPED:
            _reset(self._writer)
        elif mode is Mode.LATE:
            _reset(self._writer)
            in_time = await self._proxy._moment(fault, request)
            answer = await self._asked(request)
        elif mode is Mode.DELAYED:
            await self._proxy._moment(fault, request)
            await _send(self._upstream, request.frame)
        else:
            await _send(self._upstream, request.frame)
            again = asyncio.create_task(self._again(request, fault))
            self._proxy._tasks.add(again)
            again.add_done_callback(self._proxy._tasks.discard)
            return
        self._proxy.events.append(Event(mode, request, in_time, answer))

    async def _again(self, request: Request, fault: Fault) -> None:
        in_time = await self._proxy._moment(fault, request)
        with suppress(OSError, asyncio.IncompleteReadError):
            reader, writer = await self._connect()
            try:
                await _send(writer, request.frame)
                answer = request.answer(await asyncio.wait_for(_frame(reader), _ANSWER_SECONDS))
                self._proxy.events.append(Event(Mode.REPEATED, request, in_time, answer))
            finally:
                writer.transport.abort()

    async def _asked(self, request: Request) -> Any:
        """The broker's answer to a request whose client is not to hear of it; None: it came to none."""
        self._waiting[request.correlation] = answer = asyncio.get_running_loop().create_future()
        try:
            await _send(self._upstream, request.frame)
            return request.answer(await asyncio.wait_for(answer, _ANSWER_SECONDS))
        except (TimeoutError, OSError):
            return None

    async def _answer(self, upstream: asyncio.StreamReader) -> None:
        try:
            while True:
                frame = await _frame(upstream)
                (correlation,) = struct.unpack_from(">i", frame)
                for watch in self._watched.pop(correlation, ()):
                    watch.came.set()
                wanted = self._waiting.pop(correlation, None)
                if wanted is not None and not wanted.done():
                    wanted.set_result(frame)
                elif not self._gone:
                    await _send(self._writer, frame)
        finally:
            if not self._gone:
                _reset(self._writer)
            for each in self._waiting.values():
                if not each.done():
                    each.set_exception(ConnectionResetError())


async def _frame(reader: asyncio.StreamReader) -> bytes:
    (size,) = struct.unpack(">i", await reader.readexactly(4))
    return await reader.readexactly(size)


async def _send(writer: asyncio.StreamWriter, frame: bytes) -> None:
    writer.write(struct.pack(">i", len(frame)) + frame)
    await writer.drain()


def _parsed(frame: bytes) -> Request:
    key, version, correlation, size = struct.unpack_from(">hhih", frame)
    client = frame[10 : 10 + max(size, 0)].decode(errors="replace")
    return Request(_api_name(key), key, version, correlation, client, frame)


@cache
def _api_name(key: int) -> str:
    return "".join(part.capitalize() for part in api_key_map.get(key, f"api{key}").split("_"))


def _reset(writer: asyncio.StreamWriter) -> None:
    """End the connection by a reset, without an end of the stream: as a broken network does."""
    connection = writer.get_extra_info("socket")
    if connection is not None:
        with suppress(OSError):
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()
