"""Charts of the figures as SVG: bars by contestant, or lines over what a workload varies."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import cycle
from pathlib import Path
from typing import Any

from bench_declared import Case, Contestant, Workload
from bench_figures import Figures, Spread

COLOURS = {
    "streams-operator": "#1f77b4",
    "kafka-streams": "#d9822b",
    "quixstreams": "#7f7f7f",
    "structured-streaming": "#8a5fb0",
    "flink-sql": "#4f9d69",
}
WIDTH, BAR_HEIGHT, LINES_HEIGHT = 8.0, 0.32, 4.0


def draw(
    folder: Path, workloads: Sequence[Workload], contestants: Mapping[str, Contestant], figures: Figures
) -> list[Path]:
    """A file for each workload that says what is drawn and has figures of it. The same figures give the same bytes."""
    drawn = []
    for workload in workloads:
        if any(key[0] == workload.name and key[3] == workload.chart for key in figures):
            folder.mkdir(parents=True, exist_ok=True)
            file = folder / f"{workload.name}.svg"
            _save(file, _lines if workload.over else _bars, workload, contestants, figures)
            drawn.append(file)
    return drawn


def _save(file: Path, how: Any, workload: Workload, contestants: Mapping[str, Contestant], figures: Figures) -> None:
    # Costly to import, and needed at the very end only.
    import matplotlib as mpl

    mpl.use("svg")
    import matplotlib.pyplot as plt

    mpl.rcParams.update({"svg.hashsalt": workload.name, "svg.fonttype": "none", "font.size": 9})
    measure = next(each for each in workload.measures if each.figure == workload.chart)
    figure = how(plt, workload, contestants, figures)
    words = ("higher", "lower") if workload.over else ("longer", "shorter")
    better = f"{words[0] if measure.better == 'more' else words[1]} is better"
    figure.suptitle(f"{workload.title}\n{measure.title}, {measure.unit}; {better}", fontsize=10, x=0.01, ha="left")
    figure.savefig(file, metadata={"Date": None}, bbox_inches="tight")
    plt.close(figure)


def _found(workload: Workload, case: Case, figures: Figures) -> dict[str, Spread]:
    keys = {name: (workload.name, case.name, name, str(workload.chart)) for name in workload.taking_part(case)}
    return {name: figures[key] for name, key in keys.items() if key in figures}


def _bars(plt: Any, workload: Workload, contestants: Mapping[str, Contestant], figures: Figures) -> Any:
    cases = [(case, found) for case in workload.cases if (found := _found(workload, case, figures))]
    heights = [len(found) for _, found in cases]
    size = (WIDTH, BAR_HEIGHT * sum(heights) + 0.9 * len(cases) + 0.6)
    figure, axes = plt.subplots(len(cases), 1, figsize=size, squeeze=False, height_ratios=heights, layout="constrained")
    for (case, found), axis in zip(cases, axes[:, 0], strict=True):
        names = list(reversed(found))
        values = [found[name].median for name in names]
        spans = [
            [found[name].median - found[name].least for name in names],
            [found[name].most - found[name].median for name in names],
        ]
        colours = [COLOURS[contestants[name].side] for name in names]
        bars = axis.barh([contestants[name].title for name in names], values, color=colours, xerr=spans, ecolor="#444")
        axis.bar_label(
            bars, labels=[f"{value:,.0f}" if value >= 100 else f"{value:.3g}" for value in values], padding=4
        )
        axis.set_title(case.size, fontsize=9, loc="left")
        axis.spines[["top", "right"]].set_visible(False)
        axis.margins(x=0.15)
    return figure


def _lines(plt: Any, workload: Workload, contestants: Mapping[str, Contestant], figures: Figures) -> Any:
    figure, axis = plt.subplots(figsize=(WIDTH, LINES_HEIGHT), layout="constrained")
    styles: dict[str, Iterator[str]] = {side: cycle(("-", "--", ":")) for side in COLOURS}
    for label, (side, points) in _places(workload, contestants, figures).items():
        at, medians = [place for place, _ in points], [found.median for _, found in points]
        below = [found.median - found.least for _, found in points]
        above = [found.most - found.median for _, found in points]
        look = {"color": COLOURS[side], "linestyle": next(styles[side]), "marker": "o", "capsize": 3}
        axis.errorbar(at, medians, yerr=[below, above], label=label, **look)
    axis.set_xlabel(str(workload.over))
    axis.set_ylim(bottom=0)
    if workload.over == "instances":
        axis.xaxis.get_major_locator().set_params(integer=True)
    else:
        axis.set_xscale("log")
    axis.spines[["top", "right"]].set_visible(False)
    axis.grid(axis="y", alpha=0.3)
    figure.legend(frameon=False, loc="outside right upper")
    return figure


def _places(
    workload: Workload, contestants: Mapping[str, Contestant], figures: Figures
) -> dict[str, tuple[str, list[tuple[float, Spread]]]]:
    """The points of each line and its side, by what it is called; with instances along the edge, one line a side."""
    made: dict[str, tuple[str, list[tuple[float, Spread]]]] = {}
    for case in workload.cases:
        for name, found in _found(workload, case, figures).items():
            who = contestants[name]
            by_instances = workload.over == "instances"
            label = who.title.partition(",")[0] if by_instances else who.title
            at = who.instances if by_instances else getattr(case, str(workload.over))
            made.setdefault(label, (who.side, []))[1].append((at, found))
    return {label: (side, sorted(points, key=lambda point: point[0])) for label, (side, points) in made.items()}
