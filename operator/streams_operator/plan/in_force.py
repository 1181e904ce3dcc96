"""Which version of an application counts: the resource's, or an earlier one.

That is the deployed one while a change of topology is refused, and the last stable one after a rollback.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import orjson

from streams_operator import names
from streams_operator.model import Defaults, Json, PodSeen, WayBack
from streams_operator.plan.acceptance import cluster_mistakes
from streams_operator.plan.objects.config_map import document_in
from streams_operator.plan.objects.document import as_deployed, digest
from streams_operator.plan.objects.identity import Identity
from streams_operator.plan.past import Past
from streams_operator.plan.way_back import gone_back_to, obstacle, way_back
from streams_runtime.api import Reading, StreamsApplication, read_application
from streams_runtime.errors import Mistake
from streams_runtime.topology.build import build_topology
from streams_runtime.topology.change import Change
from streams_runtime.topology.changes import changes

Objects = Mapping[tuple[str, str], Json]


@dataclass(frozen=True, slots=True)
class InForce:
    """`refused` is what speaks against the resource's own topology; empty: it is in force, unless `rolled_back`.

    `application` is None exactly when `mistakes` is not empty. `way_back` is None where there is nowhere to go back to,
    or spec.rollback does not ask for it.
    """

    application: StreamsApplication | None
    mistakes: tuple[Mistake, ...] = ()
    refused: tuple[Change, ...] = ()
    rolled_back: bool = False
    way_back: WayBack | None = None


def in_force(
    resource: Json, reading: Reading, pods: Sequence[PodSeen], objects: Objects, defaults: Defaults
) -> InForce:
    """The version that pods are to be of.

    The resource's own where nothing is deployed, or the change is compatible or allowed. Otherwise the deployed one,
    with the resource's replicas, nonces and whatever else pods do not read. So is the last stable one, once status says
    that the resource's own was given up. Either is known by status and by its ConfigMap, so an operator that has just
    started says the same as the one before it.
    """
    asked = reading.application
    if asked is None:
        return InForce(None, reading.mistakes)
    if any(cluster_mistakes(asked, defaults)):
        return InForce(asked)
    identity, past = Identity.of(resource), Past.of(resource)
    wanted = digest(asked, identity.namespace, defaults)
    stable = _gone_back_to(asked, wanted, past, objects, identity, defaults)
    if stable is not None:
        return InForce(stable, rolled_back=True)
    version = _deployed(identity, past.deployed, pods, objects)
    if asked.spec.topology_change != "allow" and version not in ("", wanted):
        deployed = _read(objects, identity, version)
        if deployed is None:
            return InForce(None, (_unknown(identity, version),))
        found = changes(build_topology(deployed), build_topology(asked))
        if not found.compatible:
            return InForce(as_deployed(deployed, asked), refused=found.incompatible)
    return InForce(asked, way_back=_way_back(asked, wanted, past, objects, identity, defaults))


def _gone_back_to(
    asked: StreamsApplication, wanted: str, past: Past, objects: Objects, identity: Identity, defaults: Defaults
) -> StreamsApplication | None:
    version = gone_back_to(asked, wanted, past)
    stable = _read(objects, identity, version) if version is not None else None
    if version is None or stable is None or obstacle(stable, asked, version, identity.namespace, defaults):
        return None
    return as_deployed(stable, asked)


def _way_back(
    asked: StreamsApplication, wanted: str, past: Past, objects: Objects, identity: Identity, defaults: Defaults
) -> WayBack | None:
    if asked.spec.rollback != "automatic" or past.stable in ("", wanted):
        return None
    return way_back(_read(objects, identity, past.stable), asked, past.stable, identity.namespace, defaults)


def _deployed(identity: Identity, recorded: str, pods: Sequence[PodSeen], objects: Objects) -> str:
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
    document = document_in(config_map) if config_map is not None else None
    try:
        given = orjson.loads(document) if document is not None else None
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
