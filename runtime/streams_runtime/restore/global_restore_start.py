"""Where a global store begins to read each partition of its topic, and whether it can be gone on from; pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from streams_runtime.restore.restore_start import Log, beginning


@dataclass(frozen=True, slots=True)
class GlobalBeginning:
    """The first offset to read of each partition. `wipe`: why the store has to be emptied before; None: it stays."""

    offsets: Mapping[int, int]
    wipe: str | None = None


def global_beginning(
    checkpoints: Mapping[int, int], topic_id: str | None, logs: Mapping[int, Log], is_empty: bool
) -> GlobalBeginning:
    """From where a store with these checkpoints, by partition, follows the topic whose partitions are `logs`.

    What the store holds is not divided by partition: what can't be gone on from in one empties all of it. A partition
    without a checkpoint is new in the topic, if others have one. `topic_id` is that of the topic of the checkpoints.
    """
    starts = {number: log.start for number, log in logs.items()}
    if not checkpoints:
        return GlobalBeginning(starts, None if is_empty else "the offsets that its contents reach to are not known")
    if gone := checkpoints.keys() - logs.keys():
        listed = ", ".join(map(str, sorted(gone)))
        return GlobalBeginning(starts, f"its topic has lost the partitions {listed}: it was made anew")
    found = {number: beginning(checkpoints.get(number), log, topic_id) for number, log in logs.items()}
    for number, each in sorted(found.items()):
        if each.wipe is not None:
            return GlobalBeginning(starts, f"in partition {number} {each.wipe}")
    return GlobalBeginning({number: each.offset for number, each in found.items()})
