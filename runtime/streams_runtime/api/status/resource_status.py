"""The status of the resource: what the operator sees of an application, and its only memory."""

from __future__ import annotations

from pydantic import Field

from streams_runtime.api.status.condition_status import ConditionStatus
from streams_runtime.api.status.instance_status import InstanceStatus
from streams_runtime.api.status.status_model import StatusModel


class InitStatus(StatusModel):
    """The last explicit init() that was carried out."""

    nonce: int | None = Field(default=None, description="Its nonce.")
    result: str = Field(default="", description="Created, AlreadySetUp, or why nothing was done.")
    message: str = Field(default="", description="What it came to.")


class InternalTopicsStatus(StatusModel):
    """The internal topics."""

    setup: str | None = Field(default=None, description="Ready, or why they are not.")
    existing: list[str] = Field(default=[], description="Those that exist.")
    missing: list[str] = Field(default=[], description="Those that do not.")
    init: InitStatus | None = Field(default=None, description="The last explicit init().")


class RestorationStatus(StatusModel):
    """Stores that are being restored, of all instances."""

    records_left: int = Field(default=0, description="Records left.")
    eta_seconds: int | None = Field(default=None, description="Seconds left at the present rate.")


class RolledBackStatus(StatusModel):
    """A version that was given up."""

    version: str = Field(
        default="", description="Its digest. As long as the spec makes this version, the other one is in force."
    )
    to: str = Field(default="", description="Digest of the version that pods went back to.")
    generation: int = Field(default=0, description="metadata.generation at that time.")
    restart_nonce: int = Field(
        default=0, description="spec.restartNonce at that time; a greater one tries the version again."
    )
    at: str = Field(default="", description="When.")
    message: str = Field(default="", description="What held it up.")


class AutoscalingStatus(StatusModel):
    """What spec.autoscaling has come to."""

    replicas: int = Field(default=0, description="Instances that are wanted.")
    reason: str = Field(default="", description="One word for why as many.")
    message: str = Field(default="", description="The same for people, with figures of the time in `since`.")
    since: str = Field(default="", description="When the reason, or the number, last changed.")
    last_scale_time: str | None = Field(default=None, description="When the number last changed.")
    last_scale_message: str | None = Field(default=None, description="Why it changed.")
    instance_rate: int | None = Field(
        default=None,
        description="Records a second of an instance that had enough to do, when that was last written down.",
    )


class ApplicationStatus(StatusModel):
    """What the operator sees. Written by the operator only."""

    observed_generation: int = Field(default=0, description="The metadata.generation that the rest was found for.")
    state: str = Field(
        default="",
        description="The weakest of the instances' states (CREATED, REBALANCING, RUNNING, PENDING_SHUTDOWN,"
        " PENDING_ERROR, ERROR), or WAITING (no pods yet), SUSPENDED, INVALID, DELETING.",
    )
    replicas: int = Field(default=0, description="Pods that are there.")
    ready_replicas: int = Field(default=0, description="Pods that are ready: RUNNING, and answering.")
    ready: str = Field(default="", description="readyReplicas of those wanted.")
    selector: str = Field(default="", description="Label selector of the pods, for the scale subresource.")
    internal_topics: InternalTopicsStatus = Field(
        default=InternalTopicsStatus(), description="The internal topics, against what the application needs."
    )
    instances: list[InstanceStatus] = Field(
        default=[], description="The instances, one a pod.", json_schema_extra={"x-kubernetes-list-map-keys": ["name"]}
    )
    restoration: RestorationStatus = Field(default=RestorationStatus(), description="Stores being restored.")
    conditions: list[ConditionStatus] = Field(
        default=[], description="Standard conditions.", json_schema_extra={"x-kubernetes-list-map-keys": ["type"]}
    )
    deployed: str | None = Field(
        default=None,
        description="Digest of the version that pods are made from. The ConfigMap NAME-DIGEST holds it; a change of"
        " topology is compared with it.",
    )
    stable: str | None = Field(
        default=None,
        description="Digest of the last version of which every instance was RUNNING, restored and ready.",
    )
    joined: str | None = Field(
        default=None,
        description="Digest of the last version of which a pod has joined the group: it may have written.",
    )
    rolled_back: RolledBackStatus | None = Field(
        default=None, description="The version that spec.rollback has given up."
    )
    autoscaling: AutoscalingStatus | None = Field(
        default=None, description="How many instances spec.autoscaling has chosen, and why."
    )
    tasks: int | None = Field(default=None, description="Tasks of the application.")
    lag: int | None = Field(default=None, description="Records that are not processed yet.")
