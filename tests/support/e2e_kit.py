"""The operator in a cluster whose pods run, and one application in it, as its user looks at it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from itertools import groupby
from pathlib import Path
from typing import Any

import pytest
import yaml
from helm import CHART, helm
from kube_binaries import program
from kube_cluster import Cluster
from kube_node import Node
from kube_process import accepts, free_port, running
from kube_sources import made_elsewhere
from waiting import eventually

RELEASE = "streams"
OPERATOR_NAMESPACE = "streams-system"
PATIENCE = 600.0
"""Seconds for what needs pods with a JVM to start on a busy machine."""
_OF_EVERY_NAMESPACE = {"configmap/kube-root-ca.crt", "serviceaccount/default"}
_KINDS = (
    "pods,services,configmaps,serviceaccounts,roles,rolebindings,poddisruptionbudgets,networkpolicies,"
    "persistentvolumeclaims"
)

Object = Mapping[str, Any]


@contextmanager
def operator_in_cluster(node: Node, operator_image: str, runtime_image: str) -> Iterator[None]:
    """The chart's release in a namespace of its own; uninstalled at the end of the block, with its hooks."""
    values = _image("image", operator_image) | _image("runtime.image", runtime_image)
    sets = ["--set=rbac.executorsAsPods=true", *(f"--set-string={name}={value}" for name, value in values.items())]
    where = ("--namespace", OPERATOR_NAMESPACE)
    install = ("install", RELEASE, str(CHART), *where, "--create-namespace", "--wait", "--timeout=180s")
    # Another test may have brought the definition.
    helm(*install, "--take-ownership", *sets, cluster=node.cluster)
    try:
        yield
    finally:
        helm("uninstall", RELEASE, *where, "--wait", "--timeout=120s", cluster=node.cluster)
        node.cluster.kubectl("delete", "namespace", OPERATOR_NAMESPACE, "--wait=false")


def _image(value: str, name: str) -> dict[str, str]:
    repository, _, tag = name.rpartition(":")
    return {f"{value}.repository": repository, f"{value}.tag": tag}


class Application:
    """One StreamsApplication in a namespace."""

    def __init__(self, node: Node, namespace: str, name: str) -> None:
        self.cluster: Cluster = node.cluster
        self.namespace, self.name = namespace, name

    def kubectl(self, *arguments: str, **options: Any) -> str:
        """What kubectl prints, in the application's namespace."""
        return self.cluster.kubectl(f"--namespace={self.namespace}", *arguments, **options).stdout

    def apply(self, file: Path | None = None, document: Object | None = None) -> None:
        """kubectl apply, as a user does it."""
        if file is not None:
            self.kubectl("apply", f"--filename={file}")
        else:
            self.kubectl("apply", "--filename=-", input=yaml.safe_dump(document, sort_keys=False))

    def merge(self, **spec: Any) -> None:
        """Change fields of the spec."""
        self.kubectl("patch", "streamsapp", self.name, "--type=merge", f"--patch={json.dumps({'spec': spec})}")

    def status(self) -> Any:
        """The resource's status; empty before the operator has written any."""
        found = self.cluster.get("streamsapp", self.name, namespace=self.namespace)
        return (found or {}).get("status") or {}

    def instance(self, name: str) -> Any:
        """The entry of a pod in status.instances; empty when there is none."""
        return next((each for each in self.status().get("instances", ()) if each["name"] == name), {})

    def condition(self, type: str) -> tuple[str, str, str]:
        """(status, reason, message) of a condition of the resource."""
        for each in self.status().get("conditions", ()):
            if each["type"] == type:
                return each["status"], each["reason"], each["message"]
        return "", "", ""

    def pod(self, name: str) -> Any:
        """A pod; None when it is not there."""
        return self.cluster.get("pod", name, namespace=self.namespace)

    def uid(self, name: str) -> str | None:
        """Which pod of that name it is; None when there is none."""
        found = self.pod(name)
        return None if found is None else str(found["metadata"]["uid"])

    def places(self) -> dict[str, str]:
        """The node of each pod; empty for one that has none yet."""
        pods = json.loads(self.kubectl("get", "pods", "--output=json"))["items"]
        return {pod["metadata"]["name"]: pod["spec"].get("nodeName", "") for pod in pods}

    def reaches(self, state: str, ready: str, seconds: float = PATIENCE) -> Any:
        """Wait for the resource's state, and return its status; not for that of one that is invalid."""

        def there() -> bool:
            found = self.status()
            assert found.get("state") in (state, None) or found["state"] != "INVALID", self.condition("Ready")
            return (found.get("state"), found.get("ready")) == (state, ready)

        try:
            eventually(there, f"{self.name} is {state} {ready}", seconds)
        except AssertionError as error:
            raise AssertionError(f"{error}\n{json.dumps(self.status(), indent=1)}\n{self.words()}") from None
        return self.status()

    def words(self) -> str:
        """What a person would look at next."""
        pods = self.kubectl("describe", "pods", check=False)
        events = self.kubectl("get", "events", "--sort-by=.lastTimestamp", check=False)
        logs = [
            self.kubectl("logs", f"{self.name}-{number}", "--tail=30", check=False)
            for number in range(len(self.status().get("instances", ())))
        ]
        where = (f"--namespace={OPERATOR_NAMESPACE}", "--tail=40")
        operator = self.cluster.kubectl(
            "logs", "--selector=app.kubernetes.io/name=streams-operator", *where, check=False
        )
        return "\n".join([events, pods, *logs, operator.stdout])

    def left(self) -> set[str]:
        """What is in the namespace that is not in every one."""
        printed = self.kubectl("get", _KINDS, "--output=name").split()
        short = {f"{name.split('/')[0].split('.')[0]}/{name.split('/')[1]}" for name in printed}
        return short - _OF_EVERY_NAMESPACE


