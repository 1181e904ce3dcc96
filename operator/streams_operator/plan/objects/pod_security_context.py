"""Whose process a pod is: by the template, or by the chart."""

from __future__ import annotations

from typing import Any

from streams_operator.model import Defaults
from streams_runtime.api.spec.pod_security_spec import SecurityContextSpec


def pod_security(given: SecurityContextSpec | None, defaults: Defaults) -> dict[str, Any]:
    """The pod's security context. Without a user the cluster chooses it, and the groups, as OpenShift does."""
    context = SecurityContextSpec.model_validate({"runAsUser": defaults.run_as_user}) if given is None else given
    user, profile = context.run_as_user, context.seccomp_profile
    groups = {
        "runAsUser": user,
        # A user who is not in them could neither read Secrets nor write stores.
        "runAsGroup": user if context.run_as_group is None else context.run_as_group,
        "fsGroup": user if context.fs_group is None else context.fs_group,
        "supplementalGroups": context.supplemental_groups or None,
    }
    return {
        "runAsNonRoot": True,
        **{name: value for name, value in groups.items() if value is not None},
        # Without OnRootMismatch every start of a pod walks through its whole state.
        "fsGroupChangePolicy": context.fs_group_change_policy,
        "seccompProfile": {"type": "RuntimeDefault"}
        if profile is None
        else profile.model_dump(mode="json", exclude_none=True),
    }
