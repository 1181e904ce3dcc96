"""The one Spark session of a process."""

from __future__ import annotations

import contextlib
import logging
import os
import subprocess
import sys
from collections.abc import Mapping
from typing import Any

from py4j.java_gateway import JavaClass, JavaMember
from py4j.protocol import Py4JError
from pyspark import SparkContext
from pyspark.errors import PySparkRuntimeError
from pyspark.sql import SparkSession

from streams_runtime.errors import EnvironmentException
from streams_runtime.jvm.class_data import spark_class_data
from streams_runtime.jvm.java import find_java, java_home
from streams_runtime.jvm.spark_home import LOG_OPTION, first_on_class_path
from streams_runtime.pipeline.spark import worker_daemon

__all__ = [
    "SparkSession",
    "cancel_tagged_jobs",
    "end_jvm",
    "is_running",
    "open_session",
    "remembering",
    "spark_settings",
    "tag_jobs",
    "trouble_with",
]

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
_CLASS_PATH = "spark.driver.extraClassPath"
_MENTIONED = (  # by PySpark itself, in almost every call
    "PythonUtils",
    "PythonSQLUtils",
    "functions",
    "org.apache.spark.sql.functions",
    "org.apache.spark.sql.expressions.Window",
    "ArrowIteratorServer",
    "org.apache.spark.sql.classic.SparkSession",
)
# Planning is never optimised for as long as it takes to pay: half of a start's processor time. And what it leaves
# behind is little; a heap of the usual size would be filled once before anything is collected. The serial collector
# keeps to what lives: the parallel one let the heap of ten million records' batches grow by 60 MiB more.
_PLANNING_ONLY = (
    "-XX:+UseSerialGC",
    "-XX:TieredStopAtLevel=1",
    "-Xms96m",
    "-XX:MaxNewSize=64m",
    "-XX:MinHeapFreeRatio=20",
    "-XX:MaxHeapFreeRatio=40",
)
# Rows that go through it are throughput work in a small heap, where the parallel collector takes a tenth less of
# the processor than G1.
_OF_ROWS = ("-XX:+UseParallelGC",)
_JARS = "spark.jars"
_DAEMON = "spark.python.daemon.module"
_NOWHERE: Mapping[str, str] = {}


def _java_options(rows: bool) -> tuple[str, ...]:
    """Those of the driver's JVM, before the ones that the user gives (spark.driver.extraJavaOptions)."""
    return (LOG_OPTION, *(_OF_ROWS if rows else _PLANNING_ONLY), *spark_class_data().options)


def spark_settings(
    master: str, config: Mapping[str, str], rows: bool = True, cluster: Mapping[str, str] = _NOWHERE
) -> dict[str, str]:
    """Spark properties of a session: what the runtime needs, and `config` (spec.spark.config) on top of it.

    `rows`: whether records' rows go through Spark's JVM, which is then worth optimising. `cluster`: what a cluster
    needs beside that (cluster.Cluster.settings); its jars have those of `config` among them.

    A batch is small and its plan simple, so adaptive execution and the UI are off, and there are as many shuffle
    partitions as cores. The runtime's jars are on the JVM's own class path, as archived classes have to be
    (jvm/class_data.py); those of the user's follow them.
    """
    cores = os.cpu_count() or 1
    own = {
        "spark.master": master,
        "spark.driver.memory": "1g",
        "spark.driver.defaultJavaOptions": " ".join(f'"{option}"' for option in _java_options(rows)),
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.session.timeZone": "UTC",
        # Otherwise each call leaves with the JVM the line of Python that it came from, which takes some calls more.
        "spark.python.sql.dataFrameDebugging.enabled": "false",
        "spark.sql.shuffle.partitions": str(cores),
        "spark.sql.adaptive.enabled": "false",
        "spark.sql.execution.arrow.maxRecordsPerBatch": "100000",
        "spark.sql.optimizer.excludedRules": ",".join(_OPTIMIZER + rule for rule in _EXCLUDED_RULES),
    }
    if master.startswith("local"):  # the workers of a cluster have what its nodes have
        own[_DAEMON] = worker_daemon.__name__
    last = {_CLASS_PATH: first_on_class_path(filter(None, [config.get(_CLASS_PATH)]))}
    if _JARS in cluster:
        last[_JARS] = cluster[_JARS]
    return {**own, **cluster, **config, **last}


