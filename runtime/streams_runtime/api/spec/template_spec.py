"""The pod template: what a user says of the pods that the operator makes."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from streams_runtime.api.spec.pod_security_spec import SecurityContextSpec
from streams_runtime.api.spec.selectors_spec import LabelSelectorSpec
from streams_runtime.api.spec.spec_model import Model
from streams_runtime.api.spec.spec_values import LabelValue, ObjectName, Quantity
from streams_runtime.api.spec.volumes_spec import VolumeMountSpec, VolumeSpec


class ResourcesSpec(Model):
    """CPU and memory, as in a container."""

    requests: dict[str, Quantity] = Field(default_factory=dict, description="What the pod is scheduled by.")
    limits: dict[str, Quantity] = Field(default_factory=dict, description="What the pod may not exceed.")


class EnvVarSpec(Model):
    """An environment variable, as in a container."""

    name: str = Field(min_length=1, description="Name of the variable.")
    value: str | None = Field(default=None, description="Its value.")
    value_from: dict[str, Any] | None = Field(default=None, description="Where its value is taken from instead.")


class TolerationSpec(Model):
    """A toleration, as in a pod."""

    key: str | None = Field(default=None, description="Key of the taint; absent with Exists: every taint.")
    operator: Literal["Equal", "Exists"] = Field(default="Equal", description="How key and value are compared.")
    value: str | None = Field(default=None, description="Value of the taint, with Equal.")
    effect: Literal["NoSchedule", "PreferNoSchedule", "NoExecute"] | None = Field(
        default=None, description="Effect of the taint; absent: every effect."
    )
    toleration_seconds: int | None = Field(
        default=None, description="Seconds that NoExecute is tolerated; absent: for ever."
    )


class ImagePullSecret(Model):
    """A Secret with the credentials of a registry, in the application's namespace."""

    name: ObjectName = Field(description="Name of the Secret.")


class TopologySpreadSpec(Model):
    """How pods are spread over nodes or zones, as in a pod."""

    max_skew: int = Field(default=1, ge=1, description="By how many pods one place may have more than another.")
    topology_key: str = Field(description="Label of nodes that says where they are.")
    when_unsatisfiable: Literal["DoNotSchedule", "ScheduleAnyway"] = Field(
        description="What becomes of a pod that fits nowhere."
    )
    label_selector: LabelSelectorSpec | None = Field(
        default=None, description="Which pods count. Absent: those of the application."
    )
    min_domains: int | None = Field(default=None, ge=1, description="How many places there are at least.")
    node_affinity_policy: Literal["Honor", "Ignore"] | None = Field(
        default=None, description="Honor: nodes that nodeSelector and affinity exclude do not count. Absent: Honor."
    )
    node_taints_policy: Literal["Honor", "Ignore"] | None = Field(
        default=None, description="Honor: nodes whose taints are not tolerated do not count. Absent: Ignore."
    )


class TemplateSpec(Model):
    """What is laid over the pods that the operator makes."""

    labels: dict[str, LabelValue] = Field(default_factory=dict, description="More labels of the pods.")
    annotations: dict[str, str] = Field(default_factory=dict, description="More annotations of the pods.")
    image_pull_secrets: list[ImagePullSecret] = Field(
        default_factory=list, description="Credentials of the registry that the image is pulled from."
    )
    service_account_name: str | None = Field(default=None, description="Absent: the account the operator makes.")
    resources: ResourcesSpec | None = Field(
        default=None, description="CPU and memory of the runtime's container. Absent: the chart's."
    )
    env: list[EnvVarSpec] = Field(default_factory=list, description="More environment variables.")
    volumes: list[VolumeSpec] = Field(
        default_factory=list,
        description="More volumes, of the kinds that the restricted Pod Security Standard allows.",
    )
    volume_mounts: list[VolumeMountSpec] = Field(
        default_factory=list, description="Where those volumes are mounted in the runtime's container."
    )
    priority_class_name: ObjectName | None = Field(default=None, description="How important the pods are.")
    node_selector: dict[str, LabelValue] = Field(default_factory=dict, description="Labels that a node must have.")
    tolerations: list[TolerationSpec] = Field(default_factory=list, description="Taints that are tolerated.")
    affinity: dict[str, Any] | None = Field(default=None, description="Affinity, as in a pod.")
    topology_spread_constraints: list[TopologySpreadSpec] | None = Field(
        default=None,
        description="How the pods are spread. Absent: over nodes (kubernetes.io/hostname), as far as that is possible;"
        " an empty list: not at all.",
    )
    security_context: SecurityContextSpec | None = Field(
        default=None,
        description="User and groups of the pods. Absent: the chart's; without a user in it, as in {}, the cluster"
        " chooses one, as OpenShift does.",
    )
    termination_grace_period_seconds: int | None = Field(
        default=None,
        ge=1,
        le=2**31 - 1,
        description="Seconds that a pod has to close, of which ten are for its end. Absent: 75.",
    )
