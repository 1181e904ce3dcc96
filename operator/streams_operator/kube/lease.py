"""Who acts: the replica that holds the Lease.

The leader election of the Kubernetes client is not used: it neither gives a lease back, nor bounds the time of its own
requests, and it measures with the wall clock; a leader whose request hangs would go on acting.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Coroutine
from contextlib import suppress
from datetime import UTC, datetime

from streams_operator.kube.api import Api, ApiError, Conflict, NotThere
from streams_operator.kube.kinds import LEASE
from streams_operator.model import Json

_LOGGER = logging.getLogger("streams_operator.kube.lease")

DURATION = 15.0  # seconds that a lease lasts without being renewed; hand-over after a kill takes this and one more step
RENEW = 3.0  # seconds between two renewals of a leader, and between two attempts of the others
_STOP = 5.0  # seconds before its end in which the leader sends no more writes, so that the last one is through


class Lease:
    """One replica's part in the election. Times are measured here by the monotonic clock only: what counts of another's
    renewal is when it was observed to change.
    """

    def __init__(
        self,
        api: Api,
        namespace: str,
        name: str,
        identity: str,
        *,
        duration: float = DURATION,
        renew: float = RENEW,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._api = api
        self._namespace = namespace
        self._name = name
        self._identity = identity
        self._duration = duration
        self._renew = renew
        self._clock = clock
        self._renewed_at: float | None = None  # when the last renewal that succeeded was sent
        self._theirs: tuple[str, str, float] | None = None  # holder, version, when first observed
        self._changed = asyncio.Event()

    @property
    def held(self) -> bool:
        """Whether this replica may write at this moment."""
        stop = min(_STOP, self._duration / 3)
        return self._renewed_at is not None and self._clock() < self._renewed_at + self._duration - stop

    async def run(self) -> None:
        """Take part in the election until cancelled. Errors of the API server only cost time."""
        while True:
            await self._step()
            await asyncio.sleep(self._renew)

    async def wait(self, held: bool) -> None:
        """Until this replica is the leader, or is no longer. Looks at the clock too, as a leader may not notice
        anything but time.
        """
        while self.held != held:
            self._changed.clear()
            # Not asyncio.wait_for: before Python 3.12 it loses a cancellation that comes together with the event.
            with suppress(TimeoutError):
                async with asyncio.timeout(min(0.5, self._renew)):
                    await self._changed.wait()

    async def during(self, work: Coroutine[None, None, None]) -> None:
        """Do `work` until this replica is no longer the leader, then cancel it; returns when it has ended.

        A cancellation of the caller is never lost, at whatever moment it comes. Raises ExceptionGroup of what `work`
        ended with.
        """
        async with asyncio.TaskGroup() as group:
            task = group.create_task(work)
            await self.wait(held=False)
            task.cancel()

    async def release(self) -> None:
        """Give the lease back, if it is held; another replica may take it at its next attempt."""
        if self._renewed_at is None:
            return
        self._renewed_at = None
        try:
            lease = await self._api.get(LEASE, self._namespace, self._name)
            if lease["spec"].get("holderIdentity") == self._identity:
                await self._write(lease, holder="", duration=1.0)
                _LOGGER.info("gave the lease %s/%s back", self._namespace, self._name)
        except ApiError as error:
            _LOGGER.warning("the lease could not be given back and runs out by itself: %s", error)

    async def _step(self) -> None:
        before, sent = self.held, self._clock()
        try:
            # No longer than what is left, or the answer would be about the past.
            async with asyncio.timeout(self._duration / 3):
                taken = await self._try()
        except TimeoutError:
            taken = None
        except Conflict:
            taken = False
        except ApiError as error:
            _LOGGER.warning("the lease %s/%s: %s", self._namespace, self._name, error)
            taken = None
        if taken:
            self._renewed_at = sent
        elif taken is False:
            self._renewed_at = None
        if self.held != before:
            state = "is the leader" if self.held else "is not the leader any more"
            _LOGGER.info("this replica %s", state, extra={"identity": self._identity})
            self._changed.set()

    async def _try(self) -> bool:
        """Whether the lease is ours now. Conflict: somebody else was quicker."""
        try:
            lease = await self._api.get(LEASE, self._namespace, self._name)
        except NotThere:
            await self._api.create(LEASE, self._new(), election=True)
            return True
        holder = lease["spec"].get("holderIdentity") or ""
        if holder and holder != self._identity and not self._run_out(lease, holder):
            return False
        await self._write(lease, holder=self._identity, duration=self._duration)
        return True

    def _run_out(self, lease: Json, holder: str) -> bool:
        version = lease["metadata"]["resourceVersion"]
        if self._theirs is None or self._theirs[:2] != (holder, version):
            self._theirs = (holder, version, self._clock())
        lasts = float(lease["spec"].get("leaseDurationSeconds") or self._duration)
        return self._clock() - self._theirs[2] >= lasts

    async def _write(self, lease: Json, holder: str, duration: float) -> None:
        spec, now = lease["spec"], _now()
        changed = spec.get("holderIdentity") != holder
        new = {
            **spec,
            "holderIdentity": holder,
            "leaseDurationSeconds": max(1, round(duration)),
            "renewTime": now,
            "acquireTime": now if changed or not spec.get("acquireTime") else spec["acquireTime"],
            "leaseTransitions": int(spec.get("leaseTransitions") or 0) + (1 if changed and holder else 0),
        }
        await self._api.replace(LEASE, {**lease, "spec": new}, election=True)

    def _new(self) -> Json:
        return {
            "apiVersion": LEASE.api_version,
            "kind": LEASE.name,
            "metadata": {"name": self._name, "namespace": self._namespace},
            "spec": {
                "holderIdentity": self._identity,
                "leaseDurationSeconds": max(1, round(self._duration)),
                "acquireTime": _now(),
                "renewTime": _now(),
                "leaseTransitions": 0,
            },
        }


def _now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
