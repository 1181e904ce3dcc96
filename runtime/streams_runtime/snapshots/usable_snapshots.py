"""Whether a store can begin with a snapshot and go on with what its changelog has now; pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from streams_runtime.snapshots.manifest import Manifest

_PART_OF_RETENTION: Final = 0.9  # the rest is for the restoration itself, and for clocks that differ
_CLOCKS: Final = 600_000  # ms that a writer's clock may be ahead
_MOST_RETENTION: Final = 2**62  # ms; Kafka's largest setting is twice that


@dataclass(frozen=True, slots=True)
class Wanted:
    """The store as it is here, and its changelog as the brokers have it: topic id, first offset, end.

    `tombstones` is for how long (ms) a compacted changelog keeps deletions; None: it is not compacted.
    """

    format: str
    changelog: str
    topic_id: str
    start: int
    end: int
    tombstones: int | None


def tombstones_of(config: Mapping[str, str]) -> int | None:
    """`Wanted.tombstones` by the configuration of the topic; one that is not known counts as the shortest, 0."""
    if config and "compact" not in config.get("cleanup.policy", ""):
        return None
    try:
        return int(config["delete.retention.ms"])
    except (KeyError, ValueError):
        return 0


def why_unusable(manifest: Manifest, wanted: Wanted, now: int) -> str | None:
    """Why the store can't begin with this snapshot; None: it can. `now` in ms since 1970."""
    age, keeps = now - manifest.as_of, wanted.tombstones
    reasons = {
        f"it follows the changelog {manifest.changelog}, and the store {wanted.changelog}": manifest.changelog
        != wanted.changelog,
        "its changelog was deleted and made anew since": manifest.topic_id != wanted.topic_id,
        f"it holds {manifest.format}, and the store is {wanted.format}": manifest.format != wanted.format,
        f"the changelog begins at {wanted.start}, after its offset {manifest.offset}": manifest.offset < wanted.start,
        f"the changelog ends at {wanted.end}, before its offset {manifest.offset}: it was truncated": manifest.offset
        > wanted.end,
        f"it is from {-age // 1000} s from now: the clock of {manifest.writer}, or the one here, is wrong": age
        < -_CLOCKS,
        # A deletion that compaction has dropped since would leave its key in the store for ever.
        f"it is {age // 1000} s old, and the changelog keeps deletions for {(keeps or 0) // 1000} s only"
        " (delete.retention.ms)": keeps is not None and age > min(keeps, _MOST_RETENTION) * _PART_OF_RETENTION,
    }
    return next((reason for reason, is_so in reasons.items() if is_so), None)
