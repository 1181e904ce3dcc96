"""The CustomResourceDefinition, generated from the models: `python -m streams_runtime.api.crd.definition`."""

from __future__ import annotations

import sys
from typing import Any

import yaml

from streams_runtime.api.crd.crd_rules import RESOURCE_RULES
from streams_runtime.api.crd.crd_schema import structural
from streams_runtime.api.crd.crd_status import status_schema
from streams_runtime.api.spec.resource import GROUP, KIND, VERSION, ApplicationSpec
from streams_runtime.api.status.resource_status import UNSEEN

PLURAL = "streamsapplications"
_HEADER = "# Generated from the models by `python -m streams_runtime.api.crd.definition`; change those instead.\n"
_COLUMNS = (
    ("State", "string", ".status.state", "The weakest of the instances' states."),
    ("Ready", "string", ".status.ready", "Instances that are RUNNING, of those wanted."),
    ("Tasks", "integer", ".status.tasks", "Tasks of the application."),
    ("Restoring", "integer", ".status.restoration.recordsLeft", "Records left to restore."),
    ("Lag", "integer", ".status.lag", "Records that are not processed yet."),
    ("Setup", "string", ".status.internalTopics.setup", "The internal topics."),
    ("Age", "date", ".metadata.creationTimestamp", "Time since the resource was created."),
)


def definition() -> dict[str, Any]:
    """The CustomResourceDefinition as `kubectl apply` takes it. Raises ValueError as `crd_schema.structural` does."""
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {
            "name": f"{PLURAL}.{GROUP}",
            # A chart's upgrade may put the definition in place, and its uninstall never takes it away.
            "annotations": {"helm.sh/resource-policy": "keep"},
        },
        "spec": {
            "group": GROUP,
            "scope": "Namespaced",
            "names": {
                "kind": KIND,
                "listKind": f"{KIND}List",
                "plural": PLURAL,
                "singular": KIND.lower(),
                "shortNames": ["streamsapp", "streamsapps"],
                "categories": ["all"],
            },
            "versions": [_version()],
        },
    }


def _version() -> dict[str, Any]:
    return {
        "name": VERSION,
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": _resource()},
        "subresources": {
            "status": {},
            "scale": {
                "specReplicasPath": ".spec.replicas",
                "statusReplicasPath": ".status.replicas",
                "labelSelectorPath": ".status.selector",
            },
        },
        "additionalPrinterColumns": [
            {"name": name, "type": kind, "jsonPath": path, "description": text} for name, kind, path, text in _COLUMNS
        ],
    }


def _resource() -> dict[str, Any]:
    return {
        "type": "object",
        "description": "A Kafka-Streams-style application: its topology, its Kafka cluster and its pods.",
        "required": ["spec"],
        "properties": {
            "apiVersion": {"type": "string"},
            "kind": {"type": "string"},
            "metadata": {"type": "object"},
            "spec": structural(ApplicationSpec),
            # A resource that the operator has not seen yet would otherwise pass for one that is done (kstatus).
            "status": status_schema() | {"default": {"observedGeneration": UNSEEN}},
        },
        "x-kubernetes-validations": [rule.schema() for rule in RESOURCE_RULES],
    }


class _Plain(yaml.SafeDumper):
    """Writes every value out where it stands; the same value twice is no reason for an alias."""

    def ignore_aliases(self, data: Any) -> bool:  # noqa: ARG002
        """Whether `data` is written out each time: always."""
        return True


def as_yaml() -> str:
    """The definition as the file in `crds/` has it."""
    return _HEADER + yaml.dump(definition(), Dumper=_Plain, sort_keys=False, allow_unicode=True, width=120)


if __name__ == "__main__":
    sys.stdout.write(as_yaml())
