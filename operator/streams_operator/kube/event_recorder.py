"""Kubernetes events about resources: one for each occurrence, counted when it occurs again."""

from __future__ import annotations

import asyncio
import hashlib
import logging
from collections.abc import Callable, Sequence
from datetime import UTC, datetime

from streams_operator.kube.api import Api, ApiError, Conflict, identity
from streams_operator.kube.kinds import EVENT
from streams_operator.model import Event, Json, Key
from streams_operator.names import MANAGED_BY

_LOGGER = logging.getLogger("streams_operator.kube.event_recorder")
_LONGEST = 1024  # characters of a message that the API server takes


class EventRecorder:
    """Writes events. An event that comes in round after round is one occurrence, and is written once."""

    def __init__(self, api: Api, instance: str, clock: Callable[[], datetime] = lambda: datetime.now(UTC)) -> None:
        """`instance`: who reports, the operator's pod."""
        self._api = api
        self._instance = instance
        self._clock = clock
        self._recorded: dict[Key, frozenset[Event]] = {}

    async def record(self, key: Key, resource: Json, events: Sequence[Event]) -> None:
        """Write those that the last round did not have. Never fails: an event that can't be written is logged."""
        before, now = self._recorded.get(key, frozenset()), dict.fromkeys(events)
        self._recorded[key] = frozenset(now)
        if not now:
            del self._recorded[key]
        new = [each for each in now if each not in before]
        for each in new:
            level = logging.INFO if each.type == "Normal" else logging.WARNING
            _LOGGER.log(level, "%s: %s: %s", key, each.reason, each.message)
        await asyncio.gather(*(self._write(resource, each) for each in new))

    def forget(self, key: Key) -> None:
        """The resource has gone."""
        self._recorded.pop(key, None)

    def clear(self) -> None:
        """Forget all, when others take over."""
        self._recorded.clear()

    async def _write(self, resource: Json, event: Event) -> None:
        document = self._document(resource, event)
        try:
            try:
                await self._api.create(EVENT, document)
            except Conflict:
                await self._count(document)
        except ApiError as error:
            _LOGGER.debug("an event could not be written: %s", error)

    async def _count(self, document: Json) -> None:
        """The same event exists: count it once more."""
        metadata = document["metadata"]
        known = await self._api.get(EVENT, metadata["namespace"], metadata["name"])
        change = {
            "metadata": {"resourceVersion": known["metadata"]["resourceVersion"]},
            "count": int(known.get("count") or 1) + 1,
            "lastTimestamp": document["lastTimestamp"],
        }
        await self._api.merge(EVENT, metadata["namespace"], metadata["name"], change)

    def _document(self, resource: Json, event: Event) -> Json:
        about = identity(resource)
        content = "\0".join((about["uid"], event.type, event.reason, event.message))
        # Named by its content, so that the same event, also of another replica, meets the one that exists.
        name = f"{about['name']}.{hashlib.sha256(content.encode()).hexdigest()[:16]}"
        now = self._clock().strftime("%Y-%m-%dT%H:%M:%SZ")
        message = event.message
        return {
            "apiVersion": EVENT.api_version,
            "kind": EVENT.name,
            "metadata": {"name": name, "namespace": about["namespace"]},
            "involvedObject": dict(about),
            "type": event.type,
            "reason": event.reason,
            "message": message if len(message) <= _LONGEST else f"{message[: _LONGEST - 1]}…",
            "firstTimestamp": now,
            "lastTimestamp": now,
            "count": 1,
            "source": {"component": MANAGED_BY},
            "reportingComponent": MANAGED_BY,
            "reportingInstance": self._instance,
        }
