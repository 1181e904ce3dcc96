"""Where copies of stores go, how often they are made, and how many stay."""

from __future__ import annotations

from dataclasses import dataclass

from streams_runtime.api.spec.snapshots_spec import SnapshotsSpec


@dataclass(frozen=True, slots=True)
class SnapshotSettings:
    """`url` names a bucket and a prefix (bucket.open_bucket), `interval` is in seconds, `keep` counts per store."""

    url: str
    interval: float = 300.0
    keep: int = 2


def snapshot_settings(spec: SnapshotsSpec | None) -> SnapshotSettings | None:
    """The settings of `spec.state.snapshots`; None where it is absent."""
    return None if spec is None else SnapshotSettings(spec.url, spec.interval.total_seconds(), spec.keep)
