"""Reading objects from an API server without kubectl, each start of which costs a tenth of a second of a processor."""

from __future__ import annotations

import base64
import ssl
import time
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    # Its functions load it: every process of a run loads this module, and few ask an API server.
    import httpx

# What the resources of a group's version are called in its paths.
_RESOURCES = {
    "api/v1": (
        "configmaps",
        "events",
        "limitranges",
        "namespaces",
        "nodes",
        "persistentvolumeclaims",
        "pods",
        "secrets",
        "serviceaccounts",
        "services",
    ),
    "apis/admissionregistration.k8s.io/v1": ("validatingwebhookconfigurations",),
    "apis/apiextensions.k8s.io/v1": ("customresourcedefinitions",),
    "apis/apps/v1": ("deployments",),
    "apis/coordination.k8s.io/v1": ("leases",),
    "apis/networking.k8s.io/v1": ("networkpolicies",),
    "apis/policy/v1": ("poddisruptionbudgets",),
    "apis/rbac.authorization.k8s.io/v1": ("clusterrolebindings", "clusterroles", "rolebindings", "roles"),
    "apis/streamsoperator.io/v1alpha1": ("streamsapplications",),
}
_PATHS = {name: path for path, names in _RESOURCES.items() for name in names}
_SHORT = {
    "crd": "customresourcedefinitions",
    "networkpolicy": "networkpolicies",
    "pdb": "poddisruptionbudgets",
    "pvc": "persistentvolumeclaims",
    "streamsapp": "streamsapplications",
}
# Seconds between two reads. Tests read in loops until something has happened, on the processors that it happens on.
_APART = 0.05
_TIMEOUT = 20.0


def connection(endpoint: Mapping[str, Any], token: str, timeout: float = _TIMEOUT) -> httpx.Client:
    """Requests to an API server (the `cluster` part of a kubeconfig) in the name of a token's owner. Close it."""
    import httpx

    headers = {"Authorization": f"Bearer {token}"}
    return httpx.Client(base_url=str(endpoint["server"]), verify=trust(endpoint), headers=headers, timeout=timeout)


def trust(endpoint: Mapping[str, Any]) -> ssl.SSLContext:
    """By what the server of the `cluster` part of a kubeconfig is known."""
    if file := endpoint.get("certificate-authority"):
        return ssl.create_default_context(cafile=file)
    return ssl.create_default_context(cadata=base64.b64decode(endpoint["certificate-authority-data"]).decode())


class Reads:
    """Objects by kind, namespace and name, as JSON."""

    def __init__(self, endpoint: Mapping[str, Any], token: str) -> None:
        """Connects for each read, so there is nothing to close."""
        self._endpoint, self._token = endpoint, token
        self._trust = trust(endpoint)
        self._next = 0.0

    def one(self, kind: str, name: str, namespace: str | None) -> Any:
        """The object; None when there is none. Raises AssertionError with the server's words for all else."""
        return self._asked(f"{_path(kind, namespace)}/{name}", {})

    def all(self, kinds: str, namespace: str | None, selector: str | None) -> list[Any]:
        """The objects of these kinds (separated by commas), in a namespace or all. As `one`."""
        return [each for kind in kinds.split(",") for each in self._of(kind, namespace, selector)]

    def _of(self, kind: str, namespace: str | None, selector: str | None) -> Iterator[Any]:
        found = self._asked(_path(kind, namespace), {} if selector is None else {"labelSelector": selector})
        for each in (found or {"items": ()})["items"]:
            # Those of a list are without what the list itself says.
            yield {"apiVersion": found["apiVersion"], "kind": found["kind"].removesuffix("List"), **each}

    def _asked(self, path: str, parameters: dict[str, str]) -> Any:
        import httpx

        time.sleep(max(self._next - time.monotonic(), 0))
        self._next = time.monotonic() + _APART
        try:
            answer = httpx.get(
                f"{self._endpoint['server']}/{path}",
                params=parameters,
                headers={"Authorization": f"Bearer {self._token}"},
                verify=self._trust,
                timeout=_TIMEOUT,
                trust_env=False,
            )
        except httpx.HTTPError as failure:
            raise AssertionError(f"no answer to GET {path}: {failure or type(failure).__name__}") from failure
        if answer.status_code == httpx.codes.NOT_FOUND:
            return None
        assert answer.is_success, f"GET {path} was answered with {answer.status_code}: {answer.text}"
        return answer.json()


def _path(kind: str, namespace: str | None) -> str:
    kind = kind.partition(".")[0]
    name = _SHORT.get(kind.removesuffix("s"), kind)
    if name not in _PATHS:
        name += "s"
    scope = "" if namespace is None else f"namespaces/{namespace}/"
    return f"{_PATHS[name]}/{scope}{name}"
