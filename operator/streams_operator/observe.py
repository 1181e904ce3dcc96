"""From the API server, the brokers and the pods to one Observed."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace

from streams_operator.accounts import Accounts
from streams_operator.api import Api, NotThere
from streams_operator.brokers import Brokers
from streams_operator.cache import Cache
from streams_operator.inputs import Inputs
from streams_operator.model import Defaults, Observed
from streams_operator.plan import in_force
from streams_operator.readings import Readings
from streams_operator.rollouts import Rollouts
from streams_operator.wake import Key


@dataclass(frozen=True, slots=True)
class World:
    """Where one look at an application comes from."""

    api: Api
    cache: Cache
    brokers: Brokers
    accounts: Accounts
    readings: Readings
    inputs: Inputs
    rollouts: Rollouts
    defaults: Defaults
    clock: Callable[[], float] = time.time

    async def observe(self, key: Key) -> Observed | None:
        """Everything there is to know of an application; None: the resource has gone. Raises ApiError."""
        try:
            resource = await self.cache.resource(key)
        except NotThere:
            return None
        reading = await self.readings.of(key, resource)
        pods = tuple(sorted(await self.cache.pods(key), key=lambda pod: pod.name))
        objects = await self.cache.parts(key)
        image, awaited = self.rollouts.image(key, resource, reading.application, pods)
        defaults = replace(self.defaults, image=image)
        version = await self.readings.beside(resource, in_force, resource, reading, pods, objects, defaults)
        brokers = self.brokers.seen(key, resource["metadata"]["uid"], version.application)
        accounts = await self.accounts.of(key, pods)
        inputs = await self.inputs.of(key, version.application)
        return Observed(
            resource=resource,
            application=version.application,
            mistakes=version.mistakes,
            now=self.clock(),
            pods=self.accounts.judged(pods),
            objects=objects,
            accounts=accounts,
            refused=version.refused,
            rolled_back=version.rolled_back,
            way_back=version.way_back,
            inputs=inputs,
            topics=brokers.topics,
            init=brokers.init,
            topics_deleted=brokers.topics_deleted,
            defaults=defaults,
            awaited=awaited,
        )

    def forget(self, key: Key) -> None:
        """The resource has gone."""
        for each in (self.cache, self.brokers, self.accounts, self.readings, self.rollouts):
            each.forget(key)
