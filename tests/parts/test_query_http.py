"""The HTTP endpoints of an instance: answers, problems, and what is never shown."""

from __future__ import annotations

import asyncio
import json
import re
from urllib.parse import quote

import httpx
import pytest
from query_fakes import KEYS, FakeClient, FakeView, client_with
from structlog.testing import capture_logs

from streams_runtime.errors import BrokerNotAvailableException, UnknownStateStoreException
from streams_runtime.kafka.producer.partitioner import partition_for
from streams_runtime.kafka.types import TopicPartition
from streams_runtime.query.metrics.instance_metrics import create_registry
from streams_runtime.query.server.http_app import create_app
from streams_runtime.query.server.liveness import Stuck
from streams_runtime.query.stores.views import Owner
from streams_runtime.query.wire import record_lines as records
from streams_runtime.query.wire.moments import parse_time
from streams_runtime.query.wire.problems import KINDS, InvalidQueryException, exception_of, problem_of
from streams_runtime.query.wire.windowed_keys import last_ms
from streams_runtime.states import ClientState, ThreadState

AWKWARD = (
    "",
    "a/b",
    "a//b/",
    ".",
    "..",
    "../x",
    "a?b#c",
    "100%",
    "%2F",
    "x\ny\n",
    "ü ß",
    "\x00",
    "a+b&c=d",
    "*",
)


class Current:
    """The client that the one application of these tests answers for at the moment."""

    client: FakeClient

    def describe(self) -> dict[str, object]:
        return self.client.describe()

    def __getattr__(self, name: str) -> object:
        return getattr(self.client, name)


current = Current()
app = create_app(current, create_registry(current.describe))  # type: ignore[arg-type]


def ask(client: FakeClient, target: str) -> httpx.Response:
    """GET of `target` (path and query, escaped already) from an application over `client`."""
    current.client = client

    async def get() -> httpx.Response:
        transport = httpx.ASGITransport(app)
        async with httpx.AsyncClient(transport=transport, base_url="http://test", trust_env=False) as http:
            return await http.get(target)

    return asyncio.run(get())


def lines(response: httpx.Response) -> list[dict[str, object]]:
    """The records of an answer that says that it is whole."""
    *found, last = every_line(response)
    assert last == {"complete": {"records": len(found)}}
    return found


def every_line(response: httpx.Response) -> list[dict[str, object]]:
    assert response.headers["Content-Type"] == "application/x-ndjson"
    return [json.loads(line) for line in response.text.splitlines()]


def problem(response: httpx.Response) -> dict[str, object]:
    assert response.headers["Content-Type"] == "application/problem+json"
    document: dict[str, object] = response.json()
    assert document["status"] == response.status_code
    assert document["type"] == f"urn:streamsoperator:{document['title']}"
    return document


# --- answers


def test_a_key_is_answered_with_its_value_or_null() -> None:
    client = client_with(0, 1, 2)
    assert ask(client, "/stores/counts/keys/UA").json() == {"key": "UA", "value": {"n": 4}}
    assert ask(client, "/stores/counts/keys/nobody").json() == {"key": "nobody", "value": None}


def test_a_key_is_answered_while_another_partition_is_being_restored() -> None:
    client = client_with(0, 1)
    client.restoring = {2}
    assert ask(client, "/stores/counts/keys/UA").status_code == 200
    assert problem(ask(client, "/stores/counts/keys/DL"))["title"] == "StreamsRebalancingException"
    assert problem(ask(client, "/stores/counts/all"))["title"] == "StreamsRebalancingException"


