"""When the pod's conditions are to be sent: on a change, not too often, and with patience while nobody answers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from streams_runtime.kubernetes.pod_conditions import CONDITION_RESTORED, Condition
from streams_runtime.retry_backoff import backoff_delay

BETWEEN = 0.5
"""Seconds between two reports: a rebalance moves a client through several states in less."""
BETWEEN_COUNTS = 5.0
"""Seconds between two reports that differ in the records left only; each is a write to etcd, seen by every watcher."""
FIRST_RETRY = 0.5
LONGEST_RETRY = 30.0
"""Seconds until the API server is asked again, doubled from the first to the longest."""
REFUSED_RETRY = 60.0
"""Seconds after a refusal that only a person can mend."""


@dataclass(frozen=True, slots=True)
class Reported:
    """What the API server has accepted, when, and what came after. Times are seconds of a monotonic clock."""

    conditions: tuple[Condition, ...] | None = None
    at: float = float("-inf")
    failures: int = 0  # in a row
    not_before: float = float("-inf")

    def accepted(self, conditions: tuple[Condition, ...], now: float) -> Reported:
        """The API server has taken these."""
        return Reported(conditions, now)

    def failed(self, now: float, spread: float, retry_after: float = 0.0) -> Reported:
        """It did not answer, or asked for patience of at least `retry_after` seconds.

        `spread`, from 0 to 1, moves the next try by up to a quarter either way, so that a thousand pods do not come
        back at once.
        """
        delay = backoff_delay(self.failures, FIRST_RETRY, LONGEST_RETRY) * (0.75 + spread / 2)
        return self._not_before(now + max(delay, retry_after))

    def refused(self, now: float) -> Reported:
        """It refused for a reason that does not pass by itself."""
        return self._not_before(now + REFUSED_RETRY)

    def _not_before(self, moment: float) -> Reported:
        return replace(self, failures=min(self.failures + 1, 16), not_before=moment)


def due_at(wanted: Sequence[Condition], reported: Reported, owed: bool = False) -> float | None:
    """When `wanted` is to be sent; None: it need not be, the API server has it.

    `owed`: somebody has to see it, however soon something else follows; it waits for nothing but an outage.
    """
    if reported.conditions == tuple(wanted):
        return None
    if owed:
        return reported.not_before
    between = BETWEEN_COUNTS if _only_counts_differ(wanted, reported.conditions) else BETWEEN
    return max(reported.at + between, reported.not_before)


def _only_counts_differ(wanted: Sequence[Condition], known: tuple[Condition, ...] | None) -> bool:
    return known is not None and _without_counts(wanted) == _without_counts(known)


def _without_counts(given: Sequence[Condition]) -> tuple[Condition, ...]:
    return tuple(replace(each, message="") if each.type == CONDITION_RESTORED else each for each in given)
