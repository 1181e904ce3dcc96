"""The parts of the resource that only matter to pods: storage and the pod template."""

from __future__ import annotations

from datetime import timedelta
from typing import Any, Literal

from pydantic import Field

from streams_runtime.api.base import Model
from streams_runtime.api.values import Duration, ObjectName, Property, Quantity, format_duration

_CLEANUP_DELAY = timedelta(minutes=10)  # state.cleanup.delay.ms of Kafka Streams


class StorageSpec(Model):
    """A volume for each instance."""

    size: Quantity = Field(description="Size of the volume.")
    storage_class_name: str | None = Field(default=None, description="Absent: the cluster's default class.")


class CodeSpec(Model):
    """Where pods find the user's modules, beside what their image has."""

    config_map: ObjectName = Field(
        description="Name of a ConfigMap in the application's namespace, each key of which is a module's file, such as"
        " rules.py. Pods take it in when they start: give changed code another name, and pods are replaced.",
    )


class StateSpec(Model):
    """Where stores are kept and how."""

    storage: StorageSpec | None = Field(
        default=None,
        description="Absent: an emptyDir; stores are then restored from Kafka whenever a pod is replaced.",
    )
    cleanup_delay: Duration = Field(
        default=_CLEANUP_DELAY,
        description="How long an instance keeps the stores of a task that went elsewhere; back in time, the task"
        " restores only what is missing.",
        json_schema_extra={"default": format_duration(_CLEANUP_DELAY)},
    )
    rocksdb: dict[str, Property] = Field(default_factory=dict, description="RocksDB options.")


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


class TemplateSpec(Model):
    """What is laid over the pods that the operator makes."""

    resources: ResourcesSpec | None = Field(default=None, description="CPU and memory of the runtime's container.")
    env: list[EnvVarSpec] = Field(default_factory=list, description="More environment variables.")
    node_selector: dict[str, str] = Field(default_factory=dict, description="Labels that a node must have.")
    tolerations: list[TolerationSpec] = Field(default_factory=list, description="Taints that are tolerated.")
    affinity: dict[str, Any] | None = Field(default=None, description="Affinity, as in a pod.")
    service_account_name: str | None = Field(default=None, description="Absent: the account the operator makes.")
    annotations: dict[str, str] = Field(default_factory=dict, description="More annotations of the pods.")
