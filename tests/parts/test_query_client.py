"""The routing client against two real instances: one answer, and the right remedy for each failure."""

from __future__ import annotations

import socket
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler

import pytest
from http_answers import answering
from query_fakes import KEYS, FakeView, Pair, entries_of

from streams_runtime.errors import (
    ConfigException,
    InvalidStateStorePartitionException,
    NotUpToBoundException,
    StateStoreMigratedException,
    StateStoreNotAvailableException,
    StreamsException,
    StreamsNotStartedException,
    StreamsRebalancingException,
    UnknownStateStoreException,
)
from streams_runtime.kafka.types import TopicPartition
from streams_runtime.query.client.query_client import StreamsQueryClient
from streams_runtime.query.stores.key_value_handle import KeyValue
from streams_runtime.query.stores.views import Owner
from streams_runtime.query.wire import record_lines
from streams_runtime.query.wire.problems import InstanceNotReachableException, InvalidQueryException
from streams_runtime.states import ClientState

RECORDS = sorted((KeyValue(key, {"n": number}) for number, key in enumerate(KEYS)), key=lambda r: r.key.encode())
ASKED: dict[str, Callable[[StreamsQueryClient], object]] = {
    "get": lambda client: client.get("counts", "UA"),
    "range": lambda client: list(client.range("counts", "A", "Z")),
    "all": lambda client: list(client.all("counts")),
    "count": lambda client: client.count("counts"),
}
ANSWERS: dict[str, object] = {
    "get": {"n": 4},
    "range": [r for r in RECORDS if r.key < "Z"],
    "all": RECORDS,
    "count": len(KEYS),
}


class Time:
    """A clock that only pauses move on; `events` happen at the pauses, in order."""

    def __init__(self, *events: Callable[[], object]) -> None:
        self.pauses: list[float] = []
        self._events = list(events)

    def now(self) -> float:
        return sum(self.pauses)

    def sleep(self, seconds: float) -> None:
        self.pauses.append(seconds)
        if self._events:
            self._events.pop(0)()


def unused_url() -> str:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return f"http://127.0.0.1:{listener.getsockname()[1]}"


def ask(url: str, method: str, time: Time) -> object:
    with StreamsQueryClient(url, deadline=4.0, clock=time.now, sleep=time.sleep, jitter=lambda: 0.0) as client:
        return ASKED[method](client)


@pytest.mark.parametrize("method", ASKED)
@pytest.mark.parametrize("entry", ["first", "second"])
def test_any_instance_gives_the_answer_of_the_whole_application(pair: Pair, entry: str, method: str) -> None:
    time = Time()
    assert ask(getattr(pair, entry).url, method, time) == ANSWERS[method]
    assert time.pauses == []


def positions(pair: Pair, next_offset: int) -> None:
    for instance in (pair.first, pair.second):
        for view in instance.local.values():
            view.position = {TopicPartition("flights", view.partition): next_offset}


@pytest.mark.parametrize("method", ASKED)
def test_a_query_waits_for_what_its_answer_has_to_contain(pair: Pair, method: str) -> None:
    positions(pair, 57)
    bound = {TopicPartition("flights", number): 57 for number in range(3)}
    time = Time(lambda: None, lambda: positions(pair, 58))
    with StreamsQueryClient(
        pair.first.url, deadline=4.0, clock=time.now, sleep=time.sleep, jitter=lambda: 0.0
    ) as client:
        bounded = client.with_position_bound(bound)
        assert ASKED[method](bounded) == ANSWERS[method]
        assert len(time.pauses) == 2
        assert sum(time.pauses) < 1, "the next batch is there soon"
        positions(pair, 57)
        assert ASKED[method](client) == ANSWERS[method], "the client itself has no bound"
        assert ASKED[method](bounded.with_position_bound({})) == ANSWERS[method]
        with pytest.raises(NotUpToBoundException):
            ASKED[method](bounded)


def test_a_key_that_nobody_has_is_none(pair: Pair) -> None:
    with StreamsQueryClient(pair.first.url + "/") as client:
        assert client.get("counts", "nobody") is None
        assert client.record("counts", "nobody") == KeyValue("nobody", None)


