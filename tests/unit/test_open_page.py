"""`streamsapp run --open`: when the page is opened, and what is said where there is no browser."""

from __future__ import annotations

import threading
import webbrowser
from typing import Any

import pytest
from waiting import eventually

from streams_runtime.cli.local.open_page import PageOpener, open_in_browser
from streams_runtime.cli.local.progress.overview import ReplicaSnapshot
from streams_runtime.cli.local.progress.run_events import RunEvent

ANSWERS = ReplicaSnapshot("app-0", url="http://127.0.0.1:8080", described={"state": "REBALANCING"})
SILENT = ReplicaSnapshot("app-0", url="http://127.0.0.1:8080")


def test_the_page_is_opened_once_when_the_first_instance_answers() -> None:
    opened: list[str] = []
    events: list[RunEvent] = []

    def open_it(url: str) -> None:
        opened.append(url)

    opener = PageOpener(events.append, open_it)
    for snapshots in ([SILENT, ANSWERS], [ReplicaSnapshot("app-0"), ANSWERS]):
        opener.tick(snapshots)
    assert (opened, events) == ([], [])

    def said() -> bool:
        opener.tick([ANSWERS])
        return bool(events)

    eventually(said, "the address is said")
    for _ in range(30):
        opener.tick([SILENT])
    assert opened == ["http://127.0.0.1:8080/"]
    [event] = events
    assert (event.text, event.facts) == (
        "page: http://127.0.0.1:8080/",
        {"url": "http://127.0.0.1:8080/", "opened": True},
    )


def test_without_a_browser_the_address_is_said_with_the_reason() -> None:
    events: list[RunEvent] = []
    opener = PageOpener(events.append, lambda _url: "there is none")

    def said() -> bool:
        opener.tick([ANSWERS])
        return bool(events)

    eventually(said, "the address is said")
    assert events[0].text.startswith("page: http://127.0.0.1:8080/ (no browser was opened: there is none.")
    assert (events[0].facts["opened"], events[0].problem) == (False, False)


def test_a_browser_that_does_not_return_keeps_the_address_from_nobody() -> None:
    go_on, events = threading.Event(), list[RunEvent]()
    opener = PageOpener(events.append, lambda _url: go_on.wait(10) and None)
    for _ in range(20):
        opener.tick([ANSWERS])
    assert len(events) == 1
    go_on.set()


class Browser:
    """One for windows."""

    def __init__(self, answer: Any) -> None:
        self.answer = answer

    def open(self, _url: str) -> bool:
        if isinstance(self.answer, Exception):
            raise self.answer
        return bool(self.answer)


@pytest.mark.parametrize(
    ("found", "variable", "reason"),
    [
        (Browser(True), None, None),
        (Browser(False), None, "it could not be started"),
        (Browser(OSError("no display")), None, "no display"),
        (webbrowser.Error("could not locate runnable browser"), None, "could not locate runnable browser"),
        (webbrowser.GenericBrowser("lynx"), None, "there is only lynx, which would need this terminal"),
        (webbrowser.GenericBrowser(["true", "%s"]), "true %s", None),
        (webbrowser.GenericBrowser(["false", "%s"]), "false %s", "it could not be started"),
    ],
)
def test_why_no_browser_was_opened(
    found: Any, variable: str | None, reason: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    def get() -> Any:
        if isinstance(found, Exception):
            raise found
        return found

    monkeypatch.setattr(webbrowser, "get", get)
    monkeypatch.delenv("BROWSER", raising=False)
    if variable is not None:
        monkeypatch.setenv("BROWSER", variable)
    assert open_in_browser("http://127.0.0.1:1/") == reason
