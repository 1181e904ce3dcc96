"""The routing client over two instances with real stores of every kind: one answer, in order, whole or an exception."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import httpx
import orjson
import pytest
from query_stage import (
    KEY_VALUE,
    KEYS,
    PARTITIONS,
    SESSION,
    SESSIONS,
    SIZE,
    T0,
    WINDOW,
    Place,
    QueryStage,
    counts,
    key_in,
    query_stage,
    sessions,
    windows,
)
from typer.testing import CliRunner

from streams_runtime.cli.query.query_command import app as query_command
from streams_runtime.errors import (
    InvalidStateStoreException,
    InvalidStateStorePartitionException,
    StateStoreMigratedException,
    StateStoreNotAvailableException,
    StoreTypeMismatch,
)
from streams_runtime.kafka.producer.partitioner import partition_for
from streams_runtime.query.client.query_client import StreamsQueryClient
from streams_runtime.query.server.query_server import QueryServer
from streams_runtime.query.stores.views import Owner
from streams_runtime.query.wire import record_lines
from streams_runtime.query.wire.problems import IncompleteAnswerException, InvalidQueryException
from streams_runtime.states import ClientState

KEY = key_in(1)


class Two:
    """Two instances: the first has partitions 0 and 2, the second has partition 1."""

    def __init__(self, stages: list[QueryStage]) -> None:
        self.stages = self.first, self.second = stages
        self._servers = [QueryServer(stage, "127.0.0.1", 0, grace=0) for stage in stages]
        for stage, server in zip(stages, self._servers, strict=True):
            stage.url = f"http://127.0.0.1:{server.start()}"

    def reset(self) -> None:
        """Everything in its place."""
        for stage, here in ((self.first, (0, 2)), (self.second, (1,))):
            stage.state = ClientState.RUNNING
            for partition in range(PARTITIONS):
                there = stage.views(KEY_VALUE) if partition in here else stage.stale_views(KEY_VALUE)
                if (partition in there) != (partition in here):
                    stage.put(partition, Place.ACTIVE if partition in here else Place.ELSEWHERE)
        self.tell({0: self.first, 1: self.second, 2: self.first})

    def tell(self, owners: dict[int, QueryStage]) -> None:
        """What both instances believe."""
        known = {partition: Owner(f"app-{stage.url[-1]}", stage.url) for partition, stage in owners.items()}
        for stage in self.stages:
            stage.known_owners = known

    def stop(self) -> None:
        for server in self._servers:
            server.stop()


@pytest.fixture(scope="module")
def shared_two() -> Iterator[Two]:
    with contextlib.ExitStack() as opened:
        made = Two([opened.enter_context(query_stage()) for _ in range(2)])
        opened.callback(made.stop)
        yield made


@pytest.fixture
def two(shared_two: Two) -> Two:
    shared_two.reset()
    return shared_two


@pytest.fixture
def client(two: Two) -> Iterator[StreamsQueryClient]:
    with StreamsQueryClient(two.first.url, deadline=0.0) as made:
        yield made


ALL = {KEY_VALUE: counts(), WINDOW: windows(), SESSION: sessions()}


def of_key(store: str) -> list[tuple[Any, object]]:
    return [pair for pair in ALL[store] if pair[0].key == KEY]


def early(pair: tuple[Any, object]) -> bool:
    return bool(T0 <= pair[0].window.start <= T0 + SIZE)


RANGES: dict[str, tuple[Callable[[StreamsQueryClient, dict[str, Any]], Any], list[Any]]] = {
    "all": (lambda c, o: c.all(KEY_VALUE, **o), ALL[KEY_VALUE]),
    "range": (lambda c, o: c.range(KEY_VALUE, "A", "Z", **o), [p for p in ALL[KEY_VALUE] if "A" <= p[0] <= "Z"]),
    "windows": (lambda c, o: c.windows(WINDOW, **o), ALL[WINDOW]),
    "windows of a key": (lambda c, o: c.windows(WINDOW, KEY, KEY, **o), of_key(WINDOW)),
    "windows in a time": (
        lambda c, o: c.windows(WINDOW, from_time=T0, to_time=T0 + SIZE, **o),
        [pair for pair in ALL[WINDOW] if early(pair)],
    ),
    "windows in both": (
        lambda c, o: c.windows(WINDOW, "A", "Z", T0, T0 + SIZE, **o),
        [pair for pair in ALL[WINDOW] if early(pair) and "A" <= pair[0].key <= "Z"],
    ),
    "sessions": (lambda c, o: c.sessions(SESSION, **o), ALL[SESSION]),
    "sessions of a key": (lambda c, o: c.sessions(SESSION, KEY, KEY, **o), of_key(SESSION)),
    "sessions in a time": (
        lambda c, o: c.sessions(SESSION, None, None, SESSIONS[1][0], SESSIONS[1][1], **o),
        [pair for pair in ALL[SESSION] if pair[0].window == SESSIONS[1]],
    ),
}


@pytest.mark.parametrize("name", RANGES)
@pytest.mark.parametrize("reverse", [False, True])
def test_a_range_is_merged_over_all_instances_in_order(client: StreamsQueryClient, name: str, reverse: bool) -> None:
    ask, expected = RANGES[name]
    found = [tuple(record) for record in ask(client, {"reverse": reverse})]
    assert found == (expected[::-1] if reverse else expected)
    assert len(found) > 1


@pytest.mark.parametrize("name", RANGES)
def test_one_partition_can_be_asked_for_wherever_it_is(client: StreamsQueryClient, name: str) -> None:
    ask, expected = RANGES[name]
    parts = [tuple(record) for number in range(PARTITIONS) for record in ask(client, {"partition": number})]
    assert sorted(map(repr, parts)) == sorted(map(repr, expected))
    with pytest.raises(InvalidStateStorePartitionException, match="has 3 partitions, numbered from 0"):
        ask(client, {"partition": PARTITIONS})


def test_single_windows_and_sessions_are_found_wherever_they_are(client: StreamsQueryClient) -> None:
    for (key, window), value in ALL[WINDOW]:
        assert client.fetch(WINDOW, key, window.start) == value
    assert client.fetch(WINDOW, KEY, T0 + timedelta(microseconds=1)) is None, "no window begins there"
    for (key, session), value in ALL[SESSION]:
        assert client.fetch_session(SESSION, key, session.start, session.end) == value
    assert client.fetch_session(SESSION, KEY, T0, T0) is None
    assert [key for key, _ in client.prefix_scan(KEY_VALUE, "h")] == ["hello"]
    assert client.count(KEY_VALUE) == client.approximate_num_entries(KEY_VALUE) == len(ALL[KEY_VALUE])
    assert client.count(KEY_VALUE, partition=1) == sum(1 for key, _ in counts() if key in partition_keys(1))


def partition_keys(partition: int) -> set[str]:
    return {key for key in KEYS if partition_for(key.encode(), PARTITIONS) == partition}


def test_mistakes_are_told_by_the_instance_and_not_retried(client: StreamsQueryClient) -> None:
    with pytest.raises(StoreTypeMismatch, match="'window', not 'key-value'"):
        client.get(WINDOW, KEY)
    with pytest.raises(InvalidQueryException, match="time: '2026-01-01T12:00:00' does not say its offset"):
        client.fetch(WINDOW, KEY, datetime(2026, 1, 1, 12))  # noqa: DTZ001


# --- routing


@pytest.fixture
def urls(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Every URL that clients ask, in order."""
    asked: list[str] = []
    send = httpx.Client.send

    def noting(http: httpx.Client, request: httpx.Request, **options: Any) -> httpx.Response:
        asked.append(str(request.url))
        return send(http, request, **options)

    monkeypatch.setattr(httpx.Client, "send", noting)
    return asked


