"""What the status says of an application that is suspended, or that a reset keeps down."""

from __future__ import annotations

from collections.abc import Iterator

from streams_operator.plan.decision import Decision
from streams_operator.plan.pods.progress import EXCEEDED, overdue
from streams_operator.plan.status.message_texts import listed

RESETTING = "Resetting"
"""Reason of Progressing, and of Ready where spec.suspend is false."""


def suspended_progress(decision: Decision) -> tuple[str, str, str]:
    """(status, reason, message) of Progressing."""
    context, reset = decision.context, decision.reset
    if overdue(context, reset.wait):
        return "False", EXCEEDED, f"{reset.title} did not come to its end in spec.progressDeadline; Degraded says why"
    if context.own:
        return "True", "Suspending", f"closing {listed([pod.name for pod in context.own])}, from the last on"
    if reset.shown is not None and reset.under_way:
        return "True", RESETTING, f"{reset.title}: {reset.shown.message}"
    return "False", "Suspended", "all pods are closed"


def closed(decision: Decision) -> tuple[str, str]:
    """(reason, message) of Ready."""
    if decision.reset.begun:
        return RESETTING, f"{decision.reset.title} is not whole yet"
    application = decision.context.application
    if application is not None and not application.spec.suspend:
        return RESETTING, f"{decision.reset.title} is whole; pods are made next"
    return "Suspended", "spec.suspend is true"


def all_closed(decision: Decision) -> str:
    """The message of Suspended, which is True."""
    under_way = f"{decision.reset.title} is under way"
    return f"all pods are closed; {under_way if decision.reset.begun else 'state and topics are kept'}"


def late_resets(decision: Decision) -> Iterator[tuple[str, str]]:
    """Of a reset that does not come to its end: reason and text of a complaint."""
    reset = decision.reset
    if reset.shown is not None and overdue(decision.context, reset.wait):
        yield EXCEEDED, f"{reset.title} is {reset.shown.state} since {reset.shown.started_at}: {reset.shown.message}"
