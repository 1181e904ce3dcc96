"""Pytest plugin: where the time of a run went, by lane, test, fixture and folder, and which folder is over its budget.

Runs of many tests end with it; a short one does with STREAMSAPP_TEST_TIMES=1.
"""

from __future__ import annotations

import json
import os
import time
import tomllib
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from lanes import lane_of_item
from process_times import ProcessTimes

_VARIABLE = "STREAMSAPP_TEST_TIMES"
_MANY = 200  # tests
_SHOWN_TESTS, _SHOWN_FILES, _SHOWN_FIXTURES = 50, 20, 20
PIECES = "times-*.json"
"""What processes that share a run's tests leave in the folder of side_by_side.py."""
BUDGET = Path(__file__).parents[1] / "budget.toml"

# What a worker tells the controller, beside what a report has: seconds of processors, [name, seconds] of each fixture
# that was made, and the test's lane.
_PROCESSOR, _FIXTURES, _LANE = "processor", "made_fixtures", "lane"


@dataclass
class Cost:
    """What something has taken: seconds by the clock, of processors, and how often."""

    wall: float = 0.0
    processor: float = 0.0
    count: int = 0

    def add(self, wall: float, processor: float = 0.0, count: int = 1) -> None:
        """And this."""
        self.wall += wall
        self.processor += processor
        self.count += count


@dataclass
class Times:
    """What the reports of a run tell."""

    lanes: dict[str, Cost] = field(default_factory=lambda: defaultdict(Cost))
    tests: dict[str, Cost] = field(default_factory=lambda: defaultdict(Cost))
    fixtures: dict[str, Cost] = field(default_factory=lambda: defaultdict(Cost))

    def note(self, report: Any) -> None:
        """A phase of a test: its setup, its call or its teardown."""
        processor = float(getattr(report, _PROCESSOR, 0.0))
        whole = int(report.when == "call" or (report.when == "setup" and not report.passed))
        for cost in (self.lanes[_lane(report)], self.tests[report.nodeid]):
            cost.add(report.duration, processor, whole)
        for name, seconds in getattr(report, _FIXTURES, ()):
            self.fixtures[name].add(seconds)

    def values(self) -> dict[str, dict[str, list[float]]]:
        """All of it as JSON."""
        tables = {"lanes": self.lanes, "tests": self.tests, "fixtures": self.fixtures}
        return {
            name: {key: [cost.wall, cost.processor, cost.count] for key, cost in table.items()}
            for name, table in tables.items()
        }

    def include(self, values: Mapping[str, Mapping[str, Sequence[float]]]) -> None:
        """Add what the `values` of another process's times have."""
        for name, table in (("lanes", self.lanes), ("tests", self.tests), ("fixtures", self.fixtures)):
            for key, (wall, processor, count) in values[name].items():
                table[key].add(wall, processor, int(count))

    @property
    def count(self) -> int:
        """How many tests ran."""
        return sum(each.count for each in self.tests.values())

    def by(self, part: Any) -> dict[str, Cost]:
        """The tests' costs, summed up by what `part` makes of a test's id."""
        found: dict[str, Cost] = defaultdict(Cost)
        for test, cost in self.tests.items():
            found[part(test)].add(cost.wall, cost.processor, cost.count)
        return found


def _lane(report: Any) -> str:
    node = getattr(report, "node", None)
    return str(getattr(report, _LANE, "")) + ("" if node is None else f" ({node.gateway.id})")


def file_of(test: str) -> str:
    """The file of a test's id."""
    return test.partition("::")[0]


def folder_of(test: str) -> str:
    """The folder in tests/ of a test's id."""
    parts = file_of(test).split("/")
    return parts[1] if parts[0] == "tests" and len(parts) > 2 else "."


def lines_of(times: Times, budget: Mapping[str, float]) -> Iterator[str]:
    """The tables, line by line."""
    yield from _table("lane", times.lanes)
    yield from _table(f"{_SHOWN_TESTS} slowest tests", times.tests, _SHOWN_TESTS)
    yield from _table(f"{_SHOWN_FILES} slowest files", times.by(file_of), _SHOWN_FILES)
    yield from _table(f"{_SHOWN_FIXTURES} slowest fixtures", times.fixtures, _SHOWN_FIXTURES)
    folders = times.by(folder_of)
    yield from _table("folder", folders)
    for name, cost in sorted(folders.items()):
        if name in budget and cost.wall > budget[name]:
            yield f"over budget: tests/{name} took {cost.wall:.0f} s, and {BUDGET.name} gives it {budget[name]:.0f} s"


def _table(title: str, costs: Mapping[str, Cost], most: int | None = None) -> Iterator[str]:
    yield f"{'seconds':>9} {'processor':>9} {'count':>6}  {title}"
    for name, cost in sorted(costs.items(), key=lambda each: -each[1].wall)[:most]:
        yield f"{cost.wall:9.1f} {cost.processor:9.1f} {cost.count:6d}  {name}"


def told(times: Times) -> Iterator[str]:
    """The tables of a run of many tests, or of one for which they were asked."""
    if times.count >= _MANY or os.environ.get(_VARIABLE):
        yield from lines_of(times, read_budget())


def read_budget(file: Path = BUDGET) -> dict[str, float]:
    """Seconds by folder; a ValueError where the file gives something else."""
    found = tomllib.loads(file.read_text())
    for name, seconds in found.items():
        if isinstance(seconds, bool) or not isinstance(seconds, int | float):
            raise ValueError(f"{file.name}: {name} = {seconds!r} is no number of seconds")
    return {name: float(seconds) for name, seconds in found.items()}


class Worker:
    """Measures in the process that runs the tests."""

    def __init__(self) -> None:
        self._process_times = ProcessTimes(os.getpid())
        self._fixtures: list[tuple[str, float]] = []
        self._inside = [0.0]

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(self, fixturedef: Any) -> Iterator[Any]:
        """The seconds of a fixture, without those of the fixtures that it asks for by and by."""
        began = time.perf_counter()
        self._inside.append(0.0)
        try:
            return (yield)
        finally:
            took = time.perf_counter() - began
            own = took - self._inside.pop()
            self._inside[-1] += took
            self._fixtures.append((fixturedef.argname, own))

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self, item: pytest.Item) -> Iterator[Any]:
        """Put into the report what the phase has taken."""
        report = yield
        setattr(report, _PROCESSOR, self._process_times.since(report.duration))
        setattr(report, _FIXTURES, self._fixtures)
        setattr(report, _LANE, lane_of_item(item))
        self._fixtures = []
        return report


class Teller:
    """Collects, and tells at the end, where the terminal is."""

    def __init__(self) -> None:
        self.times = Times()

    def pytest_runtest_logreport(self, report: Any) -> None:
        """Note it."""
        self.times.note(report)

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Print the tables, or leave them to who started this process as one of several."""
        if folder := terminalreporter.config.getoption("--pieces", None):
            (Path(folder) / PIECES.replace("*", str(os.getpid()))).write_text(json.dumps(self.times.values()))
        elif lines := list(told(self.times)):
            terminalreporter.section("where the time went")
            for line in lines:
                terminalreporter.write_line(line)


def pytest_configure(config: pytest.Config) -> None:
    """Measure where tests run, and tell where the terminal is; without workers both are here."""
    manager = config.pluginmanager
    is_worker = hasattr(config, "workerinput")
    if not manager.has_plugin("run-times-worker") and (is_worker or not config.getoption("numprocesses", None)):
        manager.register(Worker(), "run-times-worker")
    if not manager.has_plugin("run-times-teller") and not is_worker:
        manager.register(Teller(), "run-times-teller")
