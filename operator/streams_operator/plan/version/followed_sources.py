"""The Secrets and ConfigMaps that pods read once, at their start, and whose change `spec.restartOnChange` follows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from streams_operator.model import Ref
from streams_runtime.api import StreamsApplication

_FOLLOWED = {"Secret": "secrets", "ConfigMap": "code"}
"""What a kind is called in spec.restartOnChange."""
_BY_FIELD = {"secretKeyRef": "Secret", "configMapKeyRef": "ConfigMap", "secret": "Secret", "configMap": "ConfigMap"}
"""In an environment variable's valueFrom, and in a source of a projected volume."""


def followed(application: StreamsApplication) -> tuple[Ref, ...]:
    """Those that are to be followed, each once; none unless spec.restartOnChange asks for it.

    Tokens and certificates of queries are not among them: pods take these up while they run.
    """
    asked = application.spec.restart_on_change
    return tuple(sorted({ref for ref in _mounted(application) if _FOLLOWED[ref[0]] in asked})) if asked else ()


def _mounted(application: StreamsApplication) -> Iterator[Ref]:
    kafka, template = application.spec.kafka, application.spec.template
    if kafka.secret_ref is not None:
        yield "Secret", kafka.secret_ref.name
    if kafka.schema_registry is not None and kafka.schema_registry.secret_ref is not None:
        yield "Secret", kafka.schema_registry.secret_ref.name
    snapshots = application.spec.state.snapshots
    if snapshots is not None and snapshots.secret_ref is not None:
        yield "Secret", snapshots.secret_ref.name
    if application.spec.code is not None:
        yield "ConfigMap", application.spec.code.config_map
    for volume in template.volumes:
        if volume.secret is not None:
            yield "Secret", volume.secret.secret_name
        if volume.config_map is not None:
            yield "ConfigMap", volume.config_map.name
        for source in _list((volume.projected or {}).get("sources")):
            yield from _named(source)
    for variable in template.env:
        yield from _named(variable.value_from)


def _named(given: Any) -> Iterator[Ref]:
    """What a part of the template names that is as in a pod: only the API server knows whether it is well formed."""
    if not isinstance(given, Mapping):
        return
    for field, kind in _BY_FIELD.items():
        source = given.get(field)
        name = source.get("name") if isinstance(source, Mapping) else None
        if isinstance(name, str) and name:
            yield kind, name


def _list(given: Any) -> list[Any]:
    return given if isinstance(given, list) else []
