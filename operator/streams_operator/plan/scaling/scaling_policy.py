"""What spec.autoscaling asks for, in seconds and whole instances, and the number that is wanted as things are."""

from __future__ import annotations

from dataclasses import dataclass

from streams_operator.model import Learned
from streams_operator.plan.status.past import Past
from streams_runtime.api.spec.autoscaling_spec import AutoscalingSpec
from streams_runtime.api.spec.resource import ApplicationSpec

_SHORTEST, _LONGEST = 5.0, 15.0  # seconds between two samples
_LONGEST_STABILIZATION = 86_400.0  # seconds
_SHORTEST_SETTLING, _LONGEST_SETTLING = 30.0, 60.0  # seconds


@dataclass(frozen=True, slots=True)
class Policy:
    """Times are seconds. `most` is at most `tasks`, and `least` at most `most`; `limit` is maxReplicas."""

    least: int
    most: int
    limit: int
    tasks: int
    target: float = 120.0
    stabilization: float = 300.0

    @classmethod
    def of(cls, spec: AutoscalingSpec, tasks: int) -> Policy:
        """For an application of so many tasks, at least one."""
        most = min(spec.max_replicas, max(tasks, 1))
        return cls(
            least=min(spec.min_replicas, most),
            most=most,
            limit=spec.max_replicas,
            tasks=max(tasks, 1),
            target=spec.target_catch_up.total_seconds(),
            stabilization=spec.stabilization.total_seconds(),
        )

    @property
    def interval(self) -> float:
        """Between two samples."""
        return sample_interval(self.target)

    @property
    def settling(self) -> float:
        """After a move, until samples count: instances that have just begun are slower than they will be."""
        return min(max(self.target / 4, _SHORTEST_SETTLING), _LONGEST_SETTLING)


def stabilization_of(policy: Policy, learned: Learned) -> float:
    """Seconds that fewer instances have to be enough before one is taken away."""
    return min(policy.stabilization * learned.patience, _LONGEST_STABILIZATION)


def sample_interval(target: float) -> float:
    """Seconds between two samples, for a target of so many seconds."""
    return min(max(target / 8, _SHORTEST), _LONGEST)


def wanted_replicas(spec: ApplicationSpec, past: Past, tasks: int | None) -> int:
    """Instances that are wanted now: spec.replicas, or what status.autoscaling says in the bounds of the spec.

    Where that says nothing yet: what spec.replicas says, or as many as there are. So whoever takes `replicas` out of
    the file that brings `autoscaling` loses no instance.
    """
    if spec.autoscaling is None:
        return spec.replicas
    known = past.status.autoscaling
    chosen = known.replicas if known is not None and known.replicas > 0 else max(spec.replicas, len(past.instances))
    policy = Policy.of(spec.autoscaling, spec.autoscaling.max_replicas if tasks is None else tasks)
    return min(max(chosen, policy.least), policy.most)
