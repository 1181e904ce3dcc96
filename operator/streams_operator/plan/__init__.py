"""The decisions: from an Observed to a Plan, without any I/O, clock or randomness.

`in_force` says which version counts, `mounted` which Secrets and ConfigMaps it follows. `decide` picks what is going on
with an application; `topics`, `moves`, `rolling`, `backoff` and `deletion` decide each one thing; `objects` says what
the application is made of; `status`, `conditions` and `happenings` put it into words.
"""

from streams_operator.plan.decide import plan
from streams_operator.plan.differs import differs
from streams_operator.plan.in_force import in_force
from streams_operator.plan.mounted import Ref, followed
from streams_operator.plan.past import Past
from streams_operator.plan.standing import serving

__all__ = ["Past", "Ref", "differs", "followed", "in_force", "plan", "serving"]
