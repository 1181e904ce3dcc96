"""How often something that failed is begun anew: back-off, and a budget that uptime refills."""

from __future__ import annotations

from dataclasses import dataclass

from streams_runtime.retry_backoff import backoff_delay


@dataclass(frozen=True, slots=True)
class RestartPolicy:
    """`budget` restarts in a row; each `refill` seconds of uptime give one back.

    The first restart waits `first` seconds, each further one twice as long, at most `longest`: what failed by chance is
    back soon, what can't run does not keep the machine busy.
    """

    budget: int = 5
    refill: float = 60.0
    first: float = 1.0
    longest: float = 30.0


@dataclass(frozen=True, slots=True)
class RestartBudget:
    """What is left of a policy's budget."""

    policy: RestartPolicy
    left: float

    @classmethod
    def full(cls, policy: RestartPolicy) -> RestartBudget:
        """Nothing is spent yet."""
        return cls(policy, float(policy.budget))

    def after_crash(self, uptime: float) -> tuple[RestartBudget, float | None]:
        """The budget after a crash that followed `uptime` seconds of running, and the seconds until the restart.

        None: the budget is spent, and nothing is started again.
        """
        policy = self.policy
        left = min(self.left + uptime / policy.refill, float(policy.budget))
        if left < 1:
            return RestartBudget(policy, left), None
        spent = int(policy.budget - left)
        return RestartBudget(policy, left - 1), backoff_delay(spent, policy.first, policy.longest)
