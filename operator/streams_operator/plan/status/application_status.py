"""The status of the resource."""

from __future__ import annotations

import math
from collections.abc import Sequence

from streams_operator.model import InstanceAccount
from streams_operator.names import LABEL_APPLICATION
from streams_operator.plan.decision import Decision
from streams_operator.plan.pods.instances import Instance
from streams_operator.plan.pods.standing import Standing, available, ended
from streams_operator.plan.status.application_state import state
from streams_operator.plan.status.conditions import conditions
from streams_operator.plan.status.message_texts import clipped
from streams_operator.plan.status.past import Crash
from streams_operator.plan.status.times import text_not_before, text_of
from streams_operator.plan.version.rollback import given_up, joined, rolled_back_status, stable
from streams_runtime.api.status.instance_status import CrashStatus, ErrorStatus, InstanceStatus
from streams_runtime.api.status.resource_status import ApplicationStatus, RestorationStatus
from streams_runtime.states import ClientState

_LITTLE_LAG = 100  # records; less than that is what is under way in an application that keeps up
_ERROR_LENGTH = 2000  # bytes; as in the pod's own condition


def status(decision: Decision) -> ApplicationStatus:
    """As it is to stand in the resource; what is not known is None."""
    context = decision.context
    accounts = [context.observed.accounts.get(each.name) if _reports(each) else None for each in decision.instances]
    ready = sum(1 for pod in context.own if available(pod))
    record, lag = given_up(decision), total_lag(decision.instances, accounts)
    return ApplicationStatus(
        observed_generation=context.metadata.get("generation", 0),
        state=state(decision),
        replicas=len(context.own),
        ready_replicas=ready,
        ready=f"{ready}/{context.replicas}",
        selector=f"{LABEL_APPLICATION}={context.identity.name}",
        internal_topics=decision.topics.shown,
        instances=[
            instance(each, account, context.now, context.past.lag_of(each.name))
            for each, account in zip(decision.instances, accounts, strict=True)
        ],
        restoration=restoration(decision.instances, accounts),
        conditions=conditions(decision),
        deployed=deployed(decision) or None,
        stable=stable(decision) or None,
        joined=joined(decision) or None,
        rolled_back=rolled_back_status(record) if record is not None else None,
        autoscaling=decision.scaling.status if decision.scaling is not None else None,
        tasks=decision.topics.tasks,
        lag=shown_lag(context.past.status.lag, lag) if lag is not None else None,
    )


def exact_lag(decision: Decision) -> int | None:
    """The application's lag to the record, for metrics."""
    accounts = [decision.context.observed.accounts.get(each.name) for each in decision.instances]
    return total_lag(decision.instances, accounts)


def shown_lag(before: int | None, lag: int) -> int:
    """The lag that a status shows: the one that stands there until it is another by a factor of two, or none is left.

    It changes with every record; a status that followed it would be a write in every round, for every application.
    """
    if before is None or before < 0:
        return lag
    near = lag < _LITTLE_LAG if before == 0 else before / 2 <= lag <= before * 2
    return before if near else lag


def deployed(decision: Decision) -> str:
    """The version to compare a new topology with: the present one from its first pod on, until then the last one."""
    context = decision.context
    there = context.digest is not None and any(each.digest == context.digest for each in decision.instances)
    return context.digest if there and context.digest is not None else context.past.deployed


def instance(each: Instance, account: InstanceAccount | None, now: float, lag_before: int | None) -> InstanceStatus:
    """One entry of status.instances. It is also what the operator remembers of an ordinal."""
    pod, crashes, wait, error = each.pod, each.account, each.wait, each.error
    lag = account.lag if account is not None else None
    until = crashes.until if crashes.until is not None and crashes.until > now else None
    return InstanceStatus(
        name=each.name,
        state=each.state,
        ready=pod is not None and available(pod),
        spec=each.digest,
        restart_nonce=each.nonce,
        restarts=crashes.restarts,
        records_left=_left(each, account) if _reports(each) else None,
        tasks=list(account.tasks) if account is not None else None,
        lag=shown_lag(lag_before, lag) if lag is not None else None,
        reason=(pod.reason or None) if pod is not None and each.standing is Standing.NEW else None,
        progressed_at=text_of(wait.since) if wait is not None else None,
        least_records_left=wait.least if wait is not None else None,
        shutdown_requested=each.shutdown_requested or None,
        error=ErrorStatus(exception=error[0], message=clipped(error[1], _ERROR_LENGTH)) if error is not None else None,
        last_crash=_crash(crashes.last) if crashes.last is not None else None,
        backoff_until=text_not_before(until) if until is not None else None,
    )


def _crash(last: Crash) -> CrashStatus:
    return CrashStatus(uid=last.uid, at=text_of(last.at), reason=last.reason)


def total_lag(instances: Sequence[Instance], accounts: Sequence[InstanceAccount | None]) -> int | None:
    """The records that are not processed yet; None while one that has tasks has not reported."""
    lags = [account.lag for account in accounts if account is not None and account.lag is not None]
    asked = [
        each for each in instances if _reports(each) and each.state in (ClientState.RUNNING, ClientState.REBALANCING)
    ]
    return sum(lags) if lags and len(lags) >= len(asked) else None


def restoration(instances: Sequence[Instance], accounts: Sequence[InstanceAccount | None]) -> RestorationStatus:
    """The records that are left to restore, and the seconds that the slowest instance still needs."""
    pairs = [
        (_left(each, account), account) for each, account in zip(instances, accounts, strict=True) if _reports(each)
    ]
    records_left = sum(left for left, _ in pairs)
    busy = [(left, account.records_per_second if account is not None else None) for left, account in pairs if left]
    if busy and all(rate for _, rate in busy):
        eta = max(math.ceil(left / rate) for left, rate in busy if rate)
        return RestorationStatus(records_left=records_left, eta_seconds=eta)
    return RestorationStatus(records_left=records_left)


def _reports(each: Instance) -> bool:
    return each.pod is not None and not ended(each.pod) and each.standing is not Standing.NEW


def _left(each: Instance, account: InstanceAccount | None) -> int:
    if account is not None:
        return account.records_left
    return each.pod.records_left if each.pod is not None else 0
