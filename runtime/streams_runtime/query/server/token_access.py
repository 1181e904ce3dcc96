"""Access by tokens of a Kubernetes cluster: an API server says whose they are, the resource says who may ask."""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections import OrderedDict
from collections.abc import Callable, Collection, Coroutine
from dataclasses import dataclass
from typing import Any, Final

from anyio import CapacityLimiter, to_thread

from streams_runtime.query.server.access import bearer_token
from streams_runtime.query.wire.problems import (
    AccessNotCheckedException,
    QueryForbiddenException,
    QueryNotAuthenticatedException,
)

REVIEW_CACHE_SECONDS: Final = 10.0
"""How long a review is cached, a refusal as well, as API servers cache other servers' reviews. A revoked token counts
for so long."""
_CACHED: Final = 1000  # reviews of tokens that are admitted, and as many of others: these can't fill the memory
_REVIEWS: Final = 16  # that run at a time, and
_REVIEWS_OF_AN_ADDRESS: Final = 2  # of these for one address; a review takes some milliseconds
_WAITING: Final = 32  # reviews of one address, those that run included
_RENEWALS: Final = 4  # that run at a time for tokens that were admitted
_ACCOUNT_PREFIX: Final = "system:serviceaccount:"


@dataclass(frozen=True, slots=True)
class Review:
    """Whose a token is. `user` None: nobody's, and `error` may say why."""

    user: str | None
    groups: frozenset[str] = frozenset()
    error: str = ""


Reviewer = Callable[[str], Review]
"""Has a token reviewed. Blocks; raises AccessNotCheckedException when the API server gives no review."""


@dataclass(frozen=True, slots=True)
class Admitted:
    """Who may ask: users by the names that the API server gives them, and groups."""

    users: frozenset[str]
    groups: frozenset[str]

    def admits(self, review: Review) -> bool:
        """Whether the token's owner is one of them."""
        return review.user in self.users or not self.groups.isdisjoint(review.groups)


def admitted(accounts: Collection[str], groups: Collection[str], namespace: str) -> Admitted:
    """From the resource's lists; an account without a namespace is one of `namespace`."""
    users = (account if "/" in account else f"{namespace}/{account}" for account in accounts)
    return Admitted(frozenset(_ACCOUNT_PREFIX + user.replace("/", ":", 1) for user in users), frozenset(groups))


class ReviewGate:
    """Lets those through whose token the API server knows and whom `who` admits (access.Gate).

    Reviews run beside each other. One address has few of them at a time and a bounded queue of its own, so that tokens
    that somebody invents make nobody else wait. A token that was admitted is reviewed again apart from these, and no
    other token pushes it out of memory. All methods are called by the server's event loop.
    """

    def __init__(self, review: Reviewer, who: Admitted, clock: Callable[[], float] = time.monotonic) -> None:
        self._review = review
        self._who = who
        self._clock = clock
        # Of their own: an API server that hangs must not stall store reads.
        self._threads, self._renewing = CapacityLimiter(_REVIEWS), CapacityLimiter(_RENEWALS)
        self._admitted = _ReviewCache()
        self._rejected = _ReviewCache()
        self._pending: dict[bytes, asyncio.Task[Review]] = {}
        self._queues: dict[str, _AddressQueue] = {}

    async def admit(self, authorization: str | None, address: str) -> None:
        """As access.Gate.admit says."""
        token = bearer_token(authorization)
        name = hashlib.sha256(token.encode()).digest()  # the tokens themselves are not stored
        now = self._clock()
        review = self._admitted.get(name, now) or self._rejected.get(name, now)
        if review is None:
            # Shielded: who leaves does not take the review away from others with the same token.
            review = await asyncio.shield(self._pending.get(name) or self._review_of(token, name, address))
        if review.user is None:
            why = f" ({review.error})" if review.error else ""
            raise QueryNotAuthenticatedException(
                f"the cluster does not know the token{why}; present a valid one, such as kubectl create token gives"
            )
        if not self._who.admits(review):
            raise QueryForbiddenException(
                f"{review.user} may not query this application; ask for its name or one of its groups to be put into"
                " spec.queries.access.kubernetes"
            )

    def _review_of(self, token: str, name: bytes, address: str) -> asyncio.Task[Review]:
        if name in self._admitted:
            return self._start(name, to_thread.run_sync(self._review, token, limiter=self._renewing))
        queue = self._queues.get(address)
        if queue is None:
            queue = self._queues[address] = _AddressQueue()
        if queue.reviews >= _WAITING:
            raise AccessNotCheckedException(
                f"{queue.reviews} tokens from {address or 'this address'} wait for their review already; retry"
            )
        queue.reviews += 1
        return self._start(name, self._in_queue(queue, token, address))

    async def _in_queue(self, queue: _AddressQueue, token: str, address: str) -> Review:
        try:
            async with queue.slots:
                return await to_thread.run_sync(self._review, token, limiter=self._threads)
        finally:
            queue.reviews -= 1
            if not queue.reviews:
                del self._queues[address]

    def _start(self, name: bytes, reviewing: Coroutine[Any, Any, Review]) -> asyncio.Task[Review]:
        task = self._pending[name] = asyncio.create_task(reviewing)
        task.add_done_callback(lambda done: self._remember(name, done))
        return task

    def _remember(self, name: bytes, done: asyncio.Task[Review]) -> None:
        del self._pending[name]
        if done.cancelled() or done.exception() is not None:
            return  # whoever waits raises it; nothing is remembered
        review, until = done.result(), self._clock() + REVIEW_CACHE_SECONDS
        self._admitted.forget(name)
        (self._admitted if self._who.admits(review) else self._rejected).put(name, until, review)


class _ReviewCache:
    """Reviews by their tokens' digests, each valid until its time; the least recently used go first."""

    def __init__(self) -> None:
        self._reviews: OrderedDict[bytes, tuple[float, Review]] = OrderedDict()

    def __contains__(self, name: bytes) -> bool:
        """Whether there is one, valid or not."""
        return name in self._reviews

    def get(self, name: bytes, now: float) -> Review | None:
        """The review, while it is valid."""
        until, review = self._reviews.get(name, (0.0, None))
        if review is None or now >= until:
            return None
        self._reviews.move_to_end(name)
        return review

    def put(self, name: bytes, until: float, review: Review) -> None:
        self._reviews[name] = until, review
        self._reviews.move_to_end(name)
        while len(self._reviews) > _CACHED:
            self._reviews.popitem(last=False)

    def forget(self, name: bytes) -> None:
        self._reviews.pop(name, None)


class _AddressQueue:
    """The reviews of one address that run or wait."""

    def __init__(self) -> None:
        self.slots = asyncio.Semaphore(_REVIEWS_OF_AN_ADDRESS)
        self.reviews = 0
