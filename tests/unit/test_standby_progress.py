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
    assert progress.ages() == {}
    progress.on_update_suspended(LOG, "s", 5, 1000, SuspendReason.MIGRATED)
    progress.on_look(LOG, 6, 1000)
    assert progress.snapshot() == {}


def test_a_standby_s_age_is_that_of_the_newest_end_that_it_has_reached() -> None:
    now = [100.0]
    progress = StandbyProgress(clock=lambda: now[0])
    progress.on_update_start(LOG, "s", 0)

    def look(at: float, position: int, end: int) -> float | None:
        now[0] = at
        progress.on_look(LOG, position, end)
        return progress.ages().get(LOG)

    assert [look(100, 0, 500), look(101, 400, 900)] == [None, None]
    assert look(102, 600, 1200) == 2, "it has what was there at 100"
    assert look(103, 1100, 1500) == 3
    assert look(104, 1300, 1600) == 2, "it has what was there at 102"
    assert look(105, 1600, 1600) == 0
    now[0] = 109
    assert progress.ages() == {LOG: 4.0}, "nothing was heard of it"
    progress.on_update_suspended(LOG, "s", 1600, 1600, SuspendReason.MIGRATED)
    assert progress.ages() == {}
    progress.on_update_start(LOG, "s", 0)
    assert look(110, 0, 5) is None, "it has begun anew"
