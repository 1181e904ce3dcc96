"""What kstatus says of a custom resource: its rules restated, for tests.

Source: sigs.k8s.io/cli-utils/pkg/kstatus/status, `Compute` for a kind without rules of its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def kstatus(resource: Mapping[str, Any]) -> str:
    """Terminating, InProgress, Failed or Current."""
    metadata, status = resource["metadata"], resource.get("status") or {}
    if metadata.get("deletionTimestamp"):
        return "Terminating"
    if "observedGeneration" in status and status["observedGeneration"] != metadata["generation"]:
        return "InProgress"
    conditions = status.get("conditions") or ()
    # The first that is True decides.
    for each in conditions:
        if each["type"] in ("Reconciling", "Stalled") and each["status"] == "True":
            return "InProgress" if each["type"] == "Reconciling" else "Failed"
    for each in conditions:
        if each["type"] == "Ready":
            return "Current" if each["status"] == "True" else "InProgress"
    return "Current"
