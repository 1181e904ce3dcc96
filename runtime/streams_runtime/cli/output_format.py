"""The form in which every command prints."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from typing import Any

import orjson
import typer

from streams_runtime.errors import StreamsException

FAILED = 1
"""Exit code of a command that has no finer ones."""


class Output(StrEnum):
    """`text` is for people; `json` is one JSON object a line."""

    TEXT = "text"
    JSON = "json"


@contextmanager
def reported_errors(output: Output, exit_code: int = FAILED) -> Iterator[None]:
    """An error ends the command with its message and `exit_code`."""
    try:
        yield
    except StreamsException as error:
        sys.stdout.flush()
        print_error(error, output)
        raise typer.Exit(exit_code) from error


def print_error(error: Exception, output: Output) -> None:
    """Print an error that ends the command: as JSON among its other lines, as text beside them."""
    if output is Output.JSON:
        print_json({"error": type(error).__name__, "message": str(error)})
    else:
        typer.echo(f"error: {error}", err=True)


def print_json(value: Any) -> None:
    """One JSON object, on one line."""
    typer.echo(orjson.dumps(value).decode())
