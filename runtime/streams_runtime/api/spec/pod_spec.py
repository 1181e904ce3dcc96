"""The parts of the resource that say what pods keep and find: their stores, and the user's modules."""

from __future__ import annotations

from datetime import timedelta

from pydantic import Field

from streams_runtime.api.spec.snapshots_spec import SnapshotsSpec
from streams_runtime.api.spec.spec_model import Model
from streams_runtime.api.spec.spec_values import Duration, ObjectName, Property, Quantity, format_duration

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
        description="Absent: an emptyDir; stores are then restored, from Kafka or a snapshot, whenever a pod is"
        " replaced.",
    )
    snapshots: SnapshotsSpec | None = Field(
        default=None,
        description="Copies of the stores in a bucket. An instance without a store begins with the newest whole"
        " snapshot and reads the rest of the changelog; nothing depends on one. A change loses nothing. Absent: none.",
    )
    cleanup_delay: Duration = Field(
        default=_CLEANUP_DELAY,
        description="How long an instance keeps the stores of a task that went elsewhere; back in time, the task"
        " restores only what is missing.",
        json_schema_extra={"default": format_duration(_CLEANUP_DELAY)},
    )
    rocksdb: dict[str, Property] = Field(default_factory=dict, description="RocksDB options.")
