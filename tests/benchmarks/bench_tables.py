"""The figures of `make bench`: tables for people, `benchmarks.json` for programs."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

import orjson
from bench_declared import Case, Contestant, Measure, Ratio, Workload
from bench_figures import Failed, Figures, Result, Spread, ratio_of
from bench_report import TOLERATED_OTHERS
from bench_turns import Measured
from bench_versions import versions
from rich.table import Table


def tables(
    workloads: Sequence[Workload],
    contestants: Mapping[str, Contestant],
    figures: Figures,
    failures: Sequence[Failed] = (),
) -> Iterator[Table]:
    """A table for each case that has figures: median, least to most, and this project's best beside each.

    Of a workload whose cases are shown together, one table for all of them.
    """
    for workload in workloads:
        if workload.together and workload.cases:
            yield _together(workload, contestants, figures, failures)
            continue
        for case in workload.cases:
            names = [name for name in workload.taking_part(case) if _has(figures, workload.name, case.name, name)]
            if names:
                yield _table(workload, case, names, contestants, figures)


def _has(figures: Figures, workload: str, case: str, contestant: str) -> bool:
    return any(key[:3] == (workload, case, contestant) for key in figures)


def _table(
    workload: Workload, case: Case, names: Sequence[str], contestants: Mapping[str, Contestant], figures: Figures
) -> Table:
    made = Table(title=f"{workload.title}\n{case.size}", title_justify="left")
    made.add_column("", no_wrap=True)
    for column in ("median", "least to most", "", "ours vs"):
        made.add_column(column, justify="right" if column else "left", no_wrap=True)
    ours = [name for name in names if contestants[name].side == "streams-operator"]
    for measure in workload.measures:
        made.add_section()
        made.add_row(f"[bold]{measure.title}[/bold]")
        best = _best(measure, [figures.get((workload.name, case.name, name, measure.figure)) for name in ours])
        for name in names:
            found = figures.get((workload.name, case.name, name, measure.figure))
            cells = _cells(measure, found, None if name in ours else best)
            made.add_row(f"  {contestants[name].title}", *cells)
    return made


def _together(
    workload: Workload, contestants: Mapping[str, Contestant], figures: Figures, failures: Sequence[Failed]
) -> Table:
    """A line for each case: the medians of those whom its ratios compare, and the ratio."""
    measure = workload.measures[0]
    made = Table(title=f"{workload.title}\n{measure.title}, {measure.unit}", title_justify="left")
    made.add_column("", no_wrap=True)
    compared = list(dict.fromkeys((ratio.ours, ratio.peers) for ratio in workload.ratios.values()))
    for ours, peers in compared:
        for title in (*(contestants[name].title for name in (*ours, *peers)), "ratio"):
            made.add_column(title, justify="right")
    wrong = {(each.case, each.contestant): "wrong" if each.wrong else "failed" for each in failures}
    for case in workload.cases:
        cells = []
        for ours, peers in compared:
            for name in (*ours, *peers):
                found = figures.get((workload.name, case.name, name, measure.figure))
                cells.append(number(found.median) if found else wrong.get((case.name, name), "-"))
            ratio = ratio_of(workload, Ratio(figure=measure.figure, case=case.name, ours=ours, peers=peers), figures)
            cells.append("-" if ratio is None else f"{ratio:.2f}")
        made.add_row(f"{case.name}, {case.records:,} records", *cells)
    return made


def left_out(workloads: Sequence[Workload]) -> Iterator[str]:
    """A line for each side that can't do a case which was measured."""
    for workload in workloads:
        for case in workload.cases:
            for side, reason in case.why.items():
                yield f"takes no part: {side} in {workload.name}, {case.name}: {reason}"


def _best(measure: Measure, found: Sequence[Spread | None]) -> float | None:
    medians = [each.median for each in found if each is not None]
    return (max if measure.better == "more" else min)(medians, default=None)


def _cells(measure: Measure, found: Spread | None, ours: float | None) -> tuple[str, str, str, str]:
    if found is None:
        return "-", "", "", ""
    ratio = ""
    if ours and found.median:
        ratio = f"{ours / found.median if measure.better == 'more' else found.median / ours:.2f}"
    return number(found.median), f"{number(found.least)} to {number(found.most)}", measure.unit, ratio


def number(value: float) -> str:
    """With as many digits as are worth reading."""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:,.1f}" if abs(value) >= 10 else f"{value:,.2f}"


def ratios_table(ratios: Mapping[str, float]) -> Table:
    """The declared ratios; more than 1 is for this project."""
    made = Table(title="Ratios: larger is better for this project", title_justify="left")
    made.add_column("ratio")
    made.add_column("", justify="right")
    for name, value in ratios.items():
        made.add_row(name, f"{value:.2f}")
    return made


def failures_told(failures: Sequence[Failed]) -> Iterator[str]:
    """A line for each run that does not count."""
    for each in failures:
        first = each.reason.splitlines()[0]
        yield f"does not count: {each.contestant} in {each.workload}, {each.case}, round {each.round}: {first}"


def busy_warning(results: Sequence[Result]) -> Iterator[str]:
    """A line when other programs took more of the processors than lets contestants be compared."""
    shares = [each.processors.others for each in results if each.processors is not None]
    if max(shares, default=0.0) > TOLERATED_OTHERS:
        yield (
            f"not comparable: other programs took {min(shares):.0%} to {max(shares):.0%} of the processors during"
            " a run. Measure again on a quiet machine"
        )


def benchmarks_file(
    file: Path,
    settings: Mapping[str, object],
    workloads: Sequence[Workload],
    contestants: Mapping[str, Contestant],
    measured: Measured,
    figures: Figures,
    ratios: Mapping[str, float],
) -> None:
    """Write everything: ratios, medians, machine, versions, settings, every single run, and what does not count."""
    taking_part = {name for workload in workloads for name in workload.contestants}
    content = {
        "ratios": dict(ratios),
        "disturbance": next(busy_warning(measured.results), None),
        "figures": [
            {**dict(zip(("workload", "case", "contestant", "figure"), key, strict=True)), **asdict(found)}
            for key, found in figures.items()
        ],
        "machine": machine(),
        "versions": versions(),
        "settings": dict(settings),
        "workloads": [workload.model_dump() for workload in workloads],
        "contestants": {name: contestants[name].model_dump() for name in sorted(taking_part)},
        "runs": [asdict(each) for each in measured.results],
        "does_not_count": [asdict(each) for each in measured.failures],
    }
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(orjson.dumps(content, option=orjson.OPT_INDENT_2))


def machine() -> dict[str, object]:
    """Processor, cores, memory in MiB and system."""
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.is_file() else []
    model = next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "unknown")
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // (1024 * 1024)
    return {"processor": model, "cores": os.cpu_count(), "memory_mib": memory, "system": platform.platform()}
