"""Where Spark's distribution lies, which is PySpark's, and how its JVMs log."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Iterable
from pathlib import Path

from streams_runtime.errors import EnvironmentException
from streams_runtime.jvm.jars import spark_jars

LOG_OPTION = f"-Dlog4j2.configurationFile={Path(__file__).with_name('log4j2.properties').as_uri()}"
"""Java's option with which a JVM of Spark's says only what a user has to know."""

_LAUNCHERS_OWN = "hive-jackson/*"  # spark.driver.defaultExtraClassPath; there is no such folder


def spark_home() -> Path:
    """As PySpark finds it, without importing it: that takes half a second, and a broker's start needs none of it.

    Raises EnvironmentException: PySpark is not installed.
    """
    named = os.environ.get("SPARK_HOME")
    if named:
        return Path(named)
    found = importlib.util.find_spec("pyspark")
    if found is None or found.origin is None:
        raise EnvironmentException("the package pyspark is not installed; install this project with its extra runtime")
    return Path(found.origin).parent


def first_on_class_path(further: Iterable[str] = ()) -> str:
    """What stands before Spark's own jars: the runtime's (spark_jars), and behind them the user's, `further`.

    Raises EnvironmentException: see spark_jars.
    """
    return os.pathsep.join([*map(str, spark_jars()), *further])


def class_path(further: Iterable[str] = ()) -> str:
    """All of it, for an executor: entry for entry what Spark's launcher makes of `first_on_class_path` for the driver.

    Archived classes (jvm/class_data.py) ask for that; a JVM with another class path loads its classes itself. Raises
    EnvironmentException: see spark_jars.
    """
    home = spark_home()
    jars = home / "jars"
    launchers = (_LAUNCHERS_OWN, str(home / "conf"), *map(str, sorted(jars.glob("slf4j-api-*"))), str(jars / "*"))
    return os.pathsep.join([first_on_class_path(further), *launchers])