@contextmanager
def forwarded(application: Application, pod: str, folder: Path) -> Iterator[str]:
    """The URL of a pod's queries on this machine, by kubectl port-forward; no other pod can be reached from here."""
    port = free_port()
    command = [program("kubectl"), f"--kubeconfig={application.cluster.kubeconfig}", "port-forward", f"pod/{pod}"]
    ready = lambda: accepts(port)  # noqa: E731
    with running([*command, f"--namespace={application.namespace}", f"{port}:8080"], folder, ready, "port-forward"):
        yield f"http://localhost:{port}"


@contextmanager
def states_of(application: Application, pod: str, folder: Path) -> Iterator[Callable[[], list[str]]]:
    """What the pods of that name have said that their client's state is, each once, from the block's beginning on."""
    path = '{.status.conditions[?(@.type=="streamsoperator.io/Running")].reason}'
    with watched(application, f"pod/{pod}", path, folder) as seen:
        yield seen


@contextmanager
def watched(application: Application, what: str, path: str, folder: Path) -> Iterator[Callable[[], list[str]]]:
    """What a JSONPath has said of an object, each value once in a row, from the block's beginning on."""
    log = folder / f"{what.replace('/', '-')}.watched"
    command = [program("kubectl"), f"--kubeconfig={application.cluster.kubeconfig}", "get", what, "--watch"]
    options = [f"--namespace={application.namespace}", f'--output=jsonpath={path}{{"\\n"}}']
    with log.open("w") as file, subprocess.Popen([*command, *options], stdout=file) as watching:
        try:
            eventually(lambda: log.read_text() != "", "the watch has begun")
            yield lambda: [value for value, _ in groupby(filter(None, log.read_text().splitlines()))]
        finally:
            watching.terminate()


def kill_process(application: Application, pod: str) -> None:
    """SIGKILL to the pod's first process, as the kernel does it when memory runs out."""
    if made_elsewhere():
        pytest.skip("the processes of this cluster's pods are not on this machine")
    wanted = {f"POD_NAME={pod}".encode(), f"POD_NAMESPACE={application.namespace}".encode()}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            command = (folder / "cmdline").read_bytes().split(b"\0")
            environment = set((folder / "environ").read_bytes().split(b"\0"))
        except OSError:
            continue
        if b"streams_runtime.cli.process.pod" in command and wanted <= environment:
            os.kill(int(folder.name), signal.SIGKILL)
            return
    raise AssertionError(f"no process of pod {pod} was found")
