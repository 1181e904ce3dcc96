"""The parts of the resource that say what pods keep and find: their stores, and the user's modules."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from streams_runtime.api.spec.snapshots_spec import SnapshotsSpec
from streams_runtime.api.spec.spec_model import Model
from streams_runtime.api.spec.spec_values import Duration, ObjectName, Quantity, between_sizes, format_duration

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


BudgetSize = Annotated[Quantity, AfterValidator(between_sizes("16Mi", "1Ti"))]
"""Memory of all stores of an instance: below, memtables are written to files of a few records."""
WriteBufferSize = Annotated[Quantity, AfterValidator(between_sizes("64Ki", "1Gi"))]
"""A memtable of a store's partition."""
BlockSize = Annotated[Quantity, AfterValidator(between_sizes("1Ki", "1Mi"))]
"""What one read from a store's file takes."""


class RocksDBSpec(Model):
    """RocksDB's options for all stores; each absent one is what the runtime has found best for most applications."""

    memory: BudgetSize | None = Field(
        default=None,
        description="Memory that all stores of an instance share, 16Mi to 1Ti: blocks that were read, indexes and"
        " filters of files, and memtables, which take at most half of it. Absent: a block cache of 50Mi, and beside it"
        " memtables of up to twice writeBufferSize for each store's partition (for a windowed store: for each segment)"
        " and the indexes and filters of open files.",
    )
    write_buffer_size: WriteBufferSize | None = Field(
        default=None,
        description="RocksDB's write_buffer_size, 64Ki to 1Gi: how large a memtable of a store's partition grows before"
        " it is written to a file. Absent: 16Mi.",
    )
    block_size: BlockSize = Field(
        default="4Ki",
        description="RocksDB's block_size, 1Ki to 1Mi: what is read, compressed and cached at once. Files that lie"
        " there keep theirs until they are compacted.",
    )
    bloom_filter_bits: int = Field(
        default=10,
        ge=0,
        le=64,
        description="Bits of the Bloom filter for each key of a file, which spares reads of keys that are not there."
        " 0: no filter.",
    )
    compression: Literal["none", "snappy", "lz4", "zstd"] = Field(
        default="snappy",
        description="How blocks of files are compressed. Files that lie there keep theirs until they are compacted.",
    )
    compaction: Literal["level", "universal"] = Field(
        default="level",
        description="RocksDB's compaction style. universal writes less often, and takes up to twice the disk space.",
    )
    max_background_jobs: int = Field(
        default=2,
        ge=1,
        le=64,
        description="RocksDB's max_background_jobs: threads of an instance that flush and compact, of all stores"
        " together.",
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
    rocksdb: RocksDBSpec = Field(
        default_factory=RocksDBSpec,
        description="RocksDB's options for all stores (rocksdb.config.setter). A change replaces the pods one by one"
        " and keeps the stores.",
    )
