"""Where a command on this machine has the credentials of snapshots from: the environment, as instances have them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from streams_runtime.api.spec.snapshots_spec import SnapshotsSpec
from streams_runtime.errors import Mistake

_PREFIXES = {"s3": "AWS_", "gs": "GOOGLE_", "az": "AZURE_"}
"""What the variables begin with that a scheme's credentials stand in."""


def credential_mistakes(snapshots: SnapshotsSpec | None, environment: Mapping[str, str]) -> Iterator[Mistake]:
    """A Secret with credentials, while the environment has none in its place."""
    if snapshots is None or snapshots.secret_ref is None:
        return
    prefix = _PREFIXES.get(snapshots.url.partition(":")[0])
    if prefix is not None and not any(name.startswith(prefix) for name in environment):
        yield Mistake(
            "spec.state.snapshots.secretRef",
            f"names the Secret {snapshots.secret_ref.name}, and commands on this machine read no Kubernetes Secrets",
            f"set its variables ({prefix}…) in the environment of this command, or leave it out here",
        )
