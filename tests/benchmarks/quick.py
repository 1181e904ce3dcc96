"""`make bench-quick`: this project beside Kafka Streams, on one broker and the same data."""

from __future__ import annotations

import os
import shutil
import signal
import sys
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Literal, NoReturn

import typer
from bench_broker import broker
from bench_kafka import Cluster
from bench_machine import adopt_orphans
from bench_ours import Ours
from bench_peer import Peer
from bench_peer_build import build_peer
from bench_process import ChildFailedError
from bench_report import disturbance, lines, table, write_json
from bench_rounds import Bench, Settings
from bench_runs import Job, Measure, Run
from bench_verify import WrongResultError
from confluent_kafka import KafkaException
from rich.console import Console

from streams_runtime.errors import EnvironmentException, StreamsException
from streams_runtime.jvm.jars import cache_folder
from streams_runtime.jvm.java import find_java

FAILED = 1
WRONG_RESULT = 2
PEER_THREADS: dict[Job, tuple[int, ...]] = {"catch-up": (2,), "restore": (1, 2)}
"""Stream threads of Kafka Streams. It restores faster on one or on two, by machine: the better one counts."""

Sides = Mapping[tuple[str, Job], Sequence[Measure]]

Records = Annotated[int, typer.Option(min=1, help="Records to process, and records in the changelog.")]
Keys = Annotated[int, typer.Option(min=1, help="Different keys.")]
Partitions = Annotated[int, typer.Option(min=1, help="Partitions of every topic.")]
Rounds = Annotated[int, typer.Option(min=1, help="Rounds; the median counts.")]
Seed = Annotated[int, typer.Option(min=0, help="Seed of the data.")]
Only = Annotated[Literal["catch-up", "restore"] | None, typer.Option(help="Measure one of the two.")]
SkipPeer = Annotated[bool, typer.Option("--skip-peer", help="Measure this project alone.")]
SkipOurs = Annotated[bool, typer.Option("--skip-ours", help="Measure Kafka Streams alone.")]
PeerConfig = Annotated[list[str] | None, typer.Option(help="name=value for Kafka Streams, repeatable.")]
Servers = Annotated[str | None, typer.Option(help="A broker to use, instead of an embedded one.")]
Json = Annotated[Path | None, typer.Option(help="Where the figures go; default: into the cache.")]
Limit = Annotated[float, typer.Option(min=1, help="Longest time of one run, seconds.")]
Keep = Annotated[bool, typer.Option("--keep", help="Keep the work folder.")]

err = Console(stderr=True, soft_wrap=True)


def main(  # noqa: PLR0913, PLR0917 - a command's options are its arguments
    records: Records = 2_000_000,
    keys: Keys = 200_000,
    partitions: Partitions = 4,
    rounds: Rounds = 1,
    seed: Seed = 1,
    only: Only = None,
    skip_peer: SkipPeer = False,
    skip_ours: SkipOurs = False,
    peer_config: PeerConfig = None,
    bootstrap_servers: Servers = None,
    json: Json = None,
    limit: Limit = 240.0,
    keep: Keep = False,
) -> None:
    """Measure catch-up and cold restoration beside Kafka Streams.

    Exit codes: 0 measured and right; 2 a side's results are wrong; 1 anything else that failed.
    """
    jobs: tuple[Job, ...] = (only,) if only else ("catch-up", "restore")
    settings = Settings(records, keys, partitions, rounds, seed, jobs, limit)
    began = time.monotonic()

    def sides(cluster: Cluster) -> Sides:
        return _sides(cluster, jobs, skip_peer, skip_ours, tuple(peer_config or ()))

    runs = measured(settings, sides, bootstrap_servers, keep)
    _report(settings, runs, json or cache_folder() / "benchmarks.json", time.monotonic() - began)


def measured(
    settings: Settings, sides: Callable[[Cluster], Sides], bootstrap_servers: str | None = None, keep: bool = False
) -> Sequence[Run]:
    """Every run; what fails is told, and ends the command with its exit code."""
    adopt_orphans()
    try:
        with _work_folder(keep) as folder, broker(bootstrap_servers, folder) as address:
            cluster = Cluster(address)
            return _measure(cluster, settings, folder, sides(cluster))
    except WrongResultError as error:
        fail("wrong result", error, WRONG_RESULT)
    except (ChildFailedError, StreamsException, KafkaException, TimeoutError) as error:
        fail("failed", error, FAILED)


def _sides(cluster: Cluster, jobs: tuple[Job, ...], skip_peer: bool, skip_ours: bool, config: tuple[str, ...]) -> Sides:
    sides: dict[tuple[str, Job], Sequence[Measure]] = {}
    if not skip_peer:
        say("Kafka Streams: jars and classes from the cache, or fetched and compiled into it")
        try:
            java, build = find_java(), build_peer(cache_folder())
        except EnvironmentException as lacking:
            raise EnvironmentException(f"{lacking}. Or leave Kafka Streams out with --skip-peer") from lacking
        for job in jobs:
            peers = [Peer(cluster, java, build, threads, config) for threads in PEER_THREADS[job]]
            sides["peer", job] = [peer.measure for peer in peers]
    if not skip_ours:
        for job in jobs:
            sides["ours", job] = [Ours(cluster).measure]
    return sides


def _measure(cluster: Cluster, settings: Settings, folder: Path, sides: Sides) -> Sequence[Run]:
    prefix = f"bench-{uuid.uuid4().hex[:6]}"
    try:
        return Bench(cluster, settings, folder, prefix, sides, say).measure()
    finally:
        try:
            cluster.delete_all(prefix)
        except KafkaException as error:
            say(f"topics that begin with {prefix} were not all removed: {error}")


def _report(settings: Settings, runs: Sequence[Run], file: Path, spent: float) -> None:
    measured = lines(runs)
    data = f"{settings.records:,} records, {settings.keys:,} keys, {settings.partitions} partitions"
    Console().print(table(measured, f"Records per second\n{data}, {os.cpu_count()} cores"))
    described: dict[str, object] = {name: getattr(settings, name) for name in Settings.__slots__}
    write_json(file, described, runs, measured)
    if warning := disturbance(runs):
        err.print(f"[bold yellow]{warning}[/bold yellow]", highlight=False)
    say(f"results equal to the data on every side; {spent:.0f} s in all; figures: {file}")


@contextmanager
def _work_folder(keep: bool) -> Iterator[Path]:
    """A folder for state and logs, removed at the end unless something failed or `keep`."""
    folder = Path(tempfile.mkdtemp(prefix="streams-bench-"))
    try:
        yield folder
    except BaseException:
        err.print(f"the work folder is kept, with logs: {folder}", highlight=False)
        raise
    if keep:
        err.print(f"work folder: {folder}", highlight=False)
    else:
        shutil.rmtree(folder, ignore_errors=True)


def say(step: str) -> None:
    """Tell the user which step begins."""
    err.print(f"[dim]{time.strftime('%H:%M:%S')}[/dim] {step}", highlight=False)


def fail(what: str, error: Exception, code: int) -> NoReturn:
    """Tell what went wrong, and end the command with `code`."""
    err.print(f"[bold red]{what}:[/bold red] ", end="")
    err.print(str(error), markup=False, highlight=False)
    raise typer.Exit(code)


def _terminated(signum: int, _frame: object) -> None:
    # An exception unwinds the `with` blocks that end the children and the broker.
    sys.exit(128 + signum)


def run(main: Callable[..., None]) -> None:
    """The command, with what SIGTERM does to it."""
    signal.signal(signal.SIGTERM, _terminated)
    app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
    app.command()(main)
    app()


if __name__ == "__main__":
    run(main)
