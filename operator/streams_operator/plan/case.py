"""One application to decide about: what was observed, with what follows from it at once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from streams_operator import names
from streams_operator.model import Json, Observed, PodSeen
from streams_operator.plan.acceptance import cluster_mistakes
from streams_operator.plan.objects.document import digest
from streams_operator.plan.objects.identity import Identity
from streams_operator.plan.past import Past
from streams_operator.plan.times import seconds_of
from streams_runtime.api import StreamsApplication
from streams_runtime.errors import Mistake


@dataclass(frozen=True, slots=True)
class Case:
    """`application` and `digest` are None when the resource is invalid; `digest` is of the pods to be made now.

    `own` are the application's pods, by ordinal: those below `replicas`, and those above that status has as instances,
    since a pod is on record before it is made. `foreign` have the label only.
    """

    observed: Observed
    identity: Identity
    past: Past
    application: StreamsApplication | None
    mistakes: tuple[Mistake, ...]
    digest: str | None
    replicas: int
    nonce: int
    own: tuple[PodSeen, ...]
    foreign: tuple[PodSeen, ...]

    @classmethod
    def of(cls, observed: Observed) -> Case:
        """What follows from an observation."""
        identity, past = Identity.of(observed.resource), Past.of(observed.resource)
        application, mistakes = observed.application, observed.mistakes
        if application is not None:
            mistakes = tuple(cluster_mistakes(application, observed.defaults))
            application = None if mistakes else application
        spec = observed.resource.get("spec")
        spec = spec if isinstance(spec, Mapping) else {}
        replicas = _count(spec.get("replicas"), len(past.instances))
        if application is not None:
            replicas = application.spec.replicas
        own = {
            pod.ordinal: pod
            for pod in observed.pods
            if pod.ordinal is not None
            and pod.name == names.pod(identity.name, pod.ordinal)
            and (pod.ordinal < replicas or pod.name in past.instances)
        }
        return cls(
            observed=observed,
            identity=identity,
            past=past,
            application=application,
            mistakes=mistakes,
            digest=digest(application, identity.namespace, observed.defaults) if application is not None else None,
            replicas=replicas,
            nonce=_count(spec.get("restartNonce"), 0) if application is None else application.spec.restart_nonce,
            own=tuple(own[ordinal] for ordinal in sorted(own)),
            foreign=tuple(pod for pod in observed.pods if pod not in own.values()),
        )

    @property
    def now(self) -> float:
        """Seconds since 1970."""
        return self.observed.now

    @property
    def metadata(self) -> Json:
        """The resource's metadata."""
        found: Json = self.observed.resource["metadata"]
        return found

    @property
    def deleted_at(self) -> float | None:
        """When the resource's deletion was asked for; None: it was not."""
        if not self.metadata.get("deletionTimestamp"):
            return None
        return seconds_of(self.metadata["deletionTimestamp"]) or self.now

    @property
    def suspended(self) -> bool:
        """Whether nothing is to run."""
        return self.application is not None and self.application.spec.suspend


def _count(value: Any, otherwise: int) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else otherwise
