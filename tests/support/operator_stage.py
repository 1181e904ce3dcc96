"""One application in a namespace of its own, with a broker and a kubelet that is played, as tests look at it."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from clients import make_topics
from kube_cluster import Cluster
from operator_kit import Kubelet, Object, OperatorProcess, resource
from waiting import eventually

from streams_operator import names
from streams_runtime.kafka.admin.kafka_admin import Admin


class Stage:
    """One application named `app`, its operator and its kubelet."""

    def __init__(self, cluster: Cluster, namespace: str, bootstrap: str, kubelet: Kubelet) -> None:
        self.cluster, self.namespace, self.bootstrap, self.kubelet = cluster, namespace, bootstrap, kubelet

    def apply(self, **spec: Any) -> None:
        self.cluster.apply(resource(self.namespace, self.bootstrap, **spec))

    def get(self) -> Object | None:
        found: Object | None = self.cluster.get("streamsapp", "app", namespace=self.namespace)
        return found

    def status(self) -> Object:
        return (self.get() or {}).get("status") or {}

    def condition(self, type: str) -> tuple[str, str, str]:
        for each in self.status().get("conditions") or ():
            if each["type"] == type:
                return each["status"], each["reason"], each["message"]
        return "", "", ""

    def reaches(self, state: str, ready: str | None = None, seconds: float = 60.0) -> Object:
        def there() -> bool:
            status = self.status()
            return status.get("state") == state and ready in (None, status.get("ready"))

        try:
            eventually(there, f"{state} {ready or ''}", seconds)
        except AssertionError as error:
            raise AssertionError(f"{error}; it is {self.status()}") from None
        return self.status()

    def pods(self) -> list[str]:
        return sorted(self.kubelet.pods())

    def uids(self) -> dict[str, str]:
        return {name: pod["metadata"]["uid"] for name, pod in self.kubelet.pods().items()}

    def kinds(self, kind: str) -> list[str]:
        found = self.cluster.find(kind, self.namespace, f"{names.LABEL_APPLICATION}=app")
        return sorted(item["metadata"]["name"] for item in found)

    def events(self) -> list[tuple[str, str]]:
        return [(item["reason"], item["message"]) for item in self.cluster.find("events", self.namespace)]

    def topics(self) -> list[str]:
        admin = Admin({"bootstrap.servers": self.bootstrap})
        try:
            return sorted(admin.describe_topics([f"{self.namespace}-app-totals-changelog"], config=False))
        finally:
            admin.close()

    def merge(self, patch: str, *options: str) -> subprocess.CompletedProcess[str]:
        return self.cluster.kubectl(
            "patch", "streamsapp", "app", f"--namespace={self.namespace}", "--type=merge", f"--patch={patch}", *options
        )

    def no_more(self, resource: str, number: int) -> None:
        """A quota `none` that is used up, as Kubernetes' controller would count it."""
        inside, used = f"--namespace={self.namespace}", {resource: str(number)}
        self.cluster.kubectl("create", "quota", "none", f"--hard={resource}={number}", inside)
        counted = json.dumps({"status": {"hard": used, "used": used}})
        self.cluster.kubectl(
            "patch", "quota/none", inside, "--subresource=status", "--type=merge", f"--patch={counted}"
        )

    def kill(self, leader: OperatorProcess) -> None:
        """SIGKILL, and its lease has run out, which takes 15 s else (test_operator_faults.py waits for that once)."""
        leader.kill()
        self.cluster.kubectl("delete", "lease", "streams-operator", f"--namespace={self.namespace}")

    def delete(self, *options: str) -> None:
        self.cluster.kubectl("delete", "streamsapp", "app", f"--namespace={self.namespace}", *options)


@contextmanager
def open_stage(cluster: Cluster, namespace: str, bootstrap: str) -> Iterator[Stage]:
    """The stage without an operator. The application's own topics are there, with two partitions."""
    make_topics(bootstrap, **{f"{namespace}-in": 2, f"{namespace}-out": 2})
    with Kubelet(cluster, namespace) as kubelet:
        yield Stage(cluster, namespace, bootstrap, kubelet)