def test_an_answer_contains_the_records_that_the_query_names() -> None:
    client = client_with(0, 1, 2)
    for view in client.local.values():
        view.position = {TopicPartition("flights", view.partition): 58}
    position = "&".join(f"position=flights-{number}:57" for number in range(3))
    assert ask(client, f"/stores/counts/keys/UA?{position}").json() == {"key": "UA", "value": {"n": 4}}
    assert len(lines(ask(client, f"/stores/counts/all?{position}"))) == len(KEYS)
    assert ask(client, f"/stores/counts/count?{position}").json() == {"count": len(KEYS)}
    later = problem(ask(client, f"/stores/counts/all?{position}&position=flights-1:58"))
    assert (later["title"], later["status"], later["remedy"]) == ("NotUpToBoundException", 503, "retry")
    wrong = problem(ask(client, "/stores/counts/all?position=flights-1"))
    assert (wrong["title"], wrong["status"]) == ("InvalidQueryException", 400)


@pytest.mark.parametrize("key", AWKWARD)
def test_any_text_can_be_a_key(key: str) -> None:
    data = key.encode()
    client = FakeClient({0: FakeView(0, {data: b'"found"'})}, partitions=1)
    target = "/stores/counts/keys/" + quote(key, safe="").replace(".", "%2E")
    assert ask(client, target).json() == {"key": key, "value": "found"}
    within = f"/stores/counts/range?from={quote(key, safe='')}&to={quote(key, safe='')}"
    assert lines(ask(client, within)) == [{"key": key, "value": "found"}]


@pytest.mark.parametrize(
    ("key_format", "data", "text", "shown"),
    [
        ("long", "ffffffffffffffff", "-1", -1),
        ("int", "00000007", "7", 7),
        ("double", "7ff0000000000000", "Infinity", "Infinity"),
        ("double", "7ff8000000000000", "NaN", "NaN"),
        ("bytes", "fbff", "-_8=", "+/8="),
        ("bytes", "fbff", "%2B%2F8", "+/8="),
        ("json", b'{"u":"a"}'.hex(), "%7B%22u%22:%20%22a%22%7D", {"u": "a"}),
    ],
)
def test_a_key_is_read_in_the_stores_format(key_format: str, data: str, text: str, shown: object) -> None:
    client = FakeClient({0: FakeView(0, {bytes.fromhex(data): b"1"})}, partitions=1, key_format=key_format)
    assert ask(client, f"/stores/counts/keys/{text}").json() == {"key": shown, "value": 1}
    assert lines(ask(client, "/stores/counts/all")) == [{"key": shown, "value": 1}]


def test_range_and_all_are_lines_in_key_order() -> None:
    client = client_with(0, 1, 2)
    assert [line["key"] for line in lines(ask(client, "/stores/counts/all"))] == sorted(KEYS, key=str.encode)
    assert lines(ask(client, "/stores/counts/range?from=B&to=DL")) == [
        {"key": "B6", "value": {"n": 1}},
        {"key": "DL", "value": {"n": 2}},
    ]
    assert [line["key"] for line in lines(ask(client, "/stores/counts/range?from=hello"))] == ["hello", "ü"]
    assert lines(ask(client, "/stores/counts/range?from=x&to=a")) == []


def test_partitions_can_be_asked_for_by_number() -> None:
    client = client_with(0, 1, 2)
    target = "/stores/counts/all?partition=1&partition=2&keyBytes=true"
    assert [(line["key"], line["keyBytes"]) for line in lines(ask(client, target))] == [
        ("DL", "REw="),
        ("UA", "VUE="),
        ("WN", "V04="),
        ("ü", "w7w="),
    ]
    assert ask(client, "/stores/counts/count?partition=2").json() == {"count": 3}
    assert problem(ask(client_with(0), "/stores/counts/all?partition=0&partition=2"))["status"] == 421


def test_count_is_exact() -> None:
    assert ask(client_with(0, 1, 2), "/stores/counts/count").json() == {"count": len(KEYS)}


