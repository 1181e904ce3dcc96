"""Replacing running pods: one at a time, from the highest ordinal, each only when those before it have arrived."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from streams_operator.plan.instances import Instance
from streams_operator.plan.standing import Standing
from streams_runtime.states import ClientState


@dataclass(frozen=True, slots=True)
class Rolling:
    """`next` is to be replaced now. None with `awaited`: those have to be RUNNING and restored first."""

    next: Instance | None
    left: tuple[Instance, ...] = ()
    awaited: tuple[Instance, ...] = ()


def arrived(instance: Instance) -> bool:
    """Whether its pod does its part: RUNNING, with all its state."""
    pod = instance.pod
    return instance.standing is Standing.LIVE and pod is not None and pod.state == ClientState.RUNNING and pod.restored


def rolling(instances: Sequence[Instance]) -> Rolling:
    """The next step. Pods that do not run are not its business: they are replaced without waiting."""
    left = tuple(each for each in instances if each.standing is Standing.LIVE and each.outdated)
    awaited = tuple(each for each in instances if each not in left and _held_up_by(each))
    return Rolling(None if awaited or not left else left[-1], left, awaited)


def _held_up_by(other: Instance) -> bool:
    gap = other.standing in (Standing.ABSENT, Standing.CLOSING)
    return gap or (not other.outdated and not arrived(other))