@pytest.mark.parametrize(
    ("key_format", "keys"),
    [
        ("long", [3, 70_000, -1]),
        ("double", [0.5, float("inf"), -2.0]),
        ("bytes", [b"\x00", b"\xfb\xff"]),
        ("json", [{"a": 1}, {"a": 2}]),
        ("string", ["", ".", "..", "a/../b", "%2F", "\n"]),
    ],
)
def test_keys_of_every_format_are_asked_for_as_python_values(pair: Pair, key_format: str, keys: list[object]) -> None:
    for instance in (pair.first, pair.second):
        instance.key_format = key_format
    encode = pair.first.codec("counts").key.encode
    data = {encode(key): b'"%d"' % number for number, key in enumerate(keys)}
    pair.first.local = {p: FakeView(p, data) for p in (0, 2)}
    pair.second.local = {1: FakeView(1, data)}
    with StreamsQueryClient(pair.second.url) as client:
        assert [client.get("counts", key) for key in keys] == [str(number) for number in range(len(keys))]
        shown = [record.value for record in client.range("counts", keys[0], keys[0])]
        assert shown == ["0"] * 3


def test_records_come_in_the_order_of_the_keys_bytes(pair: Pair) -> None:
    keys = [5, -5, 0, 2**40, -(2**40), 7]
    for instance in (pair.first, pair.second):
        instance.key_format = "long"
    encode = pair.first.codec("counts").key.encode
    pair.first.local = {
        0: FakeView(0, {encode(5): b"1", encode(-5): b"1"}),
        2: FakeView(2, {encode(7): b"1"}),
    }
    pair.second.local = {1: FakeView(1, {encode(k): b"1" for k in (0, 2**40, -(2**40))})}
    with StreamsQueryClient(pair.first.url) as client:
        assert [record.key for record in client.all("counts")] == sorted(keys, key=encode)


@pytest.mark.parametrize("method", ["range", "all", "count"])
def test_a_partition_that_two_instances_have_for_a_moment_is_read_once(pair: Pair, method: str) -> None:
    pair.first.local[1] = FakeView(1, entries_of(1))
    assert ask(pair.first.url, method, Time()) == ANSWERS[method]


# --- remedies


@pytest.mark.parametrize("method", ASKED)
@pytest.mark.parametrize("state", [ClientState.CREATED, ClientState.REBALANCING])
def test_a_retryable_state_is_waited_for_as_the_answer_says(pair: Pair, method: str, state: ClientState) -> None:
    pair.second.state = state
    time = Time(lambda: None, lambda: setattr(pair.second, "state", ClientState.RUNNING))
    assert ask(pair.first.url, method, time) == ANSWERS[method]
    assert time.pauses == [1.0, 1.0], "Retry-After"


@pytest.mark.parametrize("method", ASKED)
@pytest.mark.parametrize(
    ("state", "expected"),
    [
        (ClientState.CREATED, StreamsNotStartedException),
        (ClientState.REBALANCING, StreamsRebalancingException),
    ],
)
def test_waiting_ends_with_the_deadline_and_the_last_exception(
    pair: Pair, method: str, state: ClientState, expected: type[StreamsException]
) -> None:
    pair.second.state = state
    time = Time()
    with pytest.raises(expected):
        ask(pair.first.url, method, time)
    assert time.pauses == [1.0, 1.0, 1.0]


@pytest.mark.parametrize("method", ASKED)
@pytest.mark.parametrize(
    "state",
    [ClientState.PENDING_SHUTDOWN, ClientState.NOT_RUNNING, ClientState.PENDING_ERROR, ClientState.ERROR],
)
def test_a_fatal_state_is_raised_at_once(pair: Pair, method: str, state: ClientState) -> None:
    pair.second.state = state
    time = Time()
    with pytest.raises(StateStoreNotAvailableException, match=rf"is {state.value}; do not retry here"):
        ask(pair.first.url, method, time)
    assert time.pauses == []


def test_wrong_names_and_wrong_keys_are_raised_at_once(pair: Pair) -> None:
    time = Time()
    pair.first.key_format = "long"
    with StreamsQueryClient(pair.first.url, clock=time.now, sleep=time.sleep) as client:
        for call in (client.get, lambda store, key: client.range(store, key, None)):
            with pytest.raises(UnknownStateStoreException, match="only: counts"):
                call("nothing", "1")
            with pytest.raises(InvalidQueryException, match="'seven' is not a whole number"):
                call("counts", "seven")
        with pytest.raises(UnknownStateStoreException):
            client.count("nothing")
    assert time.pauses == []


@pytest.mark.parametrize("method", ASKED)
def test_a_partition_that_moves_is_followed(pair: Pair, method: str) -> None:
    pair.second.local.clear()

    def arrive() -> None:
        pair.first.local[1] = FakeView(1, entries_of(1))
        pair.tell_owners(first=(0, 1, 2), second=())

    time = Time(lambda: None, arrive)
    assert ask(pair.first.url, method, time) == ANSWERS[method]
    assert len(time.pauses) == 2


