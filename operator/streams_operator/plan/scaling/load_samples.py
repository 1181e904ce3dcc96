"""From the answers of pods to samples of the load."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from streams_operator.model import InstanceAccount, LoadSample

_LONGEST = 90.0  # seconds; two answers that lie further apart say too little of what was between them
_MOST = 48  # samples that are remembered of an application
_FINE = 16  # of these: the newest, as they were measured
_MOSTLY = 0.9

Accounts = Mapping[str, InstanceAccount]


def measured(before: Accounts, after: Accounts) -> LoadSample | None:
    """The sample between two answers of all instances; None: they do not belong together, or one says too little.

    What came in is what was processed and what waits in addition. It counts in offsets, as lag does. An instance with
    more to process at the beginning than it has processed by the end was busy all the time.
    """
    since, until = _at(before), _at(after)
    if since is None or until is None or not 0 < until - since <= _LONGEST or before.keys() != after.keys():
        return None
    seconds, came, lag, alone = until - since, 0, 0, 0
    busy_records = busy_seconds = peak = furthest = 0.0
    for name, now in after.items():
        then = before[name]
        was, is_ = _figures(then), _figures(now)
        if was is None or is_ is None or then.tasks != now.tasks or is_[0] < was[0]:
            return None
        done = is_[0] - was[0]
        came += done + is_[1] - was[1]
        lag += is_[1]
        alone += is_[1] if len(now.tasks) == 1 else 0
        peak, furthest = max(peak, done / seconds), max(furthest, is_[1] / max(len(now.tasks), 1))
        if was[1] > 0 and is_[1] > 0 and was[1] >= done:
            busy_records, busy_seconds = busy_records + done, busy_seconds + seconds
    return LoadSample(
        since=since,
        until=until,
        arrival=max(came, 0) / seconds,
        lag=lag,
        furthest=furthest * sum(len(each.tasks) for each in after.values()),
        busy_records=busy_records,
        busy_seconds=busy_seconds,
        peak=peak,
        one_task_behind=lag > 0 and alone >= _MOSTLY * lag,
    )


def compacted(samples: Sequence[LoadSample]) -> tuple[LoadSample, ...]:
    """The same in a bounded number of samples: the newest as they are, of older ones two in one."""
    if len(samples) <= _MOST:
        return tuple(samples)
    # The oldest stays alone where their number is odd.
    old, new = samples[:-_FINE], samples[-_FINE:]
    odd = len(old) % 2
    return (*old[:odd], *map(_merged, old[odd::2], old[odd + 1 :: 2]), *new)


def _merged(one: LoadSample, other: LoadSample) -> LoadSample:
    """The greater load of the two, for as long as both: it takes no instance away too soon."""
    return LoadSample(
        since=one.since,
        until=other.until,
        arrival=max(one.arrival, other.arrival),
        lag=max(one.lag, other.lag),
        furthest=max(one.furthest, other.furthest),
        busy_records=one.busy_records + other.busy_records,
        busy_seconds=one.busy_seconds + other.busy_seconds,
        peak=max(one.peak, other.peak),
        one_task_behind=other.one_task_behind,
    )


def _at(accounts: Accounts) -> float | None:
    return min((each.at for each in accounts.values()), default=None)


def _figures(account: InstanceAccount) -> tuple[int, int] | None:
    """Position and lag; one without tasks has come nowhere and has nothing to do."""
    if not account.tasks:
        return 0, 0
    return None if account.position is None or account.lag is None else (account.position, account.lag)
