"""Answers with a problem (wire/problems.py) to whatever an endpoint raises."""

from __future__ import annotations

import asyncio
from urllib.parse import quote

import structlog
from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from streams_runtime.errors import StateStoreNotAvailableException, StreamsException
from streams_runtime.query.server.caller_gone import CallerLeft
from streams_runtime.query.server.http_answers import BrokenOff, Misdirected, problem_answer
from streams_runtime.query.wire import problems

_log = structlog.get_logger(__name__)


def answer_with_problems(app: FastAPI) -> None:
    """Let `app` answer with a problem to every exception of its endpoints, and to requests that no endpoint takes."""
    app.add_middleware(_LastResort)
    app.add_exception_handler(StreamsException, _on_streams_exception)
    app.add_exception_handler(Misdirected, _on_misdirected)
    app.add_exception_handler(HTTPException, _on_http_exception)
    app.add_exception_handler(RequestValidationError, _on_invalid_parameters)


async def _on_streams_exception(_: Request, error: Exception) -> Response:
    assert isinstance(error, StreamsException)
    return problem_answer(problems.problem_of(error))


async def _on_misdirected(request: Request, error: Exception) -> Response:
    assert isinstance(error, Misdirected)
    problem = problems.problem_of(error.error, error.owner)
    return problem_answer(problem, None if error.owner is None else _elsewhere(request, error.owner))


async def _on_http_exception(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    detail = f"{request.method} {request.url.path}: {error.detail}"
    return problem_answer(problems.request_problem(error.status_code, detail))


async def _on_invalid_parameters(_: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    wrong = "; ".join(f"{'.'.join(map(str, item['loc']))}: {item['msg']}" for item in error.errors())
    return problem_answer(problems.request_problem(400, wrong))


def _elsewhere(request: Request, owner: str) -> str:
    """The same query at another instance."""
    raw: bytes = request.scope.get("raw_path") or quote(request.url.path).encode()
    query: bytes = request.scope["query_string"]
    return owner + raw.decode("ascii") + (f"?{query.decode('ascii')}" if query else "")


class _LastResort:
    """Answers where an endpoint can't: after a defect, its trace going to the log, and at a shutdown."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        started = False

        async def watched(message: Message) -> None:
            nonlocal started
            started = True
            await send(message)

        try:
            await self._app(scope, receive, watched)
        except asyncio.CancelledError:
            # Only a server that stops cancels a request. An answer that has begun is cut off, visibly.
            if not started:
                closing = StateStoreNotAvailableException(
                    "this instance closed before it had the answer; do not retry here, ask another instance"
                )
                await problem_answer(problems.problem_of(closing))(scope, receive, send)
        except CallerLeft:
            _log.debug("query.caller-left", path=scope.get("path"))
        except BrokenOff as error:
            _log.warning("query.broken-off", path=scope.get("path"), reason=str(error))
        except Exception:
            if started:
                raise  # the connection is cut off, so the reader sees that the answer is not whole
            _log.exception("query.failed", path=scope.get("path"))
            await problem_answer(problems.defect_problem())(scope, receive, send)
