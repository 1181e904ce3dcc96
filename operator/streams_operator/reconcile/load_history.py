"""The samples of the load that the operator remembers: a few dozen of each application with spec.autoscaling."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from streams_operator.model import InstanceAccount, Key, Learned, Load, LoadMemory, LoadSample
from streams_operator.plan.scaling.load_samples import compacted, measured

_ALMOST = 0.8  # of an interval; rounds do not come to the second
_GAP = 90.0  # seconds between two samples that do not belong together


@dataclass(slots=True)
class _Known:
    quiet_since: float
    heard: float
    last: Mapping[str, InstanceAccount] = field(default_factory=dict)
    samples: tuple[LoadSample, ...] = ()
    learned: Learned = field(default_factory=Learned)


class LoadHistory:
    """Belongs to the event loop's thread. A new leader begins without any."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        """`clock`: the one that answers of pods are timed by, which is the event loop's."""
        self._clock = clock
        self._known: dict[Key, _Known] = {}

    def of(self, key: Key, accounts: Mapping[str, InstanceAccount], interval: float) -> Load:
        """The load as far as it is known, with the sample that these answers end, if it is `interval` seconds long."""
        now = self._clock()
        known = self._known.setdefault(key, _Known(now, now))
        if known.last.keys() == accounts.keys() and _tasks(known.last) != _tasks(accounts):
            known.last, known.samples = {}, ()  # what an instance has to do is something else now
        sample = measured(known.last, accounts)
        if sample is not None and sample.seconds >= _ALMOST * interval:
            _add(known, sample, now)
            known.last = accounts
        elif sample is None and (known.last.keys() <= accounts.keys() or _old(known.last, now)):
            # One answer that is missing makes the next sample longer; other instances make a new beginning.
            known.last = accounts
        return Load(now, known.quiet_since, known.heard, known.samples, known.learned)

    def remember(self, key: Key, memory: LoadMemory | None) -> None:
        """What the round has decided to remember until the next one."""
        known = self._known.get(key)
        if memory is None or known is None:
            self.forget(key)
            return
        known.learned = memory.learned
        if not memory.window:
            now = self._clock()
            known.last, known.samples, known.quiet_since, known.heard = {}, (), now, now
            return
        oldest = self._clock() - memory.window
        if known.samples and known.samples[0].until < oldest:
            known.samples = tuple(each for each in known.samples if each.until >= oldest)

    def forget(self, key: Key) -> None:
        """The resource has gone, or asks for no autoscaling."""
        self._known.pop(key, None)

    def clear(self) -> None:
        """Another replica leads."""
        self._known.clear()


def _add(known: _Known, sample: LoadSample, now: float) -> None:
    if known.samples and sample.since - known.samples[-1].until > _GAP:
        known.samples = ()
    if not known.samples:
        known.quiet_since = sample.since
    known.samples, known.heard = compacted((*known.samples, sample)), now


def _tasks(accounts: Mapping[str, InstanceAccount]) -> Mapping[str, tuple[str, ...]]:
    return {name: each.tasks for name, each in accounts.items()}


def _old(accounts: Mapping[str, InstanceAccount], now: float) -> bool:
    return any(now - each.at > _GAP for each in accounts.values())
