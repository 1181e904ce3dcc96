"""`make bench-tenants` beside nobody and beside one bad tenant: every figure is there."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import orjson
import pytest

pytestmark = [pytest.mark.cluster, pytest.mark.integration]
SCRIPT = Path(__file__).with_name("bench_tenants.py")


def bench(*options: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, str(SCRIPT), *options]
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=240, check=False)


@pytest.mark.long
def test_a_run_has_a_figure_for_each_change(tmp_path: Path, api_server: object):
    file = tmp_path / "figures.json"
    done = bench("--changes=2", "--beside=nobody,endless changes", f"--json={file}")
    assert done.returncode == 0, done.stderr
    figures = orjson.loads(file.read_bytes())
    assert figures.keys() == {"nobody", "endless changes"}
    assert all(len(delays) == 2 and min(delays) > 0 for delays in figures.values())
    assert "endless changes" in done.stdout


def test_a_tenant_that_is_none_is_refused_by_name():
    done = bench("--beside=friends")
    assert done.returncode == 2
    assert "nobody is called friends" in done.stderr
