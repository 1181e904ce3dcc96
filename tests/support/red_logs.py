"""Pytest plugin: keeps the logs of a test that failed in one folder, whose path the run prints, and shows their ends.

So what happened on a machine that is gone by now can still be understood. Logs are the *.log files below the run's
temporary folder that were written to while the test ran, and what `kept_logs.logs_of` names.
"""

from __future__ import annotations

import os
import re
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from kept_logs import keep, logs_since

VARIABLE = "STREAMSAPP_TEST_LOGS"
"""The folder for the logs; without it there is one below the system's temporary folder for each run."""

_SHOWN_LINES, _SHOWN_WIDTH = 40, 300
_SHOWN_LOGS = 8  # the latest
_LONGEST_NAME = 120
_KEPT_IN = "logs_kept_in"
_OF_FILES = 5  # CLOCK_REALTIME_COARSE
_ROUNDED = 1e-6  # seconds that two readings of the same time may differ by as floats


class Keeper:
    """Where tests run."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._began = _now()

    def pytest_runtest_logstart(self) -> None:
        """Note when a test begins."""
        self._began = _now()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self, item: pytest.Item) -> Iterator[Any]:
        """Keep the logs of a phase that failed, and show their ends with its failure."""
        report = yield
        if report.failed and (logs := logs_since(self._began, item.config._tmp_path_factory.getbasetemp())):  # type: ignore[attr-defined]
            folder = self._folder / re.sub(r"[^\w.-]+", "-", item.nodeid)[-_LONGEST_NAME:] / report.when
            keep(folder, logs)
            setattr(report, _KEPT_IN, str(folder))
            report.sections += [(f"end of {each.name}", _end(each.text)) for each in logs[-_SHOWN_LOGS:]]
        return report


def _now() -> float:
    """By the clock that files get their times from, which on Linux is some milliseconds behind the other one.

    So a log that the test before wrote to in its last milliseconds is kept too.
    """
    return time.clock_gettime(_OF_FILES) - _ROUNDED if sys.platform == "linux" else time.time()


def _end(text: str) -> str:
    return "\n".join(line[:_SHOWN_WIDTH] for line in text.splitlines()[-_SHOWN_LINES:])


class Teller:
    """Where the terminal is."""

    def __init__(self) -> None:
        self._kept: list[tuple[str, str]] = []

    def pytest_runtest_logreport(self, report: Any) -> None:
        """Note where logs are."""
        if folder := getattr(report, _KEPT_IN, None):
            self._kept.append((report.nodeid, folder))

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Say where."""
        if self._kept:
            terminalreporter.section("logs of what failed")
            for test, folder in self._kept:
                terminalreporter.write_line(f"{test}: {folder}")


def pytest_configure(config: pytest.Config) -> None:
    """Keep where tests run, and tell where the terminal is; without workers both are here."""
    manager = config.pluginmanager
    is_worker = hasattr(config, "workerinput")
    if not manager.has_plugin("red-logs-keeper"):
        run = config.workerinput["testrunuid"] if is_worker else f"{os.getpid()}-{time.time_ns()}"
        given = os.environ.get(VARIABLE)
        folder = Path(given) if given else Path(tempfile.gettempdir()) / f"streamsapp-red-{run}"
        manager.register(Keeper(folder), "red-logs-keeper")
    if not manager.has_plugin("red-logs-teller") and not is_worker:
        manager.register(Teller(), "red-logs-teller")
