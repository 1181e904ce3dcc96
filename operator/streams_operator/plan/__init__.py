"""The decisions: from an Observed to a Plan, without any I/O, clock or randomness.

`decide` picks what is going on with an application; `topics`, `moves`, `rolling`, `backoff` and `deletion` decide each
one thing; `objects` says what the application is made of; `status`, `conditions` and `happenings` put it into words.
"""

from streams_operator.plan.decide import plan
from streams_operator.plan.differs import differs

__all__ = ["differs", "plan"]