def test_stores_and_owners_are_listed() -> None:
    client = client_with(0, 2)
    client.known_owners = {1: Owner("flights-1", "http://there:2"), 0: Owner("flights-0", "http://here:1")}
    assert ask(client, "/stores").json() == {"stores": [{"name": "counts", "type": "key-value", "partitions": [0, 2]}]}
    assert ask(client, "/stores/counts/owners").json() == {
        "store": "counts",
        "partitions": 3,
        "keyFormat": "string",
        "owners": [
            {"partition": 0, "instance": "flights-0", "url": "http://here:1"},
            {"partition": 1, "instance": "flights-1", "url": "http://there:2"},
        ],
    }


def test_a_long_answer_comes_whole() -> None:
    entries = {b"%06d" % number: b'{"n":%d}' % number for number in range(5000)}
    client = FakeClient({0: FakeView(0, entries)}, partitions=1)
    answer = lines(ask(client, "/stores/counts/all"))
    assert [line["value"] for line in answer] == [{"n": number} for number in range(5000)]
    assert all(scan.closed for scan in client.local[0].scans)


@pytest.mark.parametrize("endpoint", ["all?", "range?from=A&", "prefix?prefix=&"])
@pytest.mark.parametrize(("limit", "more"), [(1, True), (7, True), (8, False), (9, False), (2**53, False)])
def test_an_answer_has_as_many_records_as_its_limit_and_says_whether_there_are_more(
    endpoint: str, limit: int, more: bool
) -> None:
    client = client_with(0, 1, 2)
    *records, last = every_line(ask(client, f"/stores/counts/{endpoint}limit={limit}"))
    assert [each["key"] for each in records] == sorted(KEYS, key=str.encode)[:limit]
    assert last == {"complete": {"records": len(records), **({"more": True} if more else {})}}
    assert all(scan.closed for view in client.local.values() for scan in view.scans)


@pytest.mark.parametrize("limit", ["0", "-1", "x", "", str(2**53 + 1), "1&limit=1"])
def test_a_limit_that_is_none_is_refused(limit: str) -> None:
    assert problem(ask(client_with(0, 1, 2), f"/stores/counts/all?limit={limit}"))["status"] == 400


# --- health, state, metrics


@pytest.mark.parametrize("state", ClientState)
def test_only_running_is_ready_and_every_state_is_healthy(state: ClientState) -> None:
    client = client_with(0)
    client.state = state
    ready = ask(client, "/readyz")
    assert ready.status_code == (200 if state == "RUNNING" else 503)
    assert ready.json() == {"state": state.value, "sparkReady": True}
    assert ask(client, "/healthz").status_code == 200
    assert ask(client, "/state").json() == client.describe()
    assert ask(client, "/metrics").status_code == 200


def test_a_stuck_thread_makes_the_instance_unhealthy_and_is_named() -> None:
    client = client_with(0)
    client.stuck = (Stuck("t2", ThreadState.RUNNING, seconds=301, allowed=300),)
    answer = ask(client, "/healthz")
    assert answer.status_code == 503
    [thread] = answer.json()["threads"]
    assert (thread["name"], thread["seconds"]) == ("t2", 301)
    ready = ask(client, "/readyz")
    assert (ready.status_code, ready.json()) == (
        503,
        {"state": "RUNNING", "sparkReady": True, "stuck": ["t2"]},
    )


@pytest.mark.parametrize(("analysed", "status"), [(True, 200), (False, 503)])
def test_before_spark_is_there_only_an_instance_whose_topology_was_analysed_before_is_ready(
    analysed: bool, status: int
) -> None:
    client = client_with(0)
    client.spark_ready, client.is_analysed = False, analysed
    ready = ask(client, "/readyz")
    assert (ready.status_code, ready.json()) == (status, {"state": "RUNNING", "sparkReady": False})
    assert ask(client, "/state").json()["spark_ready"] is False
    assert "kafka_streams_client_spark_ready" in ask(client, "/metrics").text


