"""The form in which every command prints."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum

import orjson
import typer

from streams_runtime.errors import StreamsException

_FAILED = 1


class Output(StrEnum):
    """`text` is for people; `json` is one JSON object a line."""

    TEXT = "text"
    JSON = "json"


@contextmanager
def reported_errors(output: Output) -> Iterator[None]:
    """An error ends the command with its message and exit code 1."""
    try:
        yield
    except StreamsException as error:
        sys.stdout.flush()
        if output is Output.JSON:
            document = {"error": {"class": type(error).__name__, "message": str(error)}}
            typer.echo(orjson.dumps(document).decode(), err=True)
        else:
            typer.echo(f"error: {error}", err=True)
        raise typer.Exit(_FAILED) from None
