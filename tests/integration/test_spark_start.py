"""The start of Spark's JVM where something is wrong with the machine or the settings."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

pytestmark = pytest.mark.integration

STARTS = """
import sys
from streams_runtime.errors import EnvironmentException
from streams_runtime.pipeline.spark.spark_session import open_session
try:
    open_session("starts", "local[1]", {"spark.driver.extraJavaOptions": sys.argv[1]}).stop()
except EnvironmentException as failure:
    print(failure)
"""


def started(options: str, *before: str) -> subprocess.CompletedProcess[str]:
    command = [*before, sys.executable, "-c", STARTS, options]
    return subprocess.run(command, capture_output=True, text=True, timeout=200, check=False)


def test_a_jvm_that_does_not_start_is_told_of_and_says_why_itself():
    done = started("-Xss1")
    assert done.returncode == 0, done.stderr
    assert "Spark's JVM ended before it was ready" in done.stdout
    assert "thread stack size specified is too small" in done.stdout


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives a process a machine's name of its own")
def test_a_machine_whose_name_has_no_address_is_good_enough():
    done = started("-Dnothing=1", "unshare", "--uts", "sh", "-c", 'hostname nowhere-to-be-found && exec "$@"', "sh")
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