def test_metrics_show_the_description_under_kafka_streams_names() -> None:
    text = ask(client_with(0), "/metrics").text
    labels = 'application_id="flights",client_id="flights-0"'
    for sample in (
        f'kafka_streams_client_state{{{labels},state="RUNNING"}} 1.0',
        f'kafka_streams_client_state{{{labels},state="ERROR"}} 0.0',
        f'kafka_streams_threads{{{labels},state="DEAD"}} 1.0',
        f"kafka_streams_alive_stream_threads{{{labels}}} 1.0",
        f'kafka_streams_tasks{{{labels},state="RUNNING"}} 1.0',
        f'kafka_streams_restore_remaining_records{{{labels},partition="2",store="counts"}} 60.0',
        f'kafka_streams_records_lag{{{labels},partition="0",topic="flights"}} 7.0',
        f"kafka_streams_process_total{{{labels}}} 1000.0",
        f"kafka_streams_dropped_records_total{{{labels}}} 3.0",
        f"kafka_streams_restore_total{{{labels}}} 40.0",
        f'kafka_streams_restore_eta_seconds{{{labels},partition="2",store="counts"}} 3.0',
        f"kafka_streams_restore_rate{{{labels}}} 5.0",
        f"kafka_streams_active_restore_ratio{{{labels}}} 0.5",
        f"kafka_streams_active_restoring_tasks{{{labels}}} 0.0",
        f"kafka_streams_standby_updating_tasks{{{labels}}} 0.0",
        f"kafka_streams_standby_paused_tasks{{{labels}}} 1.0",
        f'kafka_streams_standby_records_lag{{{labels},partition="3",store="counts"}} 8.0',
        f"kafka_streams_update_total{{{labels}}} 9.0",
        f"kafka_streams_quarantined_stores_total{{{labels}}} 1.0",
        f'kafka_streams_snapshot_age_seconds{{{labels},store="counts"}} 70.0',
        f"kafka_streams_snapshots_made_total{{{labels}}} 4.0",
        f"kafka_streams_snapshot_uploaded_bytes_total{{{labels}}} 5000.0",
        f"kafka_streams_snapshot_failures_total{{{labels}}} 1.0",
        f"kafka_streams_snapshot_longest_pause_seconds{{{labels}}} 0.004",
        f"kafka_streams_snapshots_fetched_total{{{labels}}} 2.0",
        f"kafka_streams_snapshot_downloaded_bytes_total{{{labels}}} 6000.0",
        f"kafka_streams_snapshots_put_aside_total{{{labels}}} 1.0",
        f"kafka_streams_batches_total{{{labels}}} 4.0",
        f"kafka_streams_deserialization_errors_total{{{labels}}} 2.0",
        f"kafka_streams_processing_errors_total{{{labels}}} 5.0",
        f"kafka_streams_production_errors_total{{{labels}}} 6.0",
        f"kafka_streams_dead_letters_total{{{labels}}} 1.0",
        f'kafka_streams_peek_count{{{labels},metric="cents",step="seen"}} 3.0',
        f'kafka_streams_peek_sum{{{labels},metric="cents",step="seen"}} 4.5',
    ):
        assert sample in text.splitlines()
    assert 'partition="1",topic="flights"' not in text, "a lag that nobody knows is no number"


# --- problems

SIX = {
    "StreamsNotStartedException": (503, "retryable", "retry"),
    "StreamsRebalancingException": (503, "retryable", "retry"),
    "StateStoreMigratedException": (409, "retryable", "rediscover"),
    "StateStoreNotAvailableException": (410, "fatal", "do-not-retry"),
    "UnknownStateStoreException": (404, "fatal", "fix-the-name"),
    "InvalidStateStorePartitionException": (421, "fatal", "go-to"),
}
TARGETS = (
    "/stores/counts/keys/UA",
    "/stores/counts/range?from=A",
    "/stores/counts/all",
    "/stores/counts/count",
)


