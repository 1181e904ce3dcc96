"""The verbs of `streamsapp query` for window and session stores."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

import typer

from streams_runtime.cli.form import Output
from streams_runtime.cli.query_asking import (
    DEFAULT_URL,
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
    print_record,
    print_records,
)
from streams_runtime.query.client import DEADLINE_SECONDS
from streams_runtime.query.problems import InvalidQueryException
from streams_runtime.query.times import parse_time

_MOMENT = "RFC 3339 with an offset (2026-01-31T08:00:00Z), or milliseconds since 1970"

OneKey = Annotated[
    str | None, typer.Argument(metavar="KEY", help="One key as text. Absent: all, or those between two.")
]
FromKey = Annotated[str | None, typer.Option(help="First key, inclusive.")]
ToKey = Annotated[str | None, typer.Option(help="Last key, inclusive.")]
FromTime = Annotated[str | None, typer.Option(help=f"Earliest, inclusive: {_MOMENT}.")]
ToTime = Annotated[str | None, typer.Option(help=f"Latest, inclusive: {_MOMENT}.")]


def add_to(app: typer.Typer) -> None:
    """Add the verbs to `app`, whose context holds the store's name."""
    for verb in (window, windows, session, sessions):
        app.command(verb.__name__, context_settings=KEYS_MAY_BEGIN_WITH_A_DASH)(verb)


def window(  # noqa: PLR0913, PLR0917 - each is an option of the command line
    context: typer.Context,
    key: Annotated[str, typer.Argument(metavar="KEY", help="The key as text, in the store's key format.")],
    time: Annotated[str, typer.Argument(metavar="TIME", help=f"Where the window begins: {_MOMENT}.")],
    url: Url = DEFAULT_URL,
    output: Errors = Output.TEXT,
    timeout: Timeout = DEADLINE_SECONDS,
    stale: Stale = False,
    token_file: TokenFile = None,
    ca_file: CaFile = None,
    relay: Relay = False,
) -> None:
    """Print the value of the key's window that begins at TIME; null where there is none."""
    with Asking(url, output, timeout, token_file, ca_file, relay).client() as client:
        print_record(client.window(context.obj, key, parse_time("TIME", time), stale=stale))


def windows(  # noqa: PLR0913, PLR0917 - each is an option of the command line
    context: typer.Context,
    key: OneKey = None,
    from_key: FromKey = None,
    to_key: ToKey = None,
    from_time: FromTime = None,
    to_time: ToTime = None,
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
    """Print the windows that start between two times, by key and then by time."""
    with Asking(url, output, timeout, token_file, ca_file, relay).client() as client:
        keys = _keys(key, from_key, to_key)
        times = _moment("--from-time", from_time), _moment("--to-time", to_time)
        print_records(client.windows(context.obj, *keys, *times, reverse=reverse, stale=stale, partition=partition))


def session(  # noqa: PLR0913, PLR0917 - each is an option of the command line
    context: typer.Context,
    key: Annotated[str, typer.Argument(metavar="KEY", help="The key as text, in the store's key format.")],
    start: Annotated[str, typer.Argument(metavar="START", help=f"Of its first record: {_MOMENT}.")],
    end: Annotated[str, typer.Argument(metavar="END", help=f"Of its last record: {_MOMENT}.")],
    url: Url = DEFAULT_URL,
    output: Errors = Output.TEXT,
    timeout: Timeout = DEADLINE_SECONDS,
    stale: Stale = False,
    token_file: TokenFile = None,
    ca_file: CaFile = None,
    relay: Relay = False,
) -> None:
    """Print the value of the key's session from START to END; null where there is none."""
    with Asking(url, output, timeout, token_file, ca_file, relay).client() as client:
        bounds = parse_time("START", start), parse_time("END", end)
        print_record(client.session(context.obj, key, *bounds, stale=stale))


def sessions(  # noqa: PLR0913, PLR0917 - each is an option of the command line
    context: typer.Context,
    key: OneKey = None,
    from_key: FromKey = None,
    to_key: ToKey = None,
    from_time: FromTime = None,
    to_time: ToTime = None,
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
    """Print the sessions that end at --from-time or later and start by --to-time, by key and then by end."""
    with Asking(url, output, timeout, token_file, ca_file, relay).client() as client:
        keys = _keys(key, from_key, to_key)
        times = _moment("--from-time", from_time), _moment("--to-time", to_time)
        print_records(client.sessions(context.obj, *keys, *times, reverse=reverse, stale=stale, partition=partition))


def _keys(key: str | None, from_key: str | None, to_key: str | None) -> tuple[str | None, str | None]:
    if key is None:
        return from_key, to_key
    if from_key is not None or to_key is not None:
        raise InvalidQueryException("KEY stands beside --from-key or --to-key; give one key, or two ends of a range")
    return key, key


def _moment(name: str, text: str | None) -> datetime | None:
    return None if text is None else parse_time(name, text)
