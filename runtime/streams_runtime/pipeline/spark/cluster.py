"""Spark on a cluster: this process is the driver of an application, whose tasks run in executors elsewhere.

Where executors come from is a cluster's own affair: standalone.py and executor_pods.py. What they need is Java, and
this runtime with its packages; the modules of the user's functions come from the driver (modules.py).
"""

from __future__ import annotations

import contextlib
import logging
import socket
import threading
from collections.abc import Iterable, Iterator, Sequence
from importlib.metadata import version
from typing import Protocol

import pyarrow as pa
from py4j.protocol import Py4JError
from pyspark.errors import PythonException
from pyspark.sql import SparkSession

from streams_runtime.errors import EnvironmentException

_LOGGER = logging.getLogger(__name__)
_PATIENCE = 2.0  # seconds for one attempt to reach a master
_RETRY = 1.0  # seconds between two attempts
_LOOK = 5.0  # seconds between two looks at the executors
_MINUTE = 60.0
_PACKAGES = ("streams-operator", "tzdata")
"""This runtime, and the zones by which windows are divided on both sides."""


class Cluster(Protocol):
    """What runs an instance's executors."""

    @property
    def master(self) -> str:
        """As Spark is told."""

    @property
    def addresses(self) -> Sequence[tuple[str, int]]:
        """Hosts and ports, one of which takes connections when the cluster is there."""

    @property
    def cores(self) -> int:
        """How many tasks of this instance it runs at a time."""

    @property
    def advice(self) -> str:
        """Where to look when there is no executor."""

    def settings(self, closing: threading.Event) -> dict[str, str]:
        """Spark properties of a session on it, over those of one on this machine's cores.

        Waits for what is away, until `closing` is set; what they are then is nobody's concern any more. Raises
        EnvironmentException: there is no way to the cluster, or it is not one for this instance; what to do.
        """


def driver_settings(cluster: Cluster) -> dict[str, str]:
    """What every cluster is told of this driver. Raises EnvironmentException: see `address_towards`."""
    here = address_towards(cluster)
    return {
        "spark.driver.host": here,
        "spark.driver.bindAddress": here,
        # Otherwise it is what the executors have that have come so far.
        "spark.default.parallelism": str(cluster.cores),
        "spark.sql.shuffle.partitions": str(cluster.cores),
    }


def address_towards(cluster: Cluster) -> str:
    """This machine's address in the network that the cluster is in, by which executors reach the driver.

    Raises EnvironmentException: none of the masters' names has an address that this machine has a way to.
    """
    failure: OSError | None = None
    for host, port in cluster.addresses:
        try:
            family, kind, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_DGRAM)[0]
            with socket.socket(family, kind) as unsent:
                unsent.connect(address)  # sends nothing: it picks the way
                return str(unsent.getsockname()[0])
        except OSError as error:
            failure = error
    raise EnvironmentException(f"there is no way to {cluster.master}: {failure}; look at spec.spark.master")


def wait_for_master(cluster: Cluster, closing: threading.Event) -> None:
    """Return once a master takes connections, or `closing` is set. Spark itself would give up after a minute."""
    warned = False
    while not closing.is_set():
        for address in cluster.addresses:
            with contextlib.suppress(OSError), socket.create_connection(address, _PATIENCE):
                return
        if not warned:
            _LOGGER.warning("no Spark master answers at %s; waiting for one", cluster.master)
            warned = True
        closing.wait(_RETRY)


def wait_for_executor(session: SparkSession, cluster: Cluster, closing: threading.Event) -> None:
    """Return once the cluster has started an executor for this driver, `closing` is set, or Spark has gone."""
    waited = 0.0
    while not closing.is_set() and executors(session) == 0:
        if waited % _MINUTE == 4 * _LOOK:
            _LOGGER.warning("%s", _without_executors(cluster))
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


def _without_executors(cluster: Cluster) -> str:
    return (
        f"the Spark cluster {cluster.master} runs no executor for this instance, and batches wait for one."
        f" {cluster.advice}"
    )


def watch(session: SparkSession, cluster: Cluster, closing: threading.Event) -> None:
    """Log when all executors have gone and when one is there again, until `closing` is set or Spark has gone."""
    there = True
    while not closing.wait(_LOOK):
        count = executors(session)
        if count is None:
            return
        if there and not count:
            _LOGGER.warning("%s", _without_executors(cluster))
        elif count and not there:
            _LOGGER.warning("the Spark cluster %s runs %d executors for this instance again", cluster.master, count)
        there = count > 0


def check_executors(session: SparkSession, cluster: Cluster) -> None:
    """Have executors say which version of this runtime they have.

    Raises:
        EnvironmentException: they have none, or another one; the message says what to do.
    """
    here, cores = _version(), cluster.cores
    try:
        found = session.range(0, cores, 1, cores).mapInArrow(_versions, "version string").toArrow()
    except PythonException as error:
        last = str(error).strip().splitlines()
        reason = next((line.strip() for line in last if "Error: " in line), last[0])
        raise EnvironmentException(
            f"the workers of {cluster.master} can't run this runtime's code ({reason}); run them from the runtime's"
            " image"
        ) from error
    if others := sorted({each for each in found["version"].to_pylist() if each != here}):
        raise EnvironmentException(
            f"the workers of {cluster.master} have version {', '.join(others)} of this runtime, and this instance has"
            f" {here}; run both from one image"
        )


def _version() -> str:
    return " with tzdata ".join(map(version, _PACKAGES))


def _versions(rows: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in rows:
        yield pa.record_batch([pa.array([_version()] * batch.num_rows)], names=["version"])
