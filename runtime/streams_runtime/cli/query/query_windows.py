"""The verbs of `streamsapp query` for window and session stores."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Annotated

import typer

from streams_runtime.cli.option_groups import with_option_groups
from streams_runtime.cli.query.query_options import (
    KEYS_MAY_BEGIN_WITH_A_DASH,
    MOMENT,
    KeyText,
    QueryOptions,
    ScanOptions,
    Stale,
    print_record,
    print_records,
)
from streams_runtime.query.wire.moments import parse_time
from streams_runtime.query.wire.problems import InvalidQueryException


@dataclass(frozen=True, slots=True)
class RangeOptions:
    """One key, or a range of keys, and the times between which windows or sessions are printed."""

    key: Annotated[
        str | None, typer.Argument(metavar="KEY", help="One key as text. Absent: all, or those between two.")
    ] = None
    from_key: Annotated[str | None, typer.Option(help="First key, inclusive.")] = None
    to_key: Annotated[str | None, typer.Option(help="Last key, inclusive.")] = None
    from_time: Annotated[str | None, typer.Option(help=f"Earliest, inclusive: {MOMENT}.")] = None
    to_time: Annotated[str | None, typer.Option(help=f"Latest, inclusive: {MOMENT}.")] = None

    def bounds(self) -> tuple[str | None, str | None, datetime | None, datetime | None]:
        """The first and the last key, and the earliest and the latest time; None is an open end.

        Raises:
            InvalidQueryException: both one key and the end of a range are given, or a time can't be read.
        """
        first, last = self.from_key, self.to_key
        if self.key is not None:
            if first is not None or last is not None:
                raise InvalidQueryException(
                    "KEY stands beside --from-key or --to-key; give one key, or two ends of a range"
                )
            first = last = self.key
        return first, last, _moment("--from-time", self.from_time), _moment("--to-time", self.to_time)


def add_to(app: typer.Typer) -> None:
    """Add the verbs to `app`, whose context holds the store's name."""
    for verb in (window, windows, session, sessions):
        app.command(verb.__name__, context_settings=KEYS_MAY_BEGIN_WITH_A_DASH)(verb)


@with_option_groups
def window(
    context: typer.Context,
    key: KeyText,
    time: Annotated[str, typer.Argument(metavar="TIME", help=f"Where the window begins: {MOMENT}.")],
    options: QueryOptions,
    stale: Stale = False,
) -> None:
    """Print the value of the key's window that begins at TIME; null where there is none."""
    with options.client() as client:
        print_record(client.window(context.obj, key, parse_time("TIME", time), stale=stale))


@with_option_groups
def windows(context: typer.Context, ranges: RangeOptions, options: QueryOptions, scan: ScanOptions) -> None:
    """Print the windows that start between two times, by key and then by time."""
    with options.client() as client:
        print_records(client.windows(context.obj, *ranges.bounds(), **asdict(scan)))


@with_option_groups
def session(
    context: typer.Context,
    key: KeyText,
    start: Annotated[str, typer.Argument(metavar="START", help=f"Of its first record: {MOMENT}.")],
    end: Annotated[str, typer.Argument(metavar="END", help=f"Of its last record: {MOMENT}.")],
    options: QueryOptions,
    stale: Stale = False,
) -> None:
    """Print the value of the key's session from START to END; null where there is none."""
    with options.client() as client:
        bounds = parse_time("START", start), parse_time("END", end)
        print_record(client.session(context.obj, key, *bounds, stale=stale))


@with_option_groups
def sessions(context: typer.Context, ranges: RangeOptions, options: QueryOptions, scan: ScanOptions) -> None:
    """Print the sessions that end at --from-time or later and start by --to-time, by key and then by end."""
    with options.client() as client:
        print_records(client.sessions(context.obj, *ranges.bounds(), **asdict(scan)))


def _moment(name: str, text: str | None) -> datetime | None:
    return None if text is None else parse_time(name, text)
