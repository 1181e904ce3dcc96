"""A namespace for a test, and emptying it afterwards, also where no controller does it.

Without kubectl, each start of which costs a tenth of a second of a processor: every test of a cluster has a namespace.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from kube_cluster import Cluster
from kube_reads import connection, path_of
from waiting import eventually

if TYPE_CHECKING:
    import httpx

_KINDS = (
    "pods",
    "persistentvolumeclaims",
    "services",
    "configmaps",
    "secrets",
    "rolebindings",
    "roles",
    "serviceaccounts",
    "poddisruptionbudgets",
    "networkpolicies",
    "leases",
    "deployments",
    "limitranges",
)
_OURS = "streamsapplications"
_AT_ONCE = {"apiVersion": "v1", "kind": "DeleteOptions", "gracePeriodSeconds": 0, "propagationPolicy": "Background"}
_NO_FINALIZERS = {"metadata": {"finalizers": None}}
_MERGE = {"Content-Type": "application/merge-patch+json"}
_ACCOUNT_WAIT = 30.0
_NOT_FOUND = 404


@contextmanager
def inhabited(cluster: Cluster, namespace: str) -> Iterator[None]:
    """A new namespace in which pods can be made; it goes with all that is in it."""
    create(cluster, namespace)
    yield
    clear(cluster, namespace)


def create(cluster: Cluster, namespace: str) -> None:
    """Make a namespace with the service account that pods have by default."""
    with connection(cluster.endpoint, cluster.token) as api:
        _made(api, path_of("namespaces", None), {"name": namespace})
        if not cluster.has_controllers:
            # Whoever makes a pod without naming an account needs it, and nobody else makes it here.
            _made(api, path_of("serviceaccounts", namespace), {"name": "default"})
    if cluster.has_controllers:
        account = lambda: cluster.get("serviceaccounts", "default", namespace)  # noqa: E731
        eventually(account, f"{namespace} has its service account", _ACCOUNT_WAIT)


def clear(cluster: Cluster, namespace: str) -> None:
    """Delete what a test left in its namespace, without waiting for finalizers' owners, and the namespace."""
    with connection(cluster.endpoint, cluster.token) as api:
        # Applications first, so that an operator that still runs makes nothing anew.
        for kind in (_OURS, *_KINDS):
            path = path_of(kind, namespace)
            if _left(api, path):
                _answered(api.request("DELETE", path, json=_AT_ONCE))
        for kind in (_OURS, *_KINDS):
            path = path_of(kind, namespace)
            for each in _left(api, path):
                if each["metadata"].get("finalizers"):
                    # Its owner may have let it go meanwhile.
                    api.patch(f"{path}/{each['metadata']['name']}", json=_NO_FINALIZERS, headers=_MERGE)
        _answered(api.delete(f"{path_of('namespaces', None)}/{namespace}"))


def _made(api: httpx.Client, path: str, metadata: dict[str, str]) -> None:
    _answered(api.post(path, json={"metadata": metadata}))


def _left(api: httpx.Client, path: str) -> list[Any]:
    answer = api.get(path)
    if answer.status_code == _NOT_FOUND:
        # The cluster has no definition of this kind.
        return []
    return list(_answered(answer).json()["items"])


def _answered(answer: httpx.Response) -> httpx.Response:
    request = answer.request
    assert answer.is_success, (
        f"{request.method} {request.url.path} was answered with {answer.status_code}: {answer.text}"
    )
    return answer
