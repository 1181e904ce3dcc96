"""Checks of spec.spark where executors are pods: how many, how large, and what the instance sets by itself."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from streams_runtime.api.reading.field_paths import under
from streams_runtime.errors import Mistake

INSTANCES = "spark.executor.instances"
"""How many executors an instance has; Spark's own name."""
CORES_EACH = "spark.executor.cores"
"""How many tasks an executor does at a time; Spark's own name, and 1 is Spark's own default for pods."""
MEMORY_EACH = "spark.executor.memory"

_KUBERNETES = re.compile(r"k8s://https://(\[[0-9A-Fa-f:.]+\]|[^\s:/,\[\]?#@]+)(?::(\d{1,5}))?")
_HTTPS = 443
_CONFIG = "spec.spark.config"
_SIZE = re.compile(r"(\d+)\s*([kmgt]?)b?", re.IGNORECASE)
_MIB = {"k": 1 / 1024, "": 1.0, "m": 1.0, "g": 1024.0, "t": 1024.0 * 1024}
_LEAST_MIB = 470  # Spark asks for 450 MiB of what the JVM says it has, which is a little less than it was given

_BY_ITSELF = "which the instance sets by itself"
_NO_RIGHT = "for which pods of an application have no right"
_LEAVE_OUT = "leave it out"
# Names, and with a dot at the end all that begin so; what is found there, and what would do.
_REFUSED = (
    ("spark.cores.max", "which is for a standalone cluster", f"give {INSTANCES} and {CORES_EACH}"),
    ("spark.dynamicAllocation.enabled", "with which Spark chooses how many executors there are", f"give {INSTANCES}"),
    ("spark.kubernetes.namespace", _BY_ITSELF, "leave it out; executors are in the application's namespace"),
    ("spark.kubernetes.container.image", _BY_ITSELF, "set spec.image, which executors run too"),
    ("spark.kubernetes.executor.container.image", _BY_ITSELF, "set spec.image, which executors run too"),
    ("spark.kubernetes.driver.pod.name", _BY_ITSELF, _LEAVE_OUT),
    ("spark.kubernetes.executor.podTemplateFile", _BY_ITSELF, "set spec.template, of which executors are made too"),
    ("spark.kubernetes.executor.podTemplateContainerName", _BY_ITSELF, _LEAVE_OUT),
    ("spark.kubernetes.executor.podNamePrefix", _BY_ITSELF, _LEAVE_OUT),
    ("spark.kubernetes.executor.deleteOnTermination", "and executors that have ended are always deleted", _LEAVE_OUT),
    ("spark.kubernetes.executor.disableConfigMap", _NO_RIGHT, _LEAVE_OUT),
    ("spark.kubernetes.driver.service.deleteOnTermination", _NO_RIGHT, _LEAVE_OUT),
    ("spark.kubernetes.driver.ownPersistentVolumeClaim", _NO_RIGHT, _LEAVE_OUT),
    ("spark.kubernetes.driver.reusePersistentVolumeClaim", _NO_RIGHT, _LEAVE_OUT),
    ("spark.kubernetes.allocation.pods.allocator", _NO_RIGHT, _LEAVE_OUT),
    ("spark.kubernetes.authenticate.", "and the pod's own account is the only one that is used", _LEAVE_OUT),
    ("spark.kubernetes.context", "and the pod's own account is the only one that is used", _LEAVE_OUT),
    ("spark.kubernetes.trust.certificates", "with which anybody could be shown the account's token", _LEAVE_OUT),
    ("spark.kubernetes.executor.label.streamsoperator.io/", "a label that is the operator's", "take another label"),
    ("spark.decommission.enabled", "which needs a script that the image does not have", _LEAVE_OUT),
)


def kubernetes_address(master: str) -> tuple[str, int] | None:
    """The host and port in k8s://https://host:port; None: this master is another one, or none."""
    match = _KUBERNETES.fullmatch(master)
    if match is None or not 0 < int(match[2] or _HTTPS) < 65536:
        return None
    return match[1].strip("[]"), int(match[2] or _HTTPS)


def executor_cores(config: Mapping[str, str]) -> int:
    """How many cores all executors of an instance have together."""
    return int(config[INSTANCES]) * int(config.get(CORES_EACH, "1"))


def executor_mistakes(config: Mapping[str, str]) -> Iterator[Mistake]:
    """What is wrong with the properties of a session whose executors are pods."""
    if INSTANCES not in config:
        found = f"{INSTANCES} is missing, and nobody else says how many executors each instance has"
        yield Mistake(_CONFIG, found, f'give it, such as {INSTANCES}: "2"; each has {CORES_EACH} cores, or 1')
    for name, what in ((INSTANCES, "number of executors"), (CORES_EACH, "number of cores")):
        given = config.get(name)
        if given is not None and (not str(given).isdecimal() or int(str(given)) == 0):
            found = f"found {given!r}, which is no {what}"
            yield Mistake(under(_CONFIG, name), found, "give a whole number, 1 or more")
    yield from _memory(config.get(MEMORY_EACH))
    for name, given in config.items():
        yield from _refused(name)
        if name.startswith("spark.kubernetes.executor.volumes.persistentVolumeClaim.") and given == "OnDemand":
            yield Mistake(under(_CONFIG, name), f"a claim of the executor's own, {_NO_RIGHT}", "name a claim")


def _memory(given: str | None) -> Iterator[Mistake]:
    if given is None:
        return
    size = _SIZE.fullmatch(str(given).strip())
    if size is None:
        yield Mistake(under(_CONFIG, MEMORY_EACH), f"found {given!r}, which is no size", "write it like 2g or 1500m")
    elif int(size[1]) * _MIB[size[2].lower()] < _LEAST_MIB:
        found = f"found {given!r}, and Spark starts no executor with less than {_LEAST_MIB}m"
        yield Mistake(under(_CONFIG, MEMORY_EACH), found, "give more, such as 1g")


def _refused(name: str) -> Iterator[Mistake]:
    for refused, found, remedy in _REFUSED:
        if name == refused or (refused[-1] in "./" and name.startswith(refused)):
            yield Mistake(under(_CONFIG, name), f"{name}, {found}", remedy)
