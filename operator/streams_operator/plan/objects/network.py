"""How pods are found, and how many of them may be taken away at a time."""

from __future__ import annotations

from typing import Any

from streams_operator import names
from streams_operator.plan.objects.identity import Identity


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


def disruption_budget(identity: Identity) -> dict[str, Any]:
    """Nodes are drained one pod at a time. A pod that is not ready does no work that a drain could interrupt."""
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": identity.metadata(identity.name),
        "spec": {
            "maxUnavailable": 1,
            "selector": {"matchLabels": identity.selector},
            # Without it a client in ERROR, which nobody starts again, keeps its node from being drained for ever.
            "unhealthyPodEvictionPolicy": "AlwaysAllow",
        },
    }
