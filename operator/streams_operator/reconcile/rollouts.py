"""A new default image goes to a few applications at a time: who has it, and who waits.

What an application runs is read off its pods, so that an operator that has just started knows who has begun. Pods of an
operator that did not write down their image count as having the new one: they are replaced at once.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence

from streams_operator.model import AwaitedImage, Json, Key, PodState
from streams_operator.plan import REFUSALS, Past, is_on_hold, serving, wanted_replicas
from streams_runtime.api import StreamsApplication

_LOGGER = logging.getLogger("streams_operator.reconcile.rollouts")
_FIRST_ROUNDS = 60.0  # seconds that nobody begins until every application had a round, however one of them fares


class Rollouts:
    """The rollout of one default image over one operator's applications. Belongs to the event loop's thread."""

    def __init__(
        self,
        image: str,
        at_a_time: int,
        count: Callable[[], int],
        requeue: Callable[[Key], None],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`image`: the default; `at_a_time`: how many applications may be on their way to it, 0: all.

        `count`: how many applications there are; `requeue`: called for those that may begin.
        """
        self._image = image
        self._at_a_time = at_a_time
        self._count = count
        self._requeue = requeue
        self._clock = clock
        self._since: float | None = None
        self._arrived: set[Key] = set()  # or never had to go anywhere
        self._under_way: dict[Key, bool] = {}  # whether it may be Degraded: it was when it began
        self._waiting: dict[Key, None] = {}  # the first come first
        self._failed: set[Key] = set()  # Degraded on their way

    def image(
        self, key: Key, resource: Json, application: StreamsApplication | None, pods: Sequence[PodState]
    ) -> tuple[str, AwaitedImage | None]:
        """The default image of an application as things are, and what it waits for if that is not the new one.

        To be asked in each round. `application` is None when the resource is invalid.
        """
        if self._at_a_time == 0:
            return self._image, None
        degraded = is_degraded(resource)
        images = {pod.image for pod in pods if pod.ordinal is not None and pod.image}
        if not images or application is None or not _follows(resource, application):
            self._arrive(key)
        elif key in self._under_way or self._image in images:
            serve = [pod for pod in pods if pod.ordinal is not None and serving(pod)]
            past = Past.of(resource)
            wanted = wanted_replicas(application.spec, past, past.status.tasks)
            self._go_on(key, degraded, images == {self._image} and len(serve) >= wanted)
        elif self._has_room():
            self._begin(key, degraded)
        else:
            self._wait(key)
            return image_of(pods), AwaitedImage(self._image, self._at_a_time, self.stopped)
        return self._image, None

    @property
    def stopped(self) -> bool:
        """Whether nobody may begin, since one that has the new image is Degraded with it."""
        return bool(self._failed)

    @property
    def waiting(self) -> int:
        """How many applications wait for it."""
        return len(self._waiting)

    def forget(self, key: Key) -> None:
        """The resource has gone."""
        self._leave(key)
        self._arrived.discard(key)
        self._next()

    def clear(self) -> None:
        """Another replica leads the rollout."""
        for each in (self._arrived, self._under_way, self._waiting, self._failed):
            each.clear()
        self._since = None

    def _arrive(self, key: Key) -> None:
        if key not in self._arrived:
            self._leave(key)
            self._arrived.add(key)
            self._next()

    def _go_on(self, key: Key, degraded: bool, arrived: bool) -> None:
        """It has begun, or has arrived. What befalls one that has arrived is not for want of the image."""
        if arrived or key in self._arrived:
            self._arrive(key)
            return
        self._waiting.pop(key, None)
        may_be = self._under_way[key] = self._under_way.get(key, False) and degraded
        if degraded and not may_be:
            self._fail(key)
        elif key in self._failed:
            self._mend(key)

    def _begin(self, key: Key, degraded: bool) -> None:
        self._waiting.pop(key, None)
        self._arrived.discard(key)
        self._under_way[key] = degraded

    def _wait(self, key: Key) -> None:
        self._arrived.discard(key)
        if key not in self._waiting:
            self._waiting[key] = None
            self._next()

    def _leave(self, key: Key) -> None:
        self._waiting.pop(key, None)
        self._under_way.pop(key, None)
        self._mend(key)

    def _fail(self, key: Key) -> None:
        stopped = self.stopped
        self._failed.add(key)
        if not stopped:
            _LOGGER.warning(
                "the default image %s goes to no further application: %s is Degraded with it. Mend or suspend that one,"
                " give it an image of its own, or set another default",
                self._image,
                key,
            )
            self._requeue_waiting()

    def _mend(self, key: Key) -> None:
        stopped = self.stopped
        self._failed.discard(key)
        if stopped and not self.stopped:
            _LOGGER.info("the default image %s goes to further applications", self._image)
            self._requeue_waiting()

    def _has_room(self) -> bool:
        if self._since is None:
            self._since = self._clock()
        if self.stopped or len(self._under_way) >= self._at_a_time:
            return False
        looked_at = len(self._arrived) + len(self._under_way) + len(self._waiting)
        return looked_at >= self._count() or self._clock() - self._since >= _FIRST_ROUNDS

    def _next(self) -> None:
        """Requeue as many as there may be room for."""
        if self._waiting and self._has_room():
            for key in list(self._waiting)[: self._at_a_time - len(self._under_way)]:
                self._requeue(key)

    def _requeue_waiting(self) -> None:
        """Their status says whether it goes on."""
        for key in self._waiting:
            self._requeue(key)


def image_of(pods: Sequence[PodState]) -> str:
    """The image of the newest version among pods: of the highest, as they are replaced from the last on."""
    own = {pod.ordinal: pod.image for pod in pods if pod.ordinal is not None and pod.image}
    return own[max(own)] if own else ""


def is_degraded(resource: Json) -> bool:
    """Whether its status says so, of anything that an image may have to do with.

    Whoever owns the resource may have written anything there.
    """
    status, reason, _ = Past.of(resource).condition("Degraded")
    return status == "True" and reason not in REFUSALS


def _follows(resource: Json, application: StreamsApplication) -> bool:
    """Whether pods of the default image are to run."""
    spec = application.spec
    goes = "deletionTimestamp" in resource["metadata"] or is_on_hold(resource)
    return spec.image is None and not spec.suspend and not goes
