"""A cluster of one real node: containerd, kubelet, kube-proxy, scheduler, controllers and DNS."""

from __future__ import annotations

import dataclasses
import functools
import subprocess
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from kept_logs import logs_of
from kube_api_server import answers, api_server, controller_manager
from kube_binaries import CNI_FOLDER, CNI_PACKAGE, install, program
from kube_cluster import Cluster
from kube_images import image_archive, image_name, pause_archive
from kube_isolation import Isolated, isolated
from kube_node_config import (
    cni_conflist,
    containerd_toml,
    corefile,
    kubelet_config,
    storage_class,
    volume,
    volume_folder,
)
from kube_process import running, temporary_folder

NODE = "streams-node"
PROGRAMS = (
    *("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubelet", "kube-proxy", "coredns"),
    *("kubectl", "containerd", "ctr", "runc", "iptables", "conntrack", "ip", "unshare", "nsenter", "setpriv"),
    *("buildah", "debootstrap", "gcc", "openssl"),
)
"""What the node and its images are made with."""

VOLUMES = 64
"""How many claims the tests of a run can make; a volume serves once."""
_HEALTH = {"scheduler": 10259, "proxy": 10256, "dns": 8181}
_IMPORT_TIMEOUT = 300.0


@dataclass(frozen=True, slots=True)
class Node:
    """A cluster whose pods run, and how an image of the Dockerfile gets into it."""

    cluster: Cluster
    load: Callable[[str], str]
    """Given a target of the Dockerfile: builds it if need be, and returns the name for pods' `image`, which go with
    `imagePullPolicy: IfNotPresent`."""


@contextmanager
def one_node() -> Iterator[Node]:
    """A Ready node, and with it its API server; nothing of either is left after the block.

    Raises EnvironmentException when a program is missing or does not come up.
    """
    if not (CNI_FOLDER / "bridge").is_file():
        install(CNI_PACKAGE)
    pause = pause_archive()
    with temporary_folder("node") as folder, ExitStack() as stack:
        place = stack.enter_context(isolated(folder))
        cluster = stack.enter_context(api_server(_FOR_KUBELETS, place.node, place.prefix))
        place.run("mkdir", "-p", *(volume_folder(each) for each in range(VOLUMES)))
        cluster.apply(storage_class(), *(volume(each, NODE) for each in range(VOLUMES)))
        stack.enter_context(_containerd(folder, place))
        _import(place, pause)
        stack.enter_context(controller_manager(cluster, ("*",), place.node, place.prefix))
        for start in (_scheduler, _kubelet, _proxy, _dns):
            stack.enter_context(start(folder, place, cluster))
        stack.enter_context(logs_of(lambda: {"pods.log": place.run("sh", "-c", _PODS_LOGS)}))
        yield Node(dataclasses.replace(cluster, has_controllers=True), functools.cache(partial(_load, place)))


def _load(place: Isolated, target: str) -> str:
    _import(place, image_archive(target))
    return image_name(target)


def _import(place: Isolated, archive: Path) -> None:
    place.run("ctr", "--namespace=k8s.io", "images", "import", archive, timeout=_IMPORT_TIMEOUT)


# The end of each container's log, of those that are gone too as long as the kubelet keeps them.
_PODS_LOGS = 'for log in /var/log/pods/*/*/*.log; do echo "== $log"; tail -n 200 "$log"; done'
_FOR_KUBELETS = ("--kubelet-preferred-address-types=InternalIP,Hostname",)


@contextmanager
def _containerd(folder: Path, place: Isolated) -> Iterator[None]:
    config = folder / "containerd.toml"
    config.write_text(containerd_toml())
    network = folder / "10-pods.conflist"
    network.write_text(cni_conflist(place.pods))
    place.run("mkdir", "/run/cni")
    place.run("cp", network, "/run/cni/")

    def ready() -> bool:
        try:
            place.run("ctr", "version")
        except subprocess.CalledProcessError:
            return False
        return True

    with running([*place.prefix, program("containerd"), "--config", config], folder, ready, "containerd"):
        yield


@contextmanager
def _scheduler(folder: Path, place: Isolated, cluster: Cluster) -> Iterator[None]:
    port = _HEALTH["scheduler"]
    flags = [
        *(f"--kubeconfig={cluster.kubeconfig}", "--leader-elect=false"),
        *(f"--bind-address={place.node}", f"--secure-port={port}"),
    ]
    with _up(folder, place, "kube-scheduler", flags, f"https://{place.node}:{port}/healthz"):
        yield


@contextmanager
def _kubelet(folder: Path, place: Isolated, cluster: Cluster) -> Iterator[None]:
    config = folder / "kubelet.json"
    config.write_text(kubelet_config(place.node, place.cgroup))
    command = [
        *(*place.prefix, program("kubelet"), f"--config={config}", f"--kubeconfig={cluster.kubeconfig}"),
        *(f"--node-ip={place.node}", f"--hostname-override={NODE}"),
    ]

    def ready() -> bool:
        node = cluster.get("node", NODE)
        conditions = node["status"].get("conditions", []) if node else []
        return any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)

    with running(command, folder, ready, "kubelet"):
        yield


@contextmanager
def _proxy(folder: Path, place: Isolated, cluster: Cluster) -> Iterator[None]:
    port = _HEALTH["proxy"]
    flags = [
        *(f"--kubeconfig={cluster.kubeconfig}", f"--hostname-override={NODE}", f"--cluster-cidr={place.pods}"),
        *("--proxy-mode=iptables", "--conntrack-max-per-core=0", f"--healthz-bind-address={place.node}:{port}"),
    ]
    with _up(folder, place, "kube-proxy", flags, f"http://{place.node}:{port}/healthz"):
        yield


@contextmanager
def _dns(folder: Path, place: Isolated, cluster: Cluster) -> Iterator[None]:
    port, config = _HEALTH["dns"], folder / "Corefile"
    config.write_text(corefile(place.node, str(cluster.kubeconfig), port))
    with _up(folder, place, "coredns", [f"-conf={config}"], f"http://{place.node}:{port}/health"):
        yield


@contextmanager
def _up(folder: Path, place: Isolated, name: str, flags: Sequence[str], health: str) -> Iterator[None]:
    with running([*place.prefix, program(name), *flags], folder, lambda: answers(health), name):
        yield
