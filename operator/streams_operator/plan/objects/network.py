"""How pods are found, and how many of them may be taken away at a time."""

from __future__ import annotations

from typing import Any

from streams_operator import names
from streams_operator.plan.objects.identity import Identity
from streams_runtime.api.disruption_spec import DisruptionBudgetSpec


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
