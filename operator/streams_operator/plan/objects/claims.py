"""The volume claims that keep pods' state."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from kubernetes.utils.quantity import parse_quantity

from streams_operator import names
from streams_operator.model import Json
from streams_operator.plan.objects.identity import Identity
from streams_runtime.api.spec.pod_spec import StorageSpec


def claim(identity: Identity, ordinal: int, storage: StorageSpec, existing: Json | None) -> dict[str, Any]:
    """The claim of one ordinal. One that exists keeps its class and never shrinks: neither can change."""
    spec: dict[str, Any] = {
        "accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": _larger(storage.size, existing)}},
    }
    storage_class = storage.storage_class_name if existing is None else _spec(existing).get("storageClassName")
    if storage_class is not None:
        spec["storageClassName"] = storage_class
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        # Not controlled: a foreground deletion of the resource does not take the volume from a pod that still closes.
        "metadata": identity.metadata(names.claim(identity.name, ordinal), controlled=False),
        "spec": spec,
    }


def mismatch(storage: StorageSpec, existing: Json) -> str | None:
    """What an existing claim is unlike the application's storage in, for ever; None: it fits, or can grow to."""
    name, spec = existing["metadata"]["name"], _spec(existing)
    found = spec.get("storageClassName")
    if storage.storage_class_name is not None and found != storage.storage_class_name:
        return f"{name} has the class {found}, not {storage.storage_class_name}"
    size = _size(existing)
    if size is not None and _amount(size) > _amount(storage.size):
        return f"{name} has {size}, not {storage.size}"
    return None


def _larger(wanted: str, existing: Json | None) -> str:
    size = _size(existing or {})
    return size if size is not None and _amount(size) >= _amount(wanted) else wanted


def _amount(quantity: str) -> Decimal:
    return Decimal(parse_quantity(quantity))  # type: ignore[no-untyped-call]


def _size(claim: Json) -> str | None:
    requests = (_spec(claim).get("resources") or {}).get("requests") or {}
    return str(requests["storage"]) if "storage" in requests else None


def _spec(claim: Json) -> Json:
    found: Json = claim.get("spec") or {}
    return found
