"""What a number of instances can process when tasks are whole: one with two of three tasks has two thirds to do."""

from __future__ import annotations

import math

_ROUNDING = 1e-9


def capacity(instances: int, tasks: int, rate: float) -> float:
    """Records a second of all tasks together, until the instance with the most tasks has no time left.

    `rate`: records a second of one instance. Tasks count as equal.
    """
    return rate * tasks / math.ceil(tasks / instances)


def needed(demand: float, tasks: int, rate: float) -> int:
    """The fewest instances whose capacity is `demand`; one more than there are tasks: no number of them has it."""
    if demand <= rate:
        return 1
    at_most = math.floor(rate * tasks / demand + _ROUNDING)  # tasks of one instance
    return tasks + 1 if at_most < 1 else math.ceil(tasks / at_most)
