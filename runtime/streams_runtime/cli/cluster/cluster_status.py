"""The status of an application in a cluster: what its resource says, and what its pods say where they can be asked."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from streams_runtime.api import GROUP, VERSION, parse_application
from streams_runtime.cli.cluster.kubectl import Kubectl, KubectlException
from streams_runtime.cli.status.status_values import (
    NO_STORES,
    ApplicationStatus,
    InstanceStatus,
    Problem,
    Stores,
    TaskStatus,
    error_of,
    of_description,
)
from streams_runtime.errors import ConfigException
from streams_runtime.topology.declared.build_topology import build_topology
from streams_runtime.topology.plan import Topology

Resource = Mapping[str, Any]
Described = Mapping[str, Any]

_PORT = 8080
_SECONDS = 10.0  # for a pod's answer; kubectl and the API server are on the way
_AT_ONCE = 8


def status_of(resource: Resource, ask: Callable[[str], Described] | None = None) -> ApplicationStatus:
    """The status by the resource; `ask` gives what a pod says of itself, or raises KubectlException."""
    status, metadata = resource.get("status") or {}, resource["metadata"]
    stores = _stores(resource)
    rows = status.get("instances") or ()
    instances = [_instance(row, stores) for row in rows]
    if ask is not None and instances:
        with ThreadPoolExecutor(_AT_ONCE) as threads:
            instances = list(threads.map(lambda each: _asked(each, ask, stores), instances))
    return ApplicationStatus(
        name=metadata["name"],
        state=status.get("state") or "NOT SEEN by an operator",
        replicas=int(resource["spec"].get("replicas", 1)),
        instances=tuple(instances),
        tasks=status.get("tasks"),
        setup=(status.get("internalTopics") or {}).get("setup") or "",
        lag=status.get("lag"),
        problems=tuple(_problems(resource)),
    )


def pod_asker(kubectl: Kubectl, resource: Resource) -> Callable[[str], Described]:
    """Asks a pod for its `/state`, or for the figures of it where a token stands before that."""
    queries = resource["spec"].get("queries") or {}
    scheme = "https" if queries.get("tls") else "http"
    path = "/state/figures" if queries.get("access") else "/state"
    namespace = resource["metadata"]["namespace"]

    def ask(pod: str) -> Described:
        found: Described = kubectl.ask_pod(namespace, pod, scheme, _PORT, path, _SECONDS)
        return found

    return ask


def topology_of(resource: Resource) -> Topology:
    """The topology that the resource declares.

    Raises:
        InvalidApplicationException: the resource has mistakes; its status lists them too.
    """
    metadata = {name: resource["metadata"][name] for name in ("name", "namespace") if name in resource["metadata"]}
    document = {"apiVersion": f"{GROUP}/{VERSION}", "kind": resource["kind"], "metadata": metadata}
    return build_topology(parse_application({**document, "spec": resource["spec"]}, metadata["name"]))


def _stores(resource: Resource) -> Stores:
    try:
        return Stores.of_topology(topology_of(resource))
    except ConfigException:
        return NO_STORES  # the status says what is wrong with the spec


def _instance(row: Mapping[str, Any], stores: Stores) -> InstanceStatus:
    return InstanceStatus(
        name=row["name"],
        state=row.get("state") or "no word yet",
        ready=bool(row.get("ready")),
        tasks=tuple(TaskStatus(task, stores=stores.of(task)) for task in row.get("tasks") or ()),
        restoring=row.get("recordsLeft") or 0,
        lag=row.get("lag"),
        restarts=row.get("restarts") or 0,
        note=row.get("reason") or "",
    )


def _asked(instance: InstanceStatus, ask: Callable[[str], Described], stores: Stores) -> InstanceStatus:
    try:
        return of_description(instance, ask(instance.name), stores)
    except KubectlException:
        return instance  # the resource's own word is enough; a pod that starts or has ended answers nobody


def _problems(resource: Resource) -> Iterable[Problem]:
    status, name = resource.get("status") or {}, resource["metadata"]["name"]
    if status.get("observedGeneration", 0) < resource["metadata"].get("generation", 0):
        yield Problem("operator", "it has not seen the last change of the resource", "look at the operator's log")
    conditions = {each["type"]: each for each in status.get("conditions") or ()}
    degraded = conditions.get("Degraded")
    if degraded is not None and degraded["status"] == "True":
        yield Problem(degraded["reason"], degraded["message"])
    elif (ready := conditions.get("Ready")) is not None and ready["status"] != "True":
        yield Problem(ready["reason"], ready["message"])
    for row in status.get("instances") or ():
        if (failure := error_of(row)) is not None:
            yield Problem(row["name"], failure, f"mend the cause, then: kubectl streamsapp restart {name}")
        elif (crash := row.get("lastCrash")) and row.get("restarts"):
            again = f"; it is made again after {row['backoffUntil']}" if row.get("backoffUntil") else ""
            yield Problem(row["name"], f"crashed at {crash.get('at')}: {crash.get('reason')}{again}")
