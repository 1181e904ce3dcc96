"""Checks of spec.spark: which masters there are, and what a cluster needs to be told."""

from __future__ import annotations

import re
from collections.abc import Iterator

from streams_runtime.api.checks.executor_checks import executor_mistakes, kubernetes_address
from streams_runtime.api.reading.field_paths import under
from streams_runtime.api.spec.resource import SparkSpec
from streams_runtime.errors import Mistake

CORES = "spark.cores.max"
"""How many cores of a standalone cluster an instance takes; Spark's own name."""
_AT = "spec.spark"
_LOCAL = re.compile(r"local(\[(\*|[1-9]\d*)\])?")
_STANDALONE = re.compile(r"spark://[^\s:,/]+:\d{1,5}(,[^\s:,/]+:\d{1,5})*")
_OWN_CLUSTER = "k8s://https://kubernetes.default.svc"
_MASTERS = (
    "write local[*] or local[N] for the cores of each instance, spark://host:port for a standalone cluster, or"
    f" {_OWN_CLUSTER} for executors as pods"
)


def is_cluster(master: str) -> bool:
    """Whether a master is that of a cluster, rather than the instance's own cores."""
    return _STANDALONE.fullmatch(master) is not None or is_kubernetes(master)


def is_kubernetes(master: str) -> bool:
    """Whether executors are pods, which the instance's pod makes."""
    return kubernetes_address(master) is not None


def outside_mistake(master: str) -> Mistake:
    """That a process which is no pod can't have pods for executors."""
    found = f"found {master!r}, and only a pod that the operator made has executors that are pods"
    return Mistake(f"{_AT}.master", found, "write local[*] here, or apply the file to the cluster")


def spark_mistakes(spark: SparkSpec) -> Iterator[Mistake]:
    """What is wrong with the Spark session that is asked for."""
    yield from _master(spark.master)
    for name in spark.config:
        if name == "spark.master":
            yield Mistake(under(f"{_AT}.config", name), "the master among the properties", "set spec.spark.master")
        elif not name.startswith("spark."):
            yield Mistake(under(f"{_AT}.config", name), "not a Spark property", f"did you mean 'spark.{name}'?")
    if is_kubernetes(spark.master):
        yield from executor_mistakes(spark.config)
    elif is_cluster(spark.master):
        yield from _cores(spark.config.get(CORES))


def _master(master: str) -> Iterator[Mistake]:
    if master.startswith("k8s://") and not is_kubernetes(master):
        found = f"found {master!r}, which is no address of an API server"
        yield Mistake(f"{_AT}.master", found, f"write k8s://https://host:port, or {_OWN_CLUSTER}")
    elif not _LOCAL.fullmatch(master) and not is_cluster(master):
        yield Mistake(f"{_AT}.master", f"found {master!r}, which is no master", _MASTERS)


def _cores(given: object) -> Iterator[Mistake]:
    """Spark gives an application all cores of a cluster unless told otherwise, and each instance is an application."""
    if given is None:
        found = f"{CORES} is missing, without which the first instance takes all cores of the cluster"
        yield Mistake(f"{_AT}.config", found, f'give each instance its share, such as {CORES}: "2"')
    elif not str(given).isdecimal() or int(str(given)) == 0:
        field = under(f"{_AT}.config", CORES)
        yield Mistake(field, f"found {given!r}, which is no number of cores", "give a whole number, 1 or more")
