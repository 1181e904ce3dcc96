"""Each ordinal, from its pod and from what status remembers of it."""

from __future__ import annotations

from dataclasses import dataclass

from streams_operator import names
from streams_operator.model import PodState
from streams_operator.plan.pods.backoff import after_crash, while_running
from streams_operator.plan.pods.progress import waited
from streams_operator.plan.pods.standing import Standing, ended, failing, in_error, standing
from streams_operator.plan.reconcile_context import ReconcileContext
from streams_operator.plan.status.past import Account, PastInstance, Wait
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
    pod: PodState | None
    digest: str
    nonce: int
    outdated: bool
    account: Account
    error: tuple[str, str] | None = None
    shutdown_requested: bool = False  # it asks all others to end too
    wait: Wait | None = None  # None: it has arrived, or is not on its way
    stale: tuple[str, ...] = ()


def instances(context: ReconcileContext) -> tuple[Instance, ...]:
    """Every ordinal that should have a pod, and every one that has one; by ordinal.

    Of an application that is suspended, deleted or invalid: only those that have a pod, or in an invalid one a past.
    """
    pods = {pod.ordinal: pod for pod in context.own}
    wanted = set(pods)
    if context.deleted_at is None and not context.suspended:
        # What an invalid resource has as replicas may be any number.
        known = {names.ordinal(name, context.identity.name) for name in context.past.instances}
        known = {each for each in known if each is not None and each < context.replicas}
        wanted |= set(range(context.replicas)) if context.application is not None else known
    return tuple(
        _present(context, pods[ordinal]) if ordinal in pods else _absent(context, ordinal)
        for ordinal in sorted(each for each in wanted if each is not None)
    )


def _present(context: ReconcileContext, pod: PodState) -> Instance:
    past = context.past.instances.get(pod.name)
    account, nonce = (past.account, max(past.nonce, pod.nonce)) if past else (Account(), pod.nonce)
    now = standing(pod, context.now)
    if now is Standing.CRASHED:
        account = after_crash(account, pod, context.now)
    elif now in (Standing.NEW, Standing.LIVE):
        account = while_running(account, pod, context.now)
    return Instance(
        ordinal=pod.ordinal if pod.ordinal is not None else -1,
        name=pod.name,
        standing=now,
        state=_state(pod),
        pod=pod,
        digest=pod.digest,
        nonce=nonce,
        outdated=_outdated(context, pod.digest, nonce),
        account=account,
        error=_error(pod),
        shutdown_requested=pod.shutdown_requested,
        wait=waited(context, past, now, pod),
        stale=_stale(context, pod),
    )


def _absent(context: ReconcileContext, ordinal: int) -> Instance:
    name = names.pod(context.identity.name, ordinal)
    known = context.past.instances.get(name)
    past = known or PastInstance(name, "", "", 0, None, Account())
    outdated = _outdated(context, past.digest, past.nonce)
    if past.state in _REMEMBERED and not outdated:
        error = past.error or ("Unknown", "nobody has said why; its pod has gone")
        lost, dead = Standing.LOST_IN_ERROR, str(ClientState.ERROR)
        asks = past.shutdown_requested
        return Instance(ordinal, name, lost, dead, None, past.digest, past.nonce, False, past.account, error, asks)
    # What crashed was made from something else, or somebody has said: go on.
    account = Account(0, past.account.last) if outdated else past.account
    created = str(ClientState.CREATED)
    wait = waited(context, known, Standing.ABSENT, None)
    return Instance(
        ordinal, name, Standing.ABSENT, created, None, past.digest, past.nonce, outdated, account, wait=wait
    )


def _outdated(context: ReconcileContext, digest: str, nonce: int) -> bool:
    return context.digest is not None and (digest != context.digest or nonce < context.nonce)


def _stale(context: ReconcileContext, pod: PodState) -> tuple[str, ...]:
    return tuple(name for name, now in sorted(context.observed.inputs.items()) if pod.inputs.get(name) != now)


def _state(pod: PodState) -> str:
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


def _error(pod: PodState) -> tuple[str, str] | None:
    if not failing(pod) and not in_error(pod):
        return None
    if pod.error is not None and pod.error[0]:
        return pod.error
    code = "" if pod.exit_code is None else f" with exit code {pod.exit_code}"
    return "Unknown", f"it ended{code} and did not say why; see its log"
