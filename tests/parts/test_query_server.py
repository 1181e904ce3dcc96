"""The query server on a real socket: ports, threads, readers that leave, and its end."""

from __future__ import annotations

import socket
import statistics
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import httpx
import pytest
from query_fakes import FakeClient, FakeScan, FakeView, client_with
from waiting import eventually

from streams_runtime.errors import EnvironmentException, IllegalStateException
from streams_runtime.query.routes.routes_key_value import shown
from streams_runtime.query.server.opened_stores import WALKS
from streams_runtime.query.server.query_server import QueryServer
from streams_runtime.query.stores.composite import CompositeStore
from streams_runtime.query.stores.store_target import StoreTarget
from streams_runtime.query.stores.views import Owner, StoreCodec
from streams_runtime.query.wire import record_lines

STORE_THREADS = 40  # that Starlette reads stores with


class BlockingView(FakeView):
    """Holds every `get` until it is let go."""

    def __init__(self) -> None:
        super().__init__(0, {})
        self.waiting = threading.Semaphore(0)
        self.let_go = threading.Event()

    def get(self, key: bytes) -> bytes | None:
        self.waiting.release()
        self.let_go.wait(10)
        return super().get(key)


@pytest.fixture
def blocked() -> Iterator[tuple[BlockingView, QueryServer, str]]:
    view = BlockingView()
    server = QueryServer(FakeClient({0: view}, partitions=1), "127.0.0.1", 0, grace=0)
    url = f"http://127.0.0.1:{server.start()}"
    yield view, server, url
    view.let_go.set()
    server.stop()


def test_blocked_stores_stall_neither_health_nor_state_nor_metrics(
    blocked: tuple[BlockingView, QueryServer, str],
) -> None:
    view, _, url = blocked
    limits = httpx.Limits(max_connections=None)
    with (
        ThreadPoolExecutor(STORE_THREADS + 5) as pool,
        httpx.Client(trust_env=False, timeout=60, limits=limits) as http,
    ):
        answers = [pool.submit(http.get, f"{url}/stores/counts/keys/a") for _ in range(STORE_THREADS + 5)]
        for _ in range(STORE_THREADS):
            assert view.waiting.acquire(timeout=60)
        for path in ("/healthz", "/readyz", "/state", "/metrics"):
            assert http.get(url + path).status_code == 200
        view.let_go.set()
        assert {answer.result().status_code for answer in answers} == {200}


class EndlessView(FakeView):
    """Has records without end until it is let go; with `holding` each scan stops after a chunk of them till then."""

    def __init__(self, holding: bool = False) -> None:
        super().__init__(0, {b"a": b"1"})
        self.let_go = threading.Event()
        self.waiting = threading.Semaphore(0)
        self.walked = 0
        self._holding = holding

    def scan(self, start: bytes | None, end: bytes | None, *, reverse: bool = False) -> FakeScan:
        scan = FakeScan(self, [])
        self.scans.append(scan)
        scan._keys = self._walk_on()
        return scan

    def _walk_on(self) -> Iterator[bytes]:
        while not self.let_go.is_set():
            if self._holding and self.walked >= 4000 * len(self.scans):
                self.waiting.release()
                assert self.let_go.wait(60)
            self.walked += 1
            yield b"a"


@contextmanager
def serving(view: EndlessView) -> Iterator[str]:
    server = QueryServer(FakeClient({0: view}, partitions=1), "127.0.0.1", 0, grace=0)
    try:
        yield f"http://127.0.0.1:{server.start()}"
    finally:
        view.let_go.set()
        server.stop()


@pytest.mark.parametrize("relayed", [False, True])
def test_a_count_ends_when_its_caller_has_left(relayed: bool) -> None:
    view, first = EndlessView(), client_with()
    relay = QueryServer(first, "127.0.0.1", 0, grace=0)
    try:
        with serving(view) as url:
            first.known_owners = {0: Owner("flights-1", url)}
            host, port = "127.0.0.1", relay.start() if relayed else int(url.rpartition(":")[2])
            path = f"/relay/{url.removeprefix('http://')}" if relayed else ""
            with socket.create_connection((host, port)) as caller:
                caller.sendall(f"GET {path}/stores/counts/count HTTP/1.1\r\nHost: x\r\n\r\n".encode())
                eventually(lambda: view.walked > 0, "it is counted")
                assert not view.scans[0].closed
            eventually(lambda: view.scans[0].closed, "nothing is read any more")
    finally:
        relay.stop()


def test_walks_over_a_store_take_turns_and_keep_no_key_waiting() -> None:
    view = EndlessView(holding=True)
    limits = httpx.Limits(max_connections=None)
    with (
        serving(view) as url,
        ThreadPoolExecutor(STORE_THREADS + 5) as pool,
        httpx.Client(trust_env=False, timeout=60, limits=limits) as http,
    ):
        answers = [pool.submit(http.get, f"{url}/stores/counts/count") for _ in range(STORE_THREADS + 5)]
        for _ in range(WALKS):
            assert view.waiting.acquire(timeout=60)
        assert http.get(f"{url}/stores/counts/keys/a", timeout=30).json() == {"key": "a", "value": 1}
        view.let_go.set()
        assert {answer.result().status_code for answer in answers} == {200}


