"""One application to decide about: what was observed, with what follows from it at once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from streams_operator import names
from streams_operator.model import Json, Observed, PodState
from streams_operator.plan.objects.document import digest_with, document
from streams_operator.plan.objects.identity import Identity
from streams_operator.plan.reset.reset_record import RUNNING, record_of
from streams_operator.plan.scaling.scaling_policy import wanted_replicas
from streams_operator.plan.status.past import Past
from streams_operator.plan.status.times import seconds_of
from streams_operator.plan.version.acceptance import cluster_mistakes
from streams_runtime.api import StreamsApplication
from streams_runtime.errors import Mistake


@dataclass(frozen=True, slots=True)
class ReconcileContext:
    """`application` and `digest` are None when the resource is invalid; `digest` is of the pods to be made now, and
    `document` is the application as they read it.

    `replicas` are wanted: spec.replicas, or what spec.autoscaling has chosen.

    `own` are the application's pods, by ordinal: those below `replicas`, and those above that status has as instances,
    since a pod is on record before it is made. `foreign` have the label only.
    """

    observed: Observed
    identity: Identity
    past: Past
    application: StreamsApplication | None
    mistakes: tuple[Mistake, ...]
    document: bytes
    digest: str | None
    replicas: int
    nonce: int
    own: tuple[PodState, ...]
    foreign: tuple[PodState, ...]

    @classmethod
    def of(cls, observed: Observed) -> ReconcileContext:
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
            tasks = observed.topics.tasks if observed.topics is not None else None
            tasks = past.status.tasks if tasks is None else tasks
            replicas = wanted_replicas(application.spec, past, tasks)
        elif past.status.autoscaling is not None and isinstance(spec.get("autoscaling"), Mapping):
            replicas = _count(past.status.autoscaling.replicas, replicas)
        own = {
            pod.ordinal: pod
            for pod in observed.pods
            if pod.ordinal is not None
            and pod.name == names.pod(identity.name, pod.ordinal)
            and (pod.ordinal < replicas or pod.name in past.instances)
        }
        text = observed.document if application is not None else b""
        if application is not None and not text:
            text = document(application, identity.namespace)
        made_from = digest_with(text, application, observed.defaults) if application is not None else None
        return cls(
            observed=observed,
            identity=identity,
            past=past,
            application=application,
            mistakes=mistakes,
            document=text,
            digest=made_from,
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
        """Whether nothing is to run: until a reset that has begun is whole, that is so whatever the spec says."""
        return self.application is not None and (self.application.spec.suspend or self.resetting)

    @property
    def resetting(self) -> bool:
        """Whether a reset has begun that is not whole."""
        shown = self.past.status.reset
        # Asked several times a round, and a record may have thousands of offsets: only one that runs is read.
        return shown is not None and shown.state == RUNNING and record_of(shown) is not None

    @property
    def on_hold(self) -> bool:
        """Whether a person has asked for nothing to be changed (ANNOTATION_HOLD)."""
        return is_on_hold(self.observed.resource)

    @property
    def paused(self) -> bool:
        """Whether pods are to process nothing."""
        return self.application is not None and self.application.spec.paused


def is_on_hold(resource: Json) -> bool:
    """Whether a resource has ANNOTATION_HOLD."""
    annotations = resource["metadata"].get("annotations") or {}
    return str(annotations.get(names.ANNOTATION_HOLD, "")).strip().lower() == "true"


def _count(value: Any, otherwise: int) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else otherwise
