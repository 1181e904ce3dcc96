"""Whose an object is: name, labels, owner."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from streams_operator.model import Json
from streams_operator.names import LABEL_APPLICATION, LABEL_MANAGED_BY, MANAGED_BY
from streams_runtime.api import GROUP, KIND, VERSION


@dataclass(frozen=True, slots=True)
class Identity:
    """The resource that objects are made for."""

    name: str
    namespace: str
    uid: str

    @classmethod
    def of(cls, resource: Json) -> Identity:
        """The identity of a resource as the API server gives it."""
        metadata = resource["metadata"]
        return cls(str(metadata["name"]), str(metadata.get("namespace", "default")), str(metadata.get("uid", "")))

    @property
    def selector(self) -> dict[str, str]:
        """The label that finds all objects of the application."""
        return {LABEL_APPLICATION: self.name}

    def metadata(self, name: str, *, controlled: bool = True) -> dict[str, Any]:
        """Metadata of an object that goes with the resource.

        `controlled`: the resource is its controller; a foreground deletion then waits for it.
        """
        owner: dict[str, Any] = {"apiVersion": f"{GROUP}/{VERSION}", "kind": KIND, "name": self.name, "uid": self.uid}
        if controlled:
            owner |= {"controller": True, "blockOwnerDeletion": True}
        return {
            "name": name,
            "namespace": self.namespace,
            "labels": {
                **self.selector,
                LABEL_MANAGED_BY: MANAGED_BY,
                "app.kubernetes.io/name": self.name,
            },
            "ownerReferences": [owner],
        }
