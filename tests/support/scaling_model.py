"""An application under load in simulated time, and the operator's own decisions about its number of instances.

Tasks are whole, lie one after the other on the instances, and are equal. An instance processes `rate` records a second
of its tasks together. After a change nothing of the tasks that move is processed until they are restored, and for a
while new instances are slower. Positions move when a batch is committed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import pairwise

from streams_operator.model import InstanceAccount, Key
from streams_operator.plan.scaling.capacity import needed
from streams_operator.plan.scaling.replica_decision import LIMITED, ROOM, Verdict, decide
from streams_operator.plan.scaling.scaling_lessons import memory
from streams_operator.plan.scaling.scaling_policy import Policy
from streams_operator.reconcile.load_history import LoadHistory

TICK = 5.0
_KEY = Key("shop", "orders")
Curve = Callable[[float], float]
"""Records a second that come in, by the time in seconds."""


@dataclass(slots=True)
class Simulation:
    """`moving`: seconds from a decision until its tasks are restored, `warm_up`: seconds of half the rate afterwards.
    `jitter`: of the rounds, as the queue has it."""

    policy: Policy
    arrival: Curve
    rate: float
    start: int = 1
    backlog: float = 0.0
    moving: float = 30.0
    warm_up: float = 20.0
    jitter: float = 0.05
    commit: float = TICK
    now: float = 0.0
    wanted: list[tuple[float, int]] = field(default_factory=list)  # time and number of each change
    verdicts: list[tuple[float, Verdict]] = field(default_factory=list)  # each other than the one before
    lags: list[tuple[float, float]] = field(default_factory=list)
    _done: list[float] = field(default_factory=list)
    _told: list[float] = field(default_factory=list)
    _lag: list[float] = field(default_factory=list)
    _still: dict[int, float] = field(default_factory=dict)  # tasks that are not processed, until when
    _moved: float = float("-inf")
    _history: LoadHistory = field(init=False)

    def __post_init__(self) -> None:
        self.wanted = [(0.0, self.start)]
        self._done = [0.0] * self.policy.tasks
        self._told = list(self._done)
        self._lag = [self.backlog / self.policy.tasks] * self.policy.tasks
        self._history = LoadHistory(lambda: self.now)

    @property
    def replicas(self) -> int:
        """The present number."""
        return self.wanted[-1][1]

    def run(self, seconds: float) -> Simulation:
        """Let time pass, with a round an interval."""
        end, due = self.now + seconds, self.now
        while self.now < end:
            self._process()
            self.now += TICK
            if self.now >= due:
                self._round()
                due = self.now + self.policy.interval * (1 + self.jitter)
        return self

    @property
    def rate_is_known(self) -> bool:
        """Whether an instance was ever seen to have enough to do."""
        return self.verdicts[-1][1].rate is not None

    def rest(self, quiet: float, most: float) -> Simulation:
        """Let time pass until nothing waits and the number is the same for so long, or for `most` seconds."""
        end, since = self.now + most, self.now
        while self.now < end and self.now - max(self.wanted[-1][0], since) < quiet:
            self.run(600.0)
            since = self.now if self.is_behind() else since
        return self

    def is_behind(self) -> bool:
        """Whether more waits than is under way in an application that keeps up."""
        return self.lags[-1][1] > max(100.0, self.arrival(self.now) * self.policy.interval)

    def turns(self, since: float = 0.0) -> int:
        """How often the number has turned from more to fewer or back."""
        steps = [after - before for (_, before), (at, after) in pairwise(self.wanted) if at >= since]
        return sum(1 for one, other in pairwise(steps) if one * other < 0)

    def longest_behind(self, after_up: bool) -> float:
        """Seconds of the longest backlog that followed a step up, or one down, while another step could follow."""
        longest, since, up = 0.0, None, True
        limited, replicas = False, self.wanted[0][1]
        steps, said = dict(self.wanted), dict(self.verdicts)
        for now, lag in self.lags:
            limited = said[now].reason in LIMITED if now in said else limited
            up = steps[now] >= replicas if now in steps else up
            replicas = steps.get(now, replicas)
            behind = lag > max(100.0, self.arrival(now) * self.policy.interval)
            if not behind or limited or up is not after_up or now in steps:
                since = None
                continue
            since = now if since is None else since
            longest = max(longest, now - since)
        return longest

    def least(self, arrival: float) -> int:
        """The fewest instances that keep up with a load and have room, of those that there may be."""
        return min(max(needed(arrival / ROOM, self.policy.tasks, self.rate), self.policy.least), self.policy.most)

    def _process(self) -> None:
        came = self.arrival(self.now) * TICK / self.policy.tasks
        for instance in range(self.replicas):
            left = self.rate * TICK * (0.5 if self.now - self._moved < self.moving + self.warm_up else 1.0)
            tasks = list(self._tasks(instance))
            for task in tasks:
                self._lag[task] += came
            for index, task in enumerate(tasks):
                if self._still.get(task, 0.0) <= self.now:
                    done = min(self._lag[task], left / (len(tasks) - index))
                    self._lag[task] -= done
                    self._done[task] += done
                    left -= done
        if self.now % self.commit < TICK:
            self._told = list(self._done)
        self.lags.append((self.now, sum(self._lag)))

    def _tasks(self, instance: int) -> range:
        return range(instance, self.policy.tasks, self.replicas)

    def _round(self) -> None:
        load = self._history.of(_KEY, self._accounts(), self.policy.interval)
        if self.now - self._moved < self.moving:
            under_way = Verdict(self.replicas, "Moving", "", load.learned.rate)
            self._history.remember(_KEY, memory(self.policy, load, under_way, self.replicas, False))
            return
        before = self.verdicts[-1][1] if self.verdicts else Verdict(self.replicas, "", "")
        verdict = decide(self.policy, load, self.replicas, before.reason)
        self._history.remember(_KEY, memory(self.policy, load, verdict, self.replicas, True))
        if (verdict.replicas, verdict.reason) != (before.replicas, before.reason):
            self.verdicts.append((self.now, verdict))
        if verdict.replicas != self.replicas:
            self._scale(verdict.replicas)

    def _scale(self, replicas: int) -> None:
        owners = {task: instance for instance in range(self.replicas) for task in self._tasks(instance)}
        self.wanted.append((self.now, replicas))
        self._moved = self.now
        for instance in range(replicas):
            for task in self._tasks(instance):
                if owners[task] != instance:
                    self._still[task] = self.now + self.moving

    def _accounts(self) -> dict[str, InstanceAccount]:
        return {f"orders-{instance}": self._account(instance) for instance in range(self.replicas)}

    def _account(self, instance: int) -> InstanceAccount:
        tasks = list(self._tasks(instance))
        behind = sum(self._lag[task] + self._done[task] - self._told[task] for task in tasks)
        return InstanceAccount(
            tasks=tuple(f"0_{task}" for task in tasks),
            lag=round(behind),
            position=round(sum(self._told[task] for task in tasks)),
            at=self.now,
        )
