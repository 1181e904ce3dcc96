"""`streamsapp run --open`: the page of the first instance in the user's browser, once the instance answers."""

from __future__ import annotations

import os
import threading
import webbrowser
from collections.abc import Callable, Sequence
from typing import Final

from streams_runtime.cli.local.progress.overview import ReplicaSnapshot
from streams_runtime.cli.local.progress.run_events import Report, RunEvent

_PATIENCE: Final = 10  # ticks, after which the address is said even if the browser has not returned


def open_in_browser(url: str) -> str | None:
    """Open the address in the user's browser: None, or why it was not opened.

    A browser for terminals would take the run's own, unless the variable BROWSER names it.
    """
    try:
        browser = webbrowser.get()
        if type(browser) is webbrowser.GenericBrowser and "BROWSER" not in os.environ:
            return f"there is only {browser.name}, which would need this terminal"
        return None if browser.open(url) else "it could not be started"
    except (webbrowser.Error, OSError) as error:
        return str(error)


class PageOpener:
    """Call `tick` often, from one thread: it opens the page once, and says its address whatever becomes of that."""

    def __init__(self, report: Report, open: Callable[[str], str | None] = open_in_browser) -> None:
        """`open` may block: it has a thread of its own."""
        self._report = report
        self._open = open
        self._url: str | None = None
        self._outcome: list[str | None] = []
        self._ticks = 0
        self._said = False

    def tick(self, snapshots: Sequence[ReplicaSnapshot]) -> None:
        """Open the page of the first instance, if it has answered; report what came of it."""
        if self._url is None:
            first = snapshots[0]
            if first.url is None or first.described is None:
                return
            self._url = first.url
            threading.Thread(target=self._run, args=(first.url,), name="open-page", daemon=True).start()
        self._ticks += 1
        if not self._said and (self._outcome or self._ticks > _PATIENCE):
            self._said = True
            self._say(self._url)

    def _say(self, url: str) -> None:
        failure = self._outcome[0] if self._outcome else None
        why = "" if failure is None else f" (no browser was opened: {failure}. Open the address in one)"
        facts = {"url": f"{url}/", "opened": bool(self._outcome) and failure is None}
        self._report(RunEvent("page", f"page: {url}/{why}", facts))

    def _run(self, url: str) -> None:
        self._outcome.append(self._open(f"{url}/"))
