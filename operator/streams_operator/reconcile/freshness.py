"""Whether what a pod's conditions say is still so: pods that answered the operator once, and do not any more.

A node that is lost leaves the conditions of its pods as they are until Kubernetes notices, some 40 s later. A pod that
has never answered is believed: a network policy may keep the operator from all pods.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

FRESH = 3.0  # seconds for which an answer vouches for a pod
SILENT = 20.0  # seconds of failed requests after which a pod counts as away; a long garbage collection is shorter


@dataclass(slots=True)
class _Pod:
    answered: float
    failing_since: float | None = None  # the start of the first request that it left unanswered


class Freshness:
    """When each pod answered, by uid. Times are seconds of a monotonic clock."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._pods: dict[str, _Pod] = {}
        self._newest = float("-inf")  # of all answers of all pods

    def answered(self, uid: str) -> None:
        """The pod has answered."""
        self._newest = self._clock()
        self._pods[uid] = _Pod(self._newest)

    def failed(self, uid: str, asked_at: float) -> None:
        """The pod has not answered a request that began at `asked_at`."""
        pod = self._pods.get(uid)
        if pod is not None and pod.failing_since is None:
            pod.failing_since = asked_at

    def forget(self, uid: str) -> None:
        """The pod has gone."""
        self._pods.pop(uid, None)

    def doubted(self, uid: str) -> bool:
        """Whether the pod has to answer once more before a decision may rest on its conditions.

        Not when no pod at all answers for long: then it is the operator that is cut off, and Kubernetes knows better.
        """
        pod, now = self._pods.get(uid), self._clock()
        if pod is None or now - pod.answered <= FRESH:
            return False
        since = pod.failing_since
        return since is None or now - since < SILENT or self._newest > since

    def silent(self, uid: str) -> bool:
        """Whether the pod counts as away: it has not answered for long, and others have meanwhile."""
        pod = self._pods.get(uid)
        since = pod.failing_since if pod is not None else None
        return since is not None and self._clock() - since >= SILENT and self._newest > since
