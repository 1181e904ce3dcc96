"""The live table: the columns of `kubectl get streamsapps`, a row for each instance, bars for what goes on."""

from __future__ import annotations

from rich.console import Group, RenderableType
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from streams_runtime.cli.local.progress.overview import CRASHED, InstanceRow, Overview
from streams_runtime.states import ClientState

_STYLES = {
    ClientState.RUNNING: "green",
    ClientState.NOT_RUNNING: "dim",
    ClientState.ERROR: "bold red",
    ClientState.PENDING_ERROR: "red",
    CRASHED: "red",
}
_BAR_WIDTH = 24


def drawing(overview: Overview) -> RenderableType:
    """All of it, for rich to draw."""
    parts: list[RenderableType] = [_application(overview), Text(), _instances(overview)]
    bars = _bars(overview)
    if bars is not None:
        parts += [Text(), bars]
    return Group(*parts)


def count(number: int | None) -> str:
    """A number for people; `-` where it is not known."""
    return "-" if number is None else f"{number:,}"


def duration(seconds: float) -> str:
    """Seconds as kubectl prints ages: 45s, 3m10s, 5h2m, 4d7h."""
    left = int(seconds)
    parts = []
    for unit, size in (("d", 86_400), ("h", 3_600), ("m", 60), ("s", 1)):
        number, left = divmod(left, size)
        if number:
            parts.append(f"{number}{unit}")
    return "".join(parts[:2]) or "0s"


def _application(overview: Overview) -> Table:
    row = overview.application
    late = {"LATE": count(row.late)} if row.late else {}
    table = _plain("NAME", "STATE", "READY", "TASKS", "RESTORING", "LAG", *late, "SETUP", "AGE")
    table.add_row(
        row.name,
        state_text(row.state),
        f"{row.ready}/{row.replicas}",
        str(row.tasks),
        count(row.restoring),
        count(row.lag),
        *late.values(),
        row.setup,
        duration(row.age),
    )
    return table


def _instances(overview: Overview) -> Table:
    table = _plain("INSTANCE", "STATE", "TASKS", "RESTORING", "LAG", "PID", "URL")
    for row in overview.instances:
        table.add_row(
            row.name,
            state_text(row.state),
            str(len(row.tasks)),
            count(row.restoring),
            count(row.lag),
            str(row.pid or "-"),
            row.url or "-",
        )
    return table


def _bars(overview: Overview) -> Table | None:
    """A bar for each instance that restores, and one for the backlog."""
    table = Table.grid(padding=(0, 2))
    for row in overview.instances:
        if row.restoration is not None:
            table.add_row(*_restoration(row))
    lag = overview.application.lag
    if lag and overview.backlog:
        done = overview.backlog - lag
        bar = ProgressBar(overview.backlog, done, width=_BAR_WIDTH)
        table.add_row("backlog", bar, f"{count(done)} of {count(overview.backlog)} records", "")
    return table if table.row_count else None


def _restoration(row: InstanceRow) -> tuple[RenderableType, ...]:
    it = row.restoration
    assert it is not None
    eta = "" if it.eta is None else f", {duration(it.eta)} left"
    return (
        f"{row.name} restores",
        ProgressBar(max(it.total, 1), it.done, width=_BAR_WIDTH),
        f"{count(it.done)} of {count(it.total)} records",
        f"{count(round(it.rate))}/s{eta}",
    )


def _plain(*columns: str) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="bold", pad_edge=False)
    for each in columns:
        table.add_column(each, no_wrap=True)
    return table


def state_text(state: str) -> Text:
    """A state in its colour."""
    return Text(state, style=_STYLES.get(state, "yellow"))
