"""Checks of `spec.state`."""

from __future__ import annotations

from collections.abc import Iterator

from streams_runtime.api.reading.not_yet import state_limits
from streams_runtime.api.spec.pod_spec import StateSpec
from streams_runtime.errors import Mistake


def state_mistakes(state: StateSpec) -> Iterator[Mistake]:
    """What is said of the stores that nobody could do."""
    yield from state_limits(state)
    snapshots = state.snapshots
    if snapshots is not None and snapshots.secret_ref is not None and snapshots.url.startswith("file:"):
        found = "is given for a folder, which needs no credentials"
        yield Mistake("spec.state.snapshots.secretRef", found, "leave it out, or give the url of a bucket")
