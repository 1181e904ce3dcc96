"""`streamsapp broker`: an Apache Kafka for this machine, until it is told to stop."""

from __future__ import annotations

import signal
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Annotated

import orjson
import typer

from streams_runtime.cli.form import Output
from streams_runtime.errors import StreamsException
from streams_runtime.kafka.broker import EmbeddedBroker

_FAILED = 1


def broker(
    port: Annotated[int | None, typer.Option(min=1, max=65535, help="Port to listen on. Default: a free one.")] = None,
    data_dir: Annotated[
        Path | None,
        typer.Option(help="Folder for data and logs, kept for the next start. Default: a new one, removed at the end."),
    ] = None,
    output: Annotated[Output, typer.Option(help="json: one object on one line.")] = Output.TEXT,
) -> None:
    """Run an Apache Kafka broker in one process on this machine, until Ctrl-C or SIGTERM."""
    _exit_on_signals()
    try:
        with _folder(data_dir) as folder, EmbeddedBroker(folder, port) as running:
            _announce(running, output)
            running.wait()
            raise StreamsException(running.why_it_ended())
    except StreamsException as failure:
        typer.echo(failure, err=True)
        raise typer.Exit(_FAILED) from failure


def _announce(running: EmbeddedBroker, output: Output) -> None:
    if output is Output.JSON:
        facts = {
            "bootstrap_servers": running.bootstrap_servers,
            "data_dir": str(running.data_dir),
            "pid": running.pid,
        }
        typer.echo(orjson.dumps(facts))
    else:
        typer.echo(f"broker at {running.bootstrap_servers}, data in {running.data_dir}; Ctrl-C stops it")
    sys.stdout.flush()


@contextmanager
def _folder(given: Path | None) -> Iterator[Path]:
    if given is not None:
        yield given
        return
    with tempfile.TemporaryDirectory(prefix="streamsapp-broker-") as fresh:
        yield Path(fresh)


def _exit_on_signals() -> None:
    """Let SIGINT and SIGTERM leave through the `with` blocks, once: a second does not disturb the stop."""

    def leave(_number: int, _frame: FrameType | None) -> None:
        for each in (signal.SIGINT, signal.SIGTERM):
            signal.signal(each, signal.SIG_IGN)
        raise SystemExit(0)

    for each in (signal.SIGINT, signal.SIGTERM):
        signal.signal(each, leave)
