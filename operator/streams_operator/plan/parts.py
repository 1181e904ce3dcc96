"""The objects around the pods: which have to be applied, and which have had their time."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

from streams_operator import names
from streams_operator.model import Json, Removal
from streams_operator.plan.objects.claims import claim
from streams_operator.plan.objects.config_map import config_map
from streams_operator.plan.objects.network import disruption_budget, network_policy, service
from streams_operator.plan.objects.pod_access import role, role_binding, service_account
from streams_operator.plan.objects.pod_manifest import pod
from streams_operator.plan.pods.instances import Instance
from streams_operator.plan.reconcile_context import ReconcileContext
from streams_runtime.api import StreamsApplication
from streams_runtime.api.checks.spark_checks import is_kubernetes


def desired_parts(
    context: ReconcileContext, application: StreamsApplication, digest: str, instances: Sequence[Instance], claims: bool
) -> Iterator[dict[str, Any]]:
    """Everything but the pods, in the order in which one needs the other. `claims`: also the volumes."""
    identity, objects = context.identity, context.observed.objects
    existing = objects.get(("ConfigMap", names.config(identity.name, digest)))
    yield config_map(identity, digest, context.document, existing)
    yield service_account(identity)
    highest = context.own[-1].ordinal if context.own else None
    executors = is_kubernetes(application.spec.spark.master)
    yield role(identity, max(context.replicas, 0 if highest is None else highest + 1), executors)
    yield role_binding(identity, application.spec.template.service_account_name)
    yield service(identity)
    if application.spec.disruption_budget.enabled:
        yield disruption_budget(identity, application.spec.disruption_budget)
    if application.spec.network_policy.enabled:
        yield network_policy(identity, application.spec.network_policy, context.observed.defaults.namespace, executors)
    storage = application.spec.state.storage
    if storage is not None:
        for each in instances:
            existing = objects.get(("PersistentVolumeClaim", names.claim(identity.name, each.ordinal)))
            if existing is not None or (claims and each.ordinal < context.replicas):
                yield claim(identity, each.ordinal, storage, existing)


def desired_pods(
    context: ReconcileContext,
    application: StreamsApplication,
    digest: str,
    create: Sequence[Instance],
    shutdown_text: str | None,
) -> Iterator[dict[str, Any]]:
    """The pods to be made; `shutdown_text`: what they find in their shutdown files."""
    for each in create:
        yield pod(
            context.identity,
            application,
            each.ordinal,
            digest,
            context.observed.defaults,
            shutdown_text,
            context.observed.inputs,
        )


def unwanted(context: ReconcileContext, application: StreamsApplication) -> Iterator[Removal]:
    """What the application was given and no longer asks for."""
    asked = {
        "PodDisruptionBudget": application.spec.disruption_budget.enabled,
        "NetworkPolicy": application.spec.network_policy.enabled,
    }
    for kind, wanted in asked.items():
        found = context.observed.objects.get((kind, context.identity.name))
        if not wanted and found is not None and _is_ours(context, found):
            yield Removal(kind, context.identity.name, found["metadata"]["uid"])


def outlived(context: ReconcileContext) -> Iterator[Removal]:
    """ConfigMaps of versions that no pod is of, that none will be made of, and that nothing is compared with."""
    ours = re.compile(rf"{re.escape(context.identity.name)}-[0-9a-f]{{10}}")
    used = {names.config(context.identity.name, each.digest) for each in context.observed.pods}
    compared = [context.digest or "", context.past.deployed]
    if context.application is not None and context.application.spec.rollback == "automatic":
        compared.append(context.past.stable)
    used |= {names.config(context.identity.name, digest) for digest in compared}
    for (kind, name), found in sorted(context.observed.objects.items(), key=lambda item: item[0]):
        if kind == "ConfigMap" and ours.fullmatch(name) and name not in used and _is_ours(context, found):
            yield Removal(kind, name, found["metadata"]["uid"])


def _is_ours(context: ReconcileContext, found: Json) -> bool:
    """Whether an object goes with the resource, and is not on its way already."""
    metadata = found["metadata"]
    owners = {owner.get("uid") for owner in metadata.get("ownerReferences") or ()}
    return context.identity.uid in owners and metadata.get("deletionTimestamp") is None
