"""`streamsapp query`: reads a store of a running application, one JSON object a line."""

from __future__ import annotations

from typing import Annotated

import typer

from streams_runtime.cli import query_windows
from streams_runtime.cli.form import Output
from streams_runtime.cli.query_asking import (
    DEFAULT_URL,
    EXIT_CODES,
    KEYS_MAY_BEGIN_WITH_A_DASH,
    Asking,
    CaFile,
    Errors,
    Partition,
    Relay,
    Reverse,
    Stale,
    Timeout,
    TokenFile,
    Url,
    print_document,
    print_record,
    print_records,
)
from streams_runtime.query.client import DEADLINE_SECONDS

_HELP = "Read a store of a running application: one JSON object a line."

app = typer.Typer(help=f"{_HELP}\n\n{EXIT_CODES}", no_args_is_help=True)


@app.callback()
def store(
    context: typer.Context, store: Annotated[str, typer.Argument(metavar="STORE", help="Name of the store.")]
) -> None:
    """The store that the verbs are about."""
    context.obj = store


@app.command("get", context_settings=KEYS_MAY_BEGIN_WITH_A_DASH)
def get(  # noqa: PLR0913, PLR0917 - each is an option of the command line
    context: typer.Context,
    key: Annotated[str, typer.Argument(metavar="KEY", help="The key as text, in the store's key format.")],
    url: Url = DEFAULT_URL,
    output: Errors = Output.TEXT,
    timeout: Timeout = DEADLINE_SECONDS,
    stale: Stale = False,
    token_file: TokenFile = None,
    ca_file: CaFile = None,
    relay: Relay = False,
) -> None:
    """Print the key and its value; the value is null where the store has no such key."""
    with Asking(url, output, timeout, token_file, ca_file, relay).client() as client:
        print_record(client.record(context.obj, key, stale=stale))


@app.command("range", context_settings=KEYS_MAY_BEGIN_WITH_A_DASH)
def key_range(  # noqa: PLR0913, PLR0917 - each is an option of the command line
    context: typer.Context,
    from_key: Annotated[str, typer.Argument(metavar="FROM", help="First key, inclusive.")],
    to_key: Annotated[str, typer.Argument(metavar="TO", help="Last key, inclusive.")],
    url: Url = DEFAULT_URL,
    output: Errors = Output.TEXT,
    timeout: Timeout = DEADLINE_SECONDS,
    reverse: Reverse = False,
    stale: Stale = False,
    partition: Partition = None,
    token_file: TokenFile = None,
    ca_file: CaFile = None,
    relay: Relay = False,
) -> None:
    """Print the records from FROM to TO, in the order of the keys' bytes."""
    with Asking(url, output, timeout, token_file, ca_file, relay).client() as client:
        found = client.range(context.obj, from_key, to_key, reverse=reverse, stale=stale, partition=partition)
        print_records(found)


@app.command("all")
def all_records(  # noqa: PLR0913, PLR0917 - each is an option of the command line
    context: typer.Context,
    url: Url = DEFAULT_URL,
    output: Errors = Output.TEXT,
    timeout: Timeout = DEADLINE_SECONDS,
    reverse: Reverse = False,
    stale: Stale = False,
    partition: Partition = None,
    token_file: TokenFile = None,
    ca_file: CaFile = None,
    relay: Relay = False,
) -> None:
    """Print every record, in the order of the keys' bytes."""
    with Asking(url, output, timeout, token_file, ca_file, relay).client() as client:
        print_records(client.all(context.obj, reverse=reverse, stale=stale, partition=partition))


@app.command("prefix", context_settings=KEYS_MAY_BEGIN_WITH_A_DASH)
def prefix(  # noqa: PLR0913, PLR0917 - each is an option of the command line
    context: typer.Context,
    prefix: Annotated[str, typer.Argument(metavar="PREFIX", help="What the keys' bytes begin with.")],
    url: Url = DEFAULT_URL,
    output: Errors = Output.TEXT,
    timeout: Timeout = DEADLINE_SECONDS,
    stale: Stale = False,
    partition: Partition = None,
    token_file: TokenFile = None,
    ca_file: CaFile = None,
    relay: Relay = False,
) -> None:
    """Print the records whose keys begin with PREFIX, in the order of the keys' bytes."""
    with Asking(url, output, timeout, token_file, ca_file, relay).client() as client:
        print_records(client.prefix_scan(context.obj, prefix, stale=stale, partition=partition))


@app.command("count")
def count(  # noqa: PLR0913, PLR0917 - each is an option of the command line
    context: typer.Context,
    url: Url = DEFAULT_URL,
    output: Errors = Output.TEXT,
    timeout: Timeout = DEADLINE_SECONDS,
    approximate: Annotated[
        bool, typer.Option("--approximate", help="The stores' own estimate, which is cheap.")
    ] = False,
    stale: Stale = False,
    partition: Partition = None,
    token_file: TokenFile = None,
    ca_file: CaFile = None,
    relay: Relay = False,
) -> None:
    """Print how many records the store has over all instances."""
    with Asking(url, output, timeout, token_file, ca_file, relay).client() as client:
        counted = client.approximate_num_entries if approximate else client.count
        print_document({"count": counted(context.obj, stale=stale, partition=partition)})


query_windows.add_to(app)
