"""Who may query: tokens from a file, tokens that an API server reviews, and what stays open to everybody."""

from __future__ import annotations

import asyncio
import threading
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import asgi
import httpx
import pytest
from prometheus_client import CollectorRegistry
from query_fakes import client_with

from streams_runtime.api.spec.queries_spec import QueriesSpec
from streams_runtime.errors import ConfigException, StreamsException
from streams_runtime.kubernetes.pod_status_api import ApiAccess
from streams_runtime.kubernetes.query_guard import pod_guard
from streams_runtime.kubernetes.token_review import TokenReviewer, review_of
from streams_runtime.query.server.access import OPEN, Gate, QueryGuard, TokenGate, check_guard
from streams_runtime.query.server.http_app import create_app
from streams_runtime.query.server.tls import TlsFiles
from streams_runtime.query.server.token_access import REVIEW_CACHE_SECONDS, Review, ReviewGate, admitted
from streams_runtime.query.wire.problems import AccessNotCheckedException, QueryNotAuthenticatedException

OPEN_PATHS = ("/healthz", "/readyz", "/state/figures", "/openapi.json", "/docs")
GUARDED = (
    "/state",
    "/metrics",
    "/stores",
    "/stores/counts/owners",
    "/stores/counts/keys/UA",
    "/stores/counts/versions/UA?asOf=x",
    "/stores/counts/range",
    "/stores/counts/all?nonsense=1",
    "/stores/counts/prefix?prefix=A",
    "/stores/counts/count",
    "/stores/counts/approximate-count",
    "/stores/counts/window/UA?time=x",
    "/stores/counts/windows/keys/UA",
    "/stores/counts/windows/range",
    "/stores/counts/windows/all",
    "/stores/counts/session/UA?start=x&end=y",
    "/stores/counts/sessions/keys/UA",
    "/stores/counts/sessions/range",
    "/relay/ADDRESS/stores/counts/REST",
    "/topology",
    "/instances",
    "/instances/NAME/state",
)
PARAMETERS = {"NAME": "{instance}", "counts": "{store}", "UA": "{key}", "ADDRESS": "{address}", "REST": "{rest}"}
KEY = "/stores/counts/keys/UA"


@pytest.fixture
def token(tmp_path: Path) -> Path:
    file = tmp_path / "token"
    file.write_text("s3cret\n")
    return file


class Switch:
    """The gate of the one application of these tests, which takes a while to make."""

    gate: Gate

    async def admit(self, authorization: str | None, address: str) -> None:
        await self.gate.admit(authorization, address)


switch = Switch()
app = create_app(client_with(0, 1, 2), CollectorRegistry(), switch)


def ask(gate: Gate, target: str = KEY, authorization: str | None = None) -> asgi.Answer:
    switch.gate = gate
    return asyncio.run(asgi.get(app, target, {} if authorization is None else {"Authorization": authorization}))


def told(answer: asgi.Answer) -> tuple[int, str, str, str]:
    document = answer.json()
    return answer.status, document["title"], document["category"], document["remedy"]


NOT_AUTHENTICATED = (401, "QueryNotAuthenticatedException", "fatal", "authenticate")
FORBIDDEN = (403, "QueryForbiddenException", "fatal", "do-not-retry")
NOT_CHECKED = (503, "AccessNotCheckedException", "retryable", "retry")


# --- a token in a file


@pytest.mark.parametrize("path", OPEN_PATHS)
def test_probes_figures_and_the_description_are_open(token: Path, path: str) -> None:
    assert ask(TokenGate(token), path).status == 200


@pytest.mark.parametrize("path", GUARDED)
def test_everything_that_shows_data_asks_for_the_token_before_anything_else(token: Path, path: str) -> None:
    answer = ask(TokenGate(token), path)
    assert told(answer) == NOT_AUTHENTICATED
    assert answer.headers["www-authenticate"] == 'Bearer realm="queries"'
    assert ask(TokenGate(token), path, "Bearer s3cret").status in (200, 400, 502)  # 502: ADDRESS and NAME are nobody's