@pytest.mark.parametrize(
    ("title", "state"),
    [
        ("StreamsNotStartedException", "CREATED"),
        ("StreamsRebalancingException", "REBALANCING"),
        ("StateStoreMigratedException", "RUNNING"),
        ("InvalidStateStorePartitionException", "RUNNING"),
        ("StateStoreNotAvailableException", "PENDING_SHUTDOWN"),
        ("StateStoreNotAvailableException", "NOT_RUNNING"),
        ("StateStoreNotAvailableException", "PENDING_ERROR"),
        ("StateStoreNotAvailableException", "ERROR"),
        ("UnknownStateStoreException", "RUNNING"),
    ],
)
@pytest.mark.parametrize("target", TARGETS)
def test_each_exception_is_its_problem(title: str, state: str, target: str) -> None:
    client = client_with(1)
    client.state = ClientState(state)
    if title == "StateStoreMigratedException":
        client.local[1].is_open = False
    if title == "InvalidStateStorePartitionException":
        client.local.clear()
    if title == "UnknownStateStoreException":
        target = target.replace("counts", "nothing")
    response = ask(client, target)
    document = problem(response)
    assert document["title"] == title
    assert (response.status_code, document["category"], document["remedy"]) == SIX[title]
    assert ("Retry-After" in response.headers) == (response.status_code == 503)
    assert "owner" not in document


@pytest.mark.parametrize("exception", KINDS, ids=lambda exception: exception.__name__)
def test_a_problem_becomes_the_exception_that_it_was(exception: type[Exception]) -> None:
    again = exception_of(problem_of(exception("what; do this")).document())  # type: ignore[arg-type]
    assert type(again) is exception
    assert str(again) == "what; do this"


def test_a_key_elsewhere_comes_with_its_owner() -> None:
    client = client_with(0)
    client.known_owners = {1: Owner("flights-1", "http://there:2")}
    assert problem(ask(client, "/stores/counts/keys/UA"))["owner"] == "http://there:2"


def test_an_instance_never_sends_to_itself() -> None:
    client = client_with(0)
    client.known_owners = {1: Owner("flights-0", client.url)}
    assert "owner" not in problem(ask(client, "/stores/counts/keys/UA"))


def test_a_broker_that_is_away_is_said_and_may_be_retried() -> None:
    client = client_with(0)
    client.owners_error = BrokerNotAvailableException("no broker at b:9092; the application retries")
    for target in ("/stores/counts/owners", "/stores/counts/keys/UA"):
        response = ask(client, target)
        assert (problem(response)["title"], response.status_code) == ("BrokerNotAvailableException", 503)


def test_a_broker_that_is_away_does_not_hide_that_a_store_moved() -> None:
    client = client_with(0, 1, 2)
    client.local[1].is_open = False
    client.owners_error = BrokerNotAvailableException("no broker at b:9092; the application retries")
    for target in ("/stores/counts/keys/UA", "/stores/counts/all", "/stores/counts/all?partition=1"):
        assert problem(ask(client, target))["title"] == "StateStoreMigratedException"


def test_owners_of_an_unknown_store_are_a_wrong_name() -> None:
    assert isinstance(exception_of(problem(ask(client_with(0), "/stores/x/owners"))), UnknownStateStoreException)


@pytest.mark.parametrize(
    "target",
    ["/stores/counts/keys/seven", "/stores/counts/range?from=seven", "/stores/counts/range?from=1&to=seven"],
)
def test_text_that_is_no_key_is_a_bad_request_naming_it(target: str) -> None:
    client = FakeClient({0: FakeView(0, {})}, partitions=1, key_format="long")
    document = problem(ask(client, target))
    assert (document["status"], document["remedy"]) == (400, "fix-the-query")
    assert "'seven'" in str(document["detail"])


@pytest.mark.parametrize("target", ["/stores/counts/keys/%FF", "/stores/counts/range?from=%FF"])
def test_escapes_that_are_not_utf8_are_refused_and_not_taken_for_another_key(target: str) -> None:
    document = problem(ask(client_with(0, 1, 2), target))
    assert (document["status"], document["title"]) == (400, "InvalidQueryException")


