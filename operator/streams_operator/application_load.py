"""The load of an application: samples of what came in and what was processed, and what they have shown."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class LoadSample:
    """What came in and what was processed between two answers of the same instances with the same tasks.

    Rates are records a second; times are seconds of a monotonic clock. Busy are instances that had something to process
    all the time.
    """

    since: float
    until: float
    arrival: float
    lag: int  # at the end
    furthest: float  # the lag if all tasks were as far behind as those of the instance that is furthest behind
    busy_records: float = 0.0
    busy_seconds: float = 0.0
    peak: float = 0.0  # of the fastest instance, busy or not
    one_task_behind: bool = False  # whether the lag is that of instances with one task each

    @property
    def seconds(self) -> float:
        """Its length."""
        return self.until - self.since


@dataclass(frozen=True, slots=True)
class Learned:
    """What samples and steps have shown of an application. Times are seconds, moments those of the samples' clock."""

    rate: float | None = None  # records a second of a busy instance; None: none was seen
    cost: float = 0.0  # of the last step: from the decision until all tasks were restored
    stepped_at: float | None = None  # the step whose cost is not known yet
    shrunk_at: float | None = None  # the last step, if it was down
    recovering: bool = False  # from the backlog that it has left behind
    patience: int = 1  # how many times spec.autoscaling.stabilization has to pass before the next one down


@dataclass(frozen=True, slots=True)
class Load:
    """What the operator remembers of an application's load. Nothing has moved since `quiet_since`.

    `heard` is when the last sample ended, or began to be waited for.
    """

    now: float = 0.0
    quiet_since: float = 0.0
    heard: float = 0.0
    samples: tuple[LoadSample, ...] = ()
    learned: Learned = Learned()


@dataclass(frozen=True, slots=True)
class LoadMemory:
    """What to remember of the load until the next round: `window` seconds of samples, and what they have shown."""

    window: float
    learned: Learned
