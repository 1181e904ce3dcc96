"""Which version of an application counts: the resource's, or an earlier one.

That is the deployed one while a change of topology is refused, and the last stable one after a rollback.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence

import orjson

from streams_operator import names
from streams_operator.model import Defaults, Json, ObservedResource, PodState, RollbackTarget, VersionInForce
from streams_operator.plan.objects.config_map import document_in
from streams_operator.plan.objects.document import as_deployed, digest_with, document
from streams_operator.plan.objects.identity import Identity
from streams_operator.plan.status.past import Past
from streams_operator.plan.version.acceptance import cluster_mistakes
from streams_operator.plan.version.rollback_target import obstacle, rollback_target, rolled_back_to
from streams_runtime.api import StreamsApplication, read_application
from streams_runtime.errors import Mistake
from streams_runtime.topology.changes.compare import changes
from streams_runtime.topology.declared.build_topology import build_topology

Objects = Mapping[tuple[str, str], Json]

_READ_VERSIONS = 32
"""Applications that are kept as they were read from their ConfigMaps: those that roll out are read in every round."""


def in_force(found: ObservedResource, defaults: Defaults) -> VersionInForce:
    """The version that pods are to be of.

    The resource's own where nothing is deployed, or the change is compatible or allowed. Otherwise the deployed one,
    with the resource's replicas, nonces and whatever else pods do not read. So is the last stable one, once status says
    that the resource's own was given up. Either is known by status and by its ConfigMap, so an operator that has just
    started says the same as the one before it.
    """
    asked, objects = found.reading.application, found.objects
    if asked is None:
        return VersionInForce(None, found.reading.mistakes)
    if any(cluster_mistakes(asked, defaults)):
        return VersionInForce(asked)
    identity, past = Identity.of(found.resource), Past.of(found.resource)
    text = found.document or document(asked, identity.namespace)
    wanted = digest_with(text, asked, defaults)
    stable = _rolled_back_to(asked, wanted, past, objects, identity, defaults)
    if stable is not None:
        return VersionInForce(stable, rolled_back=True)
    version = _deployed(identity, past.deployed, found.pods, objects)
    if asked.spec.topology_change != "allow" and version not in ("", wanted):
        deployed = _read(objects, identity, version)
        if deployed is None:
            return VersionInForce(None, (_unknown(identity, version),))
        changed = changes(build_topology(deployed), build_topology(asked))
        if not changed.compatible:
            return VersionInForce(as_deployed(deployed, asked), refused=changed.incompatible)
    target = _rollback_target(asked, wanted, past, objects, identity, defaults)
    return VersionInForce(asked, rollback_target=target, document=text)


def _rolled_back_to(
    asked: StreamsApplication, wanted: str, past: Past, objects: Objects, identity: Identity, defaults: Defaults
) -> StreamsApplication | None:
    version = rolled_back_to(asked, wanted, past)
    stable = _read(objects, identity, version) if version is not None else None
    if version is None or stable is None or obstacle(stable, asked, version, identity.namespace, defaults):
        return None
    return as_deployed(stable, asked)


def _rollback_target(
    asked: StreamsApplication, wanted: str, past: Past, objects: Objects, identity: Identity, defaults: Defaults
) -> RollbackTarget | None:
    if asked.spec.rollback != "automatic" or past.stable in ("", wanted):
        return None
    return rollback_target(_read(objects, identity, past.stable), asked, past.stable, identity.namespace, defaults)


def _deployed(identity: Identity, recorded: str, pods: Sequence[PodState], objects: Objects) -> str:
    """The digest of the deployed version; empty when there is none.

    What is on record without a ConfigMap and without pods was never made. Where nothing is on record, an operator that
    did not write it has made the pods; the highest is the newest, as they are replaced from the last on.
    """
    own = {pod.ordinal: pod.digest for pod in pods if pod.ordinal is not None and pod.digest}
    if recorded and (("ConfigMap", names.config(identity.name, recorded)) in objects or recorded in own.values()):
        return recorded
    return own[max(own)] if own else ""


def _read(objects: Objects, identity: Identity, version: str) -> StreamsApplication | None:
    """The application of a version; None: its ConfigMap is not there, or can't be read."""
    config_map = objects.get(("ConfigMap", names.config(identity.name, version)))
    text = document_in(config_map) if config_map is not None else None
    return _application_in(text) if text is not None else None


@functools.lru_cache(_READ_VERSIONS)
def _application_in(text: bytes) -> StreamsApplication | None:
    try:
        given = orjson.loads(text)
    except orjson.JSONDecodeError:
        return None
    return read_application(given, "the deployed application").application if isinstance(given, dict) else None


def _unknown(identity: Identity, version: str) -> Mistake:
    return Mistake(
        "spec.topology",
        "can't be compared with the deployed one, which the ConfigMap"
        f" {names.config(identity.name, version)} should hold: it is not there, or can't be read",
        "put the whole spec back, or set spec.topologyChange to allow, which gives up what the new topology has not",
    )
