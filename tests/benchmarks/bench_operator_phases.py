"""The phases of the operator's benchmark: made, idle, changed, restarted; each gives figures."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
from bench_operator_requests import Requests, writes
from bench_operator_scene import Scene, cpu_seconds, peak_mib, place, resident_mib
from operator_kit import OperatorProcess

_LONGEST = 900.0  # seconds of one phase; a figure is told, not judged, and a phase without an end is a failure
_QUIET = 3.0  # seconds without a write after which all that was begun has come to its end
_WITHIN = 10.0  # seconds in which the specifications are changed
_LOOK = 0.2

Figures = dict[str, Any]
Operators = Sequence[OperatorProcess]


@dataclass(frozen=True, slots=True)
class Sizes:
    """How much of everything; `idle` is in seconds."""

    applications: int
    changes: int
    idle: float
    shards: int = 1


async def measure(scene: Scene, sizes: Sizes, say: Callable[[str], None], profile: Path | None) -> Figures:
    """All phases one after the other. Raises TimeoutError: a phase does not come to its end."""
    async with asyncio.TaskGroup() as group:
        # Its failure ends the phases too.
        watching = group.create_task(scene.watch())
        figures = await _phases(scene, sizes, say, profile)
        watching.cancel()
    return figures


async def _phases(scene: Scene, sizes: Sizes, say: Callable[[str], None], profile: Path | None) -> Figures:
    figures: Figures = {"applications": sizes.applications, "shards": sizes.shards}
    with scene.operators(sizes.shards) as processes:
        await _until(lambda: all(each.ready() for each in processes), "the operator is ready")
        await _until(lambda: all("_leader 1.0" in each.metrics() for each in processes), "the operator leads")
        for phase in (_made, _idle, _changed):
            name = phase.__name__.strip("_")
            say(name)
            with _profiled(processes[0].process.pid, profile, name):
                figures |= await phase(scene, processes, sizes)
        figures["peak_mib"] = _peak(processes)
    say("restarted")
    scene.audit.new()
    began = time.monotonic()
    with scene.operators(sizes.shards) as processes, _profiled(processes[0].process.pid, profile, "restarted"):
        figures |= await _restarted(scene, processes, sizes, began)
    return figures


async def _made(scene: Scene, processes: Operators, sizes: Sizes) -> Figures:
    scene.audit.new()
    before, own_before, began = cpu_seconds(), _cpu(processes), time.monotonic()
    await scene.make(range(sizes.applications))
    made = time.monotonic() - began
    await scene.until(lambda: _run(scene) >= sizes.applications, "all applications run", _LONGEST)
    took = time.monotonic() - began
    # Processors first: the rest of this phase is the wait for its last request.
    spent, own = cpu_seconds(), _cpu(processes)
    requests = scene.audit.new() + await _quiet(scene)
    statuses = sum(number for (_, kind), number in requests.items() if kind == "streamsapplications/status")
    return {
        "made_s": made,
        "running_s": took,
        "cpu_s": {name: seconds for name in spent if (seconds := spent[name] - before.get(name, 0)) >= 0.1},
        "operator_cpu_s": own - own_before,
        "requests_each": sum(requests.values()) / sizes.applications,
        "status_writes_each": statuses / sizes.applications,
        "requests_each_of": _each(requests, sizes.applications),
    }


async def _idle(scene: Scene, processes: Operators, sizes: Sizes) -> Figures:
    before, cpu = _resident(processes), _cpu(processes)
    await asyncio.sleep(sizes.idle)
    requests = scene.audit.new()
    return {
        "idle_s": sizes.idle,
        "idle_writes": writes(requests),
        "idle_requests": sum(requests.values()),
        "idle_requests_of": _each(requests, 1),
        "idle_percent_of_a_core": 100 * (_cpu(processes) - cpu) / sizes.idle,
        "idle_growth_mib": _resident(processes) - before,
    }


async def _changed(scene: Scene, processes: Operators, sizes: Sizes) -> Figures:
    began = time.monotonic()
    one_more: asyncio.Task[float] | None = None
    async with asyncio.TaskGroup() as group:
        for number in range(sizes.changes):
            await asyncio.sleep(max(0.0, began + number * _WITHIN / sizes.changes - time.monotonic()))
            await scene.change(number, {"restartNonce": 1})
            if one_more is None and number >= sizes.changes // 2:
                one_more = group.create_task(_one_more(scene, sizes.applications))
    await scene.until(lambda: _run(scene) > sizes.applications, "all changed applications run", _LONGEST)
    took = time.monotonic() - began
    requests = scene.audit.new() + await _quiet(scene)
    return {
        "changes": sizes.changes,
        "changed_s": took,
        "one_more_s": one_more.result() if one_more is not None else 0.0,
        "requests_a_change": sum(requests.values()) / sizes.changes,
    }


async def _one_more(scene: Scene, number: int) -> float:
    began = time.monotonic()
    await scene.make(range(number, number + 1))
    await scene.until(lambda: (seen := scene.seen.get(place(number))) is not None and seen.runs, "one more", _LONGEST)
    return time.monotonic() - began


async def _restarted(scene: Scene, processes: Operators, sizes: Sizes, began: float) -> Figures:
    applications = sizes.applications + 1

    def observed() -> bool:
        lines = [line for each in processes for line in each.metrics().splitlines()]
        return sum(line.startswith("streams_operator_application_state{") for line in lines) >= applications

    await _until(lambda: all(each.said("metrics at port") for each in processes), "the operator has started")
    await _until(observed, "all applications are observed")
    took = time.monotonic() - began
    requests = scene.audit.new() + await _quiet(scene)
    return {
        "restart_s": took,
        "restart_writes": writes(requests),
        "restart_requests": sum(requests.values()),
        "restart_requests_of": dict(
            Counter({f"{verb} {kind}": number for (verb, kind), number in requests.items()}).most_common(8)
        ),
        "restart_peak_mib": _peak(processes),
    }


def _cpu(processes: Operators) -> float:
    return sum(sum(cpu_seconds(each.process.pid).values()) for each in processes)


def _peak(processes: Operators) -> float:
    """Of the largest one."""
    return max(peak_mib(each.process.pid) for each in processes)


def _resident(processes: Operators) -> float:
    return sum(resident_mib(each.process.pid) for each in processes)


async def _quiet(scene: Scene) -> Requests:
    """Wait until the operator writes nothing any more; what it asked meanwhile."""
    found: Requests = Counter()
    since = time.monotonic()
    while time.monotonic() - since < _QUIET:
        await asyncio.sleep(_LOOK)
        new = scene.audit.new()
        found += new
        if writes(new):
            since = time.monotonic()
    return found


def _run(scene: Scene) -> int:
    return sum(each.runs for each in scene.seen.values())


def _each(requests: Requests, applications: int) -> dict[str, float]:
    return {f"{verb} {kind}": number / applications for (verb, kind), number in requests.most_common()}


async def _until(condition: Callable[[], bool], what: str) -> None:
    end = time.monotonic() + _LONGEST
    while True:
        with suppress(httpx.HTTPError):
            if await asyncio.to_thread(condition):
                return
        if time.monotonic() > end:
            raise TimeoutError(f"not within {_LONGEST:g} s: {what}")
        await asyncio.sleep(_LOOK)


@contextmanager
def _profiled(pid: int, folder: Path | None, name: str) -> Iterator[None]:
    """py-spy beside the block: a file of stacks in `folder`, each with its number of samples."""
    with ExitStack() as stack:
        if folder is not None:
            folder.mkdir(parents=True, exist_ok=True)
            tool = shutil.which("py-spy", path=os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]))
            if tool is None:
                raise TimeoutError("py-spy is missing. Run `make install`, or leave --profile out")
            output = folder / f"{name}.txt"
            command = [
                tool,
                "record",
                "--gil",
                "--pid",
                str(pid),
                "--format=raw",
                f"--output={output}",
                "--duration=900",
            ]
            process = subprocess.Popen([*command, "--rate=50"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            stack.callback(process.wait)
            stack.callback(process.send_signal, signal.SIGINT)
        yield
