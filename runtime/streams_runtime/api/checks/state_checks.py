"""Checks of `spec.state`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from streams_runtime.api.spec.pod_spec import RocksDBSpec, StateSpec
from streams_runtime.api.spec.spec_values import quantity_value
from streams_runtime.api.spec.template_spec import TemplateSpec
from streams_runtime.errors import Mistake

_ROCKSDB = "spec.state.rocksdb"


def state_mistakes(state: StateSpec, template: TemplateSpec | None) -> Iterator[Mistake]:
    """What is said of the stores that nobody could do; `template`: what the pods are given."""
    snapshots = state.snapshots
    if snapshots is not None and snapshots.secret_ref is not None and snapshots.url.startswith("file:"):
        found = "is given for a folder, which needs no credentials"
        yield Mistake("spec.state.snapshots.secretRef", found, "leave it out, or give the url of a bucket")
    rocksdb = state.rocksdb
    if rocksdb.memory is not None and rocksdb.write_buffer_size is not None:
        most = quantity_value(rocksdb.memory) / 2
        if quantity_value(rocksdb.write_buffer_size) > most:
            found = f"found {rocksdb.write_buffer_size}, more than the half of memory ({rocksdb.memory}) for memtables"
            yield Mistake(f"{_ROCKSDB}.writeBufferSize", found, "give at most that half, or more memory")
    if template is not None and template.resources is not None:
        yield from memory_mistakes(rocksdb, template.resources.limits, "spec.template.resources.limits.memory")


def memory_mistakes(rocksdb: RocksDBSpec, limits: Mapping[str, str], where: str) -> Iterator[Mistake]:
    """Stores that have all the memory that a pod may take, by the limit that `where` names, and leave it none."""
    limit = limits.get("memory")
    if rocksdb.memory is None or limit is None or quantity_value(rocksdb.memory) < quantity_value(limit):
        return
    found = f"found {rocksdb.memory}, and a pod is ended that takes more than {limit} ({where})"
    yield Mistake(
        f"{_ROCKSDB}.memory", found, "leave room for Spark and Python, 1Gi or more: give less, or raise the limit"
    )
