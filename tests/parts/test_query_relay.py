"""Queries that go to every instance through one of them: the same answers, the same failures, nothing else reached."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from urllib.parse import quote

import httpx
import pytest
from http_answers import answering
from query_fakes import KEYS, FakeView, Pair, entries_of, key_in
from waiting import eventually

from streams_runtime.errors import StateStoreNotAvailableException, StreamsException
from streams_runtime.query.client.query_client import QueryCredentials, StreamsQueryClient
from streams_runtime.query.stores.views import Owner
from streams_runtime.query.wire.problems import InstanceNotReachableException
from streams_runtime.states import ClientState

ASKED: dict[str, Callable[[StreamsQueryClient], object]] = {
    "get": lambda client: [client.get("counts", key) for key in KEYS],
    "range": lambda client: list(client.range("counts", "A", "Z")),
    "all": lambda client: list(client.all("counts", reverse=True)),
    "count": lambda client: client.count("counts"),
}


@contextmanager
def through_the_first(pair: Pair, deadline: float = 4.0, token: str | None = None) -> Iterator[StreamsQueryClient]:
    """A client that may not ask any other instance than the first."""

    def reaches_the_first_only(request: httpx.Request) -> None:
        assert str(request.url).startswith(pair.first.url), f"{request.url} was asked"

    credentials = QueryCredentials(token=token)
    with StreamsQueryClient(pair.first.url, deadline, credentials=credentials, relay=True) as client:
        client._requests._http.event_hooks["request"].append(reaches_the_first_only)
        yield client


def lead(pair: Pair, url: str) -> None:
    """Partition 1 is at this URL, by what the first instance knows."""
    pair.first.known_owners = {**pair.first.known_owners, 1: Owner("flights-1", url)}


@pytest.mark.parametrize("method", ASKED)
def test_one_instance_gives_the_answers_of_all(pair: Pair, method: str) -> None:
    with StreamsQueryClient(pair.second.url) as direct, through_the_first(pair) as relayed:
        assert ASKED[method](relayed) == ASKED[method](direct)


def test_a_partition_that_moves_is_followed(pair: Pair) -> None:
    pair.second.local.clear()
    timer = threading.Timer(0.3, lambda: pair.second.local.update({1: FakeView(1, entries_of(1))}))
    timer.start()
    with through_the_first(pair) as client:
        assert client.count("counts") == len(KEYS)
    timer.join()


def test_a_failure_of_the_other_instance_is_raised_as_its_own_class(pair: Pair) -> None:
    pair.second.state = ClientState.ERROR
    with through_the_first(pair) as client, pytest.raises(StateStoreNotAvailableException, match="ERROR"):
        client.get("counts", key_in(1))


def test_an_instance_that_is_gone_is_looked_for_until_the_deadline(pair: Pair) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        gone = f"http://127.0.0.1:{listener.getsockname()[1]}"
    lead(pair, gone)
    with through_the_first(pair, deadline=0.5) as client:
        with pytest.raises(InstanceNotReachableException, match=f"{gone} does not answer"):
            client.count("counts")
        pair.reset()
        assert client.count("counts") == len(KEYS)


def test_token_path_and_parameters_arrive_as_they_were_sent(pair: Pair) -> None:
    came: list[tuple[str, str | None]] = []

    def record(request: BaseHTTPRequestHandler) -> None:
        came.append((request.path, request.headers["Authorization"]))
        request.send_response(503)
        request.end_headers()

    with answering(record) as url:
        lead(pair, url)
        with through_the_first(pair, deadline=0.2, token="hush") as client, pytest.raises(StreamsException):
            client.range("counts", "a/../b%2F\n?", "Zürich", partition=1)
    path = "/stores/counts/range?from=a%2F..%2Fb%252F%0A%3F&to=Z%C3%BCrich&keyBytes=true&partition=1"
    assert came[0] == (path, "Bearer hush")


def test_an_answer_that_breaks_off_there_is_no_whole_answer_here(pair: Pair) -> None:
    def break_off(request: BaseHTTPRequestHandler) -> None:
        request.protocol_version = "HTTP/1.1"
        request.send_response(200)
        request.send_header("Content-Type", "application/x-ndjson")
        request.send_header("Transfer-Encoding", "chunked")
        request.end_headers()
        line = b'{"key":"UA","value":1,"keyBytes":"VUE="}\n'
        request.wfile.write(b"%x\r\n%s\r\n" % (len(line), line))

    with answering(break_off) as url:
        lead(pair, url)
        with (
            through_the_first(pair) as client,
            pytest.raises(InstanceNotReachableException, match="in the middle of its answer"),
        ):
            list(client.all("counts", partition=1))


def test_only_instances_that_have_partitions_of_the_store_are_asked(pair: Pair) -> None:
    asked: list[str] = []
    with answering(lambda request: asked.append(request.path)) as url:
        stranger = url.removeprefix("http://")
        answer = httpx.get(f"{pair.first.url}/relay/{stranger}/stores/counts/count")
        assert (answer.status_code, answer.json()["title"], answer.json()["remedy"]) == (
            502,
            "InstanceNotReachableException",
            "rediscover",
        )
        assert f"no instance at {stranger} has a partition of store 'counts'" in answer.json()["detail"]
        second = pair.second.url.removeprefix("http://")
        assert httpx.get(f"{pair.first.url}/relay/{second}/stores/nothing/count").status_code == 404
        assert httpx.get(f"{pair.first.url}/relay/{second}/state").status_code == 404
    assert asked == []


SMUGGLED = (
    *("counts/../../state", "counts/%2e%2e/%2e%2e/state", "counts/%2E%2E%2F%2E%2E%2Fstate", "counts/..%2f..%2fstate"),
    *("counts/%252e%252e/%252e%252e/state", "counts/..%5c..%5cstate", "counts/..\\..\\state", "counts//state"),
    *("counts/./../../state", "counts/range/../../../state", "counts/range%2F..%2F..%2F..%2Fstate", "counts/range/"),
    *("counts/http://evil.example/state", "counts/%2F%2Fevil.example/state", "counts/range%3Fa=b", "counts/range%23"),
    *("counts/;/../../../state", "counts/range;/../../../state", "counts/nothing", "counts/", "counts/Range"),
    *(
        "%2e%2e/state",
        "..%2f..%2fstate/x",
        "counts%2F..%2F..%2Fstate/x",
        "counts/keys",
        "counts/windows/../../../state",
    ),
)


@pytest.mark.parametrize("rest", SMUGGLED)
def test_nothing_but_the_endpoints_of_the_store_is_reached_at_the_other_instance(pair: Pair, rest: str) -> None:
    asked: list[str] = []

    def record(request: BaseHTTPRequestHandler) -> None:
        asked.append(request.path)
        request.send_response(200)
        request.end_headers()

    with answering(record) as url:
        lead(pair, url)
        relayed = f"/relay/{url.removeprefix('http://')}/stores/{rest}"
        assert raw_status(pair.first.url, relayed) in (400, 404)
    assert asked == []


@pytest.mark.parametrize("key", ["..", "../../../state", "%2e%2e/state", "a//b", "..\\x", "http://x/?a#b", ""])
def test_any_text_is_a_key_of_the_store_and_no_way_out_of_it(pair: Pair, key: str) -> None:
    asked: list[str] = []

    def record(request: BaseHTTPRequestHandler) -> None:
        asked.append(request.path)
        request.send_response(200)
        request.end_headers()

    with answering(record) as url:
        lead(pair, url)
        for text in (quote(key, safe=""), quote(key, safe="/.")):  # as the client writes it, and as it stands in a path
            raw_status(pair.first.url, f"/relay/{url.removeprefix('http://')}/stores/counts/keys/{text}")
    assert asked == ["/stores/counts/keys/" + quote(key, safe="").replace(".", "%2E")] * 2


def raw_status(url: str, target: str) -> int:
    """The status of a GET whose target no client library puts right."""
    host, _, port = url.removeprefix("http://").rpartition(":")
    with socket.create_connection((host, int(port)), timeout=60) as connection:
        connection.sendall(f"GET {target} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n".encode())
        with connection.makefile("rb") as answer:
            return int(answer.readline().split()[1])


def test_an_instance_with_tls_is_refused_by_name(pair: Pair) -> None:
    lead(pair, "https://flights-1:8080")
    answer = httpx.get(f"{pair.first.url}/relay/flights-1:8080/stores/counts/count")
    assert (answer.status_code, answer.json()["title"]) == (501, "NotSupportedException")


def test_a_reader_that_goes_away_frees_the_other_instances_iterator(pair: Pair) -> None:
    view = pair.second.local[1] = FakeView(1, {b"%06d" % number: b'"' + b"x" * 1000 + b'"' for number in range(5000)})
    with through_the_first(pair) as client:
        records = client.all("counts", partition=1)
        next(iter(records))
        records.close()
        eventually(lambda: all(scan.closed for scan in view.scans), "the store's iterator is closed")


def test_who_can_not_reach_another_instance_is_told_of_the_relay(pair: Pair) -> None:
    lead(pair, "http://flights-1.invalid:8080")
    told = pytest.raises(InstanceNotReachableException, match=r"ask through it \(--relay\)")
    with StreamsQueryClient(pair.first.url, deadline=0.1) as client, told:
        client.get("counts", key_in(1))
