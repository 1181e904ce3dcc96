"""A namespace for a test, and emptying it afterwards, also where no controller does it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager

from kube_cluster import Cluster

_KINDS = (
    "pods",
    "persistentvolumeclaims",
    "services",
    "configmaps",
    "secrets",
    "rolebindings.rbac.authorization.k8s.io",
    "roles.rbac.authorization.k8s.io",
    "serviceaccounts",
    "poddisruptionbudgets.policy",
    "networkpolicies.networking.k8s.io",
    "leases.coordination.k8s.io",
    "deployments.apps",
    "limitranges",
)
_OURS = "streamsapplications.streamsoperator.io"
_NO_FINALIZERS = json.dumps({"metadata": {"finalizers": None}})


@contextmanager
def inhabited(cluster: Cluster, namespace: str) -> Iterator[None]:
    """A new namespace in which pods can be made; it goes with all that is in it."""
    cluster.kubectl("create", "namespace", namespace)
    wait = ("wait", "--for=create", "serviceaccount/default", "--timeout=30s", f"--namespace={namespace}")
    cluster.kubectl(*wait)
    yield
    clear(cluster, namespace)


def clear(cluster: Cluster, namespace: str) -> None:
    """Delete what a test left in its namespace, without waiting for finalizers' owners, and the namespace."""
    scope = f"--namespace={namespace}"
    kinds = _KINDS
    if cluster.get("crd", _OURS):
        # First, so that an operator that still runs makes nothing anew.
        kinds = (_OURS, *_KINDS)
    cluster.kubectl("delete", ",".join(kinds), "--all", scope, "--wait=false", "--force", "--grace-period=0")
    for each in cluster.find(",".join(kinds), namespace):
        if each["metadata"].get("finalizers"):
            target = f"{each['kind']}.{_group(each['apiVersion'])}/{each['metadata']['name']}"
            cluster.kubectl("patch", target, scope, "--type=merge", f"--patch={_NO_FINALIZERS}", check=False)
    cluster.kubectl("delete", "namespace", namespace, "--wait=false")


def _group(version: str) -> str:
    # kubectl reads KIND.VERSION.GROUP, and the core group's name is empty.
    group, separator, number = version.rpartition("/")
    return f"{number}.{group}" if separator else f"{version}."
