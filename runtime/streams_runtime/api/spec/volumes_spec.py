"""The volumes of a pod template: of the kinds that the restricted Pod Security Standard allows."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from streams_runtime.api.spec.spec_model import Model
from streams_runtime.api.spec.spec_values import ObjectName, Quantity

_SOURCES = (
    *("config_map", "secret", "projected", "empty_dir", "persistent_volume_claim", "ephemeral", "csi"),
    "downward_api",
)


class KeyToPath(Model):
    """One key as a file."""

    key: str = Field(min_length=1, description="The key.")
    path: str = Field(min_length=1, description="The file, below the mount.")
    mode: int | None = Field(default=None, ge=0, le=0o777, description="Mode of this file.")


class ConfigMapVolume(Model):
    """The keys of a ConfigMap as files."""

    name: ObjectName = Field(description="Name of the ConfigMap.")
    items: list[KeyToPath] = Field(default_factory=list, description="Some of its keys. Absent: all.")
    default_mode: int | None = Field(default=None, ge=0, le=0o777, description="Mode of the files. Absent: 0644.")
    optional: bool | None = Field(default=None, description="true: it may be missing.")


class SecretVolume(Model):
    """The keys of a Secret as files."""

    secret_name: ObjectName = Field(description="Name of the Secret.")
    items: list[KeyToPath] = Field(default_factory=list, description="Some of its keys. Absent: all.")
    default_mode: int | None = Field(default=None, ge=0, le=0o777, description="Mode of the files. Absent: 0440.")
    optional: bool | None = Field(default=None, description="true: it may be missing.")


class EmptyDirVolume(Model):
    """An empty folder that goes with the pod."""

    medium: Literal["", "Memory"] = Field(default="", description="Memory: it counts as memory of the pod.")
    size_limit: Quantity | None = Field(default=None, description="How large it may become.")


class ClaimVolume(Model):
    """A volume that is there already, which all pods of the application mount."""

    claim_name: ObjectName = Field(description="Name of the claim. Several pods need one that several can mount.")
    read_only: bool = Field(default=False, description="true: nobody writes.")


class CsiVolume(Model):
    """A volume that a CSI driver makes for the pod and that goes with it."""

    driver: str = Field(min_length=1, description="Name of the driver.")
    fs_type: str | None = Field(default=None, description="File system. Absent: the driver's.")
    read_only: bool | None = Field(default=None, description="true: nobody writes.")
    volume_attributes: dict[str, str] = Field(default_factory=dict, description="What the driver is told.")
    node_publish_secret_ref: dict[str, str] | None = Field(default=None, description="Secret of the driver.")


class VolumeSpec(Model):
    """A volume, as in a pod: its name, and exactly one kind."""

    name: str = Field(description="What volumeMounts name it by.")
    config_map: ConfigMapVolume | None = Field(default=None, description="A ConfigMap.")
    secret: SecretVolume | None = Field(default=None, description="A Secret.")
    projected: dict[str, Any] | None = Field(default=None, description="Several sources in one, as in a pod.")
    empty_dir: EmptyDirVolume | None = Field(default=None, description="An empty folder.")
    persistent_volume_claim: ClaimVolume | None = Field(default=None, description="A claim.")
    ephemeral: dict[str, Any] | None = Field(default=None, description="A claim of the pod's own, as in a pod.")
    csi: CsiVolume | None = Field(default=None, description="A volume of a CSI driver.")
    downward_api: dict[str, Any] | None = Field(
        default=None, alias="downwardAPI", description="What is known of the pod, as in a pod."
    )

    @property
    def sources(self) -> list[str]:
        """The kinds that are given, as they stand in the file."""
        fields = type(self).model_fields
        return [fields[each].alias or each for each in _SOURCES if getattr(self, each) is not None]


class VolumeMountSpec(Model):
    """Where a volume is mounted in the runtime's container."""

    name: str = Field(description="Name of one of the volumes.")
    mount_path: str = Field(description="Absolute path of the folder or file.")
    sub_path: str | None = Field(default=None, min_length=1, description="A part of the volume instead of all of it.")
    read_only: bool = Field(default=False, description="true: nobody writes.")
