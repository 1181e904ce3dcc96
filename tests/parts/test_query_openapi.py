"""Every answer of the query server is one that its OpenAPI document declares, whatever is asked (schemathesis)."""

from __future__ import annotations

import asyncio
import copy
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import asgi
import httpx
import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry
from query_stage import STORES, Place, QueryStage, query_stage
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)
from structlog.testing import capture_logs

from streams_runtime.query.server.access import Gate
from streams_runtime.query.server.http_app import create_app
from streams_runtime.query.server.liveness import Stuck
from streams_runtime.query.stores.views import Owner
from streams_runtime.query.wire.problems import (
    AccessNotCheckedException,
    QueryForbiddenException,
    QueryNotAuthenticatedException,
)
from streams_runtime.states import ClientState, ThreadState

CHECKED = [content_type_conformance, response_headers_conformance, response_schema_conformance, status_code_conformance]
TOKENS = {
    "good": None,
    "none": QueryNotAuthenticatedException("no token"),
    "forbidden": QueryForbiddenException("may not"),
    "unchecked": AccessNotCheckedException("nobody says"),
}
MODES = [schemathesis.GenerationMode.POSITIVE, schemathesis.GenerationMode.NEGATIVE]


class Tokens:
    """Answers as the token's name says."""

    async def admit(self, authorization: str | None, address: str) -> None:
        error = TOKENS.get((authorization or "none").removeprefix("Bearer "), TOKENS["none"])
        if error is not None:
            raise error


GATE: Gate = Tokens()


@pytest.fixture(scope="module")
def shared_stage() -> Iterator[QueryStage]:
    with query_stage(history=3_600_000) as made:
        yield made


@pytest.fixture(scope="module")
def app(shared_stage: QueryStage) -> Any:
    return create_app(shared_stage, CollectorRegistry(), GATE)


@pytest.fixture(scope="module")
def document(app: Any) -> dict[str, Any]:
    found = asyncio.run(asgi.get(app, "/openapi.json")).json()
    assert isinstance(found, dict)
    return found


@pytest.fixture(scope="module")
def operations(document: dict[str, Any]) -> dict[str, Any]:
    """Those of the document, which asks for stores that there are: by other names only 404 would be seen."""
    tailored = copy.deepcopy(document)
    for path in tailored["paths"].values():
        for parameter in path["get"].get("parameters", ()):
            if parameter["name"] == "store":
                parameter["schema"]["enum"] = [*STORES, "nothing"]
            if parameter["name"] == "instance":
                parameter["schema"]["enum"] = ["app-0", "app-1", "nobody"]
            if parameter["name"] == "address":
                parameter["schema"]["enum"] = ["127.0.0.1:1", "nobody:1"]
    schema = schemathesis.openapi.from_dict(tailored)
    return {each.ok().path: each.ok() for each in schema.get_all_operations()}


PATHS = (
    *("/healthz", "/readyz", "/metrics", "/state", "/state/figures", "/stores", "/stores/{store}/owners"),
    *(f"/stores/{{store}}/{way}" for way in ("keys/{key}", "versions/{key}", "range", "all", "prefix")),
    *(f"/stores/{{store}}/{way}" for way in ("count", "approximate-count")),
    *(f"/stores/{{store}}/{way}" for way in ("window/{key}", "windows/keys/{key}", "windows/range", "windows/all")),
    *(f"/stores/{{store}}/{way}" for way in ("session/{key}", "sessions/keys/{key}", "sessions/range")),
    "/relay/{address}/stores/{store}/{rest}",
    *("/topology", "/instances", "/instances/{instance}/state"),
)


def test_every_operation_is_asked(document: dict[str, Any]) -> None:
    assert {(path, method) for path, each in document["paths"].items() for method in each} == {
        (path, "get") for path in PATHS
    }


def put(stage: QueryStage, state: ClientState, place: Place, stuck: bool) -> None:
    """Bring the stage there."""
    stage.state = state
    stage.put(1, place)
    stage.stuck = (Stuck("t1", ThreadState.RUNNING, 0.0, 1.0),) if stuck else ()
    stage.known_owners = {0: Owner("app-0", stage.url), 1: Owner("app-1", "http://127.0.0.1:1")}


SITUATIONS = st.tuples(
    st.sampled_from([ClientState.RUNNING] * 4 + [ClientState.REBALANCING, ClientState.ERROR, ClientState.CREATED]),
    st.sampled_from([Place.ACTIVE, Place.ACTIVE, Place.ELSEWHERE, Place.CLOSED, Place.RESTORING]),
    st.booleans(),
    st.sampled_from(["good"] * 5 + [*TOKENS]),
)


@pytest.fixture
def asked(stage: QueryStage) -> Iterator[QueryStage]:
    yield stage
    stage.stuck = ()


@pytest.mark.parametrize("path", PATHS)
def test_every_answer_is_one_that_the_document_declares(
    app: Any, operations: dict[str, Any], asked: QueryStage, path: str
) -> None:
    operation = operations[path]
    modes = MODES if operation.definition.raw.get("parameters") else MODES[:1]  # else there is nothing to do wrong

    @settings(
        max_examples=10,
        deadline=None,
        database=None,
        derandomize=True,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(st.one_of([operation.as_strategy(generation_mode=mode) for mode in modes]), SITUATIONS)
    def ask(case: Any, situation: tuple[ClientState, Place, bool, str]) -> None:
        *there, token = situation
        put(asked, *there)
        request = httpx.Request("GET", "http://test" + case.formatted_path, params=case.query or None)
        with capture_logs() as logs:
            answer = asyncio.run(asgi.get(app, request.url.raw_path.decode(), {"Authorization": f"Bearer {token}"}))
        assert answer.status != 500, (str(request.url), logs)
        assert b"Traceback" not in answer.body
        response = httpx.Response(answer.status, headers=dict(answer.headers), content=answer.body, request=request)
        response.elapsed = timedelta()
        case.validate_response(schemathesis.Response.from_httpx(response, verify=False), checks=CHECKED)

    ask()
