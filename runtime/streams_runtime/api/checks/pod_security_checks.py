"""Checks of `spec.template.securityContext`."""

from __future__ import annotations

from collections.abc import Iterator

from streams_runtime.api.spec.pod_security_spec import SecurityContextSpec
from streams_runtime.errors import Mistake

_AT = "spec.template.securityContext"
_HIGHEST = 2**31 - 1


def security_mistakes(context: SecurityContextSpec) -> Iterator[Mistake]:
    """What the restricted Pod Security Standard does not allow, and what means nothing."""
    if not context.run_as_non_root:
        yield Mistake(f"{_AT}.runAsNonRoot", "found false, and pods never run as root", "leave it out")
    for index, group in enumerate(context.supplemental_groups):
        if not 0 <= group <= _HIGHEST:
            found = f"found {group}, which is no group"
            yield Mistake(f"{_AT}.supplementalGroups[{index}]", found, "give the number of a group, 0 or more")
    profile = context.seccomp_profile
    if profile is not None and (profile.type == "Localhost") != (profile.localhost_profile is not None):
        missing = profile.localhost_profile is None
        found = "is missing beside Localhost" if missing else "is given beside RuntimeDefault"
        remedy = "name the profile's file" if missing else "leave it out, or use Localhost"
        yield Mistake(f"{_AT}.seccompProfile.localhostProfile", found, remedy)
