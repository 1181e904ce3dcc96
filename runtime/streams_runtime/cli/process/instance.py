"""One streams client as a process: what `streamsapp run` starts for each replica. A pod runs cli/process/pod.py.

Exit codes: 0 NOT_RUNNING, 70 ERROR, 64 the file can't be used, 75 it could not close in time; anything else is a crash.
The termination message goes to the termination file as JSON, where Kubernetes shows it with the container.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import typer

import streams_runtime.cli.process.light_libraries  # noqa: F401 - first of all
from streams_runtime.api.reading.load import accepted
from streams_runtime.api.reading.python_origins import retold
from streams_runtime.builder.resolve_python import read_file
from streams_runtime.cli.common.tag_options import own_tags
from streams_runtime.cli.local.run_peers import siblings_of
from streams_runtime.cli.process.client_process import (
    exit_code,
    freeze_loaded_objects,
    leave,
    shorten_switch_interval,
    stop_on_signals,
    termination_document,
    write_whole,
)
from streams_runtime.cli.process.process_logs import LogFormat, configure_logging
from streams_runtime.cli.process.shutdown_request import ShutdownRequestFile
from streams_runtime.client import StreamsClient
from streams_runtime.errors import InvalidApplicationException, StreamsException, message_of
from streams_runtime.malloc_settings import share_heaps
from streams_runtime.query.server.access import OPEN, QueryGuard, TokenGate
from streams_runtime.settings import InstanceSettings
from streams_runtime.states import EXIT_UNUSABLE, ClientState
from streams_runtime.user_code import search_in

_CLOSE_SECONDS = 60.0

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


@app.command()
def instance(  # noqa: PLR0913, PLR0917 - each is an option of the command line
    file: Annotated[Path, typer.Argument(help="The StreamsApplication.")],
    bootstrap_servers: Annotated[str, typer.Option(help="The brokers, host:port.")],
    instance_id: Annotated[str, typer.Option(help="Static name in the group; a pod's name.")],
    state_dir: Annotated[Path, typer.Option(help="Folder of the stores; this process's own.")],
    listen: Annotated[str, typer.Option(help="host:port for queries; port 0 takes a free one.")] = "127.0.0.1:0",
    advertised: Annotated[str | None, typer.Option(help="host:port by which others reach this instance.")] = None,
    peers_dir: Annotated[Path | None, typer.Option(help="Folder of the run, in which others write their URLs.")] = None,
    endpoint_file: Annotated[Path | None, typer.Option(help="Where to write pid and URL once known.")] = None,
    termination_file: Annotated[Path | None, typer.Option(help="Where to write the last word.")] = None,
    request_path: Annotated[Path | None, typer.Option("--told-file", help="Read for the word that all end.")] = None,
    queries_token_file: Annotated[Path | None, typer.Option(help="File with the token that queries present.")] = None,
    client_tag: Annotated[list[str] | None, typer.Option(help="KEY=VALUE: where this instance is.")] = None,
    log_format: Annotated[LogFormat, typer.Option()] = LogFormat.TEXT,
    log_level: Annotated[str, typer.Option(help="DEBUG shows stack traces.")] = "INFO",
) -> None:
    """Run one instance until SIGTERM or SIGINT."""
    configure_logging(log_format, log_level.upper())
    shorten_switch_interval()
    share_heaps()
    host, _, port = listen.rpartition(":")
    search_in(file.parent)
    try:
        known = (host, int(port), advertised, *siblings_of(instance_id, peers_dir), own_tags(client_tag or ()))
        settings = InstanceSettings(instance_id, bootstrap_servers, state_dir, *known)
        guard = OPEN if queries_token_file is None else QueryGuard(TokenGate(queries_token_file))
        reading = read_file(file)
        client = StreamsClient(accepted(reading), settings, queries=guard)
    except (StreamsException, ValueError) as error:
        typer.echo(str(error), err=True)
        if termination_file is not None:
            write_whole(termination_file, termination_document("NOT_STARTED", error))
        raise typer.Exit(EXIT_UNUSABLE) from error
    stop = stop_on_signals()
    client.start()
    if endpoint_file is not None:
        write_whole(endpoint_file, {"pid": os.getpid(), "url": client.url, "instance": instance_id})
    request_file = ShutdownRequestFile(request_path)
    while not client.wait_for_end(timeout=0.2):
        request_file.pass_on(client)
        freeze_loaded_objects(client.spark_ready)
        if stop.is_set() or client.state is ClientState.PENDING_ERROR:
            break
    deadline = time.monotonic() + _CLOSE_SECONDS
    if stop.is_set() and client.state is not ClientState.PENDING_ERROR:
        client.close(_CLOSE_SECONDS)
    orderly = client.wait_for_end(max(deadline - time.monotonic(), 0))
    failure = _as_known(client.error, reading.origins)
    if termination_file is not None:
        write_whole(termination_file, termination_document(client.state, failure, client.shutdown_requested))
    if failure is not None:
        typer.echo(f"{client.state}: {type(failure).__name__}: {message_of(failure)}", err=True)
    if not orderly:
        typer.echo(
            f"could not close within {_CLOSE_SECONDS:g} s. The process ends all the same; what was not committed is"
            " read again",
            err=True,
        )
    leave(exit_code(client.state), orderly)


def _as_known(error: BaseException | None, origins: Mapping[str, str]) -> BaseException | None:
    """The error; what only Spark's analysis refuses of a topology in Python names calls, as all other mistakes do."""
    if isinstance(error, InvalidApplicationException):
        return InvalidApplicationException(retold(error.mistakes, origins))
    return error


if __name__ == "__main__":
    app()
