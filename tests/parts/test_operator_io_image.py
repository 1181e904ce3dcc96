"""The operator's image has neither Java nor Spark: what the process imports has to be in its extra."""

from __future__ import annotations

import subprocess
import sys

RUNTIME_ONLY = ("pyspark", "rocksdict", "polars", "pyarrow", "numpy", "fastapi", "uvicorn", "httpx", "rich")


def test_the_operator_imports_nothing_that_only_the_runtime_has():
    code = f"import sys, streams_operator.operator_process; print(*[m for m in {RUNTIME_ONLY!r} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.split() == []


def test_a_setting_that_is_missing_ends_the_process_with_its_name():
    command = [sys.executable, "-m", "streams_operator"]
    done = subprocess.run(command, env={}, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 64
    assert "STREAMS_OPERATOR_RUNTIME_IMAGE is not set" in done.stderr


def test_an_api_server_that_is_nowhere_is_told():
    command = [sys.executable, "-m", "streams_operator"]
    env = {"STREAMS_OPERATOR_RUNTIME_IMAGE": "i", "KUBECONFIG": "/nowhere"}
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 1
    assert "let KUBECONFIG name a file" in done.stderr
    assert "Traceback" not in done.stderr
