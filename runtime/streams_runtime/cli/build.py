"""`streamsapp build`: the resource of a file, with the sources, steps and sinks that its Python makes."""

from __future__ import annotations

import enum
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import orjson
import typer
import yaml

from streams_runtime.builder.resolve_python import Beside
from streams_runtime.cli.common.given_file import NOT_CHECKED, File, application_or_exit, read_or_exit
from streams_runtime.cli.output_format import Output, print_error
from streams_runtime.errors import EnvironmentException


class Form(enum.StrEnum):
    """How the resource is written; a cluster takes both."""

    YAML = "yaml"
    JSON = "json"


class _Dumper(yaml.SafeDumper):
    """Quotes what kubectl would read as true and false, and PyYAML as text."""


_Dumper.add_implicit_resolver("tag:yaml.org,2002:bool", re.compile("^[yYnN]$"), list("yYnN"))


def build(
    file: File,
    output: Annotated[Form, typer.Option(help="How it is written.")] = Form.YAML,
    to: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write it there. Default: standard output.", show_default=False)
    ] = None,
) -> None:
    """Print FILE with the sources, steps and sinks that the function in spec.topology.python makes beside its name.

    That is what a cluster is given: the operator has no user's code. A file without Python is printed as it is;
    sources, steps and sinks that stand beside the name are made anew.

    Exit code 0: printed. 1: mistakes were listed. 2: the file could not be read, or the result not be written.
    """
    errors = Output.JSON if output is Form.JSON else Output.TEXT
    reading = read_or_exit(file, errors, Beside.REPLACED)
    application_or_exit(reading, errors)
    text = _written(reading.document, output)
    if to is None:
        typer.echo(text, nl=False)
        return
    try:
        to.write_text(text, encoding="utf-8")
    except OSError as error:
        problem = EnvironmentException(f"{to} can't be written: {error.strerror}; give another file after --to")
        print_error(problem, errors)
        raise typer.Exit(NOT_CHECKED) from error


def _written(document: Mapping[str, Any], form: Form) -> str:
    if form is Form.JSON:
        return orjson.dumps(document, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE).decode()
    text: str = yaml.dump(dict(document), Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=120)
    return text
