"""One pod: a streams client that nobody but the operator starts again."""

from __future__ import annotations

from functools import partial
from typing import Any

from streams_operator import names
from streams_operator.model import Defaults
from streams_operator.plan.objects.document import image
from streams_operator.plan.objects.identity import Identity
from streams_operator.plan.objects.query_secrets import query_secrets
from streams_runtime.api import StreamsApplication

_USER = 10001
RESERVED = ("POD_NAME", "POD_NAMESPACE", "POD_UID", "STREAMSAPP_SERVICE", "STREAMSAPP_GRACE_SECONDS")
"""Environment variables that the operator sets; a template may not."""
_TOLD = {
    "path": names.TOLD_FILE,
    "fieldRef": {"fieldPath": f"metadata.annotations['{names.ANNOTATION_SHUTDOWN}']"},
}


def pod(
    identity: Identity,
    application: StreamsApplication,
    ordinal: int,
    digest: str,
    defaults: Defaults,
    told: str | None = None,
) -> dict[str, Any]:
    """The pod of one ordinal, as `digest` stands for it. `told`: what it finds in its told file, from the start."""
    name, template = names.pod(identity.name, ordinal), application.spec.template
    metadata = identity.metadata(name)
    metadata["labels"][names.LABEL_ORDINAL] = str(ordinal)
    metadata["annotations"] = {
        **template.annotations,
        names.ANNOTATION_SPEC: digest,
        names.ANNOTATION_NONCE: str(application.spec.restart_nonce),
        **({} if told is None else {names.ANNOTATION_SHUTDOWN: told}),
    }
    spec: dict[str, Any] = {
        "restartPolicy": "Never",
        "hostname": name,
        "subdomain": names.service(identity.name),
        "serviceAccountName": template.service_account_name or names.access(identity.name),
        "readinessGates": [{"conditionType": names.CONDITION_RUNNING}],
        "terminationGracePeriodSeconds": defaults.grace_seconds,
        "enableServiceLinks": False,
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": _USER,
            "runAsGroup": _USER,
            "fsGroup": _USER,
            # Without it every start of a pod walks through its whole state.
            "fsGroupChangePolicy": "OnRootMismatch",
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "containers": [_container(identity, application, defaults)],
        "volumes": _volumes(identity, application, ordinal, digest),
    }
    if template.node_selector:
        spec["nodeSelector"] = dict(template.node_selector)
    if template.tolerations:
        spec["tolerations"] = [_given(each.model_dump(mode="json")) for each in template.tolerations]
    if template.affinity:
        spec["affinity"] = dict(template.affinity)
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def _container(identity: Identity, application: StreamsApplication, defaults: Defaults) -> dict[str, Any]:
    template = application.spec.template
    get = partial(_get, tls=application.spec.queries.tls is not None)
    container: dict[str, Any] = {
        "name": names.CONTAINER,
        "image": image(application, defaults),
        "imagePullPolicy": defaults.image_pull_policy,
        "command": ["python", "-m", "streams_runtime.cli.pod"],
        "env": [
            _from_field("POD_NAME", "metadata.name"),
            _from_field("POD_NAMESPACE", "metadata.namespace"),
            _from_field("POD_UID", "metadata.uid"),
            {"name": "STREAMSAPP_SERVICE", "value": names.service(identity.name)},
            {"name": "STREAMSAPP_GRACE_SECONDS", "value": str(defaults.grace_seconds)},
            *(_given(each.model_dump(mode="json")) for each in template.env),
        ],
        "ports": [{"name": "queries", "containerPort": names.QUERY_PORT, "protocol": "TCP"}],
        "startupProbe": {"httpGet": get("/healthz"), "periodSeconds": 2, "failureThreshold": 90},
        "livenessProbe": {
            "httpGet": get("/healthz"),
            "periodSeconds": 10,
            "timeoutSeconds": 5,
            "failureThreshold": 6,
        },
        "readinessProbe": {"httpGet": get("/readyz"), "periodSeconds": 2},
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"]},
            "readOnlyRootFilesystem": True,
        },
        "terminationMessagePath": "/dev/termination-log",
        "terminationMessagePolicy": "File",
        "volumeMounts": _mounts(application),
    }
    if template.resources is not None:
        resources = template.resources.model_dump(mode="json")
        container["resources"] = {kind: amounts for kind, amounts in resources.items() if amounts}
    return container


def _volumes(identity: Identity, application: StreamsApplication, ordinal: int, digest: str) -> list[dict[str, Any]]:
    volumes: list[dict[str, Any]] = [
        {"name": "application", "configMap": {"name": names.config(identity.name, digest)}},
        {"name": "told", "downwardAPI": {"items": [_TOLD]}},
    ]
    secret = application.spec.kafka.secret_ref
    if secret is not None:
        volumes.append({"name": "kafka", "secret": {"secretName": secret.name, "defaultMode": 0o440}})
    code = application.spec.code
    if code is not None:
        volumes.append({"name": "code", "configMap": {"name": code.config_map}})
    registry = application.spec.kafka.schema_registry
    if registry is not None and registry.secret_ref is not None:
        name = registry.secret_ref.name
        volumes.append({"name": "schema-registry", "secret": {"secretName": name, "defaultMode": 0o440}})
    for volume, _ in query_secrets(application.spec.queries):
        volumes.append(volume)
    if application.spec.state.storage is not None:
        volumes.append({"name": "state", "persistentVolumeClaim": {"claimName": names.claim(identity.name, ordinal)}})
    else:
        volumes.append({"name": "state", "emptyDir": {}})
    volumes.append({"name": "tmp", "emptyDir": {}})
    return volumes


def _mounts(application: StreamsApplication) -> list[dict[str, Any]]:
    mounts: list[dict[str, Any]] = [
        {"name": "application", "mountPath": names.CONFIG_MOUNT, "readOnly": True},
        {"name": "told", "mountPath": names.TOLD_MOUNT, "readOnly": True},
    ]
    if application.spec.kafka.secret_ref is not None:
        mounts.append({"name": "kafka", "mountPath": names.SECRET_MOUNT, "readOnly": True})
    if application.spec.code is not None:
        mounts.append({"name": "code", "mountPath": names.CODE_MOUNT, "readOnly": True})
    registry = application.spec.kafka.schema_registry
    if registry is not None and registry.secret_ref is not None:
        mounts.append({"name": "schema-registry", "mountPath": names.REGISTRY_MOUNT, "readOnly": True})
    mounts += [mount for _, mount in query_secrets(application.spec.queries)]
    return [*mounts, {"name": "state", "mountPath": names.STATE_MOUNT}, {"name": "tmp", "mountPath": "/tmp"}]


def _from_field(name: str, path: str) -> dict[str, Any]:
    return {"name": name, "valueFrom": {"fieldRef": {"fieldPath": path}}}


def _get(path: str, tls: bool) -> dict[str, Any]:
    return {"path": path, "port": "queries", **({"scheme": "HTTPS"} if tls else {})}


def _given(fields: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value is not None}