def test_once_a_key_was_elsewhere_later_keys_are_asked_of_their_owners_at_once(
    two: Two, client: StreamsQueryClient, urls: list[str]
) -> None:
    client.get(KEY_VALUE, KEY)
    assert [url.rpartition(":")[2].partition("/")[2] for url in urls] == [f"stores/counts/keys/{KEY}"] * 2
    del urls[:]
    client.get(KEY_VALUE, KEY)
    client.get(KEY_VALUE, key_in(0))
    client.get(KEY_VALUE, KEY)
    assert urls[0] == f"{two.first.url}/stores/counts/owners"
    assert [url.startswith(two.second.url) for url in urls] == [False, True, False, True]


def test_what_was_known_of_owners_is_forgotten_when_it_no_longer_holds(two: Two, client: StreamsQueryClient) -> None:
    for _ in range(2):
        client.get(KEY_VALUE, KEY)
    two.second.put(1, Place.ELSEWHERE)
    two.first.put(1, Place.ACTIVE)
    two.tell(dict.fromkeys(range(PARTITIONS), two.first))
    for _ in range(2):
        assert client.get(KEY_VALUE, KEY) == dict(counts())[KEY]


@pytest.mark.parametrize(
    ("state", "place"),
    [
        (ClientState.REBALANCING, Place.ASSIGNED),
        (ClientState.RUNNING, Place.ASSIGNED),
        (ClientState.RUNNING, Place.ELSEWHERE),
        (ClientState.ERROR, Place.ACTIVE),
    ],
)
@pytest.mark.parametrize("entry", ["first", "second"])
def test_a_copy_answers_where_stale_contents_will_do(two: Two, entry: str, state: ClientState, place: Place) -> None:
    two.first.put(1, Place.STANDBY)
    two.second.put(1, place)
    two.second.state = state
    with StreamsQueryClient(getattr(two, entry).url, deadline=0.0) as client:
        with pytest.raises(InvalidStateStoreException):
            client.get(KEY_VALUE, KEY)
        assert client.get(KEY_VALUE, KEY, stale=True) == dict(counts())[KEY]
        assert client.fetch(WINDOW, KEY, T0, stale=True) == of_key(WINDOW)[0][1]


