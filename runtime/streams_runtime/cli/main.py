"""`streamsapp`: the commands."""

from __future__ import annotations

import typer

from streams_runtime.cli.broker import broker

app = typer.Typer(
    name="streamsapp",
    help="Kafka-Streams-style applications from one file.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
app.command()(broker)
