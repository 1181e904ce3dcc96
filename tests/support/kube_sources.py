"""Which cluster a run uses: one that is given, kind where Docker is, else an API server of its own."""

from __future__ import annotations

import functools
import json
import os
import shutil
import subprocess
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from kube_api_server import api_server
from kube_binaries import program
from kube_cluster import Cluster
from kube_images import PROJECT, image_name
from kube_node import Node, one_node
from kube_process import temporary_folder

from streams_runtime.errors import EnvironmentException

KUBECONFIG_VARIABLE = "STREAMSAPP_TEST_KUBECONFIG"
"""Names the kubeconfig of an existing cluster whose administrator the tests may be."""
CONTEXT_VARIABLE = "STREAMSAPP_TEST_CONTEXT"
"""Names a context of that file; its current one if absent."""

_DOCKER_TIMEOUT = 20.0
_KIND_TIMEOUT = 600.0
_BUILD_TIMEOUT = 1800.0
_TIMEOUT = 60.0
_KIND = {
    "kind": "Cluster",
    "apiVersion": "kind.x-k8s.io/v1alpha4",
    "nodes": [{"role": role} for role in ("control-plane", "worker", "worker", "worker")],
}
_ADMIN = "streams-operator-tests"
_ADMIN_NAMESPACE = "kube-system"


def given() -> Path | None:
    """The kubeconfig of the cluster that the run was given."""
    return Path(path) if (path := os.environ.get(KUBECONFIG_VARIABLE)) else None


@functools.cache
def docker_and_kind() -> bool:
    """Whether kind can make a cluster here."""
    if shutil.which("kind") is None or shutil.which("docker") is None:
        return False
    try:
        run = subprocess.run(["docker", "info"], capture_output=True, timeout=_DOCKER_TIMEOUT, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return False
    return run.returncode == 0


def made_elsewhere() -> bool:
    """Whether the run's cluster is one that was given or that kind makes: all tests share it, and its machines are not
    processes of this run.
    """
    return given() is not None or docker_and_kind()


@contextmanager
def any_api_server() -> Iterator[Cluster]:
    """The first of the three that can be had, for as long as the block lasts."""
    if made_elsewhere():
        with any_node() as node:
            yield node.cluster
    else:
        with api_server() as cluster:
            yield cluster


@contextmanager
def any_node() -> Iterator[Node]:
    """As `any_api_server`, with pods that run."""
    if kubeconfig := given():
        with existing_cluster(kubeconfig, os.environ.get(CONTEXT_VARIABLE, "")) as cluster:
            yield Node(cluster, _given_image)
    elif docker_and_kind():
        with kind_cluster() as node:
            yield node
    else:
        with one_node() as node:
            yield node


def _given_image(target: str) -> str:
    variable = f"STREAMSAPP_TEST_{target.upper()}_IMAGE"
    if image := os.environ.get(variable):
        return image
    raise EnvironmentException(
        f"the cluster of {KUBECONFIG_VARIABLE} needs an image that it can pull. Build the target {target!r} of the"
        f" Dockerfile, push it, and let {variable} name it"
    )


@contextmanager
def kind_cluster() -> Iterator[Node]:
    """A cluster made by kind, with three workers; it goes at the end of the block."""
    name = f"streams-{uuid.uuid4().hex[:8]}"
    with temporary_folder("kind") as folder:
        kubeconfig = folder / "kind.kubeconfig"
        create = ["kind", "create", "cluster", "--name", name, "--kubeconfig", str(kubeconfig), "--wait", "120s"]
        try:
            # JSON is YAML.
            subprocess.run(
                [*create, "--config", "-"], input=json.dumps(_KIND), text=True, check=True, timeout=_KIND_TIMEOUT
            )
            with existing_cluster(kubeconfig) as cluster:
                yield Node(cluster, functools.cache(partial(_load_into_kind, name)))
        finally:
            subprocess.run(["kind", "delete", "cluster", "--name", name], check=False, timeout=_KIND_TIMEOUT)


def _load_into_kind(name: str, target: str) -> str:
    image = image_name(target)
    build = ["docker", "build", f"--target={target}", f"--tag={image}", str(PROJECT)]
    for command in (build, ["kind", "load", "docker-image", image, "--name", name]):
        subprocess.run(command, check=True, timeout=_BUILD_TIMEOUT)
    return image


@contextmanager
def existing_cluster(kubeconfig: Path, context: str = "") -> Iterator[Cluster]:
    """A cluster by its administrator's kubeconfig, and a context of it if not the current one.

    Inside the block a service account stands for them. An AssertionError has kubectl's words, also for a context that
    is not in the file.
    """

    def kubectl(*args: str, input: str | None = None) -> str:
        where = [f"--kubeconfig={kubeconfig}", *([f"--context={context}"] if context else [])]
        command = [program("kubectl"), *where, *args]
        done = subprocess.run(command, input=input, capture_output=True, text=True, timeout=_TIMEOUT, check=False)
        if done.returncode != 0:
            raise AssertionError(f"kubectl {' '.join(args)}, with {kubeconfig}: {done.stderr.strip()}")
        return done.stdout

    documents = "\n".join(map(json.dumps, _admin_objects()))
    endpoint = json.loads(kubectl("config", "view", "--raw", "--minify", "--flatten", "--output=json"))
    kubectl("apply", "--filename=-", input=documents)
    try:
        token = kubectl("create", "token", _ADMIN, f"--namespace={_ADMIN_NAMESPACE}", "--duration=12h").strip()
        with temporary_folder("cluster") as folder:
            yield Cluster(folder, endpoint["clusters"][0]["cluster"], token, has_controllers=True)
    finally:
        kubectl("delete", "--ignore-not-found", "--filename=-", input=documents)


def _admin_objects() -> list[dict[str, Any]]:
    account = {"kind": "ServiceAccount", "name": _ADMIN, "namespace": _ADMIN_NAMESPACE}
    return [
        {
            "apiVersion": "v1",
            "kind": "ServiceAccount",
            "metadata": {"name": _ADMIN, "namespace": _ADMIN_NAMESPACE},
        },
        {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "ClusterRoleBinding",
            "metadata": {"name": _ADMIN},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
            "subjects": [account],
        },
    ]
