"""`streamsapp`: the commands."""

from __future__ import annotations

import typer

from streams_runtime.cli.broker import broker
from streams_runtime.cli.build import build
from streams_runtime.cli.init import init
from streams_runtime.cli.query import query_command
from streams_runtime.cli.records.consume import consume
from streams_runtime.cli.records.produce import produce
from streams_runtime.cli.reset.reset_command import reset
from streams_runtime.cli.run import run
from streams_runtime.cli.status.local_status import status
from streams_runtime.cli.topics_command import topics
from streams_runtime.cli.topology.topology_command import topology
from streams_runtime.cli.validate import validate

app = typer.Typer(
    name="streamsapp",
    help="Kafka-Streams-style applications from one file.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
app.command()(run)
app.command()(status)
app.command()(validate)
app.command()(topology)
app.command()(build)
app.command()(init)
app.command()(topics)
app.command()(reset)
app.command()(broker)
app.command()(produce)
app.command()(consume)
app.add_typer(query_command.app, name="query")
