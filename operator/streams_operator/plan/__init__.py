"""The decisions: from an Observed to a Plan, without any I/O, clock or randomness.

`version` says which version of an application is in force and what it reads. `decide` finds the phase that it is in;
`pods`, `topics` and `deletion` decide each one thing; `objects` says what the application is made of; `status` puts the
decision into the resource's status, its conditions and events.
"""

from streams_operator.plan.decide import plan
from streams_operator.plan.differs import differs
from streams_operator.plan.objects.document import document
from streams_operator.plan.pods.standing import serving
from streams_operator.plan.reconcile_context import is_on_hold
from streams_operator.plan.scaling.scaling_policy import sample_interval, wanted_replicas
from streams_operator.plan.status.complaints import REFUSALS
from streams_operator.plan.status.past import Past
from streams_operator.plan.version.followed_sources import followed
from streams_operator.plan.version.in_force import in_force

__all__ = [
    "REFUSALS",
    "Past",
    "differs",
    "document",
    "followed",
    "in_force",
    "is_on_hold",
    "plan",
    "sample_interval",
    "serving",
    "wanted_replicas",
]
