"""`make bench-tenants`: how long one team's change waits for the operator while other teams misbehave, each way alone
and all at once.

Kubernetes' part is a real API server over etcd, topics are at a real broker, and the pods are played. Each way has a
cluster of its own.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Annotated, Any

sys.path.insert(0, str(Path(__file__).parent))

import httpx
import orjson
import typer
from bench_operator_scene import Scene, place, scene
from quick import fail, run, say
from rich.console import Console
from rich.table import Table

sys.path.insert(0, str(Path(__file__).parent.parent / "support"))

from bad_tenants import KINDS, Kind, Tenant, bad_tenants, make_homes
from kube_reads import connection
from waiting import eventually

from streams_runtime.errors import EnvironmentException

_FAILED = 1
_GOOD = 4  # applications of the good tenant
_AT_IT = 5.0  # seconds for which a bad tenant is at it before anybody measures
_LOOK = 0.01  # seconds between two looks at a status
_APART = 0.5  # seconds between two changes
_PREFIX = "bad-"
Kinds = Sequence[Kind]
_BESIDE: Mapping[str, Kinds] = {
    "nobody": (),
    **{kind.__name__.replace("_", " "): (kind,) for kind in KINDS},
    "all of them": KINDS,
}

Changes = Annotated[int, typer.Option(min=1, help="Changes of the good tenant beside each bad one.")]
Beside = Annotated[str, typer.Option(help=f"Whom beside, separated by commas: {', '.join(_BESIDE)}. Absent: all.")]
Json = Annotated[Path | None, typer.Option(help="A file for the figures.")]


def main(changes: Changes = 20, beside: Beside = "", json: Json = None) -> None:
    """Measure what a good tenant notices of bad ones. Exit code 1: something did not work; slow is told in figures."""
    figures: dict[str, list[float]] = {}
    chosen = [each.strip() for each in beside.split(",")] if beside else list(_BESIDE)
    if unknown := set(chosen) - _BESIDE.keys():
        raise typer.BadParameter(f"nobody is called {', '.join(sorted(unknown))}; it is {', '.join(_BESIDE)}")
    for name in chosen:
        kinds = _BESIDE[name]
        with tempfile.TemporaryDirectory(prefix="streams-bench-tenants-") as folder:
            try:
                say(f"beside {name}")
                with scene(Path(folder), _GOOD) as stage, _tenants(stage, kinds) as good:
                    figures[name] = [good.measured(number) for number in range(changes)]
            except (EnvironmentException, AssertionError, httpx.HTTPError) as error:
                fail("failed", error, _FAILED)
    table = Table(title=f"seconds until the operator has answered a change in status, {changes} changes each")
    table.add_column("beside")
    for column in ("median", "longest"):
        table.add_column(column, justify="right")
    for name, delays in figures.items():
        table.add_row(name, f"{median(delays):.2f}", f"{max(delays):.2f}")
    Console().print(table)
    if json is not None:
        json.write_bytes(orjson.dumps(figures, option=orjson.OPT_INDENT_2))


class Good(Tenant):
    """The good tenant, with a few applications that run."""

    def begin(self) -> None:
        """Make all of them, and wait until they run."""
        self.make(*(self.application(_name(number)) for number in range(_GOOD)))
        for number in range(_GOOD):
            eventually(lambda at=number: self._status(at).get("state") == "RUNNING", "it runs")

    def measured(self, number: int) -> float:
        """Change one of them; the seconds until its status is about that."""
        time.sleep(_APART)
        began, at = time.monotonic(), number % _GOOD
        wanted = self.change(_name(at), replicas=1 + (number // _GOOD + 1) % 2)
        eventually(lambda: self._status(at)["observedGeneration"] == wanted, "status tells of it", every=_LOOK)
        return time.monotonic() - began

    def _status(self, number: int) -> Mapping[str, Any]:
        found: Mapping[str, Any] = self.get(_name(number)).get("status", {})
        return found


@contextmanager
def _tenants(stage: Scene, kinds: Kinds) -> Iterator[Good]:
    """One operator, the good tenant's applications, and then the bad tenants."""
    make_homes(stage.cluster, _PREFIX, *kinds)
    with stage.operators(1) as (process,), connection(stage.cluster.endpoint, stage.cluster.token) as http:
        eventually(lambda: process.ready() and "_leader 1.0" in process.metrics(), "the operator leads")
        good = Good(http, place(0)[0], stage.bootstrap)
        good.begin()
        with bad_tenants(stage.cluster, _PREFIX, stage.bootstrap, *kinds):
            time.sleep(_AT_IT)
            yield good


def _name(number: int) -> str:
    return place(number)[1]


if __name__ == "__main__":
    run(main)