def test_no_path_is_guarded_or_open_by_accident(token: Path) -> None:
    document = ask(TokenGate(token), "/openapi.json").json()
    open_there = {path for path, operations in document["paths"].items() if "security" not in operations["get"]}
    assert open_there == set(OPEN_PATHS) - {"/openapi.json", "/docs"}
    assert set(document["paths"]) - open_there == {
        "/".join(PARAMETERS.get(part, part) for part in path.partition("?")[0].split("/")) for path in GUARDED
    }


@pytest.mark.parametrize(
    "authorization",
    ["Bearer wrong", "Bearer s3cre", "Bearer s3cret2", "Bearer", "Bearer ", "Basic s3cret", "s3cret", ""],
)
def test_another_header_is_refused(token: Path, authorization: str) -> None:
    assert told(ask(TokenGate(token), authorization=authorization)) == NOT_AUTHENTICATED


@pytest.mark.parametrize("authorization", ["Bearer s3cret", "bearer s3cret", "BEARER  s3cret "])
def test_the_token_is_let_through(token: Path, authorization: str) -> None:
    assert ask(TokenGate(token), authorization=authorization).json() == {"key": "UA", "value": {"n": 4}}


def test_a_changed_token_counts_at_once_and_the_former_no_more(token: Path) -> None:
    gate = TokenGate(token)
    assert ask(gate, authorization="Bearer s3cret").status == 200
    fresh = token.with_name("fresh")
    fresh.write_text("another")
    fresh.replace(token)
    assert ask(gate, authorization="Bearer another").status == 200
    assert told(ask(gate, authorization="Bearer s3cret")) == NOT_AUTHENTICATED


@pytest.mark.parametrize("content", [None, "", " \n"])
def test_without_a_token_in_the_file_nobody_passes(token: Path, content: str | None) -> None:
    token.unlink()
    if content is not None:
        token.write_text(content)
    for presented in ("Bearer s3cret", "Bearer x"):
        answer = ask(TokenGate(token), authorization=presented)
        assert (told(answer), answer.headers["retry-after"]) == (NOT_CHECKED, "1")
        assert str(token) in answer.json()["detail"]


# --- tokens that an API server reviews


class Cluster:
    """Reviews tokens, counts the reviews, and can be away."""

    def __init__(self, **known: Review) -> None:
        self.known = known
        self.asked: list[str] = []
        self.away = False
        self.now = 100.0

    def __call__(self, token: str) -> Review:
        self.asked.append(token)
        if self.away:
            raise AccessNotCheckedException("the API server does not answer; retry")
        return self.known.get(token, Review(None, error="invalid bearer token"))

    def gate(self, *accounts: str, groups: tuple[str, ...] = ()) -> ReviewGate:
        return ReviewGate(self, admitted(accounts, groups, "shop"), lambda: self.now)


def account(name: str, *groups: str) -> Review:
    return Review(f"system:serviceaccount:{name}", frozenset(groups))


def test_accounts_and_groups_that_are_listed_may_ask_and_others_not() -> None:
    cluster = Cluster(
        own=account("shop:reports"), other=account("bi:reports"), member=account("x:y", "auditors"), no=account("x:z")
    )
    gate = cluster.gate("reports", "bi/board", groups=("auditors",))
    outcomes = {name: ask(gate, authorization=f"Bearer {name}") for name in ("own", "other", "member", "no", "fake")}
    assert outcomes["own"].status == outcomes["member"].status == 200
    assert told(outcomes["other"]) == told(outcomes["no"]) == FORBIDDEN
    assert "system:serviceaccount:x:z" in outcomes["no"].json()["detail"]
    assert told(outcomes["fake"]) == NOT_AUTHENTICATED
    assert "invalid bearer token" in outcomes["fake"].json()["detail"]


def test_a_review_is_believed_for_a_short_while_and_so_is_a_refusal() -> None:
    cluster = Cluster(own=account("shop:reports"))
    gate = cluster.gate("reports")
    for _ in range(3):
        ask(gate, authorization="Bearer own")
        ask(gate, authorization="Bearer fake")
    assert cluster.asked == ["own", "fake"]
    cluster.now += REVIEW_CACHE_SECONDS
    del cluster.known["own"]
    assert told(ask(gate, authorization="Bearer own")) == NOT_AUTHENTICATED


