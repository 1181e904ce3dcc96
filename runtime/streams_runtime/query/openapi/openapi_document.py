"""The OpenAPI document: what endpoints answer, problems included, and how a token is presented."""

from __future__ import annotations

from typing import Any, Final

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

from streams_runtime.query.openapi.http_schemas import MODELS
from streams_runtime.query.wire import problems, record_lines
from streams_runtime.query.wire.problems import KINDS

DESCRIPTION: Final = """\
Interactive queries of one instance (KIP-216). An instance answers for the partitions that it has;
`/stores/{store}/owners` tells who has the others, and a key that is elsewhere is answered with 421 and the owner's URL.
Answers of many records are JSON objects, one a line; the last line is `{"complete": {"records": N}}` or
`{"problem": {…}}`, and an answer without one of these was cut off. Failures are problems by RFC 9457."""

_REF: Final = "#/components/schemas/"
Responses = dict[int | str, dict[str, Any]]


def _problems() -> Responses:
    """The problems of an endpoint, by status, each with the exceptions that come with it."""
    by_status: dict[int, list[str]] = {}
    for exception, kind in KINDS.items():
        by_status.setdefault(kind.status, []).append(exception.__name__)
    content = {problems.MEDIA_TYPE: {"schema": {"$ref": f"{_REF}Problem"}}}
    return {
        status: {"description": " or ".join(names), "content": content} for status, names in sorted(by_status.items())
    }


def _gate_problems() -> Responses:
    """The problems of an endpoint that reads no store, behind a gate."""
    return {status: answer for status, answer in _problems().items() if status in (401, 403, 503)}


class _Overview:
    """`OVERVIEW[Model]`: the responses of an endpoint that reads no store. None: the document has no model."""

    def __getitem__(self, model: type[BaseModel] | None) -> Responses:
        if model is None:
            return _gate_problems()
        content = {"application/json": {"schema": {"$ref": _REF + model.__name__}}}
        return {200: {"description": model.__doc__ or "", "content": content}, **_gate_problems()}


class _Answers:
    """`ANSWERS[Model]`: the responses of an endpoint that answers with a Model or a problem."""

    def __init__(self, media_type: str, several: bool) -> None:
        self._media_type = media_type
        self._several = several

    def __getitem__(self, model: type[BaseModel]) -> Responses:
        schema: dict[str, Any] = {"$ref": _REF + model.__name__}
        text = model.__doc__ or ""
        if self._several:
            schema = {"oneOf": [schema, {"$ref": f"{_REF}LastLine"}]}
            text = "Lines, each an object; the last one says how the answer ended."
        content = {self._media_type: {"schema": schema}}
        return {200: {"description": text, "content": content}, **_problems()}


ANSWERS: Final = _Answers("application/json", several=False)
RELAYED: Final[Responses] = {200: {"description": "What the other instance answered."}, **_problems()}
GATED: Final[Responses] = _gate_problems()
OVERVIEW: Final = _Overview()
RELAYED_STATE: Final[Responses] = {
    200: {"description": "Client, threads, tasks, restoration, lag, counters, error, problems."},
    **{status: answer for status, answer in _problems().items() if status in (401, 403, 501, 502, 503)},
}
LINES: Final = _Answers(record_lines.MEDIA_TYPE, several=True)


def openapi_of(app: FastAPI) -> dict[str, Any]:
    """The document of all routes of `app`."""
    document = get_openapi(title=app.title, version=app.version, description=DESCRIPTION, routes=app.routes)
    _, schemas = models_json_schema([(model, "serialization") for model in MODELS], ref_template=_REF + "{model}")
    document.setdefault("components", {})["schemas"] = schemas["$defs"]
    for path in document["paths"].values():
        for operation in path.values():
            operation["responses"].pop("422", None)  # parameters that do not fit are answered with 400
    return document
