"""One round for one resource: look, decide, act. The same for creation, change, resumption, timer and drift."""

from __future__ import annotations

import asyncio
import base64
import binascii
import logging
from collections.abc import Callable, Mapping
from dataclasses import replace

from streams_operator.api import Api, ApiError, NotThere, Refused
from streams_operator.apply import Applier, as_again
from streams_operator.brokers import Seen
from streams_operator.events import Events
from streams_operator.kinds import SECRET
from streams_operator.metrics import Metrics
from streams_operator.model import KafkaWork, Observed, Plan
from streams_operator.observe import World
from streams_operator.plan import plan
from streams_operator.wake import Again, Key

_LOGGER = logging.getLogger("streams_operator.reconcile")
_LONGEST = 120.0  # seconds of a round; each request in it has its own, shorter limit
_AFTER_WRITING = 5.0  # seconds from a write to a look at what came of it, unless the watches tell sooner
_REFUSED_AGAIN = 15.0  # seconds until a refused request is tried again: a quota or a policy has to change first


class Reconciler:
    """Rounds, as the queue runs them."""

    def __init__(
        self,
        world: World,
        events: Events,
        metrics: Metrics,
        decide: Callable[[Observed], Plan] = plan,
    ) -> None:
        self._world = world
        self._api: Api = world.api
        self._events = events
        self._metrics = metrics
        self._applier = Applier(world.api, world.cache, events)
        self._decide = decide

    async def round(self, key: Key) -> float | None:
        """Seconds until the next look. Raises Again, and whatever `decide` raises, which would be a mistake of ours."""
        try:
            async with asyncio.timeout(_LONGEST):
                return await self._round(key)
        except TimeoutError:
            raise Again(f"the round took longer than {_LONGEST:g} s") from None
        except Refused as error:
            raise Again(str(error), _REFUSED_AGAIN) from error
        except ApiError as error:
            raise as_again(error) from error

    def answered(self, work: KafkaWork, seen: Seen) -> None:
        """The brokers have answered."""
        if work.kind == "init" and seen.init is not None and seen.init.nonce == work.nonce:
            self._metrics.init(seen.init.result)

    def forget(self, key: Key) -> None:
        """The resource has gone."""
        for each in (self._world, self._applier, self._events, self._metrics):
            each.forget(key)

    async def _round(self, key: Key) -> float | None:
        observed = await self._world.observe(key)
        if observed is None:
            self.forget(key)
            return None
        observed, decided = self._decided(key, observed)
        if cannot_be_undone(decided) and await self._world.cache.refresh(key):
            observed = await self._world.observe(key)
            if observed is None:
                raise Again(f"{key} has gone meanwhile", expected=True)
            observed, decided = self._decided(key, observed)
        _LOGGER.debug("%s: %s", key, decided)
        status = decided.status if decided.status is not None else observed.resource.get("status")
        self._metrics.application(key, status, observed.pods, decided.lag)
        refused = await self._applier.carry_out(key, observed, decided)
        if decided.kafka is not None:
            await self._ask_brokers(key, observed, decided.kafka)
        await self._applier.let_go(observed, decided)
        if refused is not None:
            raise refused
        return look_again(decided)

    def _decided(self, key: Key, observed: Observed) -> tuple[Observed, Plan]:
        observed = replace(observed, refusals=self._applier.refusals(key))
        return observed, self._decide(observed)

    async def _ask_brokers(self, key: Key, observed: Observed, work: KafkaWork) -> None:
        application, uid = observed.application, observed.resource["metadata"]["uid"]
        if application is None:
            raise ValueError(f"{work} was decided on for a resource that can't be read")
        reference = application.spec.kafka.secret_ref
        secret = None
        if reference is not None:
            try:
                secret = properties(await self._api.get(SECRET, key.namespace, reference.name))
            except (NotThere, UnicodeDecodeError, binascii.Error) as error:
                found = "is not there" if isinstance(error, NotThere) else "holds a value that is not UTF-8 text"
                message = (
                    f"spec.kafka.secretRef: Secret {reference.name} {found} in namespace {key.namespace}."
                    " Create it with one key for each client property"
                )
                self._world.brokers.refuse(key, uid, application, "KafkaSecret", message)
                return
        self._world.brokers.ask(key, uid, application, secret, work)


def look_again(decided: Plan) -> float | None:
    """Seconds until the next look: the plan's, and soon after a write, which is no event of its own.

    What was decided may ask for more, and a write may have come to nothing without an error.
    """
    if decided.status is None and not (decided.apply or decided.remove or decided.tell):
        return decided.again_in
    return _AFTER_WRITING if decided.again_in is None else min(decided.again_in, _AFTER_WRITING)


def cannot_be_undone(decided: Plan) -> bool:
    """Whether a plan may only be carried out if it rests on what the API server has now.

    The rest may go by the watches: a status is guarded by the resource's version, parts are applied anew, and a pod is
    only created where there is none of its name, after the status that has it on record.
    """
    at_brokers = decided.kafka is not None and decided.kafka.kind in ("init", "delete")
    return bool(decided.remove or decided.tell) or at_brokers or not decided.finalizer


def properties(secret: Mapping[str, object]) -> dict[str, str]:
    """The client properties in a Secret.

    Raises binascii.Error, UnicodeDecodeError: a value is none that a property can have.
    """
    data = secret.get("data") or {}
    if not isinstance(data, Mapping):
        return {}
    return {str(name): base64.b64decode(str(value)).decode().rstrip("\n") for name, value in data.items()}
