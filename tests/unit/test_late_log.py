"""Records that come too late are told in the log, not once for each batch."""

from __future__ import annotations

import pytest

from streams_runtime.processing.late_log import LateLog
from streams_runtime.processors.aggregates.aggregate import LEFT_OUT
from streams_runtime.processors.joins.stream_stream_join import NOT_KEPT


def test_a_step_warns_at_once_and_then_twice_a_minute_with_all_that_came_too_late(
    caplog: pytest.LogCaptureFixture,
) -> None:
    now = 100.0
    log = LateLog(lambda: now)
    for late in (0, 3, 4, 0):
        log.take("sessions", late, LEFT_OUT)
    log.take("joined", 1, NOT_KEPT)
    now += 31
    log.take("sessions", 0, LEFT_OUT)
    log.take("sessions", 5, LEFT_OUT)
    assert [(each.levelname, each.getMessage()) for each in caplog.records] == [
        ("WARNING", f"step sessions: 3 times a record came too late: {LEFT_OUT}"),
        ("WARNING", f"step joined: 1 times a record came too late: {NOT_KEPT}"),
        ("WARNING", f"step sessions: 12 times a record came too late: {LEFT_OUT}"),
    ]
