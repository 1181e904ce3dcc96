"""The printed result of the checks: ours and DuckDB's figures side by side, and what a difference is."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from demo_parts.figures import Figures, Row
from demo_parts.twice import Verdict
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

_SHOWN = ("flights", "arr_delay_avg", "distance")


def print_store(
    console: Console,
    store: str,
    ours: Mapping[str, Row],
    theirs: Mapping[str, Figures],
    verdicts: Mapping[str, Verdict],
) -> None:
    """A table with a row for each key."""
    title = f"store {store} (of its nine columns, all are compared and three shown)"
    table = Table(title=title, title_justify="left", box=SIMPLE_HEAD, padding=(0, 1))
    table.add_column("key", no_wrap=True)
    for name in _SHOWN:
        table.add_column(name, justify="right", no_wrap=True)
        table.add_column("DuckDB", justify="right", style="dim", no_wrap=True)
    table.add_column("difference", no_wrap=True)
    for key in sorted({*ours, *theirs}):
        mine, other = ours.get(key, {}), theirs[key].row() if key in theirs else {}
        cells = [text for name in _SHOWN for text in (_number(mine.get(name)), _number(other.get(name)))]
        table.add_row(key, *cells, _difference(verdicts[key]))
    console.print(table)


def _number(value: Any) -> str:
    if value is None:
        return "-"
    return f"{value:,.0f}" if float(value).is_integer() else f"{value:,.4f}"


def _difference(verdict: Verdict) -> Text:
    if verdict.unexplained:
        return Text(f"UNEXPLAINED: {', '.join(verdict.unexplained)}", "bold red")
    return Text(f"+{verdict.twice:,} flights", "yellow") if verdict.twice else Text("none", "green")