def test_an_api_server_that_is_away_lets_nobody_in_but_those_it_has_just_reviewed() -> None:
    cluster = Cluster(own=account("shop:reports"), late=account("shop:reports"))
    gate = cluster.gate("reports")
    assert ask(gate, authorization="Bearer own").status == 200
    cluster.away = True
    assert ask(gate, authorization="Bearer own").status == 200
    assert told(ask(gate, authorization="Bearer late")) == NOT_CHECKED
    cluster.now += REVIEW_CACHE_SECONDS
    assert told(ask(gate, authorization="Bearer own")) == NOT_CHECKED
    cluster.away = False
    assert ask(gate, authorization="Bearer late").status == 200, "that it was away is not remembered"


def test_requests_with_the_same_token_at_once_are_one_review() -> None:
    cluster = Cluster(own=account("shop:reports"))
    switch.gate = cluster.gate("reports")

    async def many() -> list[asgi.Answer]:
        return await asyncio.gather(*(asgi.get(app, KEY, {"Authorization": "Bearer own"}) for _ in range(20)))

    assert {answer.status for answer in asyncio.run(many())} == {200}
    assert cluster.asked == ["own"]


def test_invented_tokens_can_not_fill_the_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("streams_runtime.query.server.token_access._CACHED", 3)
    cluster = Cluster(own=account("shop:reports"))
    gate = cluster.gate("reports")
    ask(gate, authorization="Bearer own")
    for number in range(5):
        ask(gate, authorization=f"Bearer {number}")
    ask(gate, authorization="Bearer 0")
    ask(gate, authorization="Bearer 4")
    ask(gate, authorization="Bearer own")
    assert cluster.asked == ["own", "0", "1", "2", "3", "4", "0"], "nor push out one that counts"


class Hanging(Cluster):
    """Answers no review of a token that it does not know until it is let go."""

    def __init__(self, **known: Review) -> None:
        super().__init__(**known)
        self.let_go = threading.Event()

    def __call__(self, token: str) -> Review:
        review = super().__call__(token)
        if review.user is None:
            assert self.let_go.wait(60)
        return review


def flooded(cluster: Hanging, gate: ReviewGate, *requests: tuple[str, str]) -> list[object]:
    """What comes of (token, address), one after another, while 300 invented tokens from 10.0.0.1 wait; an error's class
    or None, and at the end all that became of these.
    """

    async def outcome(token: str, address: str) -> object:
        try:
            return await gate.admit(f"Bearer {token}", address)
        except StreamsException as error:
            return type(error)

    async def flood() -> list[object]:
        try:
            invented = [asyncio.create_task(outcome(f"fake{number}", "10.0.0.1")) for number in range(300)]
            await asyncio.sleep(0)
            found = [await asyncio.wait_for(outcome(*request), 60) for request in requests]
        finally:
            cluster.let_go.set()
        return [*found, Counter(await asyncio.gather(*invented))]

    return asyncio.run(flood())


def test_invented_tokens_of_one_address_keep_no_other_address_waiting_and_are_turned_away_in_time() -> None:
    cluster = Hanging(own=account("shop:reports"))
    *found, invented = flooded(cluster, cluster.gate("reports"), ("own", "10.0.0.2"), ("fake", "10.0.0.1"))
    assert found == [None, AccessNotCheckedException]
    assert invented == {QueryNotAuthenticatedException: 32, AccessNotCheckedException: 268}


def test_a_token_that_counted_is_reviewed_again_ahead_of_invented_ones_even_of_the_same_address() -> None:
    cluster = Hanging(own=account("shop:reports"))
    gate = cluster.gate("reports")
    asyncio.run(gate.admit("Bearer own", "10.0.0.1"))
    cluster.now += REVIEW_CACHE_SECONDS
    assert flooded(cluster, gate, ("own", "10.0.0.1"))[0] is None
    assert cluster.asked.count("own") == 2


def test_a_caller_that_leaves_takes_its_review_from_nobody_else() -> None:
    cluster = Hanging(own=account("shop:reports"))
    gate = cluster.gate("reports")

    async def leave() -> object:
        leaving, staying = (asyncio.create_task(gate.admit("Bearer fake", "10.0.0.1")) for _ in range(2))
        await asyncio.sleep(0)
        leaving.cancel()
        cluster.let_go.set()
        return await asyncio.gather(leaving, staying, return_exceptions=True)

    left, stayed = map(type, asyncio.run(leave()))  # type: ignore[call-overload]
    assert (left, stayed) == (asyncio.CancelledError, QueryNotAuthenticatedException)
    assert cluster.asked == ["fake"]


