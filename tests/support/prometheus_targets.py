"""What a Prometheus of the tests collects from: pods as the chart's ServiceMonitor and PodMonitor choose them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Event, Thread
from typing import Any
from urllib.parse import urlsplit

from e2e_kit import OPERATOR_NAMESPACE
from kube_cluster import Cluster

from streams_operator.names import LABEL_APPLICATION

_EVERY = 2.0  # seconds between two looks at the pods
_OPERATOR = "app.kubernetes.io/name=streams-operator"
_OVER = ("Succeeded", "Failed")


@contextmanager
def followed(cluster: Cluster, namespace: str, folder: Path) -> Iterator[list[dict[str, Any]]]:
    """Scrape configurations for the operator and for the applications of a namespace, whose pods come and go.

    Debian's Prometheus can't ask an API server for pods: what it reads are files, written anew as pods change.
    """
    files = {"operator": folder / "operator.json", "applications": folder / "applications.json"}
    ended = Event()

    def look() -> None:
        for file, found in (
            (files["operator"], _operators(cluster)),
            (files["applications"], _applications(cluster, namespace)),
        ):
            if not file.exists() or json.loads(file.read_text()) != found:
                written = file.with_suffix(".new")
                written.write_text(json.dumps(found))
                written.replace(file)

    def follow() -> None:
        while not ended.wait(_EVERY):
            # An API server that does not answer now answers later; until then nothing is known to have changed.
            with suppress(AssertionError):
                look()

    look()
    following = Thread(target=follow, name="targets of Prometheus", daemon=True)
    following.start()
    try:
        yield [_job(cluster, name, file, folder) for name, file in files.items()]
    finally:
        ended.set()
        following.join()


def _operators(cluster: Cluster) -> list[dict[str, Any]]:
    pods = cluster.find("pods", OPERATOR_NAMESPACE, _OPERATOR)
    return [_target(cluster, pod, {}) for pod in pods if _runs(pod)]


def _applications(cluster: Cluster, namespace: str) -> list[dict[str, Any]]:
    pods = cluster.find("pods", namespace, LABEL_APPLICATION)
    return [
        _target(cluster, pod, {"application": pod["metadata"]["labels"][LABEL_APPLICATION]})
        for pod in pods
        if _runs(pod)
    ]


def _runs(pod: dict[str, Any]) -> bool:
    """As the Prometheus operator's own rule for targets; one without an address has nothing to ask."""
    return bool(pod["status"].get("podIP")) and pod["status"].get("phase") not in _OVER


def _target(cluster: Cluster, pod: dict[str, Any], labels: dict[str, str]) -> dict[str, Any]:
    namespace, name = pod["metadata"]["namespace"], pod["metadata"]["name"]
    path = f"/api/v1/namespaces/{namespace}/pods/{name}:8080/proxy/metrics"
    labels = {"__metrics_path__": path, "namespace": namespace, "pod": name, **labels}
    return {"targets": [urlsplit(cluster.url).netloc], "labels": labels}


def _job(cluster: Cluster, name: str, file: Path, folder: Path) -> dict[str, Any]:
    token = folder / "token"
    token.touch(mode=0o600)
    token.write_text(cluster.token)
    return {
        "job_name": name,
        "scheme": urlsplit(cluster.url).scheme,
        # The namespace that a series of the operator names is an application's.
        "honor_labels": name == "operator",
        "authorization": {"credentials_file": str(token)},
        "tls_config": {"insecure_skip_verify": True},
        "file_sd_configs": [{"files": [str(file)], "refresh_interval": f"{_EVERY:g}s"}],
    }
