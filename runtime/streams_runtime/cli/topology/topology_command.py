"""`streamsapp topology`: the sub-topologies of a file as text, JSON, or a drawing; and how two files differ."""

from __future__ import annotations

import enum
import sys
from pathlib import Path
from typing import Annotated

import orjson
import typer

from streams_runtime.cli.common.given_file import NOT_CHECKED, application_or_exit, read_or_exit
from streams_runtime.cli.output_format import Output, print_error
from streams_runtime.cli.topology.drawing import draw
from streams_runtime.cli.topology.topology_diff import diff
from streams_runtime.errors import EnvironmentException
from streams_runtime.topology.declared.build_topology import build_topology
from streams_runtime.topology.describe import as_json, as_mermaid, as_text
from streams_runtime.topology.plan import Topology


class Drawing(enum.StrEnum):
    """How a topology is shown."""

    TEXT = "text"
    JSON = "json"
    MERMAID = "mermaid"
    SVG = "svg"
    PNG = "png"


def topology(
    file: Annotated[
        Path | None,
        typer.Argument(
            metavar="FILE", help="A StreamsApplication in YAML or JSON; not with --diff.", show_default=False
        ),
    ] = None,
    output: Annotated[
        Drawing, typer.Option(help="text: as Kafka Streams describes it; mermaid: a flowchart; svg and png: a picture.")
    ] = Drawing.TEXT,
    to: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write it there. Default: standard output.", show_default=False)
    ] = None,
    two: Annotated[
        tuple[Path, Path] | None,
        typer.Option(
            "--diff",
            metavar="OLD NEW",
            help="Two files in place of FILE: say whether an upgrade from OLD to NEW keeps all state.",
        ),
    ] = None,
) -> None:
    """Show the sub-topologies of FILE, with their sources, steps, stores and sinks.

    With --diff OLD NEW: say which stores and internal topics an upgrade leaves behind, makes, or reads otherwise.

    Exit code 0: shown, or with --diff: compatible. 1: a file has mistakes, which are listed. 2: a file could not be
    read, or what was asked for could not be drawn or written. 3: with --diff: not compatible.
    """
    errors = Output.JSON if output is Drawing.JSON else Output.TEXT
    if two is not None:
        if file is not None:
            raise typer.BadParameter("give either FILE or --diff OLD NEW", param_hint="FILE")
        if output not in (Drawing.TEXT, Drawing.JSON) or to is not None:
            raise typer.BadParameter("differences are printed, as text or json", param_hint="--diff")
        diff(*two, errors)
        return
    if file is None:
        raise typer.BadParameter("give a FILE, or two after --diff", param_hint="FILE")
    if output is Drawing.PNG and to is None and sys.stdout.isatty():
        raise typer.BadParameter("a terminal shows no png; give --to FILE", param_hint="--output")
    plan = build_topology(application_or_exit(read_or_exit(file, errors), errors))
    try:
        give(shown(plan, output), to)
    except EnvironmentException as error:
        print_error(error, errors)
        raise typer.Exit(NOT_CHECKED) from error


def shown(plan: Topology, output: Drawing) -> bytes:
    """The topology as `output`. Raises EnvironmentException: the extra `drawings` is not installed."""
    match output:
        case Drawing.SVG:
            return draw(plan, "svg")
        case Drawing.PNG:
            return draw(plan, "png")
        case Drawing.JSON:
            return orjson.dumps(as_json(plan), option=orjson.OPT_APPEND_NEWLINE)
        case _:
            return (as_mermaid(plan) if output is Drawing.MERMAID else as_text(plan)).encode() + b"\n"


def give(content: bytes, to: Path | None) -> None:
    """Print it, or write it into `to`. Raises EnvironmentException: that can't be written."""
    if to is None:
        typer.echo(content, nl=False)
        return
    try:
        to.write_bytes(content)
    except OSError as error:
        raise EnvironmentException(f"{to} can't be written: {error.strerror}; give another file after --to") from error
