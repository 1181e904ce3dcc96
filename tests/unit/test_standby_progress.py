"""What is told of standbys: nothing of one that has not been looked at, which would seem to lag by nothing."""

from __future__ import annotations

from typing import Any

from streams_runtime.kafka.types import TopicPartition
from streams_runtime.restore.restore_listener import NullListener, SuspendReason
from streams_runtime.restore.standby_progress import StandbyProgress

LOG = TopicPartition("log", 0)


def test_a_standby_is_not_told_of_before_the_end_of_its_changelog_is_known() -> None:
    seen: list[Any] = []

    class Slow(NullListener):
        def on_update_start(self, *_: object) -> None:
            seen.append(progress.snapshot())

    progress = StandbyProgress(Slow())
    progress.on_update_start(LOG, "s", 5)
    assert seen == [{}]
    progress.on_look(LOG, 5, 1000)
    assert progress.snapshot() == {
        LOG: {"store": "s", "topic": "log", "partition": 0, "position": 5, "end": 1000, "lag": 995}
    }
    progress.on_update_suspended(LOG, "s", 5, 1000, SuspendReason.MIGRATED)
    progress.on_look(LOG, 6, 1000)
    assert progress.snapshot() == {}
