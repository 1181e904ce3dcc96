"""The file that a verb is given: read and checked, or the command ends with what is wrong with it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from streams_runtime.api import Reading, StreamsApplication
from streams_runtime.builder.resolve_python import Beside, read_file
from streams_runtime.cli.output_format import Output, print_error, print_json, reported_errors
from streams_runtime.errors import ConfigException, InvalidApplicationException, Mistake

INVALID, NOT_CHECKED = 1, 2
"""Exit codes: the file has mistakes; it could not be checked (not readable, no Java), or wrong usage."""

File = Annotated[Path, typer.Argument(metavar="FILE", help="A StreamsApplication in YAML or JSON.", show_default=False)]


def read_or_exit(file: Path, output: Output, beside: Beside = Beside.COMPARED) -> Reading:
    """What stands in the file, a topology in Python built (see read_file); ends the command when it can't be read."""
    try:
        return read_file(file, beside)
    except ConfigException as error:
        print_error(error, output)
        raise typer.Exit(NOT_CHECKED) from error


def application_or_exit(reading: Reading, output: Output) -> StreamsApplication:
    """The application that was read; lists its mistakes and ends the command when there are any."""
    if reading.application is None:
        print_mistakes(reading.reported, output)
        raise typer.Exit(INVALID)
    return reading.application


@contextmanager
def exits_reported(output: Output) -> Iterator[None]:
    """An error ends the command with its message: mistakes of the file with INVALID, all else with NOT_CHECKED."""
    with reported_errors(output, NOT_CHECKED):
        try:
            yield
        except InvalidApplicationException as error:
            print_mistakes(error.mistakes, output)
            raise typer.Exit(INVALID) from error


def refuse_secret(application: StreamsApplication, output: Output, in_a_cluster: str = "") -> None:
    """End the command of an application whose client properties stand in a Secret; `in_a_cluster`: what to do there."""
    secret = application.spec.kafka.secret_ref
    if secret is None:
        return
    mistake = Mistake(
        "spec.kafka.secretRef",
        f"names the Secret {secret.name}, and this command reads no Kubernetes Secrets",
        f"put its properties into spec.kafka.config of a copy of the file that stays on this machine{in_a_cluster}",
    )
    print_mistakes([mistake], output)
    raise typer.Exit(INVALID)


def print_mistakes(mistakes: Iterable[Mistake], output: Output) -> None:
    """One mistake a line."""
    for each in mistakes:
        if output is Output.JSON:
            print_json({"path": each.path, "found": each.found, "remedy": each.remedy})
        else:
            typer.echo(str(each))
