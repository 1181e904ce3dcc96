"""A standalone Spark cluster: its workers start executors, in surroundings of the workers' own.

Both images being the same one is the simple way. The runtime's jars come from the driver.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass

from streams_runtime.api.checks.spark_checks import CORES
from streams_runtime.jvm.jars import spark_jars
from streams_runtime.pipeline.spark.cluster import driver_settings

_JARS = "spark.jars"
_ADVICE = (
    "Look at its master's page: are there workers with free cores (spark.cores.max) and memory (spark.executor.memory)?"
    " A master that was started anew without spark.deploy.recoveryMode knows this instance no more; then restart the"
    " instance"
)


@dataclass(frozen=True, slots=True)
class Standalone:
    """The cluster at spark://host:port,host:port, as `config` (spec.spark.config) asks it for executors."""

    master: str
    config: Mapping[str, str]
    advice: str = _ADVICE

    @property
    def addresses(self) -> tuple[tuple[str, int], ...]:
        """Those of the masters."""
        split = (each.rpartition(":") for each in self.master.removeprefix("spark://").split(","))
        return tuple((host, int(port)) for host, _, port in split)

    @property
    def cores(self) -> int:
        """How many of the cluster this driver asks for."""
        return int(self.config[CORES])

    def settings(self, closing: threading.Event) -> dict[str, str]:  # noqa: ARG002 - nothing is waited for
        """Spark properties of a session on the cluster. Raises EnvironmentException: there is no way to it."""
        return {
            **driver_settings(self),
            _JARS: ",".join([*(jar.as_uri() for jar in spark_jars()), *filter(None, [self.config.get(_JARS)])]),
        }
