"""From the API server, the brokers and the pods to one Observed. Gathers values, and decides nothing.

An observation has two steps. `resource` brings the resource with its pods and parts; from these `plan` decides which
version of the application is in force. `observe` adds what that version needs: the state of its topics, the accounts of
its pods, the Secrets and ConfigMaps that it follows.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from streams_operator.brokers.broker_work import Brokers
from streams_operator.kube.api import Api, NotThere
from streams_operator.kube.cache import Cache
from streams_operator.kube.kinds import SECRET
from streams_operator.model import AwaitedImage, Defaults, Json, Key, Observed, ObservedResource, Ref, VersionInForce
from streams_operator.reconcile.accounts import Accounts
from streams_operator.reconcile.inputs import Inputs
from streams_operator.reconcile.readings import Readings


@dataclass(frozen=True, slots=True)
class Observer:
    """Where the values of one round come from."""

    api: Api
    cache: Cache
    brokers: Brokers
    accounts: Accounts
    readings: Readings
    inputs: Inputs
    clock: Callable[[], float] = time.time

    async def resource(self, key: Key) -> ObservedResource | None:
        """The resource, its pods and its parts; None: the resource has gone. Raises ApiError."""
        try:
            resource = await self.cache.resource(key)
        except NotThere:
            return None
        reading = await self.readings.of(key, resource)
        pods = sorted(await self.cache.pods(key), key=lambda pod: pod.name)
        text, parts = self.readings.document(key), await self.cache.parts(key)
        return ObservedResource(resource, reading, tuple(pods), parts, text)

    async def observe(
        self,
        key: Key,
        found: ObservedResource,
        version: VersionInForce,
        follow: Sequence[Ref],
        defaults: Defaults,
        awaited: AwaitedImage | None,
    ) -> Observed:
        """Everything there is to know of an application of which `version` is in force. Raises ApiError.

        `follow` are the objects that the version follows. `defaults` and `awaited` go into the result as they are.
        """
        brokers = self.brokers.state(key, found.resource["metadata"]["uid"], version.application)
        accounts = await self.accounts.of(key, found.pods)
        inputs = await self.inputs.of(key, follow)
        return Observed(
            resource=found.resource,
            application=version.application,
            mistakes=version.mistakes,
            now=self.clock(),
            pods=self.accounts.judged(found.pods),
            objects=found.objects,
            accounts=accounts,
            refused=version.refused,
            rolled_back=version.rolled_back,
            rollback_target=version.rollback_target,
            document=version.document,
            inputs=inputs,
            topics=brokers.topics,
            init=brokers.init,
            reset=brokers.reset,
            topics_deleted=brokers.topics_deleted,
            defaults=defaults,
            awaited=awaited,
        )

    async def secret(self, namespace: str, name: str) -> Json | None:
        """A Secret as the API server has it; None: there is none of this name. Raises ApiError."""
        try:
            return await self.api.get(SECRET, namespace, name)
        except NotThere:
            return None

    def forget(self, key: Key) -> None:
        """The resource has gone."""
        for each in (self.cache, self.brokers, self.accounts, self.readings):
            each.forget(key)
