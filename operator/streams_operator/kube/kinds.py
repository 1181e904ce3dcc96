"""The kinds of object that the operator reads and writes, and where the API server has them."""

from __future__ import annotations

from dataclasses import dataclass

from streams_operator.names import GROUP, PLURAL
from streams_runtime.api import KIND, VERSION


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of namespaced object."""

    name: str
    group: str  # "" is the core group
    version: str
    plural: str

    @property
    def api_version(self) -> str:
        """As it stands in an object."""
        return f"{self.group}/{self.version}" if self.group else self.version

    def path(self, namespace: str | None, name: str | None = None, subresource: str | None = None) -> str:
        """Path of an object, of all in a namespace (no `name`), or of all in the cluster (no `namespace`)."""
        parts = ["/apis", self.group, self.version] if self.group else ["/api", self.version]
        if namespace is not None:
            parts += ["namespaces", namespace]
        parts.append(self.plural)
        parts += [part for part in (name, subresource) if part is not None]
        return "/".join(parts)


APPLICATION = Kind(KIND, GROUP, VERSION, PLURAL)
POD = Kind("Pod", "", "v1", "pods")
SECRET = Kind("Secret", "", "v1", "secrets")
EVENT = Kind("Event", "", "v1", "events")
LEASE = Kind("Lease", "coordination.k8s.io", "v1", "leases")

PARTS = (
    Kind("ConfigMap", "", "v1", "configmaps"),
    Kind("Service", "", "v1", "services"),
    Kind("ServiceAccount", "", "v1", "serviceaccounts"),
    Kind("PersistentVolumeClaim", "", "v1", "persistentvolumeclaims"),
    Kind("Role", "rbac.authorization.k8s.io", "v1", "roles"),
    Kind("RoleBinding", "rbac.authorization.k8s.io", "v1", "rolebindings"),
    Kind("PodDisruptionBudget", "policy", "v1", "poddisruptionbudgets"),
    Kind("NetworkPolicy", "networking.k8s.io", "v1", "networkpolicies"),
)
"""What an application is made of, besides its pods."""

WATCHED = (APPLICATION, POD, *PARTS)

_BY_NAME = {kind.name: kind for kind in (*WATCHED, SECRET, EVENT, LEASE)}


def kind_of(name: str) -> Kind:
    """The kind of an object's `kind`. Raises KeyError for one that the operator has no business with."""
    return _BY_NAME[name]
