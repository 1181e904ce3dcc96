"""What peeks have seen, as log lines: so many a second, and how many were left out."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from streams_runtime.batch.peeks import Line, Seen

_LOGGER = logging.getLogger("streams_runtime.peek")
_LEVELS = {"debug": logging.DEBUG, "info": logging.INFO}
_SECOND = 1.0

Totals = dict[tuple[str, str], tuple[int, float]]
"""Records and sum of each peek step and its metric."""


@dataclass(slots=True)
class _Allowance:
    """Lines of one peek since `begun`, a moment that lies less than a second back."""

    begun: float
    left: int
    left_out: int = 0


class PeekLog:
    """Logs for one thread. What exceeds a peek's lines a second is counted, and told with its next line."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        """`clock` gives seconds."""
        self._clock = clock
        self._allowances: dict[str, _Allowance] = {}

    def take(self, peeks: Iterable[Seen]) -> None:
        """Log what a batch's peeks have seen, as far as this second allows."""
        for seen in peeks:
            if seen.texts and _LOGGER.isEnabledFor(_LEVELS[seen.node.level]):
                self._log(seen)

    def _log(self, seen: Seen) -> None:
        node, now = seen.node, self._clock()
        allowance = self._allowances.get(node.name)
        if allowance is None or now - allowance.begun >= _SECOND:
            before = 0 if allowance is None else allowance.left_out
            self._allowances[node.name] = allowance = _Allowance(now, node.at_most)
            if before:
                _LOGGER.log(
                    _LEVELS[node.level],
                    "peek %s: %d more records were not shown; atMost allows %d a second",
                    node.name,
                    before,
                    node.at_most,
                )
        shown = seen.lines[: allowance.left]
        allowance.left -= len(shown)
        allowance.left_out += seen.texts - len(shown)
        for line in shown:
            _tell(node.name, _LEVELS[node.level], line)


def _tell(name: str, level: int, line: Line) -> None:
    where = {"topic": line.topic, "partition": line.partition, "offset": line.offset}
    _LOGGER.log(level, "peek %s: %s", name, line.text, extra=where)


def added_up(totals: Totals, peeks: Iterable[Seen]) -> Totals:
    """The totals and what a batch's peeks with a metric have seen."""
    new = dict(totals)
    for seen in peeks:
        if seen.node.metric is not None:
            records, total = new.get((seen.node.name, seen.node.metric), (0, 0.0))
            new[seen.node.name, seen.node.metric] = (records + seen.records, total + seen.total)
    return new


def rows_of(totals: Iterable[Totals]) -> list[dict[str, str | int | float]]:
    """What the metrics of peek steps have come to, all threads together, as the client's account shows it."""
    all_together: dict[tuple[str, str], list[tuple[int, float]]] = {}
    for each in totals:
        for name, total in each.items():
            all_together.setdefault(name, []).append(total)
    return [
        {"step": step, "metric": metric, "records": sum(n for n, _ in found), "sum": sum(total for _, total in found)}
        for (step, metric), found in sorted(all_together.items())
    ]
