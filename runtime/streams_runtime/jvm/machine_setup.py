"""Set-up of a machine, once: a Java (installed where that is allowed) and the jars in the cache."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable

from streams_runtime.errors import EnvironmentException, StreamsException
from streams_runtime.jvm.jars import BROKER, SPARK, broker_jars, cache_folder, spark_jars
from streams_runtime.jvm.java import find_java, probe

_PACKAGES = ("openjdk-17-jre-headless", "openjdk-21-jre-headless")
_APT_TIMEOUT = 1200.0

Run = Callable[[list[str]], "subprocess.CompletedProcess[str]"]


def main() -> int:
    """Print a line for each step; returns the exit code."""
    try:
        try:
            java = find_java()
        except EnvironmentException as missing:
            install_java(missing)
            java = find_java()
        print(f"java: {java}")
        for jar_set, fetch in ((SPARK, spark_jars), (BROKER, broker_jars)):
            started = time.monotonic()
            jars = fetch()
            print(f"{jar_set.name} jars: {len(jars)} in {cache_folder()} ({time.monotonic() - started:.1f} s)")
    except StreamsException as failure:
        print(failure, file=sys.stderr)
        return 1
    return 0


def install_java(missing: EnvironmentException, run: Run | None = None) -> None:
    """Install a Java with apt where this process may; otherwise raise `missing`, which says what to do."""
    if shutil.which("apt-get") is None or os.geteuid() != 0:
        raise missing
    run = run or _apt
    # Package lists may be absent (container images) or too old to fetch from.
    updated = run(["apt-get", "update"])
    for package in _PACKAGES:
        print(f"java: none found; apt-get installs {package}", flush=True)
        done = run(["apt-get", "install", "--yes", "--no-install-recommends", package])
        if done.returncode == 0:
            probe.cache_clear()
            return
    words = (done.stderr or done.stdout or updated.stderr).strip().splitlines()
    raise EnvironmentException(f"{missing}. apt-get could not install it: {' '.join(words[-2:])}") from missing


def _apt(command: list[str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command,
        env={**os.environ, "DEBIAN_FRONTEND": "noninteractive"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=_APT_TIMEOUT,
        check=False,
    )


if __name__ == "__main__":
    sys.exit(main())
