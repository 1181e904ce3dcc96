"""The application as its pods read it, and the digest of everything that a pod is made from."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

import orjson
from pydantic import BaseModel

from streams_operator.model import Defaults
from streams_runtime.api import StreamsApplication
from streams_runtime.api.spec.template_spec import TemplateSpec

_DIGITS = 10
_USER = Defaults("").run_as_user
# What pods do not read. A change of these replaces no pod, and a ConfigMap can't change, so they are not in it either.
_NOT_FOR_PODS: dict[str, Any] = {
    "replicas": True,
    "autoscaling": True,
    "suspend": True,
    "paused": True,
    "restart_nonce": True,
    "restart_on_change": True,
    "topology_change": True,
    "progress_deadline": True,
    "rollback": True,
    "node_loss": True,
    "disruption_budget": True,
    "network_policy": True,
    "internal_topics": {"init", "deletion_policy"},
    "state": {"storage"},
}


def document(application: StreamsApplication, namespace: str) -> bytes:
    """The application as JSON, byte for byte the same for the same meaning; what is as by default is left out."""
    spec = application.spec.model_dump(mode="json", by_alias=True, exclude=_NOT_FOR_PODS, exclude_defaults=True)
    # Sections of which nothing is left say nothing.
    content: dict[str, Any] = {name: value for name, value in spec.items() if value not in ({}, None)}
    return orjson.dumps(
        {
            "apiVersion": application.api_version,
            "kind": application.kind,
            "metadata": {"name": application.name, "namespace": namespace},
            "spec": content,
        },
        option=orjson.OPT_SORT_KEYS,
    )


def as_deployed(deployed: StreamsApplication, asked: StreamsApplication) -> StreamsApplication:
    """`deployed` with what pods do not read as `asked` has it: its document is the one that was deployed."""
    spec = _with(deployed.spec, asked.spec, _NOT_FOR_PODS)
    return deployed.model_copy(update={"metadata": asked.metadata, "spec": spec})


def digest(application: StreamsApplication, namespace: str, defaults: Defaults) -> str:
    """Ten hexadecimal digits; another digest means that pods have to be replaced."""
    return digest_with(document(application, namespace), application, defaults)


def digest_with(text: bytes, application: StreamsApplication, defaults: Defaults) -> str:
    """The same; `text` is the application's document, which takes most of the time to make."""
    made_from = {
        "document": text.decode(),
        "image": image(application, defaults),
        "imagePullPolicy": defaults.image_pull_policy,
        "storage": application.spec.state.storage is not None,
        "grace": defaults.grace_seconds,
        **_of_the_chart(application.spec.template, defaults),
    }
    return hashlib.sha256(orjson.dumps(made_from, option=orjson.OPT_SORT_KEYS)).hexdigest()[:_DIGITS]


def _of_the_chart(template: TemplateSpec, defaults: Defaults) -> dict[str, Any]:
    """What the chart sets where the template does not; what is as by default is left out here too."""
    found: dict[str, Any] = {}
    if template.resources is None and defaults.resources is not None:
        found["resources"] = defaults.resources.model_dump(mode="json")
    if template.security_context is None and defaults.run_as_user != _USER:
        found["runAsUser"] = defaults.run_as_user
    return found


def _with(into: BaseModel, of: BaseModel, fields: Mapping[str, Any]) -> BaseModel:
    """`into` with `fields` as `of` has them; True: the whole field, otherwise these fields of it."""
    taken = {}
    for name, inner in fields.items():
        value = getattr(of, name)
        taken[name] = value if inner is True else _with(getattr(into, name), value, dict.fromkeys(inner, True))
    return into.model_copy(update=taken)


def image(application: StreamsApplication, defaults: Defaults) -> str:
    """The image of the application's pods."""
    return application.spec.image if application.spec.image is not None else defaults.image


def grace_seconds(application: StreamsApplication, defaults: Defaults) -> int:
    """The seconds that a pod of the application has to close."""
    given = application.spec.template.termination_grace_period_seconds
    return defaults.grace_seconds if given is None else given
