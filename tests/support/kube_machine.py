"""One machine of a cluster: containerd, kubelet and kube-proxy, in namespaces of the kernel of its own."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from kept_logs import logs_of
from kube_api_server import answers
from kube_binaries import program
from kube_cluster import Cluster
from kube_isolation import Isolated, isolated
from kube_node_config import cni_conflist, containerd_toml, kubelet_config, volume, volume_folder
from kube_process import running, temporary_folder

_PROXY_PORT = 10256
_IMPORT_TIMEOUT = 300.0
# The end of each container's log, of those that are gone too as long as the kubelet keeps them.
_PODS_LOGS = 'for log in /var/log/pods/*/*/*.log; do echo "== $log"; tail -n 200 "$log"; done'


@dataclass(frozen=True, slots=True)
class Machine:
    """A machine by its node's name; `folder` is for what its programs need and say."""

    name: str
    place: Isolated
    folder: Path

    def load(self, archive: Path) -> None:
        """Give its containerd an image."""
        self.place.run("ctr", "--namespace=k8s.io", "images", "import", archive, timeout=_IMPORT_TIMEOUT)


@contextmanager
def machine(name: str) -> Iterator[Machine]:
    """A machine on which nothing runs yet; nothing of it is left after the block."""
    with temporary_folder("node") as folder, isolated(folder) as place:
        yield Machine(name, place, folder)


@contextmanager
def as_node(
    machine: Machine, cluster: Cluster, pause: Path, dns: str, volumes: range, tells_often: bool
) -> Iterator[None]:
    """Its programs run, and the cluster counts it as a Ready node; `volumes`: the numbers of those that it has.

    Raises EnvironmentException when a program does not come up.
    """
    place = machine.place
    with ExitStack() as stack:
        if volumes:
            place.run("mkdir", "-p", *map(volume_folder, volumes))
            cluster.apply(*(volume(each, machine.name) for each in volumes))
        stack.enter_context(_containerd(machine))
        machine.load(pause)
        stack.enter_context(_kubelet(machine, cluster, kubelet_config(place.node, place.cgroup, dns, tells_often)))
        stack.enter_context(_proxy(machine, cluster))
        stack.enter_context(logs_of(lambda: {f"pods-of-{machine.name}.log": place.run("sh", "-c", _PODS_LOGS)}))
        yield


@contextmanager
def _containerd(machine: Machine) -> Iterator[None]:
    folder, place = machine.folder, machine.place
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
def _kubelet(machine: Machine, cluster: Cluster, settings: str) -> Iterator[None]:
    place, config = machine.place, machine.folder / "kubelet.json"
    config.write_text(settings)
    command = [
        *(*place.prefix, program("kubelet"), f"--config={config}", f"--kubeconfig={cluster.kubeconfig}"),
        *(f"--node-ip={place.node}", f"--hostname-override={machine.name}"),
    ]
    with running(command, machine.folder, lambda: is_ready(cluster, machine.name), "kubelet"):
        yield


@contextmanager
def _proxy(machine: Machine, cluster: Cluster) -> Iterator[None]:
    place = machine.place
    command = [
        *(*place.prefix, program("kube-proxy")),
        *(f"--kubeconfig={cluster.kubeconfig}", f"--hostname-override={machine.name}", f"--cluster-cidr={place.pods}"),
        *("--proxy-mode=iptables", "--conntrack-max-per-core=0"),
        f"--healthz-bind-address={place.node}:{_PROXY_PORT}",
    ]
    health = f"http://{place.node}:{_PROXY_PORT}/healthz"
    with running(command, machine.folder, lambda: answers(health), "kube-proxy"):
        yield


def is_ready(cluster: Cluster, name: str) -> bool:
    """Whether the cluster counts a node as Ready."""
    node = cluster.get("node", name)
    conditions = node["status"].get("conditions", []) if node else []
    return any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)
