"""The output of a local run: a live table on a terminal, plain lines elsewhere, or one JSON object a line."""

from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import Any, Protocol, Self

import orjson
from rich.console import Console
from rich.live import Live

from streams_runtime.cli.local.progress.live_table import count, drawing
from streams_runtime.cli.local.progress.overview import ApplicationRow, InstanceRow, Overview
from streams_runtime.cli.local.progress.run_document import Document, change, document_of
from streams_runtime.cli.local.progress.run_events import RunEvent
from streams_runtime.cli.output_format import Output

_JSON_INTERVAL = 0.5  # seconds between two overviews: a program that follows is fast, its reader is not
_LINE_INTERVAL = 5.0  # seconds between two lines that differ in the lag alone


class RunReporter(Protocol):
    """Shows the user what happens in a run. Use it in `with`."""

    def report(self, event: RunEvent) -> None:
        """Print an event."""

    def show(self, overview: Overview) -> None:
        """Print the state of the run where it has changed; call it often."""

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...


def reporter_for(output: Output) -> RunReporter:
    """The reporter for this format, and for a terminal or a pipe."""
    if output is Output.JSON:
        return JsonReporter()
    console = Console()
    return LiveReporter(console) if console.is_terminal else LineReporter()


class LiveReporter:
    """A table that stays where it is, with what happened above it."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._live = Live(console=console, refresh_per_second=4, redirect_stdout=False, redirect_stderr=False)
        self._showing = False

    def report(self, event: RunEvent) -> None:
        """Print the event above the table."""
        if event.text:
            self._console.print(event.text, markup=False, highlight=False, soft_wrap=True)

    def show(self, overview: Overview) -> None:
        """Redraw the table."""
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


class LineReporter:
    """A line for each change, for logs and pipes."""

    def __init__(self) -> None:
        self._application: ApplicationRow | None = None
        self._instances: dict[str, InstanceRow] = {}
        self._printed_at = float("-inf")

    def report(self, event: RunEvent) -> None:
        """Print the event's text, a problem to stderr."""
        if event.text:
            print(event.text, file=sys.stderr if event.problem else sys.stdout, flush=True)

    def show(self, overview: Overview) -> None:
        """Print a line for each change."""
        for instance in overview.instances:
            before = self._instances.get(instance.name)
            if before is None or instance_line(instance) != instance_line(before):
                self._instances[instance.name] = instance
                print(instance_line(instance), flush=True)
        now, row = time.monotonic(), overview.application
        if _headline(row) == _headline(self._application) and now - self._printed_at < _LINE_INTERVAL:
            return
        line = application_line(row)
        if self._application is None or line != application_line(self._application):
            print(line, flush=True)
        self._application, self._printed_at = row, now

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        pass


class JsonReporter:
    """One object a line on stdout: {"event", "at" (seconds since 1970), …}. Overviews at most twice a second."""

    def __init__(self) -> None:
        self._shown: Document | None = None
        self._shown_at = float("-inf")
        self._latest: Document | None = None

    def report(self, event: RunEvent) -> None:
        """Write the event, after the overview of its moment."""
        self._catch_up()
        _write({"event": event.event, "at": round(time.time(), 3), "text": event.text, **event.facts})

    def show(self, overview: Overview) -> None:
        """Write the overview, at most twice a second."""
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
        f" lag {count(row.lag)} setup {row.setup}{f' late {count(row.late)}' if row.late else ''}"
    )


def instance_line(row: InstanceRow) -> str:
    """An instance in one line."""
    place = f" pid {row.pid}" if row.pid is not None else ""
    return f"  {row.name} {row.state}{place}{f' at {row.url}' if row.url else ''}"


def _headline(row: ApplicationRow | None) -> tuple[Any, ...]:
    return () if row is None else (row.state, row.ready, row.setup, row.restoring > 0, row.late > 0)


def _write(document: Document) -> None:
    sys.stdout.buffer.write(orjson.dumps(document) + b"\n")
    sys.stdout.buffer.flush()
