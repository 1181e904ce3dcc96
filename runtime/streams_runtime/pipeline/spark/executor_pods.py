"""Executors that are pods: the instance's pod has the API server make them, and they go when it goes."""

from __future__ import annotations

import tempfile
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from streams_runtime.api.checks.executor_checks import CORES_EACH, INSTANCES, executor_cores, kubernetes_address
from streams_runtime.errors import IllegalStateException
from streams_runtime.pipeline.spark.cluster import driver_settings
from streams_runtime.pipeline.spark.executor_template import LABEL, Json, container_of, executor_template, name_prefix

OwnPod = Callable[[str, threading.Event], Json | None]
"""Given the URL of an API server: this process's pod, as that server has it, or None when the event is set before it
answers. Raises EnvironmentException: it is not the server of this pod; what to do."""


@dataclass(frozen=True, slots=True)
class ExecutorPods:
    """Executors by the API server at k8s://https://host:port, as `config` (spec.spark.config) asks for them."""

    master: str
    config: Mapping[str, str]
    application: str
    own_pod: OwnPod
    volumes: tuple[str, ...] = ()  # of spec.template, which executors mount too

    @property
    def addresses(self) -> tuple[tuple[str, int], ...]:
        """That of the API server."""
        address = kubernetes_address(self.master)
        return () if address is None else (address,)

    @property
    def cores(self) -> int:
        """Those of all executors."""
        return executor_cores(self.config)

    @property
    def advice(self) -> str:
        """Where to look when there is no executor."""
        return (
            f"Look at its pods (kubectl get pods --selector {LABEL}={self.application}). One that is Pending finds no"
            f" node with free cores ({CORES_EACH}) and memory (spark.executor.memory); when there are none, the API"
            " server refuses them, and Spark's line before this one says why: a quota, a policy, or an account without"
            " the right"
        )

    def settings(self, closing: threading.Event) -> dict[str, str]:
        """Spark properties of a session with such executors. Waits for the API server.

        Raises:
            EnvironmentException: it is not that of this pod's cluster, or there is no way to it.
            IllegalStateException: `closing` was set meanwhile.
        """
        pod = self.own_pod(self.master.removeprefix("k8s://"), closing)
        if pod is None:
            raise IllegalStateException("the client was closed while it waited for the API server")
        return {
            **driver_settings(self),
            # As on a standalone cluster: wait_for_executor waits, which a closing client ends; Spark would for 30 s.
            "spark.scheduler.minRegisteredResourcesRatio": "0",
            # Spark's default is three since the application began, however long ago: here it is those of ten minutes.
            "spark.executor.maxNumFailures": str(max(10, 2 * int(self.config[INSTANCES]))),
            "spark.executor.failuresValidityInterval": "10m",
            # Python's workers, and what Arrow has, are outside of the heap; Spark's default is a tenth of it.
            "spark.executor.memoryOverheadFactor": "0.4",
            **pod_settings(pod, _written(executor_template(pod, self.application, self.volumes))),
        }


def pod_settings(pod: Json, template: Path) -> dict[str, str]:
    """Whose the executors are, and what they are made of: the instance's pod, and the file with the template."""
    own = container_of(pod)
    return {
        "spark.kubernetes.namespace": pod["metadata"]["namespace"],
        "spark.kubernetes.container.image": own["image"],
        "spark.kubernetes.container.image.pullPolicy": own.get("imagePullPolicy", "IfNotPresent"),
        "spark.kubernetes.executor.podTemplateFile": template.as_uri(),
        "spark.kubernetes.executor.podNamePrefix": name_prefix(pod),
        # Else the account would need rights to ConfigMaps, Services and claims.
        "spark.kubernetes.executor.disableConfigMap": "true",
        "spark.kubernetes.driver.service.deleteOnTermination": "false",
        "spark.kubernetes.driver.ownPersistentVolumeClaim": "false",
        "spark.kubernetes.driver.reusePersistentVolumeClaim": "false",
    }


def _written(template: Mapping[str, Any]) -> Path:
    """The template as a file, which Spark reads for each executor; it lies in the pod's /tmp and goes with it."""
    file = Path(tempfile.mkdtemp(prefix="executors-")) / "pod.json"
    file.write_bytes(orjson.dumps(template))
    return file