# --- what the API server says


def reviewed(**status: Any) -> dict[str, Any]:
    return {"kind": "TokenReview", "status": status}


USER = {"username": "system:serviceaccount:shop:reports", "groups": ["system:authenticated"]}


@pytest.mark.parametrize(
    ("status", "audience", "user"),
    [
        ({"authenticated": True, "user": USER}, None, USER["username"]),
        ({"authenticated": True, "user": USER, "audiences": ["queries"]}, "queries", USER["username"]),
        ({"authenticated": True, "user": USER, "audiences": ["other"]}, "queries", None),
        ({"authenticated": True, "user": USER}, "queries", None),
        ({"authenticated": False, "user": USER}, None, None),
        ({"authenticated": True, "user": {}}, None, None),
        ({"error": "expired"}, None, None),
        ({}, None, None),
    ],
)
def test_a_review_counts_only_where_it_says_so_in_full(status: Any, audience: str | None, user: str | None) -> None:
    assert review_of(reviewed(**status), audience).user == user


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (lambda _: httpx.Response(403, json={"message": "forbidden"}), "system:auth-delegator"),
        (lambda _: httpx.Response(401, text="Unauthorized"), "answered 401: Unauthorized"),
        (lambda _: httpx.Response(503, text="overloaded"), "answered 503: overloaded"),
    ],
)
def test_an_api_server_that_gives_no_review_is_told_with_what_to_do(
    tmp_path: Path, answer: Callable[[httpx.Request], httpx.Response], said: str
) -> None:
    reviewer = reviewer_of(tmp_path, answer)
    with pytest.raises(AccessNotCheckedException, match=said):
        reviewer("any")


def test_an_api_server_that_is_not_there_is_told(tmp_path: Path) -> None:
    def away(_: httpx.Request) -> httpx.Response:
        raise httpx.ConnectError("refused")

    with pytest.raises(AccessNotCheckedException, match=r"http://api does not answer \(refused\); retry"):
        reviewer_of(tmp_path, away)("any")


def reviewer_of(folder: Path, answer: Callable[[httpx.Request], httpx.Response]) -> TokenReviewer:
    (folder / "token").write_text("own")
    access = ApiAccess("http://api", folder / "token", folder / "ca.crt")
    return TokenReviewer(access, transport=httpx.MockTransport(answer))


# --- what the resource promises is kept


def queries(**fields: Any) -> QueriesSpec:
    return QueriesSpec.model_validate(fields)


TOKEN_SPEC = queries(access={"token": {"secretRef": {"name": "orders-queries"}}})
TLS_SPEC = queries(tls={"secretRef": {"name": "orders-tls"}})


@pytest.mark.parametrize(("spec", "field"), [(TOKEN_SPEC, "spec.queries.access"), (TLS_SPEC, "spec.queries.tls")])
def test_a_client_that_would_answer_openly_against_the_resource_is_refused(spec: QueriesSpec, field: str) -> None:
    with pytest.raises(ConfigException, match=field):
        check_guard(spec, OPEN)


def test_a_guard_may_be_stricter_than_the_resource(token: Path) -> None:
    check_guard(queries(), QueryGuard(TokenGate(token), TlsFiles(token, token)))


def test_a_pod_has_the_guard_that_its_resource_names(token: Path, tmp_path: Path) -> None:
    api = ApiAccess("http://api", token, token)
    (tmp_path / "access").mkdir()
    token.replace(tmp_path / "access" / "token")
    assert pod_guard(queries(), "shop", api, tmp_path) == OPEN
    by_token = pod_guard(TOKEN_SPEC, "shop", api, tmp_path)
    assert by_token.gate is not None
    assert (ask(by_token.gate).status, ask(by_token.gate, authorization="Bearer s3cret").status) == (401, 200)
    assert pod_guard(TLS_SPEC, "shop", api, tmp_path).tls == TlsFiles(
        tmp_path / "tls" / "tls.crt", tmp_path / "tls" / "tls.key"
    )
    kubernetes = queries(access={"kubernetes": {"serviceAccounts": ["reports"]}})
    assert isinstance(pod_guard(kubernetes, "shop", api, tmp_path).gate, ReviewGate)
