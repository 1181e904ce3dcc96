"""Records that come too late for a window, and how old a record may be before it can."""

from __future__ import annotations

from collections.abc import Sequence

from streams_runtime.topology.nodes.window_kinds import SessionWindows

Missed = tuple[int, int, Sequence[int]]
"""A record that came too late: partition, number in its order (ORDER), and the starts (ms) of the windows it missed."""


def sure_age(windows: SessionWindows) -> int:
    """How far (ms) a record may lie behind stream time and is sure to be in time, and to meet no expired session.

    Where sessions are passed on once they have closed: nor one that has.
    """
    passed = windows.grace + windows.gap
    return min(passed - 1 if windows.only_final else passed, windows.retention - windows.gap - 1)
