"""What the pods say of themselves at /state/figures: asked beside the rounds, so that a silent pod delays nobody.

No token is presented, whatever spec.queries.access says: figures are open, since they stand in the resource's status,
and so the operator has no credential that a pod could abuse. Nor is a pod's certificate verified, as kubelets do with
probes: nothing secret is sent, and a stranger at a pod's address could give wrong figures and nothing else. What
spec.autoscaling chooses, between its minReplicas and maxReplicas, rests on them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from http import HTTPStatus
from typing import Any

import aiohttp
import orjson

from streams_operator.model import InstanceAccount, Key, PodState
from streams_operator.names import QUERY_PORT
from streams_operator.reconcile.freshness import FRESH, Freshness

_ANSWER = 2.0  # seconds that a pod has to answer
_PATIENCE = 0.3  # seconds that a round waits; what comes later requeues the resource
_AT_ONCE = 64  # requests, over all applications
_LONGEST = 1 << 20  # bytes of an answer
_LARGEST = 1 << 63  # a larger number is no offset, and would be none that can be reckoned with
_STATES = frozenset({"REBALANCING", "RUNNING"})

Url = Callable[[PodState], str | None]
"""Where a pod answers; None: nowhere."""


def state_url(pod: PodState) -> str | None:
    """`/state/figures` of a pod that has something to say."""
    if pod.ip is None or pod.deleting or pod.state not in _STATES or pod.phase != "Running":
        return None
    host = f"[{pod.ip}]" if ":" in pod.ip else pod.ip
    return f"{'https' if pod.tls else 'http'}://{host}:{QUERY_PORT}/state/figures"


class Accounts:
    """The last answers, by application and pod. Missing answers leave the figures out."""

    def __init__(self, changed: Callable[[Key], None], url: Url = state_url) -> None:
        """`changed`: called when answers came after the round that asked for them, and are different."""
        self._changed = changed
        self._url = url
        self._session: aiohttp.ClientSession | None = None
        self._accounts: dict[Key, Mapping[str, InstanceAccount]] = {}
        self._asked_at: dict[Key, float] = {}
        self._answered_at: dict[Key, float] = {}
        self._asking: dict[Key, asyncio.Task[None]] = {}
        self._freshness = Freshness(lambda: asyncio.get_running_loop().time())
        self._known: dict[Key, frozenset[str]] = {}  # uids of the pods that were last asked

    async def of(self, key: Key, pods: Sequence[PodState]) -> Mapping[str, InstanceAccount]:
        """The accounts by pod name, as new as can be had without waiting."""
        asked = [(pod, url) for pod in pods if (url := self._url(pod)) is not None]
        now = asyncio.get_running_loop().time()
        if asked and key not in self._asking and now - self._asked_at.get(key, -FRESH) >= FRESH:
            self._asked_at[key] = now
            task = asyncio.create_task(self._refresh(key, asked))
            self._asking[key] = task
            task.add_done_callback(lambda _: self._asking.pop(key, None))
            before = self._accounts.get(key)
            done, _ = await asyncio.wait({task}, timeout=_PATIENCE)
            if not done:
                # A decision that waits for an answer goes on with it, whatever it says.
                awaited = any(self._freshness.doubted(pod.uid) for pod, _ in asked)
                task.add_done_callback(
                    lambda _: self._changed(key) if awaited or self._accounts.get(key) != before else None
                )
        names = {pod.name for pod, _ in asked}
        return {name: account for name, account in self._accounts.get(key, {}).items() if name in names}

    def judged(self, pods: Sequence[PodState]) -> tuple[PodState, ...]:
        """The pods with what their answers say of their conditions: `doubted`, `silent`."""
        return tuple(
            replace(pod, doubted=self._freshness.doubted(pod.uid), silent=self._freshness.silent(pod.uid))
            if self._url(pod) is not None
            else pod
            for pod in pods
        )

    def forget(self, key: Key) -> None:
        """The resource has gone."""
        self._accounts.pop(key, None)
        self._asked_at.pop(key, None)
        self._answered_at.pop(key, None)
        for uid in self._known.pop(key, ()):
            self._freshness.forget(uid)
        if task := self._asking.pop(key, None):
            task.cancel()

    async def close(self) -> None:
        """Ask no more."""
        for task in list(self._asking.values()):
            task.cancel()
        if self._session is not None:
            await self._session.close()

    async def _refresh(self, key: Key, asked: Sequence[tuple[PodState, str]]) -> None:
        if self._session is None:
            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(limit=_AT_ONCE, ssl=False),
                timeout=aiohttp.ClientTimeout(sock_connect=_ANSWER, sock_read=_ANSWER),
            )
        session = self._session
        uids = frozenset(pod.uid for pod, _ in asked)
        for gone in self._known.get(key, frozenset()) - uids:
            self._freshness.forget(gone)
        self._known[key] = uids
        began = asyncio.get_running_loop().time()
        found = await asyncio.gather(*(self._answer(session, pod.uid, url, began) for pod, url in asked))
        now, before = asyncio.get_running_loop().time(), self._accounts.get(key, {})
        since = now - self._answered_at.get(key, now)
        self._answered_at[key] = now
        self._accounts[key] = {
            pod.name: with_rate(replace(answer, at=now), before.get(pod.name), since)
            for (pod, _), answer in zip(asked, found, strict=True)
            if answer is not None
        }

    async def _answer(self, session: aiohttp.ClientSession, uid: str, url: str, began: float) -> InstanceAccount | None:
        answer = await _ask(session, url)
        if answer is None:
            self._freshness.failed(uid, began)
        else:
            self._freshness.answered(uid)
        return answer


async def _ask(session: aiohttp.ClientSession, url: str) -> InstanceAccount | None:
    try:
        async with session.get(url, allow_redirects=False) as response:
            if response.status != HTTPStatus.OK:
                return None
            body = bytearray()
            async for chunk in response.content.iter_any():
                body += chunk
                if len(body) > _LONGEST:
                    return None
            return account(orjson.loads(body))
    except (aiohttp.ClientError, TimeoutError, OSError, ValueError, TypeError, KeyError, AttributeError):
        # Whatever a pod answers, or does not, its figures are left out, and nothing else.
        return None


def account(answer: Mapping[str, Any]) -> InstanceAccount:
    """From `/state/figures`. Raises KeyError, TypeError or ValueError for something else."""
    lags = [each["lag"] for each in answer["lag"]]
    # Pods of an earlier runtime say nothing of positions and standbys.
    positions = [each.get("position") for each in answer["lag"]]
    standbys = [each["lag"] for each in answer.get("standbys", ())]
    return InstanceAccount(
        tasks=tuple(str(task["id"]) for task in answer["tasks"]),
        lag=_sum(lags) if lags else None,
        records_left=sum(_left(each) for each in answer["restoration"]) + _left_to_warm_up(answer),
        position=_sum(positions),
        standby_lag=_sum(standbys),
    )


def with_rate(account: InstanceAccount, before: InstanceAccount | None, since: float) -> InstanceAccount:
    """With the speed of its restoration over the last `since` seconds; the former speed where nothing moved."""
    if before is None or not account.records_left or since <= 0:
        return account
    done = before.records_left - account.records_left
    return replace(account, records_per_second=done / since if done > 0 else before.records_per_second)


def _sum(numbers: Sequence[Any]) -> int | None:
    """None where one of them is not known. Raises ValueError for what is no number of records."""
    if any(each is None for each in numbers):
        return None
    found = [int(each) for each in numbers]
    if any(abs(each) > _LARGEST for each in found):
        raise ValueError("more records than a partition can have")
    return sum(found)


def _left_to_warm_up(answer: Mapping[str, Any]) -> int:
    """What its tasks miss while it waits to take part in its group; a pod of an earlier runtime says nothing of it."""
    return max(int((answer.get("warm_up") or {"remaining": 0})["remaining"]), 0)


def _left(progress: Mapping[str, Any]) -> int:
    return 0 if progress["ended_at"] is not None else max(int(progress["end"]) - int(progress["position"]), 0)
