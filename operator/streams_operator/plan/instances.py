"""Each ordinal, from its pod and from what status remembers of it."""

from __future__ import annotations

from dataclasses import dataclass

from streams_operator import names
from streams_operator.model import PodSeen
from streams_operator.plan.backoff import after_crash, while_running
from streams_operator.plan.case import Case
from streams_operator.plan.past import Account, PastInstance, Wait
from streams_operator.plan.progress import waited
from streams_operator.plan.standing import Standing, ended, failing, in_error, standing
from streams_runtime.states import ClientState

_REMEMBERED = (ClientState.PENDING_ERROR, ClientState.ERROR)


@dataclass(frozen=True, slots=True)
class Instance:
    """One ordinal. `digest` is what its pod, or its last one, was made from.

    `nonce` is the restartNonce that its pod was made with, or was on record as running under. `outdated`: another
    digest, or a greater number, is asked for. `stale` are the Secrets and ConfigMaps (`Kind/name`) that have changed
    since its pod was made, as far as spec.restartOnChange follows them: a pod that runs is replaced for them.
    """

    ordinal: int
    name: str
    standing: Standing
    state: str
    pod: PodSeen | None
    digest: str
    nonce: int
    outdated: bool
    account: Account
    error: tuple[str, str] | None = None
    shutdown_requested: bool = False  # it asks all others to end too
    wait: Wait | None = None  # None: it has arrived, or is not on its way
    stale: tuple[str, ...] = ()


def instances(case: Case) -> tuple[Instance, ...]:
    """Every ordinal that should have a pod, and every one that has one; by ordinal.

    Of an application that is suspended, deleted or invalid: only those that have a pod, or in an invalid one a past.
    """
    pods = {pod.ordinal: pod for pod in case.own}
    wanted = set(pods)
    if case.deleted_at is None and not case.suspended:
        # What an invalid resource has as replicas may be any number.
        known = {names.ordinal(name, case.identity.name) for name in case.past.instances}
        known = {each for each in known if each is not None and each < case.replicas}
        wanted |= set(range(case.replicas)) if case.application is not None else known
    return tuple(
        _present(case, pods[ordinal]) if ordinal in pods else _absent(case, ordinal)
        for ordinal in sorted(each for each in wanted if each is not None)
    )


def _present(case: Case, pod: PodSeen) -> Instance:
    past = case.past.instances.get(pod.name)
    account, nonce = (past.account, max(past.nonce, pod.nonce)) if past else (Account(), pod.nonce)
    now = standing(pod, case.now)
    if now is Standing.CRASHED:
        account = after_crash(account, pod, case.now)
    elif now in (Standing.NEW, Standing.LIVE):
        account = while_running(account, pod, case.now)
    return Instance(
        ordinal=pod.ordinal if pod.ordinal is not None else -1,
        name=pod.name,
        standing=now,
        state=_state(pod),
        pod=pod,
        digest=pod.digest,
        nonce=nonce,
        outdated=_outdated(case, pod.digest, nonce),
        account=account,
        error=_error(pod),
        shutdown_requested=pod.shutdown_requested,
        wait=waited(case, past, now, pod),
        stale=_stale(case, pod),
    )


def _absent(case: Case, ordinal: int) -> Instance:
    name = names.pod(case.identity.name, ordinal)
    known = case.past.instances.get(name)
    past = known or PastInstance(name, "", "", 0, None, Account())
    outdated = _outdated(case, past.digest, past.nonce)
    if past.state in _REMEMBERED and not outdated:
        error = past.error or ("Unknown", "nobody has said why; its pod has gone")
        lost, dead = Standing.LOST_IN_ERROR, str(ClientState.ERROR)
        asks = past.shutdown_requested
        return Instance(ordinal, name, lost, dead, None, past.digest, past.nonce, False, past.account, error, asks)
    # What crashed was made from something else, or somebody has said: go on.
    account = Account(0, past.account.last) if outdated else past.account
    created = str(ClientState.CREATED)
    wait = waited(case, known, Standing.ABSENT, None)
    return Instance(
        ordinal, name, Standing.ABSENT, created, None, past.digest, past.nonce, outdated, account, wait=wait
    )


def _outdated(case: Case, digest: str, nonce: int) -> bool:
    return case.digest is not None and (digest != case.digest or nonce < case.nonce)


def _stale(case: Case, pod: PodSeen) -> tuple[str, ...]:
    return tuple(name for name, now in sorted(case.observed.inputs.items()) if pod.inputs.get(name) != now)


def _state(pod: PodSeen) -> str:
    """The client's state (KIP-696). Of a pod that crashed nobody has said what it is: it is to be made anew."""
    if in_error(pod):
        return ClientState.ERROR
    if failing(pod):
        return ClientState.PENDING_ERROR
    if ended(pod):
        return ClientState.CREATED
    if pod.deleting or pod.state == ClientState.NOT_RUNNING:
        return ClientState.PENDING_SHUTDOWN
    return pod.state if pod.state in set(ClientState) and pod.state is not None else ClientState.CREATED


def _error(pod: PodSeen) -> tuple[str, str] | None:
    if not failing(pod) and not in_error(pod):
        return None
    if pod.error is not None and pod.error[0]:
        return pod.error
    code = "" if pod.exit_code is None else f" with exit code {pod.exit_code}"
    return "Unknown", f"it ended{code} and did not say why; see its log"
