"""Carries a Plan out: what was decided is put on record first, then done, in the order of the plan."""

from __future__ import annotations

import logging
from collections.abc import Mapping

from streams_operator.kube.api import Api, Conflict, NotThere, Refused
from streams_operator.kube.cache import Cache
from streams_operator.kube.event_recorder import EventRecorder
from streams_operator.kube.kinds import APPLICATION, POD, Kind, kind_of
from streams_operator.model import Event, Json, Key, Observed, Plan, PodSignal, Removal
from streams_operator.names import FINALIZER
from streams_operator.reconcile.readings import without_nones
from streams_operator.reconcile.work_queue import RequeueAfter

_LOGGER = logging.getLogger("streams_operator.reconcile.apply")


class Applier:
    """Writes to the API server. A plan that was carried out in part is no harm: the next round sees what there is."""

    def __init__(self, api: Api, cache: Cache, events: EventRecorder) -> None:
        self._api = api
        self._cache = cache
        self._events = events
        self._refusals: dict[Key, dict[str, str]] = {}

    def refusals(self, key: Key) -> Mapping[str, str]:
        """Why the API server did not make pods, by their names, as of the last attempts."""
        return dict(self._refusals.get(key, {}))

    def forget(self, key: Key) -> None:
        """The resource has gone."""
        self._refusals.pop(key, None)

    async def carry_out(self, key: Key, observed: Observed, plan: Plan) -> Refused | None:
        """Everything but the work at the brokers and the finalizer's end.

        Returns the first refusal of an object that somebody else has to see to (a quota, a policy): it keeps nothing
        else from being done, and an event says so.

        Raises:
            ApiError: nothing after the step that failed was done.
        """
        resource = await self._finalizer_on(observed.resource, plan)
        resource = await self._status(resource, plan)
        refused: list[Refused] = []
        self._refusals.pop(key, None)
        for desired in plan.apply:
            try:
                await self._apply(key, observed, desired)
            except Refused as error:
                refused.append(error)
                if desired["kind"] == POD.name:
                    self._refusals.setdefault(key, {})[desired["metadata"]["name"]] = str(error)
        for signal in plan.signals:
            await self._signal(key, signal)
        for removal in plan.remove:
            await self._remove(key, removal)
        troubles = [Event("Warning", "ApplyFailed", str(error)) for error in refused]
        await self._events.record(key, resource, [*plan.events, *troubles])
        return refused[0] if refused else None

    async def let_go(self, observed: Observed, plan: Plan) -> None:
        """Take the finalizer off when the plan says so: the very last thing that is done for a resource."""
        metadata = observed.resource["metadata"]
        finalizers = list(metadata.get("finalizers") or ())
        if plan.finalizer or FINALIZER not in finalizers:
            return
        # Guarded by the uid, not by the version: the status may just have been written.
        fresh = await self._api.get(APPLICATION, metadata["namespace"], metadata["name"])
        if fresh["metadata"]["uid"] == metadata["uid"]:
            left = [each for each in fresh["metadata"].get("finalizers") or () if each != FINALIZER]
            await self._finalizers(fresh, left)

    async def _finalizer_on(self, resource: Json, plan: Plan) -> Json:
        metadata = resource["metadata"]
        finalizers = list(metadata.get("finalizers") or ())
        if not plan.finalizer or FINALIZER in finalizers or "deletionTimestamp" in metadata:
            return resource
        return await self._finalizers(resource, [*finalizers, FINALIZER])

    async def _finalizers(self, resource: Json, finalizers: list[str]) -> Json:
        metadata = resource["metadata"]
        key = Key(metadata["namespace"], metadata["name"])
        change = {"metadata": {"finalizers": finalizers, "resourceVersion": metadata["resourceVersion"]}}
        with self._cache.writing(APPLICATION, key, key.name):
            written = await self._api.merge(APPLICATION, key.namespace, key.name, change)
            self._cache.wrote(APPLICATION, key, written)
        return written

    async def _status(self, resource: Json, plan: Plan) -> Json:
        """Conflict: the resource was changed since it was observed, so the decision may be another one now."""
        if plan.status is None:
            return resource
        status = without_nones(plan.status)
        if status == resource.get("status"):
            return resource
        key = Key(resource["metadata"]["namespace"], resource["metadata"]["name"])
        with self._cache.writing(APPLICATION, key, key.name):
            try:
                written = await self._api.replace(APPLICATION, {**resource, "status": status}, "status")
            except Conflict:
                # The watch may be late.
                self._cache.doubt(key, APPLICATION)
                raise
            self._cache.wrote(APPLICATION, key, written)
        return written

    async def _apply(self, key: Key, observed: Observed, desired: Json) -> None:
        kind, name = kind_of(desired["kind"]), desired["metadata"]["name"]
        with self._cache.writing(kind, key, name):
            if kind is POD and name not in {pod.name for pod in observed.pods}:
                # Created, never applied: a pod of this name that came meanwhile is not to be touched.
                written = await self._api.create(kind, desired)
            elif kind is POD or (kind.name, name) in observed.objects:
                written = await self._api.apply(kind, desired)
            else:
                written = await self._new(kind, desired, observed.resource["metadata"]["uid"])
            self._cache.wrote(kind, key, written)
        _LOGGER.debug("applied %s %s", kind.name, name)

    async def _new(self, kind: Kind, desired: Json, owner: str) -> Json:
        try:
            return await self._api.apply(kind, desired, new=True)
        except Conflict:
            await self._refuse_anothers(kind, desired, owner)
            return await self._api.apply(kind, desired)

    async def _refuse_anothers(self, kind: Kind, desired: Json, owner: str) -> None:
        """An object of this name without our label may be somebody's: a Service `kafka`, say. It is not taken over."""
        metadata = desired["metadata"]
        try:
            existing = await self._api.get(kind, metadata["namespace"], metadata["name"])
        except NotThere:
            return
        if owner not in {each.get("uid") for each in existing["metadata"].get("ownerReferences") or ()}:
            raise Refused(
                f"{kind.name} {metadata['name']} is there already and does not belong to this application. Remove it,"
                " or give the application another name"
            )

    async def _signal(self, key: Key, signal: PodSignal) -> None:
        """With its uid: another pod of that name is another client. Conflict: reconcile again."""
        change = {"metadata": {"uid": signal.uid, "annotations": {signal.annotation: signal.text}}}
        try:
            with self._cache.writing(POD, key, signal.pod):
                self._cache.wrote(POD, key, await self._api.merge(POD, key.namespace, signal.pod, change))
        except NotThere:
            self._cache.doubt(key, POD)
            _LOGGER.debug("Pod %s had gone already", signal.pod)

    async def _remove(self, key: Key, removal: Removal) -> None:
        kind = kind_of(removal.kind)
        try:
            await self._api.delete(kind, key.namespace, removal.name, removal.uid, force=removal.force)
            _LOGGER.debug("removed %s %s", removal.kind, removal.name)
        except NotThere:
            self._cache.doubt(key, kind)
            _LOGGER.debug("%s %s had gone already", removal.kind, removal.name)


def as_requeue(error: Exception) -> RequeueAfter:
    """An ApiError as the queue takes it: when to reconcile again, and whether that is worth a line."""
    after = getattr(error, "after", None)
    return RequeueAfter(str(error), after, expected=isinstance(error, Conflict | NotThere))
