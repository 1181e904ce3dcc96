"""Which version of an application counts: the resource's, or the deployed one while a change of topology is refused."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import orjson

from streams_operator import names
from streams_operator.model import Defaults, Json, PodSeen
from streams_operator.plan.acceptance import cluster_mistakes
from streams_operator.plan.objects.config_map import document_in
from streams_operator.plan.objects.document import as_deployed, digest
from streams_operator.plan.objects.identity import Identity
from streams_operator.plan.past import Past
from streams_runtime.api import Reading, StreamsApplication, read_application
from streams_runtime.errors import Mistake
from streams_runtime.topology.build import build_topology
from streams_runtime.topology.change import Change
from streams_runtime.topology.changes import changes

Objects = Mapping[tuple[str, str], Json]


@dataclass(frozen=True, slots=True)
class InForce:
    """`refused` is what speaks against the resource's own topology; empty: it is in force.

    `application` is None exactly when `mistakes` is not empty.
    """

    application: StreamsApplication | None
    mistakes: tuple[Mistake, ...] = ()
    refused: tuple[Change, ...] = ()


def in_force(
    resource: Json, reading: Reading, pods: Sequence[PodSeen], objects: Objects, defaults: Defaults
) -> InForce:
    """The version that pods are to be of.

    The resource's own where nothing is deployed, or the change is compatible or allowed. Otherwise the deployed one,
    with the resource's replicas, nonces and whatever else pods do not read. The deployed one is known by status and by
    its ConfigMap, so an operator that has just started says the same as the one before it.
    """
    asked = reading.application
    if asked is None:
        return InForce(None, reading.mistakes)
    if asked.spec.topology_change == "allow" or any(cluster_mistakes(asked, defaults)):
        return InForce(asked)
    identity = Identity.of(resource)
    version = _deployed(identity, Past.of(resource).deployed, pods, objects)
    if version in ("", digest(asked, identity.namespace, defaults)):
        return InForce(asked)
    deployed = _read(objects.get(("ConfigMap", names.config(identity.name, version))))
    if deployed is None:
        return InForce(None, (_unknown(identity, version),))
    found = changes(build_topology(deployed), build_topology(asked))
    if found.compatible:
        return InForce(asked)
    return InForce(as_deployed(deployed, asked), refused=found.incompatible)


def _deployed(identity: Identity, recorded: str, pods: Sequence[PodSeen], objects: Objects) -> str:
    """The digest of the deployed version; empty when there is none.

    What is on record without a ConfigMap and without pods was never made. Where nothing is on record, an operator that
    did not write it has made the pods; the highest is the newest, as they are replaced from the last on.
    """
    own = {pod.ordinal: pod.digest for pod in pods if pod.ordinal is not None and pod.digest}
    if recorded and (("ConfigMap", names.config(identity.name, recorded)) in objects or recorded in own.values()):
        return recorded
    return own[max(own)] if own else ""


def _read(config_map: Json | None) -> StreamsApplication | None:
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
