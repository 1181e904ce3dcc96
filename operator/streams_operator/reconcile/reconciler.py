"""One round for one resource: observe, decide, act. The same for creation, change, resumption, timer and drift."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import replace

from streams_operator.brokers.broker_work import BrokerState
from streams_operator.kube.api import ApiError, Refused
from streams_operator.kube.event_recorder import EventRecorder
from streams_operator.metrics import Metrics
from streams_operator.model import Defaults, KafkaWork, Key, Load, Observed, Plan
from streams_operator.plan import followed, in_force, plan, sample_interval
from streams_operator.plan.version.kafka_secret import REFUSED, KafkaSecret, kafka_secret, kafka_secret_name
from streams_operator.reconcile.apply import Applier, as_requeue
from streams_operator.reconcile.load_history import LoadHistory
from streams_operator.reconcile.observe import Observer
from streams_operator.reconcile.rollouts import Rollouts
from streams_operator.reconcile.work_queue import RequeueAfter

_LOGGER = logging.getLogger("streams_operator.reconcile.reconciler")
_LONGEST = 120.0  # seconds of a round; each request in it has its own, shorter limit
_AFTER_WRITING = 5.0  # seconds from a write to the round that sees its result, unless the watches requeue sooner
_REFUSED_AGAIN = 15.0  # seconds until a refused request is tried again: a quota or a policy has to change first


class Reconciler:
    """Rounds, as the queue runs them."""

    def __init__(
        self,
        observer: Observer,
        rollouts: Rollouts,
        events: EventRecorder,
        metrics: Metrics,
        defaults: Defaults,
        decide: Callable[[Observed], Plan] = plan,
    ) -> None:
        self._observer = observer
        self._rollouts = rollouts
        self._events = events
        self._metrics = metrics
        self._defaults = defaults
        self._load = LoadHistory()
        self._applier = Applier(observer.api, observer.cache, events)
        self._decide = decide

    async def round(self, key: Key) -> float | None:
        """Seconds until the next round. Raises RequeueAfter, and whatever `decide` raises, which would be a defect."""
        try:
            async with asyncio.timeout(_LONGEST):
                return await self._round(key)
        except TimeoutError:
            raise RequeueAfter(f"the round took longer than {_LONGEST:g} s") from None
        except Refused as error:
            raise RequeueAfter(str(error), _REFUSED_AGAIN) from error
        except ApiError as error:
            raise as_requeue(error) from error

    def on_broker_result(self, work: KafkaWork, state: BrokerState) -> None:
        """Work at the brokers has ended."""
        if work.kind == "init" and state.init is not None and state.init.nonce == work.nonce:
            self._metrics.init(state.init.result)

    def forget(self, key: Key) -> None:
        """The resource has gone."""
        for each in (self._observer, self._rollouts, self._applier, self._events, self._metrics, self._load):
            each.forget(key)

    def clear(self) -> None:
        """Another replica leads."""
        self._load.clear()

    async def _round(self, key: Key) -> float | None:
        observed = await self._observe(key)
        if observed is None:
            self.forget(key)
            return None
        decided = self._decide(observed)
        if cannot_be_undone(decided) and await self._observer.cache.refresh(key):
            observed = await self._observe(key)
            if observed is None:
                raise RequeueAfter(f"{key} has gone meanwhile", expected=True)
            decided = self._decide(observed)
        _LOGGER.debug("%s: %s", key, decided)
        status = decided.status if decided.status is not None else observed.resource.get("status")
        self._metrics.application(key, status, observed.pods, decided.lag)
        self._load.remember(key, decided.load)
        refused = await self._applier.carry_out(key, observed, decided)
        if decided.kafka is not None:
            await self._ask_brokers(key, observed, decided.kafka)
        await self._applier.let_go(observed, decided)
        if refused is not None:
            raise refused
        return requeue_delay(decided)

    async def _observe(self, key: Key) -> Observed | None:
        """The resource first; then what the version needs that `plan` finds to be in force. None: it has gone."""
        found = await self._observer.resource(key)
        if found is None:
            return None
        image, awaited = self._rollouts.image(key, found.resource, found.reading.application, found.pods)
        defaults = replace(self._defaults, image=image)
        version = await self._observer.readings.beside(found.resource, in_force, found, defaults)
        follow = () if version.application is None else followed(version.application)
        observed = await self._observer.observe(key, found, version, follow, defaults, awaited)
        return replace(observed, refusals=self._applier.refusals(key), load=self._load_of(key, observed))

    def _load_of(self, key: Key, observed: Observed) -> Load:
        scaling = observed.application.spec.autoscaling if observed.application is not None else None
        if scaling is None:
            return Load()
        return self._load.of(key, observed.accounts, sample_interval(scaling.target_catch_up.total_seconds()))

    async def _ask_brokers(self, key: Key, observed: Observed, work: KafkaWork) -> None:
        application, uid = observed.application, observed.resource["metadata"]["uid"]
        if application is None:
            raise ValueError(f"{work} was decided on for a resource that can't be read")
        name, secret = kafka_secret_name(application), KafkaSecret()
        if name is not None:
            secret = kafka_secret(name, key.namespace, await self._observer.secret(key.namespace, name))
        if secret.refusal:
            self._observer.brokers.refuse(key, uid, application, REFUSED, secret.refusal)
        else:
            self._observer.brokers.ask(key, uid, application, secret.properties, work)


def requeue_delay(decided: Plan) -> float | None:
    """Seconds until the next round: the plan's, and soon after a write, which is no event of its own.

    What was decided may ask for more, and a write may have come to nothing without an error.
    """
    if decided.status is None and not (decided.apply or decided.remove or decided.signals):
        return decided.requeue_after
    return _AFTER_WRITING if decided.requeue_after is None else min(decided.requeue_after, _AFTER_WRITING)


def cannot_be_undone(decided: Plan) -> bool:
    """Whether a plan may only be carried out if it rests on what the API server has now.

    The rest may go by the watches: a status is guarded by the resource's version, parts are applied anew, and a pod is
    only created where there is none of its name, after the status that has it on record.
    """
    at_brokers = decided.kafka is not None and decided.kafka.kind in ("init", "delete")
    return bool(decided.remove or decided.signals) or at_brokers or not decided.finalizer
