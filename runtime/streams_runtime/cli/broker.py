"""`streamsapp broker`: an Apache Kafka for this machine, until Ctrl-C or SIGTERM."""

from __future__ import annotations

import signal
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Annotated

import orjson
import typer

from streams_runtime.cli.output_format import Output
from streams_runtime.errors import EnvironmentException, StreamsException
from streams_runtime.kafka.broker.broker_cluster import EmbeddedCluster, size_of
from streams_runtime.kafka.broker.embedded_broker import EmbeddedBroker

_FAILED = 1


def broker(
    port: Annotated[
        int | None,
        typer.Option(
            min=1, max=65535, help="Port to listen on; further brokers take those behind. Default: free ones."
        ),
    ] = None,
    data_dir: Annotated[
        Path | None,
        typer.Option(help="Folder for data and logs, kept for the next start. Default: a new one, removed at the end."),
    ] = None,
    brokers: Annotated[
        int, typer.Option(min=1, help="1, or 3 or 5 that replicate each topic three times: any one may be missing.")
    ] = 1,
    output: Annotated[Output, typer.Option(help="json: one object on one line.")] = Output.TEXT,
) -> None:
    """Run Apache Kafka on this machine, each broker in a process of its own, until Ctrl-C or SIGTERM."""
    _exit_on_signals()
    try:
        with _folder(data_dir) as folder:
            if brokers == 1:
                _run_one(folder, port, output)
            else:
                _run_several(EmbeddedCluster(folder, brokers, port), output)
    except StreamsException as failure:
        typer.echo(failure, err=True)
        raise typer.Exit(_FAILED) from failure


def _run_one(folder: Path, port: int | None, output: Output) -> None:
    if size := size_of(folder):
        raise EnvironmentException(
            f"{folder} holds the data of {size} brokers. Give --brokers {size}, or another folder (--data-dir)"
        )
    with EmbeddedBroker(folder, port) as running:
        _announce(output, running.bootstrap_servers, folder, {"pid": running.pid})
        running.wait()
        raise StreamsException(running.why_it_ended())


def _run_several(cluster: EmbeddedCluster, output: Output) -> None:
    def tell(number: int, ended: EmbeddedBroker) -> None:
        typer.echo(f"broker {number}: {ended.why_it_ended()}", err=True)

    with cluster as running:
        pids = {"pids": [each.pid for each in running.brokers.values()]}
        _announce(output, running.bootstrap_servers, running.data_dir, pids)
        # A broker that is killed is what such a cluster is tried with; clients go on without it.
        running.wait_for_end(tell)
        raise StreamsException("no broker is left")


def _announce(output: Output, bootstrap_servers: str, folder: Path, processes: Mapping[str, object]) -> None:
    folder = folder.absolute()
    if output is Output.JSON:
        typer.echo(orjson.dumps({"bootstrap_servers": bootstrap_servers, "data_dir": str(folder), **processes}))
    else:
        several = "," in bootstrap_servers
        typer.echo(
            f"broker{'s' if several else ''} at {bootstrap_servers}, data in {folder};"
            f" Ctrl-C stops {'them' if several else 'it'}"
        )
    sys.stdout.flush()


@contextmanager
def _folder(given: Path | None) -> Iterator[Path]:
    if given is not None:
        yield given
        return
    with tempfile.TemporaryDirectory(prefix="streamsapp-broker-") as fresh:
        yield Path(fresh)


def _exit_on_signals() -> None:
    """Let SIGINT and SIGTERM leave through the `with` blocks, once: a second does not disturb the stop."""

    def leave(_number: int, _frame: FrameType | None) -> None:
        for each in (signal.SIGINT, signal.SIGTERM):
            signal.signal(each, signal.SIG_IGN)
        raise SystemExit(0)

    for each in (signal.SIGINT, signal.SIGTERM):
        signal.signal(each, leave)
