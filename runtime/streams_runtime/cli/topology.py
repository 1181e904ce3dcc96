"""`streamsapp topology`: the sub-topologies of a file as text, JSON, or a drawing."""

from __future__ import annotations

import enum
from typing import Annotated

import typer

from streams_runtime.cli.form import Output
from streams_runtime.cli.validate import File, application_or_exit, print_json, read_or_exit
from streams_runtime.topology.build import build_topology
from streams_runtime.topology.describe import as_json, as_mermaid, as_text


class Drawing(enum.StrEnum):
    """How a topology is shown."""

    TEXT = "text"
    JSON = "json"
    MERMAID = "mermaid"


def topology(
    file: File,
    output: Annotated[
        Drawing, typer.Option(help="text: as Kafka Streams describes it; mermaid: a flowchart.")
    ] = Drawing.TEXT,
) -> None:
    """Show the sub-topologies of FILE, with their sources, steps, stores and sinks.

    Exit code 0: shown. 1: the file has mistakes, which are listed. 2: the file could not be read.
    """
    errors = Output.JSON if output is Drawing.JSON else Output.TEXT
    plan = build_topology(application_or_exit(read_or_exit(file, errors), errors))
    if output is Drawing.JSON:
        print_json(as_json(plan))
    else:
        typer.echo(as_text(plan) if output is Drawing.TEXT else as_mermaid(plan))