@pytest.mark.parametrize(
    ("target", "status"),
    [("/nothing", 404), ("/stores/counts/all?partition=x", 400), ("/stores/counts", 404)],
)
def test_a_request_that_no_endpoint_takes_is_a_problem_too(target: str, status: int) -> None:
    assert problem(ask(client_with(0), target))["status"] == status


def test_a_defect_is_told_without_its_trace(monkeypatch: pytest.MonkeyPatch) -> None:
    client = client_with(0)

    def broken(_: str) -> None:
        raise ZeroDivisionError("secret place")

    monkeypatch.setattr(client, "codec", broken)
    with capture_logs() as logs:
        response = ask(client, "/stores/counts/keys/AA")
    assert (problem(response)["status"], "secret" in response.text) == (500, False)
    assert [(entry["event"], entry["exc_info"]) for entry in logs] == [("query.failed", True)]


def test_a_stored_value_that_cannot_be_read_is_no_fault_of_the_query() -> None:
    key = next(key for key in KEYS if partition_for(key.encode(), 1) == 0)
    client = FakeClient({0: FakeView(0, {key.encode(): b"{broken"})}, partitions=1)
    for target in (f"/stores/counts/keys/{key}", "/stores/counts/all"):
        document = problem(ask(client, target))
        assert document["status"] == 500
        assert "not a JSON document" in str(document["detail"])


@pytest.mark.parametrize(
    ("failure", "title"),
    [
        ("migrated", "StateStoreMigratedException"),
        ("defect", "StreamsException"),
        ("value", "SerdeException"),
    ],
)
def test_a_failure_in_mid_stream_is_the_last_line(failure: str, title: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(records, "_CHUNK_BYTES", 1)
    view = FakeView(0, {b"a": b"1", b"b": b"2", b"c": b"{" if failure == "value" else b"3"})
    client = FakeClient({0: view}, partitions=1)
    original = view.scan

    def scan(*arguments: object, **options: object) -> object:
        walk = original(*arguments, **options)  # type: ignore[arg-type]

        def entries() -> object:
            yield next(walk)
            yield next(walk)
            if failure == "migrated":
                view.is_open = False
            if failure == "defect":
                raise ZeroDivisionError("secret place")
            yield from walk

        return entries()

    monkeypatch.setattr(view, "scan", scan)
    with capture_logs() as logs:
        *whole, last = every_line(ask(client, "/stores/counts/all"))
    assert len(logs) == (1 if failure == "defect" else 0)
    assert [line["key"] for line in whole] == ["a", "b"]
    assert list(last) == ["problem"]
    assert last["problem"]["title"] == title  # type: ignore[index]
    assert "secret" not in str(last)


# --- parameters


def test_records_come_in_reverse_and_by_prefix() -> None:
    client = client_with(0, 1, 2)
    ordered = sorted(KEYS, key=str.encode)
    assert [line["key"] for line in lines(ask(client, "/stores/counts/all?reverse=true"))] == ordered[::-1]
    between = lines(ask(client, "/stores/counts/range?from=B6&to=EV&reverse=true"))
    assert [line["key"] for line in between] == ["EV", "DL", "B6"]
    assert [line["key"] for line in lines(ask(client, "/stores/counts/prefix?prefix=h"))] == ["hello"]
    assert ask(client, "/stores/counts/approximate-count?partition=2").json() == {"count": 3}


@pytest.mark.parametrize(
    ("target", "said"),
    [
        (
            "/stores/counts/range?form=A",
            "form: no such parameter here, only: from, keyBytes, limit, partition, position, reverse",
        ),
        ("/stores/counts/count?from=A", "from: no such parameter here, only: partition, position, stale"),
        ("/stores/counts/owners?stale=true", "stale: no such parameter here, only: none"),
        ("/stores/counts/range?from=A&from=B", "from: given 2 times"),
        ("/stores/counts/range?partition=one", "query.partition.0: "),
        ("/stores/counts/range?reverse=maybe", "query.reverse: "),
        ("/stores/counts/prefix", "query.prefix: "),
    ],
)
def test_a_parameter_that_does_not_fit_is_refused_by_its_name(target: str, said: str) -> None:
    document = problem(ask(client_with(0, 1, 2), target))
    assert (document["status"], document["title"]) == (400, "InvalidQueryException")
    assert str(document["detail"]).startswith(said)


@pytest.mark.parametrize(
    ("text", "ms"),
    [
        ("2026-01-01T12:00:00Z", 1767268800000),
        ("2026-01-01T13:00:00.5+01:00", 1767268800500),
        ("2026-01-01 12:00:00+00:00", 1767268800000),
        ("1767268800000", 1767268800000),
        ("0", 0),
    ],
)
def test_times_are_rfc_3339_or_milliseconds(text: str, ms: int) -> None:
    assert last_ms("time", parse_time("time", text)) == ms


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("2026-01-01T12:00:00", "add Z"),
        ("noon", "write RFC 3339"),
        ("", "write RFC 3339"),
        ("-5", "write RFC 3339"),
        ("1.5", "write RFC 3339"),
        ("9" * 30, "write RFC 3339"),
        ("1969-12-31T23:59:59Z", "before 1970"),
        ("2026-01-01T12:00:00 01:00", "a + in a URL is written %2B"),
    ],
)
def test_what_is_no_time_is_refused_by_the_parameters_name(text: str, said: str) -> None:
    with pytest.raises(InvalidQueryException, match=r"^fromTime: ") as refused:
        parse_time("fromTime", text)
    assert said in str(refused.value)


