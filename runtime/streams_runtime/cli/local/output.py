"""How a local run speaks: a live table on a terminal, plain lines elsewhere, or one JSON object a line."""

from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import Any, Protocol, Self

import orjson
from rich.console import Console
from rich.live import Live

from streams_runtime.cli.form import Output
from streams_runtime.cli.local.document import Document, change, document_of
from streams_runtime.cli.local.news import News
from streams_runtime.cli.local.overview import ApplicationRow, InstanceRow, Overview
from streams_runtime.cli.local.table import count, drawing

_JSON_INTERVAL = 0.5  # seconds between two overviews: a program that follows is fast, its reader is not
_LINE_INTERVAL = 5.0  # seconds between two lines that only tell a new lag


class Narrator(Protocol):
    """Tells the user what happens. Use it in `with`."""

    def say(self, news: News) -> None:
        """Something happened."""

    def show(self, overview: Overview) -> None:
        """How it stands now; call it often."""

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...


def narrator(output: Output) -> Narrator:
    """The one that fits what was asked for and where it goes."""
    if output is Output.JSON:
        return JsonNarrator()
    console = Console()
    return LiveNarrator(console) if console.is_terminal else LineNarrator()


class LiveNarrator:
    """A table that stays where it is, with what happened above it."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._live = Live(console=console, refresh_per_second=4, redirect_stdout=False, redirect_stderr=False)
        self._showing = False

    def say(self, news: News) -> None:
        """Narrator."""
        if news.text:
            self._console.print(news.text, markup=False, highlight=False, soft_wrap=True)

    def show(self, overview: Overview) -> None:
        """Narrator."""
        self._live.update(drawing(overview))
        if not self._showing:
            self._showing = True
            self._live.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._live.stop()


class LineNarrator:
    """A line for each change, for logs and pipes."""

    def __init__(self) -> None:
        self._application: ApplicationRow | None = None
        self._instances: dict[str, InstanceRow] = {}
        self._told_at = float("-inf")

    def say(self, news: News) -> None:
        """Narrator."""
        if news.text:
            print(news.text, file=sys.stderr if news.problem else sys.stdout, flush=True)

    def show(self, overview: Overview) -> None:
        """Narrator."""
        for instance in overview.instances:
            before = self._instances.get(instance.name)
            if before is None or instance_line(instance) != instance_line(before):
                self._instances[instance.name] = instance
                print(instance_line(instance), flush=True)
        now, row = time.monotonic(), overview.application
        if _headline(row) == _headline(self._application) and now - self._told_at < _LINE_INTERVAL:
            return
        line = application_line(row)
        if self._application is None or line != application_line(self._application):
            print(line, flush=True)
        self._application, self._told_at = row, now

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        pass


class JsonNarrator:
    """One object a line on stdout: {"event", "at" (seconds since 1970), …}. Overviews at most twice a second."""

    def __init__(self) -> None:
        self._shown: Document | None = None
        self._shown_at = float("-inf")
        self._latest: Document | None = None

    def say(self, news: News) -> None:
        """Narrator. It comes after the overview that it happened in."""
        self._catch_up()
        _write({"event": news.event, "at": round(time.time(), 3), "text": news.text, **news.facts})

    def show(self, overview: Overview) -> None:
        """Narrator."""
        self._latest = document_of(overview)
        if time.monotonic() - self._shown_at >= _JSON_INTERVAL:
            self._catch_up()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        pass

    def _catch_up(self) -> None:
        document = self._latest
        event = change(self._shown, document) if document is not None else None
        if event is not None and document is not None:
            self._shown, self._shown_at = document, time.monotonic()
            _write({"event": event, "at": round(time.time(), 3), **document})


def application_line(row: ApplicationRow) -> str:
    """The application in one line."""
    return (
        f"{row.name} {row.state} ready {row.ready}/{row.replicas} tasks {row.tasks} restoring {count(row.restoring)}"
        f" lag {count(row.lag)} setup {row.setup}"
    )


def instance_line(row: InstanceRow) -> str:
    """An instance in one line."""
    place = f" pid {row.pid}" if row.pid is not None else ""
    return f"  {row.name} {row.state}{place}{f' at {row.url}' if row.url else ''}"


def _headline(row: ApplicationRow | None) -> tuple[Any, ...]:
    return () if row is None else (row.state, row.ready, row.setup, row.restoring > 0)


def _write(document: Document) -> None:
    sys.stdout.buffer.write(orjson.dumps(document) + b"\n")
    sys.stdout.buffer.flush()