def test_where_nobody_has_a_copy_the_owners_exception_is_raised(two: Two) -> None:
    two.second.state = ClientState.ERROR
    with StreamsQueryClient(two.second.url, deadline=0.0) as client, pytest.raises(StateStoreNotAvailableException):
        client.get(KEY_VALUE, KEY, stale=True)


# --- whole answers or none


def test_a_partition_that_leaves_in_mid_range_is_an_exception(
    two: Two, client: StreamsQueryClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(record_lines, "_CHUNK_BYTES", 1)
    fill, first_lines = record_lines.RecordLines._fill, dict[int, bytes]()

    def filling(lines: Any) -> None:
        begun = first_lines.get(id(lines))
        if begun is not None and orjson.loads(begun)["key"] in partition_keys(1):
            two.second.put(1, Place.ELSEWHERE)
        fill(lines)
        first_lines.setdefault(id(lines), lines._lines[0])

    monkeypatch.setattr(record_lines.RecordLines, "_fill", filling)
    with client.windows(WINDOW) as found, pytest.raises(StateStoreMigratedException):
        list(found)


LINE = orjson.dumps({"key": "a", "value": 1, "keyBytes": "YQ=="}) + b"\n"


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (LINE, "cut off after 1 records"),
        (b"", "cut off after 0 records"),
        (LINE + LINE[:20], "cut off after 1 records"),
        (LINE + b'{"complete": {"records": 2}}\n', "sent 2 records, and 1 arrived"),
    ],
)
def test_an_answer_that_ends_well_for_http_and_is_not_whole_is_an_exception(body: bytes, said: str) -> None:
    class Truncating(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            here = f"http://127.0.0.1:{self.server.server_port}"  # type: ignore[attr-defined]
            owners = {"store": "s", "partitions": 1, "owners": [{"partition": 0, "instance": "a", "url": here}]}
            self.wfile.write(orjson.dumps(owners) if self.path.endswith("/owners") else body)

        def log_message(self, *_: object) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Truncating) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            with (
                StreamsQueryClient(f"http://127.0.0.1:{server.server_port}") as client,
                pytest.raises(IncompleteAnswerException, match=said),
            ):
                list(client.all("s"))
        finally:
            server.shutdown()
            thread.join()


# --- the command


def printed(url: str, *arguments: str) -> list[Any]:
    done = CliRunner().invoke(query_command, [*arguments, "--url", url])
    assert (done.exit_code, done.stderr) == (0, "")
    return [orjson.loads(line) for line in done.stdout.splitlines()]


def test_the_command_prints_windows_and_sessions(two: Two) -> None:
    url = two.first.url
    assert printed(url, WINDOW, "window", KEY, "2026-01-01T12:00:00Z") == [
        {
            "key": KEY,
            "window": {"start": "2026-01-01T12:00:00.000Z", "end": "2026-01-01T12:01:00.000Z"},
            "value": of_key(WINDOW)[0][1],
        }
    ]
    assert len(printed(url, WINDOW, "windows")) == len(ALL[WINDOW])
    assert [row["value"] for row in printed(url, WINDOW, "windows", KEY, "--reverse")] == [
        value for _, value in of_key(WINDOW)[::-1]
    ]
    within = ("--from-key", "A", "--to-key", "Z", "--from-time", "2026-01-01T12:00:00Z", "--to-time", "1767268860000")
    assert len(printed(url, WINDOW, "windows", *within)) == len(RANGES["windows in both"][1])
    assert (
        printed(url, SESSION, "session", KEY, "2026-01-01T12:00:00Z", "2026-01-01T12:00:10Z")[0]["value"]
        == (of_key(SESSION)[0][1])
    )
    assert len(printed(url, SESSION, "sessions", KEY)) == len(of_key(SESSION))
    assert printed(url, KEY_VALUE, "count", "--approximate", "--partition", "1") == [{"count": len(partition_keys(1))}]
    assert [row["key"] for row in printed(url, KEY_VALUE, "prefix", "h")] == ["hello"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((WINDOW, "window", KEY, "noon"), "TIME: 'noon' is no time"),
        ((WINDOW, "windows", KEY, "--from-key", "A"), "KEY stands beside --from-key"),
        ((SESSION, "sessions", "--to-time", "x"), "--to-time: 'x' is no time"),
        ((SESSION, "get", KEY), "has type 'session', not 'key-value'"),
    ],
)
def test_the_command_names_what_is_wrong(two: Two, arguments: tuple[str, ...], said: str) -> None:
    done = CliRunner().invoke(query_command, [*arguments, "--url", two.first.url])
    assert (done.exit_code, done.stdout) == (1, "")
    assert said in done.stderr
