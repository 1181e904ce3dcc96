"""Pytest plugin: names each test that did not run, and why; with CI=true such a test makes the run fail."""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Callable, Mapping

import pytest

_STRICT_VARIABLE = "CI"
_EXCUSE = "Skipped: "


def _no_jvm() -> str | None:
    from streams_runtime.errors import EnvironmentException
    from streams_runtime.jvm.jars import broker_jars, spark_jars

    try:
        broker_jars()
        spark_jars()
    except EnvironmentException as missing:
        return str(missing)
    return None


def _no_java() -> str | None:
    from streams_runtime.errors import EnvironmentException
    from streams_runtime.jvm.java import find_java

    try:
        find_java()
    except EnvironmentException as missing:
        return str(missing)
    return None


def _no_oracle() -> str | None:
    from oracle_driver import driver_built
    from oracle_jvm import built

    from streams_runtime.errors import EnvironmentException

    try:
        built()
        driver_built()
    except EnvironmentException as missing:
        return str(missing)
    return None


def _no_api_server() -> str | None:
    from kube_api_server import PROGRAMS
    from kube_binaries import lacking
    from kube_sources import made_elsewhere

    return None if made_elsewhere() else lacking(*PROGRAMS)


def _no_node() -> str | None:
    from kube_binaries import lacking
    from kube_node import PROGRAMS
    from kube_sources import made_elsewhere

    if made_elsewhere():
        return None
    if sys.platform != "linux" or os.geteuid() != 0:
        return "a node of one's own needs root on Linux; Docker with kind, or a kubeconfig, would do as well"
    return lacking(*PROGRAMS)


NEEDS: Mapping[str, tuple[Callable[[], str | None], ...]] = {
    "integration": (_no_java, _no_jvm),
    "oracle": (_no_java, _no_jvm, _no_oracle),
    "cluster": (_no_api_server,),
    "e2e": (_no_node,),
}
"""What tests of a marker need; each check gives the reason why this machine lacks it, or None."""


@functools.cache
def lack(marker: str) -> str | None:
    """The first reason why tests of a marker can't run on this machine, or None when they can."""
    return next((reason for check in NEEDS[marker] if (reason := check())), None)


class NotRun:
    """Collects the skips of a run."""

    def __init__(self, strict: bool) -> None:
        self.strict = strict
        self.tests_by_reason: dict[str, list[str]] = {}

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> None:
        """Skip a test that this machine can't run, before its fixtures start anything."""
        for marker in item.iter_markers():
            if marker.name in NEEDS and (reason := lack(marker.name)):
                pytest.skip(reason)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Note a test that was skipped; an expected failure is none."""
        if report.skipped and not hasattr(report, "wasxfail"):
            self._note(report)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Note a file that was skipped as a whole."""
        if report.skipped:
            self._note(report)

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Print the reasons, and under each its tests."""
        if not self.tests_by_reason:
            return
        terminalreporter.section("not run on this machine, and why")
        for reason, tests in self.tests_by_reason.items():
            terminalreporter.write_line(reason)
            for test in tests:
                terminalreporter.write_line(f"  {test}")
        if self.strict:
            count = sum(map(len, self.tests_by_reason.values()))
            terminalreporter.write_line(f"{_STRICT_VARIABLE}=true: {count} not run, so this run has failed", red=True)

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Turn a run that is otherwise good into a failed one."""
        if self.strict and self.tests_by_reason and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def _note(self, report: pytest.TestReport | pytest.CollectReport) -> None:
        # Pytest's own form of a skip: (file, line, "Skipped: reason").
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
        self.tests_by_reason.setdefault(reason.removeprefix(_EXCUSE), []).append(report.nodeid)


def pytest_configure(config: pytest.Config) -> None:
    """Start collecting; once a run, however often the plugin is named."""
    if not config.pluginmanager.has_plugin("not-run-on-this-machine"):
        strict = os.environ.get(_STRICT_VARIABLE) == "true"
        config.pluginmanager.register(NotRun(strict), "not-run-on-this-machine")
