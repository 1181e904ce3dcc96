"""`streamsapp query`: reads a store of a running application, one JSON object a line."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated

import typer

from streams_runtime.cli.form import Output
from streams_runtime.errors import StreamsException
from streams_runtime.query.client import DEADLINE_SECONDS, StreamsQueryClient
from streams_runtime.query.handles import KeyValue
from streams_runtime.query.wire import to_json

Url = Annotated[str, typer.Option(envvar="STREAMSAPP_URL", help="URL of any one instance of the application.")]
Errors = Annotated[Output, typer.Option("--output", help="Records are JSON; this is the form of errors.")]
Timeout = Annotated[float, typer.Option(help="Seconds to go on while the application rebalances.", min=0.0)]

DEFAULT_URL = "http://127.0.0.1:8080"
# A key may be a negative number: what is no option of ours is a key, and one too many is refused.
_KEYS_MAY_BEGIN_WITH_A_DASH = {"ignore_unknown_options": True}

app = typer.Typer(help="Read a store of a running application: one JSON object a line.", no_args_is_help=True)


@app.callback()
def store(
    context: typer.Context, store: Annotated[str, typer.Argument(metavar="STORE", help="Name of the store.")]
) -> None:
    """Read a store of a running application: one JSON object a line."""
    context.obj = store


@app.command("get", context_settings=_KEYS_MAY_BEGIN_WITH_A_DASH)
def get(
    context: typer.Context,
    key: Annotated[str, typer.Argument(metavar="KEY", help="The key as text, in the store's key format.")],
    url: Url = DEFAULT_URL,
    output: Errors = Output.TEXT,
    timeout: Timeout = DEADLINE_SECONDS,
) -> None:
    """Print the key and its value; the value is null where the store has no such key."""
    with _asking(url, output, timeout) as client:
        _print_record(client.record(context.obj, key))


@app.command("range", context_settings=_KEYS_MAY_BEGIN_WITH_A_DASH)
def key_range(
    context: typer.Context,
    from_key: Annotated[str, typer.Argument(metavar="FROM", help="First key, inclusive.")],
    to_key: Annotated[str, typer.Argument(metavar="TO", help="Last key, inclusive.")],
    url: Url = DEFAULT_URL,
    output: Errors = Output.TEXT,
    timeout: Timeout = DEADLINE_SECONDS,
) -> None:
    """Print the records from FROM to TO, in the order of the keys' bytes."""
    with _asking(url, output, timeout) as client, client.range(context.obj, from_key, to_key) as records:
        for record in records:
            _print_record(record)


@app.command("all")
def all_records(
    context: typer.Context,
    url: Url = DEFAULT_URL,
    output: Errors = Output.TEXT,
    timeout: Timeout = DEADLINE_SECONDS,
) -> None:
    """Print every record, in the order of the keys' bytes."""
    with _asking(url, output, timeout) as client, client.all(context.obj) as records:
        for record in records:
            _print_record(record)


@app.command("count")
def count(
    context: typer.Context,
    url: Url = DEFAULT_URL,
    output: Errors = Output.TEXT,
    timeout: Timeout = DEADLINE_SECONDS,
) -> None:
    """Print how many records the store has over all instances."""
    with _asking(url, output, timeout) as client:
        _print({"count": client.count(context.obj)})


@contextmanager
def _asking(url: str, output: Output, timeout: float) -> Iterator[StreamsQueryClient]:
    """A client of the instance at `url`; an error ends the command with its message and exit code 1."""
    try:
        with StreamsQueryClient(url, timeout) as client:
            yield client
    except StreamsException as error:
        sys.stdout.flush()
        if output is Output.JSON:
            document = {"error": {"class": type(error).__name__, "message": str(error)}}
            typer.echo(to_json(document).decode(), err=True)
        else:
            typer.echo(f"error: {error}", err=True)
        raise typer.Exit(1) from None


def _print_record(record: KeyValue) -> None:
    _print({"key": record.key, "value": record.value})


def _print(document: object) -> None:
    sys.stdout.write(to_json(document).decode() + "\n")
