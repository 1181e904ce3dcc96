"""Spark on a standalone cluster: this process is the driver of an application, whose tasks run in executors elsewhere.

An executor is started by a worker of the cluster, in the worker's surroundings. What it needs of them is Java, and this
runtime with its packages: both images being the same one is the simple way. The connectors' jars and the modules of the
user's functions come from the driver.
"""

from __future__ import annotations

import contextlib
import logging
import os
import shutil
import socket
import sys
import tempfile
import threading
from collections.abc import Collection, Iterable, Iterator, Mapping
from importlib.metadata import version
from pathlib import Path

import pyarrow as pa
from py4j.protocol import Py4JError
from pyspark import SparkContext, SparkFiles
from pyspark.errors import PythonException
from pyspark.sql import SparkSession

from streams_runtime.api.spark_checks import CORES
from streams_runtime.errors import EnvironmentException
from streams_runtime.jvm.jars import spark_jars

JARS = "spark.jars"
_LOGGER = logging.getLogger(__name__)
_PATIENCE = 2.0  # seconds for one attempt to reach a master
_RETRY = 1.0  # seconds between two attempts
_LOOK = 5.0  # seconds between two looks at the executors
_MINUTE = 60.0
_PACKAGE = "streams-operator"
_STANDARD = Path(os.__file__).resolve().parent  # Python's own modules


def masters_of(master: str) -> tuple[tuple[str, int], ...]:
    """The addresses in spark://host:port,host:port."""
    split = (each.rpartition(":") for each in master.removeprefix("spark://").split(","))
    return tuple((host, int(port)) for host, _, port in split)


def cores_of(config: Mapping[str, str]) -> int:
    """How many cores of the cluster this driver asks for."""
    return int(config[CORES])


def cluster_settings(master: str, config: Mapping[str, str]) -> dict[str, str]:
    """Spark properties of a session on the cluster, over those of one on this machine's cores.

    Raises OSError: none of the masters' names has an address that this machine has a way to.
    """
    here = _address_towards(masters_of(master))
    return {
        "spark.driver.host": here,
        "spark.driver.bindAddress": here,
        # Otherwise it is what the executors have that have come so far.
        "spark.default.parallelism": config[CORES],
        "spark.sql.shuffle.partitions": config[CORES],
        JARS: ",".join([*(jar.as_uri() for jar in spark_jars()), *filter(None, [config.get(JARS)])]),
    }


def _address_towards(masters: Iterable[tuple[str, int]]) -> str:
    """This machine's address in the network that the cluster is in, by which executors reach the driver."""
    failure: OSError | None = None
    for host, port in masters:
        try:
            family, kind, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_DGRAM)[0]
            with socket.socket(family, kind) as unsent:
                unsent.connect(address)  # sends nothing: it picks the way
                return str(unsent.getsockname()[0])
        except OSError as error:
            failure = error
    assert failure is not None
    raise failure


def wait_for_master(master: str, closing: threading.Event) -> None:
    """Return once a master takes connections, or `closing` is set. Spark itself would give up after a minute."""
    told = False
    while not closing.is_set():
        for address in masters_of(master):
            with contextlib.suppress(OSError), socket.create_connection(address, _PATIENCE):
                return
        if not told:
            _LOGGER.warning("no Spark master answers at %s; waiting for one", master)
            told = True
        closing.wait(_RETRY)


def wait_for_executor(session: SparkSession, master: str, closing: threading.Event) -> None:
    """Return once the cluster has started an executor for this driver, `closing` is set, or Spark has gone."""
    waited = 0.0
    while not closing.is_set() and executors(session) == 0:
        if waited % _MINUTE == 4 * _LOOK:
            _LOGGER.warning("%s", _without_executors(master))
        closing.wait(_LOOK if waited else _RETRY)
        waited += _LOOK


def executors(session: SparkSession) -> int | None:
    """How many executors this driver has now; None: Spark has gone."""
    try:
        context = session.sparkContext._jsc.sc()
        # The driver is counted among them.
        return None if context.isStopped() else int(context.getExecutorMemoryStatus().size()) - 1
    except (Py4JError, OSError, AttributeError):
        return None


def _without_executors(master: str) -> str:
    return (
        f"the Spark cluster {master} runs no executor for this instance, and batches wait for one. Look at its master's"
        " page: are there workers with free cores (spark.cores.max) and memory (spark.executor.memory)? A master that"
        " was started anew without spark.deploy.recoveryMode knows this instance no more; then restart the instance"
    )


def watch(session: SparkSession, master: str, closing: threading.Event) -> None:
    """Log when all executors have gone and when one is there again, until `closing` is set or Spark has gone."""
    there = True
    while not closing.wait(_LOOK):
        count = executors(session)
        if count is None:
            return
        if there and not count:
            _LOGGER.warning("%s", _without_executors(master))
        elif count and not there:
            _LOGGER.warning("the Spark cluster %s runs %d executors for this instance again", master, count)
        there = count > 0


def check_executors(session: SparkSession, master: str, cores: int) -> None:
    """Have executors say which version of this runtime they have.

    Raises:
        EnvironmentException: they have none, or another one; the message says what to do.
    """
    here = version(_PACKAGE)
    try:
        found = session.range(0, cores, 1, cores).mapInArrow(_versions, "version string").toArrow()
    except PythonException as error:
        last = str(error).strip().splitlines()
        reason = next((line.strip() for line in last if "Error: " in line), last[0])
        raise EnvironmentException(
            f"the workers of {master} can't run this runtime's code ({reason}); run them from the runtime's image"
        ) from error
    if others := sorted({each for each in found["version"].to_pylist() if each != here}):
        raise EnvironmentException(
            f"the workers of {master} have version {', '.join(others)} of this runtime, and this instance has {here};"
            " run both from one image"
        )


def _versions(rows: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in rows:
        yield pa.record_batch([pa.array([version(_PACKAGE)] * batch.num_rows)], names=["version"])


def send_modules(context: SparkContext, references: Collection[str]) -> None:
    """Give the executors the modules of functions (`package.module:name`) that are loaded, and what lies beside them.

    Installed packages are not sent: the executors have them.
    """
    folders = {
        Path(file).resolve().parents[reference.partition(":")[0].count(".") + (Path(file).name == "__init__.py")]
        for reference in references
        if (file := getattr(sys.modules[reference.partition(":")[0]], "__file__", None)) is not None
    }
    for folder in sorted(folders):
        if not folder.is_relative_to(sys.prefix) and not folder.is_relative_to(_STANDARD):
            # Executors fetch it from where it is whenever they start; Spark removes its folder at its end.
            place = Path(tempfile.mkdtemp(prefix="modules-", dir=SparkFiles.getRootDirectory()))
            context.addPyFile(str(_archive(folder, place)))


def _archive(folder: Path, place: Path) -> Path:
    """A ZIP archive of the modules and packages of a folder that this process has loaded; no others."""
    content = place / "content"
    content.mkdir()
    for name, module in list(sys.modules.items()):
        file = getattr(module, "__file__", None)
        if "." in name or file is None or not file.endswith(".py"):
            continue
        path = Path(file).resolve()
        if path.name == "__init__.py" and path.parent.parent == folder:
            shutil.copytree(path.parent, content / name, ignore=shutil.ignore_patterns("__pycache__"))
        elif path.parent == folder:
            shutil.copy(path, content / path.name)
    return Path(shutil.make_archive(str(place / place.name), "zip", content))
