"""By what right a pod sets its own conditions, and makes executors: its account, and a role of its own."""

from __future__ import annotations

from typing import Any

from streams_operator import names
from streams_operator.plan.objects.identity import Identity

_RBAC = "rbac.authorization.k8s.io"
_EXECUTORS: dict[str, Any] = {
    "apiGroups": [""],
    "resources": ["pods"],
    "verbs": ["create", "delete", "deletecollection", "get", "list", "watch"],
}
"""What Spark does with pods. No right to make one can name it, and none can go by labels, so this is about all pods of
the namespace."""


def service_account(identity: Identity) -> dict[str, Any]:
    """The account of the pods, unless the template names another."""
    return {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": identity.metadata(names.access(identity.name))}


def role(identity: Identity, pods: int, executors: bool) -> dict[str, Any]:
    """The right to read the pods 0 … `pods`-1 and to patch their status; `executors`: also to make pods."""
    named = [names.pod(identity.name, ordinal) for ordinal in range(pods)]
    rules = [
        {"apiGroups": [""], "resources": ["pods"], "resourceNames": named, "verbs": ["get"]},
        {"apiGroups": [""], "resources": ["pods/status"], "resourceNames": named, "verbs": ["patch"]},
        *([_EXECUTORS] if executors else []),
    ]
    return {
        "apiVersion": f"{_RBAC}/v1",
        "kind": "Role",
        "metadata": identity.metadata(names.access(identity.name)),
        # A rule without names would be about every pod.
        "rules": rules if named else [],
    }


def role_binding(identity: Identity, other_account: str | None) -> dict[str, Any]:
    """The role for the operator's account and for the template's, which pods of two versions may have."""
    accounts = dict.fromkeys([names.access(identity.name), *([other_account] if other_account else [])])
    return {
        "apiVersion": f"{_RBAC}/v1",
        "kind": "RoleBinding",
        "metadata": identity.metadata(names.access(identity.name)),
        "roleRef": {"apiGroup": _RBAC, "kind": "Role", "name": names.access(identity.name)},
        "subjects": [
            {"kind": "ServiceAccount", "name": account, "namespace": identity.namespace} for account in accounts
        ],
    }
