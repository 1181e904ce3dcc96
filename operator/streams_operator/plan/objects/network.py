"""How pods are found, who may reach them, and how many of them may be taken away at a time."""

from __future__ import annotations

from typing import Any

from streams_operator import names
from streams_operator.plan.objects.identity import Identity
from streams_runtime.api.spec.disruption_spec import DisruptionBudgetSpec
from streams_runtime.api.spec.network_spec import NetworkPolicySpec


def service(identity: Identity) -> dict[str, Any]:
    """The headless Service that gives each pod a name of its own, also while it is not ready."""
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": identity.metadata(names.service(identity.name)),
        "spec": {
            "clusterIP": "None",
            "publishNotReadyAddresses": True,
            "selector": identity.selector,
            "ports": [{"name": "queries", "port": names.QUERY_PORT, "protocol": "TCP", "targetPort": "queries"}],
        },
    }


def disruption_budget(identity: Identity, budget: DisruptionBudgetSpec) -> dict[str, Any]:
    """Nodes are drained one pod at a time, unless the resource says otherwise.

    Pods that are not ready may always be taken away: one that restores for hours, or that is kept in ERROR, would
    otherwise hold a node for as long.
    """
    most = 1 if budget.max_unavailable is None else budget.max_unavailable
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": identity.metadata(identity.name),
        "spec": {
            "maxUnavailable": most,
            "selector": {"matchLabels": identity.selector},
            "unhealthyPodEvictionPolicy": "AlwaysAllow",
        },
    }


def network_policy(identity: Identity, policy: NetworkPolicySpec, operator: str, executors: bool) -> dict[str, Any]:
    """Who may reach the pods: each other, the operator in its namespace, and whom the resource names.

    Probes come from the pod's own node, which Kubernetes always lets through. With `executors` those of the application
    reach all ports: Spark's driver listens on some that it chooses.
    """
    # Without what says nothing: the API server does not keep it, and it would be missed.
    peers = [each.model_dump(mode="json", by_alias=True, exclude_defaults=True) for each in policy.from_]
    queries = {"port": names.QUERY_PORT, "protocol": "TCP"}
    known = [
        {"podSelector": {"matchLabels": identity.selector}},
        {"namespaceSelector": {"matchLabels": {names.LABEL_NAMESPACE: operator}}},
    ]
    ingress: list[dict[str, Any]] = [{"from": [*known, *peers], "ports": [queries]}]
    if executors:
        ingress.append({"from": [{"podSelector": {"matchLabels": {names.LABEL_EXECUTORS: identity.name}}}]})
    return {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": identity.metadata(identity.name),
        "spec": {
            "podSelector": {"matchLabels": identity.selector},
            "policyTypes": ["Ingress"],
            "ingress": ingress,
        },
    }
