"""`make bench`: every workload of `workloads/`, this project and its peers side by side on one broker."""

from __future__ import annotations

import shutil
import sys
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer
from bench_broker import broker
from bench_charts import draw
from bench_declared import Case, DeclarationError, Workload, load_contestants, load_workloads
from bench_figures import figures_of, ratios_of
from bench_kafka import Cluster
from bench_machine import adopt_orphans
from bench_process import ChildFailedError
from bench_tables import benchmarks_file, busy_warning, failures_told, left_out, ratios_table, tables
from bench_turns import Measured, Turns
from confluent_kafka import KafkaException
from quick import FAILED, WRONG_RESULT, Json, Keep, Seed, Servers, err, fail, run, say
from rich.console import Console

from streams_runtime.errors import StreamsException
from streams_runtime.jvm.jars import cache_folder

PICTURES = Path(__file__).parent / "pictures"
FILE_WIDTH = 120

Names = Annotated[str, typer.Option(help="Names, separated by commas; empty: all.")]
Rounds = Annotated[int | None, typer.Option(min=1, help="Rounds of each case; default: what the workload says.")]
Records = Annotated[
    int | None, typer.Option(min=1, help="Records of a workload's first case; the others in proportion.")
]
Cases = Annotated[str, typer.Option(help="Names of cases, separated by semicolons; empty: all.")]
Queries = Annotated[str, typer.Option(help="Of NEXMark, separated by commas, as q0,q5: no other case; empty: all.")]
Optional = Annotated[bool, typer.Option("--optional", help="The optional cases too.")]
Pictures = Annotated[Path, typer.Option(help="Where the charts go.")]


def main(  # noqa: PLR0913, PLR0917 - a command's options are its arguments
    workloads: Names = "",
    contestants: Names = "",
    rounds: Rounds = None,
    records: Records = None,
    seed: Seed = 1,
    optional: Optional = False,
    cases: Cases = "",
    queries: Queries = "",
    bootstrap_servers: Servers = None,
    json: Json = None,
    pictures: Pictures = PICTURES,
    keep: Keep = False,
) -> None:
    """Measure this project beside its peers.

    Exit codes: 0 measured, and this project's results right; 2 a result of this project is wrong; 1 anything else.
    A peer that fails or gives a wrong result does not count and is named.
    """
    began = time.monotonic()
    adopt_orphans()
    try:
        known = load_contestants()
        wanted = [*_names(cases, ";"), *_names(queries)]
        chosen = _chosen(load_workloads(_names(workloads), known), records, optional, wanted)
        only = _names(contestants)
        if unknown := [name for name in only if name not in known]:
            raise DeclarationError(f"no contestant {', '.join(unknown)}; there are {', '.join(known)}")
        measured = Measured()
        with _folder(lambda: keep or bool(measured.failures)) as folder:
            for workload in chosen:
                for case in workload.cases:
                    with _ground(bootstrap_servers, folder, workload, case) as (cluster, place, prefix):
                        turns = Turns(cluster, known, place, prefix, seed, say)
                        turns.measure(workload, case, rounds or workload.rounds, only, measured)
    except (DeclarationError, ChildFailedError, StreamsException, KafkaException, TimeoutError) as error:
        fail("failed", error, FAILED)
    figures = figures_of(measured.results, measured.failures)
    # In a file the tables have room; a terminal has the width that it has.
    console = Console(width=None if sys.stdout.isatty() else FILE_WIDTH)
    for table in tables(chosen, known, figures, measured.failures):
        console.print(table)
    ratios = ratios_of(chosen, figures)
    if ratios:
        console.print(ratios_table(ratios))
    file = json or cache_folder() / "benchmarks.json"
    settings = {"records": records, "rounds": rounds, "seed": seed, "optional": optional, "contestants": only}
    benchmarks_file(file, settings, chosen, known, measured, figures, ratios)
    drawn = draw(pictures, chosen, known, figures)
    for line in (*left_out(chosen), *failures_told(measured.failures), *busy_warning(measured.results)):
        err.print(f"[bold yellow]{line}[/bold yellow]", highlight=False)
    say(f"{time.monotonic() - began:.0f} s in all; figures: {file}; charts: {', '.join(map(str, drawn)) or 'none'}")
    if broken := [each for each in measured.failures if known[each.contestant].side == "streams-operator"]:
        raise typer.Exit(WRONG_RESULT if any(each.wrong for each in broken) else FAILED)


def _chosen(
    workloads: Sequence[Workload], records: int | None, optional: bool, wanted: Sequence[str]
) -> list[Workload]:
    """The workloads as they are to be measured. Raises DeclarationError for a case that none of them has."""
    there = {case.name for each in workloads for case in each.cases}
    if unknown := [name for name in wanted if name not in there]:
        raise DeclarationError(
            f"no case {', '.join(unknown)} in the chosen workloads; there are {', '.join(sorted(there))}"
        )
    return [each.resized(records, optional, wanted) for each in workloads]


def _names(given: str, between: str = ",") -> list[str]:
    return [name.strip() for name in given.split(between) if name.strip()]


@contextmanager
def _ground(given: str | None, folder: Path, workload: Workload, case: Case) -> Iterator[tuple[Cluster, Path, str]]:
    """A broker for one case, so that what earlier cases left does not weigh on it; its folder is removed at the end."""
    place = Path(tempfile.mkdtemp(prefix=f"{workload.name}-", dir=folder))
    prefix = f"bench-{uuid.uuid4().hex[:6]}"
    with broker(given, place) as address:
        cluster = Cluster(address)
        try:
            yield cluster, place, prefix
        finally:
            if given is not None:
                try:
                    cluster.delete_all(prefix)
                except KafkaException as error:
                    say(f"topics that begin with {prefix} were not all removed: {error}")
    shutil.rmtree(place / "broker", ignore_errors=True)


@contextmanager
def _folder(keep: Callable[[], bool]) -> Iterator[Path]:
    """A folder for state and logs, removed at the end unless a run failed or `keep` says otherwise."""
    folder = Path(tempfile.mkdtemp(prefix="streams-bench-"))
    try:
        yield folder
    finally:
        if keep() or sys.exc_info()[0] is not None:
            err.print(f"the work folder is kept, with logs: {folder}", highlight=False)
        else:
            shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    run(main)