@pytest.mark.parametrize("method", ["range", "all", "count"])
def test_a_partition_that_nobody_has_is_waited_for_and_never_left_out(pair: Pair, method: str) -> None:
    pair.tell_owners(first=(0, 2), second=())
    time = Time(lambda: pair.tell_owners(first=(0, 2), second=(1,)))
    assert ask(pair.first.url, method, time) == ANSWERS[method]
    assert len(time.pauses) == 1


def test_a_key_whose_owner_nobody_knows_is_waited_for(pair: Pair) -> None:
    pair.tell_owners(first=(0, 2), second=())
    time = Time(lambda: pair.tell_owners(first=(0, 2), second=(1,)))
    assert ask(pair.first.url, "get", time) == ANSWERS["get"]
    pair.tell_owners(first=(0, 2), second=())
    with pytest.raises(InvalidStateStorePartitionException, match="partition 1"):
        ask(pair.first.url, "get", Time())


@pytest.mark.parametrize("method", ASKED)
def test_a_store_that_closed_a_moment_ago_is_looked_up_again(pair: Pair, method: str) -> None:
    pair.second.local[1].is_open = False
    time = Time(pair.reset)
    assert ask(pair.first.url, method, time) == ANSWERS[method]
    assert len(time.pauses) == 1


@pytest.mark.parametrize("method", ASKED)
def test_the_partitions_of_a_killed_owner_are_waited_for(pair: Pair, method: str) -> None:
    gone = unused_url()
    pair.first.known_owners = {**pair.first.known_owners, 1: Owner("flights-1", gone)}
    time = Time(pair.reset)
    assert ask(pair.first.url, method, time) == ANSWERS[method]
    pair.first.known_owners = {**pair.first.known_owners, 1: Owner("flights-1", gone)}
    with pytest.raises(InstanceNotReachableException, match=gone):
        ask(pair.first.url, method, Time())


# --- what can't be mended


@pytest.mark.parametrize("method", ASKED)
def test_nobody_at_the_first_url_is_said_at_once(method: str) -> None:
    url, time = unused_url(), Time()
    with pytest.raises(InstanceNotReachableException, match=rf"{url} .*refused.*check that it runs"):
        ask(url, method, time)
    assert time.pauses == []


def test_a_url_without_a_scheme_is_refused() -> None:
    with pytest.raises(ConfigException, match=r"'localhost:8080' .* http://"):
        StreamsQueryClient("localhost:8080")


@pytest.mark.parametrize(
    ("status", "body"), [(200, b"<html>hello</html>"), (200, b"[]"), (200, b"{}"), (404, b"{}"), (500, b"")]
)
def test_a_stranger_at_the_url_is_recognised(status: int, body: bytes) -> None:
    def answer(request: BaseHTTPRequestHandler) -> None:
        request.send_response(status)
        request.end_headers()
        request.wfile.write(body)

    told = pytest.raises(InstanceNotReachableException, match="not an instance of a streams application")
    with answering(answer) as url, told:
        ask(url, "count", Time())


@pytest.mark.parametrize("happening", ["migrated", "cut off"])
def test_a_failure_after_the_first_record_is_raised_and_stays(
    pair: Pair, happening: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(record_lines, "_CHUNK_BYTES", 1)
    view = pair.second.local[1] = FakeView(1, {b"UA": b"1", b"UB": b"2", b"UC": b"3"})
    original = view.scan

    def scan(*arguments: object, **options: object) -> object:
        walk = original(*arguments, **options)  # type: ignore[arg-type]

        def entries() -> object:
            yield next(walk)
            yield next(walk)
            view.is_open = False
            yield from walk

        return entries()

    def cut_off(*_: object) -> None:
        raise ZeroDivisionError("a defect where no line can tell of it")

    monkeypatch.setattr(view, "scan", scan)
    if happening == "cut off":
        monkeypatch.setattr(record_lines.RecordLines, "_end_with", cut_off)
    expected = StateStoreMigratedException if happening == "migrated" else InstanceNotReachableException
    seen = []
    with StreamsQueryClient(pair.first.url) as client, client.all("counts") as rows:
        for _ in range(2):
            with pytest.raises(expected):
                seen.extend(iter(rows.__next__, None))
    assert [row.key for row in seen] == ["AA", "B6", "DL", "EV", "UA", "UB"]
