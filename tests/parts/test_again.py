"""A test that is run again and again is told of by how often it failed, and leaves no busy loop behind."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import again

SCRIPT = Path(again.__file__)
TEST = """
from pathlib import Path

def test_it(tmp_path):
    runs = Path("runs")
    runs.write_text(runs.read_text() + "x" if runs.exists() else "x")
    (tmp_path / "broker.log").write_text("of the broker")
    assert len(runs.read_text()) != 2
"""


def children() -> set[str]:
    return set(Path(f"/proc/{os.getpid()}/task/{os.getpid()}/children").read_text().split())


def test_it_says_how_often_it_failed_and_keeps_what_those_runs_said_and_logged(tmp_path: Path) -> None:
    (tmp_path / "test_inner.py").write_text(TEST)
    (tmp_path / "pytest.ini").write_text(f"[pytest]\naddopts = -p red_logs\npythonpath = {SCRIPT.parent}\n")
    more = {"TMPDIR": str(tmp_path), "PYTHONPATH": str(SCRIPT.parent), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    environment = {**os.environ, **more}
    environment.pop("PYTEST_ADDOPTS", None)
    ran = subprocess.run(
        [sys.executable, str(SCRIPT), "test_inner.py::test_it", "--times", "2", "--loops", "1"],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 1, ran.stderr
    first, second, said = ran.stdout.strip().splitlines()
    assert ["1 passed" in first, "1 failed" in second] == [True, True]
    what, _, folder = said.rpartition(" ")
    assert what.startswith("failed 1 times of 2")
    assert "assert 2 != 2" in (Path(folder) / "2.txt").read_text()
    (log,) = Path(folder).rglob("broker.log")
    assert log.read_text() == "of the broker"


def test_busy_loops_end_with_the_block() -> None:
    before = children()
    with again.busy(2):
        running = children() - before
    assert len(running) == 2
    assert children() <= before
