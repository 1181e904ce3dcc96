"""Sessions that are passed on once they have closed, record by record, as KStreamSessionWindowAggregate and
KTableSuppressProcessor do it.
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field

from streams_runtime.state.window_keys import session_key
from streams_runtime.topology.nodes.window_kinds import SessionWindows

Session = tuple[str, int, int]
"""Key, start and end (ms)."""


def disordered(records: int, keys: int, span: int, late: int, seed: int = 20) -> list[tuple[str, int, int]]:
    """Key, number (1) and time of records over `span` ms, each up to `late` ms out of order."""
    source = random.Random(seed)
    return [
        (f"k{source.randrange(keys)}", 1, max(0, number * span // records - source.randrange(late + 1)))
        for number in range(records)
    ]


@dataclass
class SessionsModel:
    """One partition. A session may grow after it was passed on: what comes of it is passed on again."""

    windows: SessionWindows
    passed_on: list[tuple[Session, int]] = field(default_factory=list)
    """Sessions with their numbers of records, in order."""
    late: int = 0
    stream_time: int = -1
    _open: defaultdict[str, list[tuple[int, int, int]]] = field(default_factory=lambda: defaultdict(list))
    _suppressed: dict[Session, int] = field(default_factory=dict)

    def process(self, records: Iterable[tuple[str, int, int]]) -> None:
        """Records, after all that were processed before."""
        for key, _, time in records:
            self._process(key, time)

    def _process(self, key: str, time: int) -> None:
        gap = self.windows.gap
        self.stream_time = max(self.stream_time, time)
        closed = self.stream_time - self.windows.grace - gap
        joined = [each for each in self._open[key] if each[1] >= time - gap and each[0] <= time + gap]
        start, end = min(time, *(each[0] for each in joined), time), max(time, *(each[1] for each in joined), time)
        if end < closed:
            self.late += 1
            return
        for each in joined:
            self._open[key].remove(each)
            self._suppressed.pop((key, *each[:2]), None)
        count = 1 + sum(each[2] for each in joined)
        self._open[key].append((start, end, count))
        self._suppressed[key, start, end] = count
        # Kafka Streams' buffer has them by their ends, then by the bytes of their keys.
        done = [each for each in self._suppressed if each[2] <= closed]
        done.sort(key=lambda each: (each[2], session_key(each[0].encode(), *each[1:])))
        self.passed_on += [(each, self._suppressed.pop(each)) for each in done]
