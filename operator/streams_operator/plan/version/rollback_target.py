"""The last stable version as the target of a rollback: whether it can be made again, and what would be lost."""

from __future__ import annotations

from collections.abc import Iterator

from streams_operator.model import Defaults, RollbackTarget
from streams_operator.plan.objects.document import as_deployed, digest
from streams_operator.plan.status.past import Past
from streams_runtime.api import StreamsApplication
from streams_runtime.topology.changes.compare import changes
from streams_runtime.topology.declared.build_topology import build_topology


def rolled_back_to(asked: StreamsApplication, wanted: str, past: Past) -> str | None:
    """The digest of the version that is in force instead of the resource's own (`wanted`); None: no other is."""
    given_up = past.rolled_back
    if given_up is None or asked.spec.rollback != "automatic":
        return None
    again = wanted != given_up.version or asked.spec.restart_nonce > given_up.nonce
    return None if again else given_up.to


def rollback_target(
    stable: StreamsApplication | None, asked: StreamsApplication, version: str, namespace: str, defaults: Defaults
) -> RollbackTarget:
    """The rollback from `asked` to `stable`, whose digest was `version`; None: its ConfigMap could not be read."""
    if stable is None:
        return RollbackTarget(version, "the ConfigMap that should hold it is not there, or can't be read")
    found = obstacle(stable, asked, version, namespace, defaults)
    return RollbackTarget(version, found, () if found else tuple(dict.fromkeys(_changed(asked, stable))))


def obstacle(
    stable: StreamsApplication, asked: StreamsApplication, version: str, namespace: str, defaults: Defaults
) -> str:
    """Why `stable` can't be made again as it was; empty: it can."""
    if digest(as_deployed(stable, asked), namespace, defaults) != version:
        return "its pods were made with another default image or other defaults of the operator"
    return ""


def _changed(new: StreamsApplication, old: StreamsApplication) -> Iterator[str]:
    one, other = build_topology(new), build_topology(old)
    back = changes(one, other)
    yield from (*back.orphaned.topics, *back.new.topics)
    yield from sorted({*one.sink_topics} ^ {*other.sink_topics})
    yield from (each.where for each in back.incompatible if each.kind == "changed")
