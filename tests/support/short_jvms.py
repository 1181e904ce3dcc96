"""JVMs of tests live for seconds: what their compilers do beyond the first step costs more than it saves."""

from __future__ import annotations

import os

_FIRST_COMPILER = "-XX:TieredStopAtLevel=1"
_VARIABLES = {
    # Each test's queries are new ones.
    "SPARK_SUBMIT_OPTS": _FIRST_COMPILER,
    # A broker's start takes less than half of the processor's time.
    "KAFKA_JVM_PERFORMANCE_OPTS": f"{_FIRST_COMPILER} -XX:+UseG1GC",
    "MAVEN_OPTS": _FIRST_COMPILER,
}


def compile_less() -> None:
    """For all JVMs that this process starts, and its children, unless the environment says something else."""
    for name, options in _VARIABLES.items():
        os.environ.setdefault(name, options)
