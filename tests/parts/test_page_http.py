"""The page's files over HTTP: open, unable to load anything else, and no way around the gate before the data."""

from __future__ import annotations

import asyncio
import functools
import re
from pathlib import Path
from typing import Any

import httpx
import pytest
from prometheus_client import CollectorRegistry
from query_fakes import FakeClient, client_with

from streams_runtime.errors import LockException
from streams_runtime.lifecycle.remedies import REMEDIES
from streams_runtime.query import page
from streams_runtime.query.page.page_files import PageFile, page_files
from streams_runtime.query.server.http_app import create_app
from streams_runtime.query.stores.views import KnownInstance
from streams_runtime.query.wire.problems import QueryNotAuthenticatedException

STATIC = Path(page.__file__).parent / "static"
FILES = sorted(file.name for file in STATIC.iterdir())


class Closed:
    """Lets nobody in."""

    async def admit(self, authorization: str | None, address: str) -> None:
        raise QueryNotAuthenticatedException("no token")


@functools.cache
def app_of_nothing(gated: bool) -> Any:
    """An instance's application, which nobody changes."""
    return create_app(client_with(0), CollectorRegistry(), Closed() if gated else None)  # type: ignore[arg-type]


def ask(
    target: str,
    method: str = "GET",
    headers: dict[str, str] | None = None,
    client: FakeClient | None = None,
    gated: bool = False,
) -> httpx.Response:
    app = app_of_nothing(gated) if client is None else create_app(client, CollectorRegistry(), None)  # type: ignore[arg-type]

    async def get() -> httpx.Response:
        async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://test") as http:
            return await http.request(method, target, headers=headers)

    return asyncio.run(get())


def policy_of(answer: httpx.Response) -> dict[str, str]:
    directives = (each.strip().partition(" ") for each in answer.headers["Content-Security-Policy"].split(";"))
    return {name: sources for name, _, sources in directives}


def path_of(name: str) -> str:
    return "/" if name == "index.html" else f"/page/{name}"


@pytest.mark.parametrize("name", FILES)
def test_each_file_is_answered_whole_with_its_type_and_a_policy_of_self_alone(name: str) -> None:
    answer = ask(path_of(name))
    assert answer.status_code == 200
    assert answer.content == (STATIC / name).read_bytes()
    kind = {"html": "text/html", "css": "text/css", "js": "text/javascript", "svg": "image/svg+xml"}[name.split(".")[1]]
    assert answer.headers["Content-Type"].startswith(kind)
    policy = policy_of(answer)
    assert policy["default-src"] == "'none'"
    assert {
        sources for name, sources in policy.items() if name in ("script-src", "style-src", "img-src", "connect-src")
    } == {"'self'"}
    assert {policy[name] for name in ("base-uri", "form-action", "frame-ancestors")} == {"'none'"}
    assert len(policy) == 8
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    assert answer.headers["Referrer-Policy"] == "no-referrer"


def test_the_files_name_no_other_place_and_put_no_text_in_as_html() -> None:
    for name in FILES:
        text = (STATIC / name).read_text()
        places = set(re.findall(r"\w+://[^\s\"'`)]+", text)) - {"http://www.w3.org/2000/svg"}
        assert places == set(), name
        assert not re.search(
            r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\b|new Function|srcdoc", text
        ), name
        assert not re.search(r"\son\w+=|\sstyle=|javascript:", text), name


@pytest.mark.parametrize("name", FILES)
def test_head_has_the_headers_of_get_and_no_body(name: str) -> None:
    got, asked = ask(path_of(name)), ask(path_of(name), "HEAD")
    assert (asked.status_code, asked.content) == (200, b"")
    assert dict(asked.headers) == dict(got.headers)


def test_a_file_that_a_browser_has_is_not_sent_again() -> None:
    tag = ask("/").headers["ETag"]
    assert ask("/").headers["Cache-Control"] == "no-cache"
    for known in (tag, f'"other", {tag}', f"W/{tag}", "*"):
        answer = ask("/", headers={"If-None-Match": known})
        assert (answer.status_code, answer.content, answer.headers["ETag"]) == (304, b"", tag)
        assert "Content-Security-Policy" in answer.headers
    for other in ('"other"', "", tag[:-2]):
        assert ask("/", headers={"If-None-Match": other}).status_code == 200
    assert ask("/page/page.css", headers={"If-None-Match": tag}).status_code == 200


def test_a_file_changes_its_tag_with_its_content() -> None:
    tags = {file.headers["ETag"] for file in page_files().values()}
    assert len(tags) == len(FILES)
    assert PageFile(b"", {"ETag": '"a"'}).is_known('"a"')


@pytest.mark.parametrize(
    "target",
    ["/page/", "/page/none.js", "/page/index.html", "/page/..%2Fpage_files.py", "/page/%2e%2e/x", "/index.html"],
)
def test_what_is_no_file_of_the_page_is_a_problem(target: str) -> None:
    answer = ask(target)
    assert answer.headers["Content-Type"] == "application/problem+json"
    assert (answer.status_code, answer.json()["remedy"]) == (404, "fix-the-query")


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS"])
def test_the_page_is_only_read(method: str) -> None:
    assert ask("/", method).status_code == 405


def test_the_gate_stands_before_all_data_and_not_before_the_page() -> None:
    for name in FILES:
        assert ask(path_of(name), gated=True).status_code == 200
    for target in ("/state", "/topology", "/instances", "/instances/flights-0/state", "/stores"):
        assert ask(target, gated=True).status_code == 401, target
        assert ask(target).status_code == 200, target


def test_the_description_has_what_programs_ask_and_not_the_page() -> None:
    paths = ask("/openapi.json").json()["paths"]
    assert {"/topology", "/instances", "/instances/{instance}/state"} <= paths.keys()
    assert not {"/", "/page/{name}"} & paths.keys()


def test_instances_are_listed_and_the_state_of_this_one_is_its_own() -> None:
    client = client_with(0)
    word = {"state": "ERROR", "class": "LockException", "message": "held by 7"}
    last = {**word, "remedy": REMEDIES[LockException]}
    client.known = [KnownInstance("flights-0", client.url, True), KnownInstance("flights-1", None, False, word)]
    assert ask("/instances", client=client).json() == {
        "instances": [
            {"instance": "flights-0", "url": "http://here:1", "own": True, "inGroup": True, "lastWord": None},
            {
                "instance": "flights-1",
                "url": None,
                "own": False,
                "inGroup": False,
                "lastWord": last,
            },
        ]
    }
    assert ask("/instances/flights-0/state", client=client).json() == client.describe()


@pytest.mark.parametrize("name", ["flights-1", "flights-2", "%2E%2E", "127.0.0.1:1", "flights-0%2F%2E%2E"])
def test_the_state_of_an_instance_that_nobody_vouches_for_is_not_asked(name: str) -> None:
    client = client_with(0)
    client.known = [KnownInstance("flights-0", client.url, True), KnownInstance("flights-1", None, True)]
    answer = ask(f"/instances/{name}/state", client=client)
    assert answer.status_code in (404, 502)
    assert answer.headers["Content-Type"] == "application/problem+json"


def test_an_instance_with_tls_is_not_asked_by_another() -> None:
    client = client_with(0)
    client.known = [KnownInstance("flights-1", "https://there:1", True)]
    answer = ask("/instances/flights-1/state", client=client)
    assert (answer.status_code, "ask that instance itself" in answer.json()["detail"]) == (501, True)
