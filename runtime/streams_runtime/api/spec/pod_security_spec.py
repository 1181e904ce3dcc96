"""Whose process a pod is, within the restricted Pod Security Standard."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from streams_runtime.api.spec.spec_model import Model

_HIGHEST = 2**31 - 1


class SeccompProfileSpec(Model):
    """Which system calls the pod may make."""

    type: Literal["RuntimeDefault", "Localhost"] = Field(description="Localhost: a profile that lies on the node.")
    localhost_profile: str | None = Field(default=None, min_length=1, description="Of Localhost: the profile's file.")


class SecurityContextSpec(Model):
    """User and groups of the pod. It replaces the chart's whole: without a user here the cluster chooses one."""

    run_as_user: int | None = Field(
        default=None,
        ge=1,
        le=_HIGHEST,
        description="User of the process. Absent: the cluster chooses.",
    )
    run_as_group: int | None = Field(
        default=None, ge=0, le=_HIGHEST, description="Group of the process. Absent: the number of runAsUser."
    )
    fs_group: int | None = Field(
        default=None, ge=0, le=_HIGHEST, description="Group of the volumes. Absent: the number of runAsUser."
    )
    supplemental_groups: list[int] = Field(default_factory=list, description="More groups of the process.")
    fs_group_change_policy: Literal["OnRootMismatch", "Always"] = Field(
        default="OnRootMismatch",
        description="When the volumes' files are given to fsGroup. Always: at every start, file by file.",
    )
    run_as_non_root: bool = Field(default=True, description="Pods never run as root.")
    seccomp_profile: SeccompProfileSpec | None = Field(default=None, description="Absent: RuntimeDefault.")
