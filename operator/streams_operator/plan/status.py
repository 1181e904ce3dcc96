"""The status of the resource."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from streams_operator.model import InstanceAccount
from streams_operator.names import LABEL_APPLICATION
from streams_operator.plan.conditions import conditions
from streams_operator.plan.decision import Decision
from streams_operator.plan.instances import Instance
from streams_operator.plan.rollback import given_up, joined, shown, stable
from streams_operator.plan.standing import Standing, answers, ended
from streams_operator.plan.state import state
from streams_operator.plan.times import text_not_before, text_of
from streams_operator.plan.words import clipped
from streams_runtime.states import ClientState

_LITTLE_LAG = 100  # records; less than that is what is under way in an application that keeps up
_ERROR_LENGTH = 2000  # bytes; as in the pod's own condition


def status(decision: Decision) -> dict[str, Any]:
    """As it is to stand in the resource; what is not known is left out."""
    case = decision.case
    accounts = [case.observed.accounts.get(each.name) if _answers(each) else None for each in decision.instances]
    ready = sum(1 for pod in case.own if answers(pod))
    found: dict[str, Any] = {
        "observedGeneration": case.metadata.get("generation", 0),
        "state": state(decision),
        "replicas": len(case.own),
        "readyReplicas": ready,
        "ready": f"{ready}/{case.replicas}",
        "selector": f"{LABEL_APPLICATION}={case.identity.name}",
        "internalTopics": decision.topics.shown,
        "instances": [
            instance(each, account, case.now, case.past.lag_of(each.name))
            for each, account in zip(decision.instances, accounts, strict=True)
        ],
        "restoration": restoration(decision.instances, accounts),
        "conditions": conditions(decision),
    }
    version = deployed(decision)
    if version:
        found["deployed"] = version
    for name, digest in (("stable", stable(decision)), ("joined", joined(decision))):
        if digest:
            found[name] = digest
    record = given_up(decision)
    if record is not None:
        found["rolledBack"] = shown(record)
    if decision.topics.tasks is not None:
        found["tasks"] = decision.topics.tasks
    lag = total_lag(decision.instances, accounts)
    if lag is not None:
        found["lag"] = shown_lag(case.past.status.get("lag"), lag)
    return found


def exact_lag(decision: Decision) -> int | None:
    """The application's lag to the record, for metrics."""
    accounts = [decision.case.observed.accounts.get(each.name) for each in decision.instances]
    return total_lag(decision.instances, accounts)


def shown_lag(before: Any, lag: int) -> int:
    """The lag that a status shows: the one that stands there until it is another by a factor of two, or none is left.

    It changes with every record; a status that followed it would be a write at every look, for every application.
    """
    if not isinstance(before, int) or isinstance(before, bool) or before < 0:
        return lag
    near = lag < _LITTLE_LAG if before == 0 else before / 2 <= lag <= before * 2
    return before if near else lag


def deployed(decision: Decision) -> str:
    """The version to compare a new topology with: the present one from its first pod on, until then the last one."""
    case = decision.case
    there = case.digest is not None and any(each.digest == case.digest for each in decision.instances)
    return case.digest if there and case.digest is not None else case.past.deployed


def instance(each: Instance, account: InstanceAccount | None, now: float, lag_before: int | None) -> dict[str, Any]:
    """One entry of status.instances. It is also what the operator remembers of an ordinal."""
    pod, crashes = each.pod, each.account
    entry: dict[str, Any] = {
        "name": each.name,
        "state": each.state,
        "ready": pod is not None and answers(pod),
        "spec": each.digest,
        "restartNonce": each.nonce,
        "restarts": crashes.restarts,
    }
    if _answers(each):
        entry["recordsLeft"] = _left(each, account)
    if account is not None:
        entry["tasks"] = list(account.tasks)
        if account.lag is not None:
            entry["lag"] = shown_lag(lag_before, account.lag)
    if pod is not None and each.standing is Standing.NEW and pod.reason:
        entry["reason"] = pod.reason
    if each.wait is not None:
        entry["progressedAt"] = text_of(each.wait.since)
        if each.wait.least is not None:
            entry["leastRecordsLeft"] = each.wait.least
    if each.shutdown_requested:
        entry["shutdownRequested"] = True
    if each.error is not None:
        entry["error"] = {"class": each.error[0], "message": clipped(each.error[1], _ERROR_LENGTH)}
    if crashes.last is not None:
        last = crashes.last
        entry["lastCrash"] = {"uid": last.uid, "at": text_of(last.at), "reason": last.reason}
    if crashes.until is not None and crashes.until > now:
        entry["backoffUntil"] = text_not_before(crashes.until)
    return entry


def total_lag(instances: Sequence[Instance], accounts: Sequence[InstanceAccount | None]) -> int | None:
    """The records that are not processed yet; None while one that has tasks has not told."""
    told = [account.lag for account in accounts if account is not None and account.lag is not None]
    asked = [
        each for each in instances if _answers(each) and each.state in (ClientState.RUNNING, ClientState.REBALANCING)
    ]
    return sum(told) if told and len(told) >= len(asked) else None


def restoration(instances: Sequence[Instance], accounts: Sequence[InstanceAccount | None]) -> dict[str, int]:
    """The records that are left to restore, and the seconds that the slowest instance still needs."""
    pairs = [
        (_left(each, account), account) for each, account in zip(instances, accounts, strict=True) if _answers(each)
    ]
    found = {"recordsLeft": sum(left for left, _ in pairs)}
    busy = [(left, account.records_per_second if account is not None else None) for left, account in pairs if left]
    if busy and all(rate for _, rate in busy):
        found["etaSeconds"] = max(math.ceil(left / rate) for left, rate in busy if rate)
    return found


def _answers(each: Instance) -> bool:
    return each.pod is not None and not ended(each.pod) and each.standing is not Standing.NEW


def _left(each: Instance, account: InstanceAccount | None) -> int:
    if account is not None:
        return account.records_left
    return each.pod.records_left if each.pod is not None else 0
