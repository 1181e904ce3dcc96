"""`make bench-operator`: how long the operator takes for many applications, what it asks of the API server, its memory.

Kubernetes' part is a real API server over etcd, topics are made at a real broker, and the pods are played.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
from pathlib import Path
from typing import Annotated, Any

sys.path.insert(0, str(Path(__file__).parent))

import orjson
import typer
from bench_operator_phases import Sizes, measure
from bench_operator_scene import scene
from quick import err, fail, run, say
from rich.console import Console
from rich.table import Table

from streams_runtime.errors import EnvironmentException

_FAILED = 1

Applications = Annotated[str, typer.Option(help="How many, with two pods each; several, separated by commas.")]
Idle = Annotated[float, typer.Option(min=1, help="Seconds to look at an operator with nothing to do.")]
Changes = Annotated[int, typer.Option(min=1, help="Specifications changed within ten seconds.")]
Shards = Annotated[int, typer.Option(min=1, help="Operators that divide the namespaces.")]
Json = Annotated[Path | None, typer.Option(help="A file for the figures.")]
Chart = Annotated[Path | None, typer.Option(help="A file for a chart (SVG) of time and memory over the applications.")]
Profile = Annotated[Path | None, typer.Option(help="A folder for py-spy's flame graph of the creation.")]


def main(
    applications: Applications = "1000",
    idle: Idle = 60.0,
    changes: Changes = 100,
    shards: Shards = 1,
    json: Json = None,
    chart: Chart = None,
    profile: Profile = None,
) -> None:
    """Measure the operator. Exit code 1: something did not work; a slow one is told in figures."""
    all_figures: list[dict[str, Any]] = []
    for number in map(int, applications.split(",")):
        sizes = Sizes(number, min(changes, number), idle, shards)
        with tempfile.TemporaryDirectory(prefix="streams-bench-operator-") as folder:
            try:
                say(f"API server, broker and pods for {number} applications")
                with scene(Path(folder), number) as stage:
                    all_figures.append(asyncio.run(measure(stage, sizes, say, profile)))
            except (EnvironmentException, ExceptionGroup) as error:
                for log in sorted(Path(folder).glob("operator-*.log")):
                    err.print("".join(log.read_text().splitlines(keepends=True)[-5:]), markup=False, highlight=False)
                fail("failed", _first(error), _FAILED)
        Console().print(_table(all_figures[-1]))
    if json is not None:
        json.write_bytes(orjson.dumps(all_figures, option=orjson.OPT_INDENT_2))
    if chart is not None:
        draw(chart, all_figures)
        say(f"the chart: {chart}")


def _first(error: Exception) -> Exception:
    return _first(error.exceptions[0]) if isinstance(error, ExceptionGroup) else error


def _table(figures: dict[str, Any]) -> Table:
    table = Table(title=f"{figures['applications']} applications, two pods each")
    table.add_column("figure")
    table.add_column("value", justify="right")
    for name, value in figures.items():
        if isinstance(value, dict):
            for part, number in sorted(value.items(), key=lambda item: -item[1]):
                table.add_row(f"  {name.replace('_', ' ')}: {part}", f"{number:,.2f}")
        else:
            table.add_row(name.replace("_", " "), f"{value:,.2f}" if isinstance(value, float) else f"{value:,}")
    return table


def draw(file: Path, all_figures: list[dict[str, Any]]) -> None:
    """Seconds and MiB over the number of applications."""
    # Costly to import, and needed at the very end only.
    import matplotlib as mpl

    mpl.use("svg")
    import matplotlib.pyplot as plt

    mpl.rcParams.update({"svg.hashsalt": "operator", "svg.fonttype": "none", "font.size": 9})
    over = [each["applications"] for each in all_figures]
    figure, (left, right) = plt.subplots(1, 2, figsize=(8.0, 3.0), layout="constrained")
    for axes, unit, names in (
        (left, "seconds", ("running_s", "restart_s")),
        (right, "MiB", ("peak_mib", "restart_peak_mib")),
    ):
        for name in names:
            axes.plot(over, [each[name] for each in all_figures], marker="o", label=name.replace("_", " "))
        axes.set(xlabel="applications", ylabel=unit, ylim=(0, None), xlim=(0, None))
        axes.legend()
    figure.savefig(file, metadata={"Date": None})
    plt.close(figure)


if __name__ == "__main__":
    run(main)
