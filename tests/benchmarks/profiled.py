"""`make profile`: where an instance's time goes: a flame graph of its threads, and Spark's own stage times."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer
from bench_kafka import Cluster
from bench_ours import Ours
from bench_process import Child
from bench_rounds import Settings
from bench_runs import Job
from bench_stages import EVENT_LOG, Stages, stages_of
from quick import Keys, Limit, Partitions, Records, Seed, Sides, measured, run, say
from rich.console import Console
from rich.table import Table

from streams_runtime.jvm.jars import cache_folder

RATE = 100
"""Looks a second at every thread's stack: they cost the instance about a hundredth of its time."""
_WRITE_S = 60.0


def main(
    workload: Annotated[Job, typer.Argument(help="What the instance does meanwhile.")] = "catch-up",
    records: Records = 2_000_000,
    keys: Keys = 200_000,
    partitions: Partitions = 4,
    seed: Seed = 1,
    limit: Limit = 240.0,
    folder: Annotated[Path | None, typer.Option(help="Where the results go; default: into the cache.")] = None,
) -> None:
    """Profile one run of this project, whose results are checked as in the benchmark.

    Exit codes: 0 profiled and right; 2 the results are wrong; 1 anything else that failed.
    """
    settings = Settings(records, keys, partitions, 1, seed, (workload,), limit)
    target = folder or cache_folder() / "profiles" / workload
    shutil.rmtree(target, ignore_errors=True)
    events = target / "spark-events"
    events.mkdir(parents=True)

    def sides(cluster: Cluster) -> Sides:
        spark = {**EVENT_LOG, "spark.eventLog.dir": events.as_uri()}
        return {("ours", workload): [Ours(cluster, spark, lambda child: _watched(child, target)).measure]}

    (only,) = measured(settings, sides)
    Console().print(_table(stages_of(events), only.seconds["work"]))
    say(f"results equal to the data; flame graph: {target / 'flames.svg'}; Spark's event log: {events}")


@contextmanager
def _watched(child: Child, folder: Path) -> Iterator[None]:
    """py-spy looks at the process until it ends, and then draws."""
    program = Path(sys.executable).with_name("py-spy")
    command = [str(program), "record", "--pid", str(child.pid), "--output", str(folder / "flames.svg")]
    command += ["--format", "flamegraph", "--rate", str(RATE), "--threads", "--nonblocking"]
    with Child("py-spy", command, folder) as spy:
        yield
        spy.wait(_WRITE_S)


def _table(stages: Sequence[Stages], spent: float) -> Table:
    table = Table(title=f"Spark's stages; the work took {spent:.1f} s")
    for name in ("stage", "times", "tasks", "elapsed s", "run s", "GC s"):
        table.add_column(name, justify="left" if name == "stage" else "right")
    for each in stages:
        seconds = (f"{each.elapsed:.2f}", f"{each.run:.2f}", f"{each.collecting:.2f}")
        table.add_row(each.name, str(each.count), str(each.tasks), *seconds)
    return table


if __name__ == "__main__":
    run(main)
