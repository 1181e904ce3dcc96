"""The volumes of a pod and where its container finds them: the operator's own, and the template's."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from streams_operator import names
from streams_operator.plan.objects.identity import Identity
from streams_operator.plan.objects.query_secrets import query_secrets
from streams_runtime.api import StreamsApplication
from streams_runtime.api.checks.volume_checks import mount_place
from streams_runtime.api.spec.volumes_spec import VolumeMountSpec, VolumeSpec

RESERVED_VOLUMES = (
    *("application", "told", "kafka", "code", "schema-registry"),
    *("query-access", "query-tls", "state", "tmp"),
)
"""Volumes that the operator makes; a template may not."""
ACCOUNT_VOLUME = "kube-api-access-"
"""What the name of the account's volume begins with, which the API server adds."""
RESERVED_FOLDERS = (
    *("/etc/streams", names.STATE_MOUNT, "/tmp", "/var/run/secrets/kubernetes.io", "/run/secrets/kubernetes.io"),
    # The runtime, Python, Java and what the kernel and the kubelet put into every container.
    *("/opt/streams", "/usr", "/bin", "/sbin", "/lib", "/lib64", "/dev", "/proc", "/sys"),
)
"""Folders in which, and over which, a template may mount nothing."""
_MODE = 0o440  # the pod's own group, and nobody else
_SHUTDOWN_ITEM = {
    "path": names.SHUTDOWN_FILE,
    "fieldRef": {"fieldPath": f"metadata.annotations['{names.ANNOTATION_SHUTDOWN}']"},
}

_PAUSE_ITEM = {
    "path": names.PAUSE_FILE,
    "fieldRef": {"fieldPath": f"metadata.annotations['{names.ANNOTATION_PAUSED}']"},
}


def folder_in_the_way(path: str) -> str | None:
    """The reserved folder that lies at, over or under a mount path; None: the path is free, or none at all."""
    place = mount_place(path)
    for folder in RESERVED_FOLDERS if place is not None else ():
        if place == "/" or f"{place}/".startswith(f"{folder}/") or f"{folder}/".startswith(f"{place}/"):
            return folder
    return None


def volumes(identity: Identity, application: StreamsApplication, ordinal: int, digest: str) -> list[dict[str, Any]]:
    """The pod's volumes."""
    return [*_own_volumes(identity, application, ordinal, digest), *_given_volumes(application)]


def mounts(application: StreamsApplication) -> list[dict[str, Any]]:
    """The mounts of the pod's container."""
    given = (_said(each) for each in application.spec.template.volume_mounts)
    return [*_own_mounts(application), *given]


def _own_volumes(
    identity: Identity, application: StreamsApplication, ordinal: int, digest: str
) -> Iterator[dict[str, Any]]:
    yield {"name": "application", "configMap": {"name": names.config(identity.name, digest)}}
    yield {"name": "told", "downwardAPI": {"items": [_SHUTDOWN_ITEM, _PAUSE_ITEM]}}
    secret = application.spec.kafka.secret_ref
    if secret is not None:
        yield {"name": "kafka", "secret": {"secretName": secret.name, "defaultMode": _MODE}}
    code = application.spec.code
    if code is not None:
        yield {"name": "code", "configMap": {"name": code.config_map}}
    registry = application.spec.kafka.schema_registry
    if registry is not None and registry.secret_ref is not None:
        yield {"name": "schema-registry", "secret": {"secretName": registry.secret_ref.name, "defaultMode": _MODE}}
    for volume, _ in query_secrets(application.spec.queries):
        yield volume
    if application.spec.state.storage is not None:
        yield {"name": "state", "persistentVolumeClaim": {"claimName": names.claim(identity.name, ordinal)}}
    else:
        yield {"name": "state", "emptyDir": {}}
    yield {"name": "tmp", "emptyDir": {}}


def _given_volumes(application: StreamsApplication) -> Iterator[dict[str, Any]]:
    for each in application.spec.template.volumes:
        volume = _said(each)
        if each.secret is not None:
            volume["secret"] = {"defaultMode": _MODE, **volume["secret"]}
        yield volume


def _own_mounts(application: StreamsApplication) -> Iterator[dict[str, Any]]:
    yield {"name": "application", "mountPath": names.CONFIG_MOUNT, "readOnly": True}
    yield {"name": "told", "mountPath": names.SHUTDOWN_MOUNT, "readOnly": True}
    if application.spec.kafka.secret_ref is not None:
        yield {"name": "kafka", "mountPath": names.SECRET_MOUNT, "readOnly": True}
    if application.spec.code is not None:
        yield {"name": "code", "mountPath": names.CODE_MOUNT, "readOnly": True}
    registry = application.spec.kafka.schema_registry
    if registry is not None and registry.secret_ref is not None:
        yield {"name": "schema-registry", "mountPath": names.REGISTRY_MOUNT, "readOnly": True}
    for _, mount in query_secrets(application.spec.queries):
        yield mount
    yield {"name": "state", "mountPath": names.STATE_MOUNT}
    yield {"name": "tmp", "mountPath": "/tmp"}


def _said(given: VolumeSpec | VolumeMountSpec) -> dict[str, Any]:
    """A part of the template without what is as by default, which it is in Kubernetes too."""
    found: dict[str, Any] = given.model_dump(mode="json", exclude_defaults=True)
    return found
