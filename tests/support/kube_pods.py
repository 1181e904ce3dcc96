"""Pods of tests, as restricted as those of the operator."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import Any

from kube_cluster import Cluster
from waiting import eventually

USER = 10001


def pod(
    name: str,
    namespace: str,
    image: str,
    command: Sequence[str] = (),
    container: dict[str, Any] | None = None,
    **spec: Any,
) -> dict[str, Any]:
    """A pod of one container, `main`, that runs `command` instead of the image's own when there is one.

    `container` are further fields of that container, `spec` of the pod's spec.
    """
    main = {
        "name": "main",
        "image": image,
        "imagePullPolicy": "IfNotPresent",
        **({"command": list(command)} if command else {}),
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        },
        "volumeMounts": [{"name": "tmp", "mountPath": "/tmp"}],
        **(container or {}),
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": namespace, "labels": {"app": name}},
        "spec": {
            "restartPolicy": "Never",
            "enableServiceLinks": False,
            "terminationGracePeriodSeconds": 10,
            "securityContext": {
                "runAsNonRoot": True,
                "runAsUser": USER,
                "runAsGroup": USER,
                "fsGroup": USER,
                "seccompProfile": {"type": "RuntimeDefault"},
            },
            "containers": [main],
            "volumes": [{"name": "tmp", "emptyDir": {}}],
            **spec,
        },
    }


def finished(cluster: Cluster, name: str, namespace: str, timeout: float = 90.0) -> str:
    """Wait for a pod to succeed, for `timeout` seconds, and return its log.

    Raises AssertionError with the log and the pod's state when it fails or takes longer.
    """
    scope = f"--namespace={namespace}"

    def phase() -> str:
        return str(cluster.get("pod", name, namespace)["status"]["phase"])

    with contextlib.suppress(AssertionError):
        eventually(lambda: phase() in ("Succeeded", "Failed"), seconds=timeout)
    log = cluster.kubectl("logs", name, scope, check=False)
    if phase() != "Succeeded":
        state = cluster.kubectl("describe", "pod", name, scope, check=False).stdout
        raise AssertionError(f"pod {name} did not succeed. Its log:\n{log.stdout}{log.stderr}\n{state}")
    return log.stdout
