"""What all verbs of `streamsapp query` share: options, the client, how an error ends them."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from streams_runtime.cli.output_format import Output
from streams_runtime.errors import StreamsException
from streams_runtime.query.client.query_client import (
    DEADLINE_SECONDS,
    QueryCredentials,
    Records,
    StreamsQueryClient,
)
from streams_runtime.query.stores.iterators import KeyValue, VersionedRecord
from streams_runtime.query.stores.position_bound import parse_bound
from streams_runtime.query.wire.json_values import to_json
from streams_runtime.query.wire.problems import (
    QueryForbiddenException,
    QueryNotAuthenticatedException,
    problem_of,
)
from streams_runtime.query.wire.windowed_keys import Windowed

MOMENT = "RFC 3339 with an offset (2026-01-31T08:00:00Z), or milliseconds since 1970"
"""How a time is written, for help texts."""
EXIT_FAILED = 1
EXIT_RETRY = 75
"""sysexits' EX_TEMPFAIL: the same query may succeed later."""
EXIT_ACCESS = 77
"""sysexits' EX_NOPERM: another token is needed."""
EXIT_CODES = (
    "Exit code 0: answered. 75: not within --timeout (a rebalance, a restoration); the same command may succeed later."
    " 77: another token is needed. 2: the command line is wrong. 1: everything else; the message ends with what to do."
)

DEFAULT_URL = "http://127.0.0.1:8080"
KEYS_MAY_BEGIN_WITH_A_DASH = {"ignore_unknown_options": True}
"""A key may be a negative number: what is no option of ours is a key, and one too many is refused."""

KeyText = Annotated[str, typer.Argument(metavar="KEY", help="The key as text, in the store's key format.")]
Stale = Annotated[bool, typer.Option("--stale", help="Also read copies that may lag behind (standbys, restoring).")]
Partition = Annotated[int | None, typer.Option(help="Only this partition.", min=0)]


@dataclass(frozen=True, slots=True)
class QueryOptions:
    """The options of every verb: which instance to ask, how, and in which form errors are printed."""

    url: Annotated[str, typer.Option(envvar="STREAMSAPP_URL", help="URL of any one instance of the application.")] = (
        DEFAULT_URL
    )
    output: Annotated[Output, typer.Option("--output", help="Records are JSON; this is the form of errors.")] = (
        Output.TEXT
    )
    timeout: Annotated[float, typer.Option(help="Seconds to go on while the application rebalances.", min=0.0)] = (
        DEADLINE_SECONDS
    )
    token_file: Annotated[
        Path | None,
        typer.Option(
            envvar="STREAMSAPP_TOKEN_FILE", help="File with the token that the instances ask for.", dir_okay=False
        ),
    ] = None
    ca_file: Annotated[
        Path | None,
        typer.Option(
            envvar="STREAMSAPP_CA_FILE",
            help="Authorities (PEM) of the instances' certificates. Default: the machine's.",
        ),
    ] = None
    relay: Annotated[
        bool,
        typer.Option(
            "--relay", help="Reach every instance through the one at --url, as kubectl port-forward asks for."
        ),
    ] = False
    position: Annotated[
        list[str] | None,
        typer.Option(
            help="A record of an input that the answer has to contain, such as orders-2:57 (topic, partition, offset)."
            " May be given for several partitions."
        ),
    ] = None

    @contextmanager
    def client(self) -> Iterator[StreamsQueryClient]:
        """A client; an error ends the command with its message and exit code."""
        credentials = QueryCredentials(token_file=self.token_file, ca_file=self.ca_file)
        try:
            with StreamsQueryClient(self.url, self.timeout, credentials=credentials, relay=self.relay) as client:
                yield client.with_position_bound(parse_bound("--position", self.position or ()))
        except (StreamsException, ValueError) as error:
            sys.stdout.flush()
            typer.echo(error_text(error, self.output), err=True)
            raise typer.Exit(exit_code(error)) from None


@dataclass(frozen=True, slots=True)
class ScanOptions:
    """The options of the verbs that print many records, in either order."""

    reverse: Annotated[bool, typer.Option("--reverse", help="From the last to the first.")] = False
    stale: Stale = False
    partition: Partition = None


def error_text(error: Exception, output: Output) -> str:
    """An error as the command prints it."""
    if output is not Output.JSON:
        return f"error: {error}"
    document: dict[str, object] = {"class": type(error).__name__, "message": str(error)}
    if isinstance(error, StreamsException):
        kind = problem_of(error).kind
        document |= {"category": kind.category, "remedy": kind.remedy}
    return to_json({"error": document}).decode()


def exit_code(error: Exception) -> int:
    """The exit code of a command that ended by `error`."""
    if isinstance(error, QueryNotAuthenticatedException | QueryForbiddenException):
        return EXIT_ACCESS
    retryable = isinstance(error, StreamsException) and problem_of(error).kind.category == "retryable"
    return EXIT_RETRY if retryable else EXIT_FAILED


def print_records(records: Records) -> None:
    """Each record as one line."""
    with records:
        for record in records:
            print_record(record)


def print_record(record: KeyValue) -> None:
    """One record as one line."""
    key, value = record
    if isinstance(key, Windowed):
        bounds = {"start": key.window.start, "end": key.window.end}
        print_document({"key": key.key, "window": bounds, "value": value})
    elif isinstance(value, VersionedRecord):
        print_document({"key": key, "value": value.value, "validFrom": value.valid_from, "validTo": value.valid_to})
    else:
        print_document({"key": key, "value": value})


def print_document(document: object) -> None:
    """One JSON object as one line."""
    sys.stdout.write(to_json(document).decode() + "\n")
