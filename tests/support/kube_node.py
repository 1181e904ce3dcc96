"""A cluster of real nodes: a control plane with scheduler, controllers and DNS, and kubelets with their containerd."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import partial

from kube_api_server import answers, api_server, controller_manager
from kube_binaries import CNI_FOLDER, CNI_PACKAGE, install, program
from kube_cluster import Cluster
from kube_images import image_archive, image_name, pause_archive
from kube_isolation import connect
from kube_machine import Machine, as_node, machine
from kube_node_config import corefile, storage_class
from kube_process import running

PROGRAMS = (
    *("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubelet", "kube-proxy", "coredns"),
    *("kubectl", "containerd", "ctr", "runc", "iptables", "conntrack", "ip", "unshare", "nsenter", "setpriv"),
    *("buildah", "debootstrap", "gcc", "openssl"),
)
"""What nodes and their images are made with."""

VOLUMES = 64
"""How many claims the tests of a run can make on a node; a volume serves once."""
_NAME = "streams-node"
_SCHEDULER_PORT, _DNS_PORT = 10259, 8181
_FOR_KUBELETS = ("--kubelet-preferred-address-types=InternalIP,Hostname",)
# Of several nodes one may be lost: after 16 s without a word it is not Ready, and 10 s later its pods are deleted (50 s
# and five minutes otherwise). A single one is only slow.
_SOON_MISSED = ("--node-monitor-grace-period=16s",)
_SOON_MOVED = tuple(f"--default-{what}-toleration-seconds=10" for what in ("not-ready", "unreachable"))


@dataclass(frozen=True, slots=True)
class Node:
    """A cluster whose pods run, and how an image of the Dockerfile gets into it."""

    cluster: Cluster
    load: Callable[[str], str]
    """Given a target of the Dockerfile: builds it if need be, and returns the name for pods' `image`, which go with
    `imagePullPolicy: IfNotPresent`."""
    machines: Sequence[Machine] = ()
    """Its machines, the one with the control plane first; none of a cluster that was not made here."""


@contextmanager
def one_node() -> Iterator[Node]:
    """A Ready node, and with it its API server; nothing of either is left after the block.

    Raises EnvironmentException when a program is missing or does not come up.
    """
    with several_nodes(1) as node:
        yield node


@contextmanager
def several_nodes(count: int) -> Iterator[Node]:
    """As `one_node`, with so many: a link between each two, and lost ones are missed within half a minute."""
    if not (CNI_FOLDER / "bridge").is_file():
        install(CNI_PACKAGE)
    pause = pause_archive()
    with ExitStack() as stack:
        names = [_NAME, *(f"{_NAME}-{number}" for number in range(1, count))]
        machines = [stack.enter_context(machine(name)) for name in names]
        connect([each.place for each in machines])
        first = machines[0]
        several = count > 1
        cluster = stack.enter_context(
            api_server([*_FOR_KUBELETS, *(_SOON_MOVED if several else ())], first.place.node, first.place.prefix)
        )
        cluster.apply(storage_class())
        soon = _SOON_MISSED if several else ()
        stack.enter_context(controller_manager(cluster, ("*",), first.place.node, first.place.prefix, soon))
        stack.enter_context(_scheduler(first, cluster))
        for number, each in enumerate(machines):
            volumes = range(number * VOLUMES, (number + 1) * VOLUMES)
            stack.enter_context(as_node(each, cluster, pause, first.place.node, volumes, several))
        stack.enter_context(_dns(first, cluster))
        yield Node(replace(cluster, has_controllers=True), functools.cache(partial(_load, machines)), machines)


@contextmanager
def one_more(node: Node, name: str, target: str) -> Iterator[Machine]:
    """Another machine, which has an image of the Dockerfile and no volumes, joins a cluster for the block."""
    first = node.machines[0]
    with machine(name) as more:
        connect([first.place, more.place])
        try:
            with as_node(more, node.cluster, pause_archive(), first.place.node, range(0), False):
                more.load(image_archive(target))
                yield more
        finally:
            node.cluster.kubectl("delete", "node", name, "--ignore-not-found")


def _load(machines: Sequence[Machine], target: str) -> str:
    for each in machines:
        each.load(image_archive(target))
    return image_name(target)


@contextmanager
def _scheduler(first: Machine, cluster: Cluster) -> Iterator[None]:
    flags = [
        *(f"--kubeconfig={cluster.kubeconfig}", "--leader-elect=false"),
        *(f"--bind-address={first.place.node}", f"--secure-port={_SCHEDULER_PORT}"),
    ]
    with _up(first, "kube-scheduler", flags, f"https://{first.place.node}:{_SCHEDULER_PORT}/healthz"):
        yield


@contextmanager
def _dns(first: Machine, cluster: Cluster) -> Iterator[None]:
    config = first.folder / "Corefile"
    config.write_text(corefile(first.place.node, str(cluster.kubeconfig), _DNS_PORT))
    with _up(first, "coredns", [f"-conf={config}"], f"http://{first.place.node}:{_DNS_PORT}/health"):
        yield


@contextmanager
def _up(first: Machine, name: str, flags: Sequence[str], health: str) -> Iterator[None]:
    command = [*first.place.prefix, program(name), *flags]
    with running(command, first.folder, lambda: answers(health), name):
        yield
