"""The page for people: its files, which hold no data and are open to everybody; all that it shows it asks for."""

from __future__ import annotations

from fastapi import APIRouter, Request, Response
from starlette.exceptions import HTTPException

from streams_runtime.query.page.page_files import INDEX, PageFile, page_files

_METHODS = ["GET", "HEAD"]


def page_routes() -> APIRouter:
    """`/` and `/page/{file}`.

    No gate stands before them: a browser presents no token when it opens an address. The page asks for one, and sends
    it with every question to the endpoints behind the gate.
    """
    router = APIRouter(include_in_schema=False)
    files = page_files()

    @router.api_route("/", methods=_METHODS)
    async def index(request: Request) -> Response:
        return _answer(request, files[INDEX])

    @router.api_route("/page/{name}", methods=_METHODS)
    async def file(request: Request, name: str) -> Response:
        if name not in files or name == INDEX:
            raise HTTPException(404, "the page has no such file; it is at /")
        return _answer(request, files[name])

    return router


def _answer(request: Request, file: PageFile) -> Response:
    if file.is_known(request.headers.get("If-None-Match")):
        sent = {name: value for name, value in file.headers.items() if name != "Content-Type"}
        return Response(status_code=304, headers=sent)
    if request.method == "HEAD":
        return Response(headers={**file.headers, "Content-Length": str(len(file.content))})
    return Response(file.content, headers=file.headers)
