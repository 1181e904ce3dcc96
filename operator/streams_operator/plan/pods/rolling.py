"""Replacing running pods: one at a time, from the highest ordinal, each only when those before it have arrived."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from streams_operator.plan.pods.instances import Instance
from streams_operator.plan.pods.standing import Standing, serving


@dataclass(frozen=True, slots=True)
class Rolling:
    """`next` is to be replaced now. None with `awaited`: those have to be RUNNING and restored first."""

    next: Instance | None
    left: tuple[Instance, ...] = ()
    awaited: tuple[Instance, ...] = ()


def arrived(instance: Instance) -> bool:
    """Whether its pod does its part."""
    return instance.pod is not None and serving(instance.pod)


def rolling(instances: Sequence[Instance]) -> Rolling:
    """The next step. Pods that do not run are not its business: they are replaced without waiting."""
    left = tuple(each for each in instances if each.standing is Standing.LIVE and (each.outdated or each.stale))
    awaited = tuple(each for each in instances if each not in left and _held_up_by(each))
    return Rolling(None if awaited or not left else left[-1], left, awaited)


def _held_up_by(other: Instance) -> bool:
    # Nobody knows when the node of a stuck pod comes back, and it must not keep a mended version from the rest.
    if other.standing is Standing.STUCK:
        return False
    gap = other.standing in (Standing.ABSENT, Standing.CLOSING)
    doubted = other.pod is not None and other.pod.doubted
    return gap or (not other.outdated and (doubted or not arrived(other)))
