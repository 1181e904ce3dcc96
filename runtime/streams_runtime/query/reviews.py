"""Access by tokens of a Kubernetes cluster: an API server says whose they are, the resource says who may ask."""

from __future__ import annotations

import hashlib
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Final

from anyio import CapacityLimiter, to_thread

from streams_runtime.query.access import bearer_token
from streams_runtime.query.problems import QueryForbiddenException, QueryNotAuthenticatedException

BELIEVED_SECONDS: Final = 10.0
"""How long a review is believed, a refusal as well: what API servers themselves do with other servers' reviews. So long
does a token that was revoked still count."""
_KEPT: Final = 1000  # reviews; the oldest go first, so that invented tokens can't fill the memory
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
    """Lets those through whose token the API server knows and whom `who` admits (access.Gate)."""

    def __init__(self, review: Reviewer, who: Admitted, clock: Callable[[], float] = time.monotonic) -> None:
        self._review = review
        self._who = who
        self._clock = clock
        self._threads = CapacityLimiter(4)  # of their own: an API server that hangs must not stall store reads
        self._one_at_a_time = threading.Lock()
        self._believed: OrderedDict[bytes, tuple[float, Review]] = OrderedDict()

    async def admit(self, authorization: str | None) -> None:
        """As access.Gate.admit says."""
        token = bearer_token(authorization)
        name = hashlib.sha256(token.encode()).digest()  # the tokens themselves are not kept
        review = self._known(name)
        if review is None:
            review = await to_thread.run_sync(self._ask, token, name, limiter=self._threads)
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

    def _ask(self, token: str, name: bytes) -> Review:
        with self._one_at_a_time:
            review = self._known(name)  # another request with the same token may have waited here before
            if review is None:
                review = self._review(token)
                self._believed[name] = (self._clock() + BELIEVED_SECONDS, review)
                self._believed.move_to_end(name)
                while len(self._believed) > _KEPT:
                    self._believed.popitem(last=False)
            return review

    def _known(self, name: bytes) -> Review | None:
        until, review = self._believed.get(name, (0.0, None))
        return review if self._clock() < until else None