# --- the description


def test_every_endpoint_is_described_with_its_answer_and_its_problems() -> None:
    document = ask(client_with(0), "/openapi.json").json()
    schemas = document["components"]["schemas"]
    assert set(schemas["Problem"]["properties"]) == {
        *("type", "title", "status", "detail", "category", "remedy", "owner"),
    }
    assert {*schemas["Problem"]["properties"]["remedy"]["enum"]} == {kind.remedy for kind in KINDS.values()}
    stores = [path for path in document["paths"] if "/stores" in path]
    assert len(stores) == 17
    for path in stores:
        operation = document["paths"][path]["get"]
        assert operation["summary"]
        assert {int(status) for status in operation["responses"]} == {200, *(kind.status for kind in KINDS.values())}
        assert all(each["description"] for each in operation.get("parameters", ()) if each["name"] != "store")
        assert operation["responses"]["421"]["content"] == {
            "application/problem+json": {"schema": {"$ref": "#/components/schemas/Problem"}}
        }
    for reference in re.findall(r"#/components/schemas/(\w+)", json.dumps(document)):
        assert reference in schemas


def test_the_page_needs_neither_scripts_nor_other_hosts() -> None:
    page = ask(client_with(0), "/docs")
    assert page.headers["Content-Type"].startswith("text/html")
    for word in ("<script", "src=", "http://", "https://"):
        assert word not in page.text
    for word in ("GET /stores/{store}/windows/range", "InvalidStateStorePartitionException", "keyBytes"):
        assert word in page.text


def test_figures_hold_numbers_and_no_names() -> None:
    answer = ask(client_with(0), "/state/figures")
    assert answer.json() == {
        "state": "RUNNING",
        "spark_ready": True,
        "tasks": [{"id": "0_0", "state": "RUNNING"}],
        "standbys": [{"id": "0_3", "lag": 8, "age": 0.5}],
        "lag": [{"position": 5, "lag": 7}, {"position": 5, "lag": None}],
        "restoration": [{"position": 40, "end": 100, "ended_at": None}],
        "warm_up": None,
        "snapshot_bytes": 6500,
    }
