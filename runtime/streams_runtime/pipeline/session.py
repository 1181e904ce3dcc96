"""The one Spark session of a process."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Mapping
from pathlib import Path

from pyspark import SparkContext
from pyspark.sql import SparkSession

from streams_runtime.jvm.jars import spark_jars
from streams_runtime.jvm.java import find_java, java_home

__all__ = ["SparkSession", "is_running", "open_session", "spark_settings"]

_OPTIMIZER = "org.apache.spark.sql.catalyst.optimizer."
# These rules push a filter below the projection that parses the value, which is then parsed twice.
_PARSE_TWICE_RULES = (
    "PushDownPredicates",
    "PushPredicateThroughNonJoin",
    "InferFiltersFromConstraints",
    "InferFiltersFromGenerate",
)
# It cuts off everything before a filter that is never true, the counting of the records with it.
_COUNTS_LOST_RULES = ("PruneFilters",)
_EXCLUDED_RULES = (*_PARSE_TWICE_RULES, *_COUNTS_LOST_RULES)
_LOG_SETTINGS = Path(__file__).with_name("log4j2.properties")


def spark_settings(master: str, config: Mapping[str, str]) -> dict[str, str]:
    """Spark properties of a session: what the runtime needs, and `config` (spec.spark.config) on top of it.

    A batch is small and its plan simple, so adaptive execution and the UI are off, and there are as many shuffle
    partitions as cores.
    """
    cores = os.cpu_count() or 1
    own = {
        "spark.master": master,
        "spark.driver.memory": "1g",
        # A batch is throughput work in a small heap, where the parallel collector takes a tenth less of the processor
        # than G1.
        "spark.driver.extraJavaOptions": f"-XX:+UseParallelGC -Dlog4j2.configurationFile={_LOG_SETTINGS.as_uri()}",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": str(cores),
        "spark.sql.adaptive.enabled": "false",
        "spark.sql.execution.arrow.maxRecordsPerBatch": "100000",
        "spark.sql.optimizer.excludedRules": ",".join(_OPTIMIZER + rule for rule in _EXCLUDED_RULES),
    }
    return own | dict(config)


def is_running() -> bool:
    """Whether this process has a Spark session already, which somebody else started and will stop."""
    return SparkContext._active_spark_context is not None


def open_session(name: str, master: str = "local[*]", config: Mapping[str, str] | None = None) -> SparkSession:
    """Start Spark in this process, or return the session that runs already; takes 5 to 10 s the first time.

    Raises:
        EnvironmentException: Java, or the connector's jars, can't be found; the message says what to install.
    """
    os.environ["JAVA_HOME"] = str(java_home(find_java()))
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    # It prints the whole stack of every refused expression; the mistake itself is raised, with its field.
    logging.getLogger("SQLQueryContextLogger").disabled = True
    builder = SparkSession.builder.appName(name)
    for key, value in spark_settings(master, config or {}).items():
        builder = builder.config(key, value)
    return builder.config("spark.jars", ",".join(str(jar) for jar in spark_jars())).getOrCreate()
