"""The objects around the pods: which have to be applied, and which have had their time."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

from streams_operator import names
from streams_operator.model import Json, Removal
from streams_operator.plan.case import Case
from streams_operator.plan.instances import Instance
from streams_operator.plan.objects.access import role, role_binding, service_account
from streams_operator.plan.objects.claims import claim
from streams_operator.plan.objects.config_map import config_map
from streams_operator.plan.objects.document import document
from streams_operator.plan.objects.network import disruption_budget, network_policy, service
from streams_operator.plan.objects.pod import pod
from streams_runtime.api import StreamsApplication
from streams_runtime.api.spark_checks import is_kubernetes


def desired_parts(
    case: Case, application: StreamsApplication, digest: str, instances: Sequence[Instance], claims: bool
) -> Iterator[dict[str, Any]]:
    """Everything but the pods, in the order in which one needs the other. `claims`: also the volumes."""
    identity, objects = case.identity, case.observed.objects
    text = document(application, identity.namespace)
    yield config_map(identity, digest, text, objects.get(("ConfigMap", names.config(identity.name, digest))))
    yield service_account(identity)
    highest = case.own[-1].ordinal if case.own else None
    executors = is_kubernetes(application.spec.spark.master)
    yield role(identity, max(case.replicas, 0 if highest is None else highest + 1), executors)
    yield role_binding(identity, application.spec.template.service_account_name)
    yield service(identity)
    if application.spec.disruption_budget.enabled:
        yield disruption_budget(identity, application.spec.disruption_budget)
    if application.spec.network_policy.enabled:
        yield network_policy(identity, application.spec.network_policy, case.observed.defaults.namespace, executors)
    storage = application.spec.state.storage
    if storage is not None:
        for each in instances:
            existing = objects.get(("PersistentVolumeClaim", names.claim(identity.name, each.ordinal)))
            if existing is not None or (claims and each.ordinal < case.replicas):
                yield claim(identity, each.ordinal, storage, existing)


def desired_pods(
    case: Case, application: StreamsApplication, digest: str, create: Sequence[Instance], told: str | None
) -> Iterator[dict[str, Any]]:
    """The pods to be made; `told`: what they find in their told files."""
    for each in create:
        yield pod(case.identity, application, each.ordinal, digest, case.observed.defaults, told, case.observed.inputs)


def unwanted(case: Case, application: StreamsApplication) -> Iterator[Removal]:
    """What the application was given and no longer asks for."""
    asked = {
        "PodDisruptionBudget": application.spec.disruption_budget.enabled,
        "NetworkPolicy": application.spec.network_policy.enabled,
    }
    for kind, wanted in asked.items():
        found = case.observed.objects.get((kind, case.identity.name))
        if not wanted and found is not None and _is_ours(case, found):
            yield Removal(kind, case.identity.name, found["metadata"]["uid"])


def outlived(case: Case) -> Iterator[Removal]:
    """ConfigMaps of versions that no pod is of, that none will be made of, and that nothing is compared with."""
    ours = re.compile(rf"{re.escape(case.identity.name)}-[0-9a-f]{{10}}")
    used = {names.config(case.identity.name, each.digest) for each in case.observed.pods}
    compared = [case.digest or "", case.past.deployed]
    if case.application is not None and case.application.spec.rollback == "automatic":
        compared.append(case.past.stable)
    used |= {names.config(case.identity.name, digest) for digest in compared}
    for (kind, name), found in sorted(case.observed.objects.items(), key=lambda item: item[0]):
        if kind == "ConfigMap" and ours.fullmatch(name) and name not in used and _is_ours(case, found):
            yield Removal(kind, name, found["metadata"]["uid"])


def _is_ours(case: Case, found: Json) -> bool:
    """Whether an object goes with the resource, and is not on its way already."""
    metadata = found["metadata"]
    owners = {owner.get("uid") for owner in metadata.get("ownerReferences") or ()}
    return case.identity.uid in owners and metadata.get("deletionTimestamp") is None