def is_running() -> bool:
    """Whether this process has a Spark session already, which somebody else started and will stop."""
    return SparkContext._active_spark_context is not None


def open_session(
    name: str,
    master: str = "local[*]",
    config: Mapping[str, str] | None = None,
    rows: bool = True,
    cluster: Mapping[str, str] = _NOWHERE,
) -> SparkSession:
    """Start Spark in this process, or return the session that runs already; takes 5 to 10 s the first time.

    `rows`, `cluster`: see spark_settings.

    Raises:
        EnvironmentException: Java, or the runtime's jars, can't be found, or Spark's JVM does not start; the message
            says what to do.
    """
    os.environ["JAVA_HOME"] = str(java_home(find_java()))
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    if not cluster:
        # Without it Spark asks for the address of this machine's name, which may have none.
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    # It prints the whole stack of every refused expression; the mistake itself is raised, with its field.
    logging.getLogger("SQLQueryContextLogger").disabled = True
    builder = SparkSession.builder.appName(name)
    try:
        for key, value in spark_settings(master, config or {}, rows, cluster).items():
            builder = builder.config(key, value)
        session = builder.getOrCreate()
    except Py4JError as failure:
        raise EnvironmentException(f"Spark did not start with {master}: {_first_line(failure)}") from failure
    except PySparkRuntimeError as failure:
        raise EnvironmentException(
            f"Spark's JVM ended before it was ready ({failure}); it has printed why. Look at spec.spark.config, at the"
            " memory that there is, and at the environment's Java options"
        ) from failure
    # py4j asks the JVM for a class at each mention of its name, and the JVM looks for it in every package and jar.
    for mentioned in _MENTIONED:
        setattr(session._jvm, mentioned, remembering(getattr(session._jvm, mentioned)))
    return session


class _Remembering(JavaClass):  # type: ignore[misc]
    """A class of the JVM that is asked for each of its static methods once, not at each call: the JVM goes through all
    that the class has, some thousand methods for `functions`.
    """

    def __getattr__(self, name: str) -> Any:
        found = super().__getattr__(name)
        if isinstance(found, JavaMember):  # fields may change
            self.__dict__[name] = found
        return found


def remembering(found: JavaClass) -> JavaClass:
    """The same class, which remembers the methods that it was asked for."""
    return _Remembering(found._fqn, found._gateway_client)


def _first_line(failure: Py4JError) -> str:
    """What the JVM said, without its stack."""
    said = getattr(failure, "java_exception", None)
    return str(said or failure).strip().splitlines()[0]


def end_jvm(seconds: float) -> bool:
    """End this process' JVM in order, whose session is stopped already; whether it has ended within `seconds`.

    Otherwise it ends some time after this process. No session can be opened here any more.
    """
    gateway = SparkContext._gateway
    process = getattr(gateway, "proc", None)
    if gateway is None or process is None:
        return True
    gateway.shutdown()
    process.stdin.close()
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        return False
    return True


def tag_jobs(session: SparkSession, tag: str) -> None:
    """Mark the jobs that the calling thread starts from now on. A Spark that has gone says so at the next job."""
    with contextlib.suppress(Py4JError, OSError):
        session.sparkContext.addJobTag(tag)


def cancel_tagged_jobs(session: SparkSession, tag: str) -> None:
    """End the jobs of this tag, and no others. Nothing when Spark has gone: then they have, too."""
    with contextlib.suppress(Py4JError, OSError):
        session.sparkContext.cancelJobsWithTag(tag)


def trouble_with(session: SparkSession) -> str | None:
    """Why this session runs nothing any more; None: nothing is wrong with it.

    A process has one JVM and does not get another one, so a session whose JVM has gone is not mended by a new one.
    """
    process = getattr(SparkContext._gateway, "proc", None)
    if process is not None and process.poll() is not None:
        return f"Spark's JVM has ended with exit code {process.returncode}, and a process gets no second one"
    try:
        stopped = session.sparkContext._jsc.sc().isStopped()
    except (Py4JError, OSError, AttributeError):
        return "Spark's JVM does not answer any more, and a process gets no second one"
    return "Spark has stopped itself; its log says why" if stopped else None
