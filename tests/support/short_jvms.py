"""JVMs of tests live for seconds: what their compilers do beyond the first step costs more than it saves."""

from __future__ import annotations

import os

_FIRST_COMPILER = "-XX:TieredStopAtLevel=1"
# With that alone a JVM keeps 48 MiB of what is compiled. The Spark of all tests compiles three times as much: it would
# throw away, and compile again, a good part of it in each test.
_ROOM = "-XX:ReservedCodeCacheSize=240m"
_VARIABLES = {
    # Each test's queries are new ones.
    "SPARK_SUBMIT_OPTS": f"{_FIRST_COMPILER} {_ROOM}",
    # The JVM that makes the command line of the one above.
    "SPARK_LAUNCHER_OPTS": f"{_FIRST_COMPILER} -XX:+UseSerialGC",
    # A broker's start takes less than half of the processor's time.
    "KAFKA_JVM_PERFORMANCE_OPTS": f"{_FIRST_COMPILER} -XX:+UseSerialGC",
    "MAVEN_OPTS": _FIRST_COMPILER,
}
EXECUTOR_OPTIONS = f"{_FIRST_COMPILER} -XX:+UseSerialGC"
"""For spark.executor.extraJavaOptions: executors have nothing of the environment above."""


def compile_less() -> None:
    """For all JVMs that this process starts, and its children, unless the environment says something else."""
    for name, options in _VARIABLES.items():
        os.environ.setdefault(name, options)
