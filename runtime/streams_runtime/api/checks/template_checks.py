"""Checks of `spec.template`, as far as they need no operator."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain

from streams_runtime.api.checks.label_checks import (
    OUR_LABELS,
    is_key,
    key_mistakes,
    ours_mistakes,
    selector_mistakes,
)
from streams_runtime.api.checks.pod_security_checks import security_mistakes
from streams_runtime.api.checks.volume_checks import volume_mistakes
from streams_runtime.api.spec.template_spec import (
    EnvVarSpec,
    ImagePullSecret,
    TemplateSpec,
    TolerationSpec,
    TopologySpreadSpec,
)
from streams_runtime.errors import Mistake

_AT = "spec.template"


def template_mistakes(template: TemplateSpec) -> Iterator[Mistake]:
    """Everything about the pod template."""
    yield from chain(
        key_mistakes(f"{_AT}.labels", template.labels),
        ours_mistakes(f"{_AT}.labels", template.labels, OUR_LABELS),
        key_mistakes(f"{_AT}.annotations", template.annotations),
        ours_mistakes(f"{_AT}.annotations", template.annotations),
        _pull_secrets(template.image_pull_secrets),
        _env(template.env),
        volume_mistakes(template.volumes, template.volume_mounts),
        key_mistakes(f"{_AT}.nodeSelector", template.node_selector),
        _tolerations(template.tolerations),
        _spread(template.topology_spread_constraints or ()),
        () if template.security_context is None else security_mistakes(template.security_context),
    )


def _pull_secrets(secrets: Sequence[ImagePullSecret]) -> Iterator[Mistake]:
    seen: set[str] = set()
    for index, secret in enumerate(secrets):
        if secret.name in seen:
            found = f"the Secret {secret.name!r} is given twice"
            yield Mistake(f"{_AT}.imagePullSecrets[{index}].name", found, "keep one of the two")
        seen.add(secret.name)


def _env(env: Sequence[EnvVarSpec]) -> Iterator[Mistake]:
    seen: set[str] = set()
    for index, variable in enumerate(env):
        field = f"{_AT}.env[{index}]"
        if variable.value is not None and variable.value_from is not None:
            yield Mistake(field, "value beside valueFrom", "keep one of the two")
        if variable.name in seen:
            yield Mistake(f"{field}.name", f"the variable {variable.name!r} is given twice", "keep one of the two")
        seen.add(variable.name)


def _tolerations(tolerations: Sequence[TolerationSpec]) -> Iterator[Mistake]:
    for index, toleration in enumerate(tolerations):
        field = f"{_AT}.tolerations[{index}]"
        if toleration.operator == "Exists" and toleration.value is not None:
            yield Mistake(f"{field}.value", "a value beside operator Exists", "leave the value out")
        if toleration.operator == "Equal" and toleration.key is None:
            yield Mistake(f"{field}.key", "is missing", "name the taint, or use operator Exists")


def _spread(constraints: Sequence[TopologySpreadSpec]) -> Iterator[Mistake]:
    seen: set[tuple[str, str]] = set()
    for index, each in enumerate(constraints):
        field = f"{_AT}.topologySpreadConstraints[{index}]"
        if not is_key(each.topology_key):
            found = f"found {each.topology_key!r}, which is no label of a node"
            yield Mistake(f"{field}.topologyKey", found, "write it like kubernetes.io/hostname")
        if each.min_domains is not None and each.when_unsatisfiable != "DoNotSchedule":
            found = "is given beside ScheduleAnyway, with which it means nothing"
            yield Mistake(f"{field}.minDomains", found, "leave it out, or use DoNotSchedule")
        if (each.topology_key, each.when_unsatisfiable) in seen:
            found = f"{each.topology_key!r} with {each.when_unsatisfiable} is given twice"
            yield Mistake(f"{field}.topologyKey", found, "keep one of the two")
        seen.add((each.topology_key, each.when_unsatisfiable))
        if each.label_selector is not None:
            yield from selector_mistakes(f"{field}.labelSelector", each.label_selector)
