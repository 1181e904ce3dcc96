"""Kubernetes events about resources: once for each occurrence, counted when it occurs again."""

from __future__ import annotations

import asyncio
import hashlib
import logging
from collections.abc import Callable, Sequence
from datetime import UTC, datetime

from streams_operator.api import Api, ApiError, Conflict, identity
from streams_operator.kinds import EVENT
from streams_operator.model import Happening, Json
from streams_operator.names import MANAGED_BY
from streams_operator.wake import Key

_LOGGER = logging.getLogger("streams_operator.events")
_LONGEST = 1024  # characters of a message that the API server takes


class Events:
    """Writes events. What is said in round after round is one occurrence, and is written once."""

    def __init__(self, api: Api, instance: str, clock: Callable[[], datetime] = lambda: datetime.now(UTC)) -> None:
        """`instance`: who reports, the operator's pod."""
        self._api = api
        self._instance = instance
        self._clock = clock
        self._said: dict[Key, frozenset[Happening]] = {}

    async def tell(self, key: Key, resource: Json, happenings: Sequence[Happening]) -> None:
        """Write those that were not said in the last round. Never fails: an event that can't be written is logged."""
        before, now = self._said.get(key, frozenset()), dict.fromkeys(happenings)
        self._said[key] = frozenset(now)
        if not now:
            del self._said[key]
        new = [each for each in now if each not in before]
        for each in new:
            level = logging.INFO if each.type == "Normal" else logging.WARNING
            _LOGGER.log(level, "%s: %s: %s", key, each.reason, each.message)
        await asyncio.gather(*(self._write(resource, each) for each in new))

    def forget(self, key: Key) -> None:
        """The resource has gone."""
        self._said.pop(key, None)

    def clear(self) -> None:
        """Forget all, when others take over."""
        self._said.clear()

    async def _write(self, resource: Json, happening: Happening) -> None:
        event = self._event(resource, happening)
        try:
            try:
                await self._api.create(EVENT, event)
            except Conflict:
                await self._count(event)
        except ApiError as error:
            _LOGGER.debug("an event could not be written: %s", error)

    async def _count(self, event: Json) -> None:
        """The same happened before: one more."""
        metadata = event["metadata"]
        known = await self._api.get(EVENT, metadata["namespace"], metadata["name"])
        change = {
            "metadata": {"resourceVersion": known["metadata"]["resourceVersion"]},
            "count": int(known.get("count") or 1) + 1,
            "lastTimestamp": event["lastTimestamp"],
        }
        await self._api.merge(EVENT, metadata["namespace"], metadata["name"], change)

    def _event(self, resource: Json, happening: Happening) -> Json:
        about = identity(resource)
        said = "\0".join((about["uid"], happening.type, happening.reason, happening.message))
        # By its content, so that the same said again, also by another replica, meets the event that there is.
        name = f"{about['name']}.{hashlib.sha256(said.encode()).hexdigest()[:16]}"
        now = self._clock().strftime("%Y-%m-%dT%H:%M:%SZ")
        message = happening.message
        return {
            "apiVersion": EVENT.api_version,
            "kind": EVENT.name,
            "metadata": {"name": name, "namespace": about["namespace"]},
            "involvedObject": dict(about),
            "type": happening.type,
            "reason": happening.reason,
            "message": message if len(message) <= _LONGEST else f"{message[: _LONGEST - 1]}…",
            "firstTimestamp": now,
            "lastTimestamp": now,
            "count": 1,
            "source": {"component": MANAGED_BY},
            "reportingComponent": MANAGED_BY,
            "reportingInstance": self._instance,
        }
