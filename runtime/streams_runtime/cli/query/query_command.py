"""`streamsapp query`: reads a store of a running application, one JSON object a line."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from streams_runtime.cli.option_groups import with_option_groups
from streams_runtime.cli.query import query_windows
from streams_runtime.cli.query.query_options import (
    EXIT_CODES,
    KEYS_MAY_BEGIN_WITH_A_DASH,
    MOMENT,
    KeyText,
    Partition,
    QueryOptions,
    ScanOptions,
    Stale,
    print_document,
    print_record,
    print_records,
)
from streams_runtime.query.wire.moments import parse_time

_HELP = "Read a store of a running application: one JSON object a line."

app = typer.Typer(help=f"{_HELP}\n\n{EXIT_CODES}", no_args_is_help=True, add_completion=False)


@app.callback()
def store(
    context: typer.Context, store: Annotated[str, typer.Argument(metavar="STORE", help="Name of the store.")]
) -> None:
    """The store that the verbs read."""
    context.obj = store


@app.command("get", context_settings=KEYS_MAY_BEGIN_WITH_A_DASH)
@with_option_groups
def get(
    context: typer.Context,
    key: KeyText,
    options: QueryOptions,
    stale: Stale = False,
    as_of: Annotated[str | None, typer.Option(help=f"With a history, what the key had then: {MOMENT}.")] = None,
) -> None:
    """Print the key and its value; the value is null where the store has no such key."""
    time = None if as_of is None else parse_time("--as-of", as_of)
    with options.client() as client:
        print_record(client.record(context.obj, key, as_of=time, stale=stale))


@app.command("range", context_settings=KEYS_MAY_BEGIN_WITH_A_DASH)
@with_option_groups
def key_range(
    context: typer.Context,
    from_key: Annotated[str, typer.Argument(metavar="FROM", help="First key, inclusive.")],
    to_key: Annotated[str, typer.Argument(metavar="TO", help="Last key, inclusive.")],
    options: QueryOptions,
    scan: ScanOptions,
) -> None:
    """Print the records from FROM to TO, in the order of the keys' bytes."""
    with options.client() as client:
        print_records(client.range(context.obj, from_key, to_key, **asdict(scan)))


@app.command("all")
@with_option_groups
def all_records(context: typer.Context, options: QueryOptions, scan: ScanOptions) -> None:
    """Print every record, in the order of the keys' bytes."""
    with options.client() as client:
        print_records(client.all(context.obj, **asdict(scan)))


@app.command("prefix", context_settings=KEYS_MAY_BEGIN_WITH_A_DASH)
@with_option_groups
def prefix(
    context: typer.Context,
    prefix: Annotated[str, typer.Argument(metavar="PREFIX", help="What the keys' bytes begin with.")],
    options: QueryOptions,
    stale: Stale = False,
    partition: Partition = None,
) -> None:
    """Print the records whose keys begin with PREFIX, in the order of the keys' bytes."""
    with options.client() as client:
        print_records(client.prefix_scan(context.obj, prefix, stale=stale, partition=partition))


@app.command("count")
@with_option_groups
def count(
    context: typer.Context,
    options: QueryOptions,
    approximate: Annotated[
        bool, typer.Option("--approximate", help="The stores' own estimate, which is cheap.")
    ] = False,
    stale: Stale = False,
    partition: Partition = None,
) -> None:
    """Print how many records the store has over all instances."""
    with options.client() as client:
        counted = client.approximate_num_entries if approximate else client.count
        print_document({"count": counted(context.obj, stale=stale, partition=partition)})


query_windows.add_to(app)
