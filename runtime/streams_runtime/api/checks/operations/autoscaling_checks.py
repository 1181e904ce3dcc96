"""Checks of `spec.autoscaling`, and of `spec.replicas` beside it."""

from __future__ import annotations

from collections.abc import Iterator

from streams_runtime.api.spec.operations.autoscaling_spec import AutoscalingSpec
from streams_runtime.errors import Mistake


def autoscaling_mistakes(autoscaling: AutoscalingSpec, replicas: int | None) -> Iterator[Mistake]:
    """A range without a number in it, and a start outside of it; `replicas` is None where it can't be read.

    1 is also what the API server puts where nobody gave a number: it counts as none.
    """
    least, most = autoscaling.min_replicas, autoscaling.max_replicas
    if least > most:
        found = f"found {least}, and spec.autoscaling.maxReplicas is {most}"
        yield Mistake("spec.autoscaling.minReplicas", found, f"give at most {most}, or a greater maxReplicas")
    elif replicas is not None and replicas != 1 and not least <= replicas <= most:
        remedy = "leave it out, or give one of these"
        if replicas == 0:
            remedy = "leave it out; suspend: true closes all instances"
        yield Mistake("spec.replicas", f"found {replicas}, and spec.autoscaling goes from {least} to {most}", remedy)
