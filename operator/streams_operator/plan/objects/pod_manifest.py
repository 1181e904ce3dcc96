"""One pod: a streams client that nobody but the operator starts again."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import orjson

from streams_operator import names
from streams_operator.model import Defaults
from streams_operator.plan.objects.document import grace_seconds, image
from streams_operator.plan.objects.identity import Identity
from streams_operator.plan.objects.pod_security_context import pod_security
from streams_operator.plan.objects.volumes import mounts, volumes
from streams_runtime.api import StreamsApplication
from streams_runtime.api.spec.template_spec import TemplateSpec

RESERVED = ("POD_NAME", "POD_NAMESPACE", "POD_UID", "STREAMSAPP_SERVICE", "STREAMSAPP_GRACE_SECONDS")
"""Environment variables that the operator sets; a template may not."""
_NONE: Mapping[str, str] = {}
_SPREAD = {"maxSkew": 1, "topologyKey": "kubernetes.io/hostname", "whenUnsatisfiable": "ScheduleAnyway"}
"""Pods of an application are on different nodes, as far as there are as many."""


def pod(
    identity: Identity,
    application: StreamsApplication,
    ordinal: int,
    digest: str,
    defaults: Defaults,
    shutdown_text: str | None = None,
    inputs: Mapping[str, str] = _NONE,
) -> dict[str, Any]:
    """The pod of one ordinal, as `digest` stands for it. `shutdown_text`: what it finds in its shutdown file, from
    the start; `inputs`: digests of what it is going to read, where spec.restartOnChange follows them.
    """
    name, template = names.pod(identity.name, ordinal), application.spec.template
    metadata = identity.metadata(name)
    metadata["labels"] = {**template.labels, **metadata["labels"], names.LABEL_ORDINAL: str(ordinal)}
    metadata["annotations"] = {
        **template.annotations,
        names.ANNOTATION_SPEC: digest,
        names.ANNOTATION_NONCE: str(application.spec.restart_nonce),
        names.ANNOTATION_IMAGE: image(application, defaults),
        **({names.ANNOTATION_INPUTS: orjson.dumps(inputs, option=orjson.OPT_SORT_KEYS).decode()} if inputs else {}),
        **({} if shutdown_text is None else {names.ANNOTATION_SHUTDOWN: shutdown_text}),
        **({names.ANNOTATION_PAUSED: names.PAUSED} if application.spec.paused else {}),
    }
    spec: dict[str, Any] = {
        "restartPolicy": "Never",
        "hostname": name,
        "subdomain": names.service(identity.name),
        "serviceAccountName": template.service_account_name or names.access(identity.name),
        "readinessGates": [{"conditionType": names.CONDITION_RUNNING}],
        "terminationGracePeriodSeconds": grace_seconds(application, defaults),
        "enableServiceLinks": False,
        "securityContext": pod_security(template.security_context, defaults),
        "containers": [_container(identity, application, defaults)],
        "volumes": volumes(identity, application, ordinal, digest),
    }
    if template.image_pull_secrets:
        spec["imagePullSecrets"] = [{"name": each.name} for each in template.image_pull_secrets]
    if template.priority_class_name is not None:
        spec["priorityClassName"] = template.priority_class_name
    if spread := _spread(identity, template):
        spec["topologySpreadConstraints"] = spread
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
        "command": ["python", "-m", "streams_runtime.cli.process.pod"],
        "env": [
            _from_field("POD_NAME", "metadata.name"),
            _from_field("POD_NAMESPACE", "metadata.namespace"),
            _from_field("POD_UID", "metadata.uid"),
            {"name": "STREAMSAPP_SERVICE", "value": names.service(identity.name)},
            {"name": "STREAMSAPP_GRACE_SECONDS", "value": str(grace_seconds(application, defaults))},
            *(_given(each.model_dump(mode="json")) for each in template.env),
        ],
        **_env_from(application),
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
        "volumeMounts": mounts(application),
    }
    resources = defaults.resources if template.resources is None else template.resources
    if resources is not None:
        amounts = resources.model_dump(mode="json")
        container["resources"] = {kind: amount for kind, amount in amounts.items() if amount}
    return container


def _env_from(application: StreamsApplication) -> dict[str, Any]:
    """The credentials of snapshots. What env names wins over them; executors' pods take env alone."""
    snapshots = application.spec.state.snapshots
    if snapshots is None or snapshots.secret_ref is None:
        return {}
    return {"envFrom": [{"secretRef": {"name": snapshots.secret_ref.name}}]}


def _spread(identity: Identity, template: TemplateSpec) -> list[dict[str, Any]]:
    own = {"labelSelector": {"matchLabels": identity.selector}}
    if template.topology_spread_constraints is None:
        return [_SPREAD | own]
    given = (each.model_dump(mode="json", exclude_none=True) for each in template.topology_spread_constraints)
    return [own | each for each in given]


def _from_field(name: str, path: str) -> dict[str, Any]:
    return {"name": name, "valueFrom": {"fieldRef": {"fieldPath": path}}}


def _get(path: str, tls: bool) -> dict[str, Any]:
    return {"path": path, "port": "queries", **({"scheme": "HTTPS"} if tls else {})}


def _given(fields: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value is not None}