def test_a_stop_takes_bounded_time_even_when_a_store_call_hangs(
    blocked: tuple[BlockingView, QueryServer, str],
) -> None:
    view, server, url = blocked
    with ThreadPoolExecutor(1) as pool:
        answer = pool.submit(httpx.get, f"{url}/stores/counts/keys/a", trust_env=False, timeout=60)
        assert view.waiting.acquire(timeout=60)
        started = time.monotonic()
        server.stop()
        assert time.monotonic() - started < 3
        assert (answer.result().status_code, answer.result().json()["title"]) == (
            410,
            "StateStoreNotAvailableException",
        )
        with pytest.raises(httpx.TransportError):
            httpx.get(f"{url}/healthz", trust_env=False)
        view.let_go.set()


def test_a_server_gives_its_port_back_and_may_be_stopped_twice() -> None:
    server = QueryServer(client_with(0), "127.0.0.1", 0)
    server.stop()  # before it was started: nothing to do
    port = server.start()
    with pytest.raises(IllegalStateException, match="started before"):
        server.start()
    server.stop()
    server.stop()
    socket.create_server(("127.0.0.1", port)).close()
    assert not [thread for thread in threading.enumerate() if thread.name == "queries"]


def test_an_iterator_is_never_closed_under_the_thread_that_reads_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(record_lines, "_CHUNK_BYTES", 1)
    view = FakeView(0, {b"a": b"1", b"b": b"2"})
    client = FakeClient({0: view}, partitions=1)
    codec = client.codec("counts")
    lines = record_lines.RecordLines(
        CompositeStore(StoreTarget(client, "counts")).scan(None, None), lambda each: shown(codec, each)
    )
    inside, let_go = threading.Event(), threading.Event()

    def wait() -> None:
        inside.set()
        let_go.wait(10)

    assert next(lines) == b'{"key":"a","value":1}\n'
    view.check = wait  # type: ignore[method-assign]
    with ThreadPoolExecutor(1) as pool:
        chunk = pool.submit(next, lines)
        assert inside.wait(5)
        lines.close()
        assert not view.scans[0].closed
        let_go.set()
        assert chunk.result(5) == b'{"key":"b","value":2}\n'
    assert view.scans[0].closed
    assert next(lines, None) is None


def test_answers_do_not_wait_for_delayed_acknowledgements() -> None:
    server = QueryServer(client_with(0), "127.0.0.1", 0, grace=0)
    url = f"http://127.0.0.1:{server.start()}"
    seconds = []
    try:
        with httpx.Client(trust_env=False) as http:
            for _ in range(15):
                started = time.perf_counter()
                http.get(f"{url}/stores/counts/keys/AA")
                seconds.append(time.perf_counter() - started)
    finally:
        server.stop()
    assert statistics.median(seconds) < 0.03


def test_a_taken_port_is_named() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(EnvironmentException, match=rf"127.0.0.1:{port}: .*in use; free the port"):
            QueryServer(client_with(0), "127.0.0.1", port).start()


@pytest.mark.parametrize("leaver", ["reader", "server"])
def test_an_answer_that_is_cut_off_frees_the_stores_iterator(leaver: str) -> None:
    view = FakeView(0, {b"%07d" % number: b'"%s"' % (b"x" * 1000) for number in range(20_000)})
    server = QueryServer(FakeClient({0: view}, partitions=1), "127.0.0.1", 0, grace=0)
    url = f"http://127.0.0.1:{server.start()}"
    try:
        with httpx.stream("GET", f"{url}/stores/counts/all", trust_env=False) as response:
            lines = response.iter_lines()
            next(lines)
            assert not view.scans[0].closed
            if leaver == "server":
                server.stop()
                with pytest.raises(httpx.RemoteProtocolError):
                    list(lines)
        eventually(lambda: [scan.closed for scan in view.scans] == [True])
    finally:
        server.stop()


def test_a_reader_that_does_not_read_stops_the_store_from_being_read() -> None:
    """Whatever a store holds, an answer takes no more memory than a chunk and the sockets' buffers."""
    view = FakeView(0, {b"%07d" % number: b'"%s"' % (b"x" * 4000) for number in range(8_000)})
    codec, read = FakeClient({}).codec("counts"), 0

    class Counting(FakeClient):
        def codec(self, _: str) -> StoreCodec:
            return StoreCodec(codec.key, self._count)

        def _count(self, data: bytes) -> object:
            nonlocal read
            read += 1
            return codec.decode_value(data)

    server = QueryServer(Counting({0: view}, partitions=1), "127.0.0.1", 0, grace=0)
    url = f"http://127.0.0.1:{server.start()}"
    seen = [-1] * 40

    def stands_still() -> bool:
        seen.append(read)
        return set(seen[-40:]) == {read}

    try:
        with httpx.stream("GET", f"{url}/stores/counts/all", trust_env=False, timeout=30) as response:
            lines = response.iter_lines()
            next(lines)
            eventually(stands_still, "the server waits for the reader")
            assert 0 < read < 5_000
            assert sum(1 for _ in lines) == 8_000, "the other records, and the line that says that it is whole"
        assert read == 8_000
    finally:
        server.stop()
