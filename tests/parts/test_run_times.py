"""A run tells where its time went, and which folder is over its budget."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import run_times
from process_times import ProcessTimes
from run_times import Cost, Times, folder_of, lines_of, read_budget

HEADING = "*where the time went*"
TWO = """
import pytest, time, run_times

def pass_time(seconds):
    if hasattr(run_times.time, "now"):
        run_times.time.now += seconds

@pytest.fixture(scope="module")
def inner(): pass_time(5)

@pytest.fixture
def outer(request):
    pass_time(1)
    request.getfixturevalue("inner")
    pass_time(2)

def test_slow(outer): time.sleep(0.06)
def test_quick(outer): pass
"""


def report(when: str, seconds: float, nodeid: str = "tests/unit/test_x.py::test_it", **more: Any) -> Any:
    return SimpleNamespace(**{"when": when, "duration": seconds, "nodeid": nodeid, "passed": True, **more})


def run(pytester: pytest.Pytester, *options: str) -> str:
    pytester.makepyfile(test_inner=TWO)
    ran = pytester.runpytest_inprocess("-p", "run_times", *options)
    ran.assert_outcomes(passed=2)
    return str(ran.stdout)


def rows(said: str, title: str) -> dict[str, list[str]]:
    """The rows of one table, by their last column."""
    lines = iter(said.splitlines())
    assert any(line.endswith(f"  {title}") for line in lines), said
    found = {}
    for line in lines:
        parts = line.split(maxsplit=3)
        if len(parts) < 4 or parts[0] == "seconds":
            break
        found[parts[3]] = parts[:3]
    return found


def test_a_run_tells_lanes_tests_files_and_fixtures(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STREAMSAPP_TEST_TIMES", "1")
    clock = SimpleNamespace(now=0.0, perf_counter=lambda: clock.now)
    monkeypatch.setattr(run_times, "time", clock)
    said = run(pytester)
    assert list(rows(said, "50 slowest tests")) == ["test_inner.py::test_slow", "test_inner.py::test_quick"]
    assert rows(said, "lane")["rest"][2] == "2"
    assert rows(said, "20 slowest files")["test_inner.py"][2] == "2"
    fixtures = rows(said, "20 slowest fixtures")
    assert fixtures["inner"] == ["5.0", "0.0", "1"]
    assert fixtures["outer"] == ["6.0", "0.0", "2"], "what it asks for by itself is not its own"


def test_workers_tell_the_controller(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STREAMSAPP_TEST_TIMES", "1")
    monkeypatch.setenv("PYTHONPATH", str(Path(run_times.__file__).parent))
    said = run(pytester, "-p", "xdist", "-n", "1")
    assert rows(said, "lane")["rest (gw0)"][2] == "2"
    assert rows(said, "20 slowest fixtures")["inner"][2] == "1"


def test_a_short_run_says_nothing(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("STREAMSAPP_TEST_TIMES", raising=False)
    assert "where the time went" not in run(pytester)


def test_setup_call_and_teardown_are_one_test() -> None:
    times = Times()
    for phase in (report("setup", 1.0, processor=0.5), report("call", 2.0, processor=4.0), report("teardown", 0.5)):
        times.note(phase)
    assert times.tests == {"tests/unit/test_x.py::test_it": Cost(3.5, 4.5, 1)}
    assert times.count == 1


def test_a_test_whose_setup_failed_counts_too() -> None:
    times = Times()
    times.note(report("setup", 1.0, passed=False))
    times.note(report("teardown", 0.0))
    assert times.count == 1


def test_a_folder_over_its_budget_is_named() -> None:
    times = Times()
    for folder, seconds in (("unit", 30.0), ("cluster", 30.0), ("new", 30.0)):
        times.note(report("call", seconds, f"tests/{folder}/test_x.py::test_it"))
    over = [line for line in lines_of(times, {"unit": 20, "cluster": 40, "gone": 1}) if line.startswith("over")]
    assert over == ["over budget: tests/unit took 30 s, and budget.toml gives it 20 s"]


@pytest.mark.parametrize(
    ("test", "folder"), [("tests/unit/test_x.py::A::b[a/b::c]", "unit"), ("test_x.py::b", "."), ("tests/x.py::b", ".")]
)
def test_the_folder_of_a_test(test: str, folder: str) -> None:
    assert folder_of(test) == folder


def test_every_folder_of_tests_has_a_budget() -> None:
    folders = {file.parent.name for file in run_times.BUDGET.parent.glob("*/test_*.py")}
    assert read_budget().keys() == folders


@pytest.mark.parametrize("text", ['unit = "20"', "unit = true", "[unit]\nseconds = 20"])
def test_a_budget_of_something_else_is_refused(tmp_path: Path, text: str) -> None:
    file = tmp_path / "budget.toml"
    file.write_text(text)
    with pytest.raises(ValueError, match=r"budget\.toml: unit = .* is no number of seconds"):
        read_budget(file)


BURN = "import time\nwhile time.process_time() < 0.3: pass"


def test_what_children_compute_is_counted_with_their_parent() -> None:
    process = ProcessTimes(os.getpid())
    subprocess.run([sys.executable, "-c", BURN], check=True)
    assert process.since(1.0) >= 0.25
    assert process.since(1.0) < 0.2, "once"


def test_a_short_phase_has_its_own_time_and_the_next_long_one_the_rest() -> None:
    process = ProcessTimes(os.getpid())
    subprocess.run([sys.executable, "-c", BURN], check=True)
    began = time.process_time()
    while time.process_time() < began + 0.1:
        pass
    short = process.since(0.1)
    assert 0.1 <= short < 0.25
    assert process.since(1.0) >= 0.25 - 0.05
