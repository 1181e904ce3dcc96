"""The work queue: one round at a time for each resource, some resources at once, one's failure is its own."""

from __future__ import annotations

import asyncio
import logging
import random
from collections import OrderedDict, deque
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass

from streams_operator.model import Key

_LOGGER = logging.getLogger("streams_operator.reconcile.work_queue")

DEBOUNCE = 0.2  # seconds: what happens within them is one round
PARALLEL = 8
_JITTER = 0.1  # of the time until a planned round, so that resources made together do not stay together
_FIRST_RETRY = 0.5
_LONGEST_RETRY = 60.0
_STUCK = 600.0  # seconds of a round; far more than the limits of all its requests
_OFTEN = 6  # failures in a row from which even an expected one is worth a line


class RequeueAfter(Exception):
    """A round could not be finished, and has to come again: after `after` seconds, or after the back-off."""

    def __init__(self, text: str, after: float | None = None, *, expected: bool = False) -> None:
        """`expected`: it happens in daily business (a conflict) and is not worth a line."""
        super().__init__(text)
        self.after = after
        self.expected = expected


Round = Callable[[Key], Awaitable[float | None]]
"""Reconciles a resource; returns the seconds until the next round, None: on an event only."""


@dataclass(slots=True)
class _Item:
    """What is known of one resource's next round."""

    due: float | None = None
    timer: asyncio.TimerHandle | None = None
    waiting: bool = False
    due_since: float = 0.0  # while it waits, by the loop's clock
    running: bool = False
    not_before: float = 0.0
    failures: int = 0
    complaint: str = ""


class FairQueue:
    """Resources that are due: first come, first served within a namespace, and one of each namespace by turns.

    So one resource is not behind a thousand of another team.
    """

    def __init__(self) -> None:
        self._namespaces: OrderedDict[str, deque[Key]] = OrderedDict()
        self._length = asyncio.Semaphore(0)

    def put(self, key: Key) -> None:
        """Take one in."""
        self._namespaces.setdefault(key.namespace, deque()).append(key)
        self._length.release()

    async def get(self) -> Key:
        """The next one, once there is one."""
        await self._length.acquire()
        namespace, keys = self._namespaces.popitem(last=False)
        key = keys.popleft()
        if keys:
            self._namespaces[namespace] = keys
        return key

    def __len__(self) -> int:
        return sum(map(len, self._namespaces.values()))


class WorkQueue:
    """The queue. All methods belong to the event loop's thread."""

    def __init__(
        self,
        act: Round,
        *,
        parallel: int = PARALLEL,
        debounce: float = DEBOUNCE,
        chance: Callable[[], float] = random.random,
        counted: Callable[[Key, str, float], None] = lambda *_: None,
        waited: Callable[[float], None] = lambda _: None,
    ) -> None:
        """`chance`: numbers from 0 to 1; `counted`: called after each round with its result and its seconds; `waited`:
        before each with the seconds for which its resource was due.
        """
        self._act = act
        self._parallel = parallel
        self._debounce = debounce
        self._chance = chance
        self._counted = counted
        self._waited = waited
        self._items: dict[Key, _Item] = {}
        self._ready = FairQueue()
        self._running: dict[Key, float] = {}  # since when, by the loop's clock
        self._idle = asyncio.Event()
        self._ending = False

    def add(self, key: Key, after: float | None = None, *, urgent: bool = False) -> None:
        """Reconcile a resource soon, or in `after` seconds; the sooner one counts. May be called at any time.

        A resource whose last round failed waits out its back-off; `urgent` ends it, since something changed
        that may have been the reason.
        """
        item = self._items.setdefault(key, _Item())
        now = asyncio.get_running_loop().time()
        if urgent:
            item.not_before = 0.0
        self._set(key, item, max(now + (self._debounce if after is None else after), item.not_before))

    def clear(self) -> None:
        """Forget all resources, when others take over."""
        for item in self._items.values():
            if item.timer is not None:
                item.timer.cancel()
        self._items.clear()
        self._ready = FairQueue()

    @property
    def length(self) -> int:
        """Resources that are due and wait for a free worker."""
        return len(self._ready)

    @property
    def oldest(self) -> float:
        """For how many seconds the resource that has waited longest has been due; 0 while none waits."""
        now = asyncio.get_running_loop().time()
        return max((now - each.due_since for each in self._items.values() if each.waiting), default=0.0)

    @property
    def alive(self) -> bool:
        """Whether all rounds under way began not too long ago."""
        now = asyncio.get_running_loop().time()
        return all(now - since < _STUCK for since in self._running.values())

    async def finish(self, timeout: float) -> None:
        """Begin no round any more, and wait for those under way, at most `timeout` seconds."""
        self._ending = True
        with suppress(TimeoutError):
            async with asyncio.timeout(timeout):
                while self._running:
                    self._idle.clear()
                    await self._idle.wait()

    async def run(self) -> None:
        """Run rounds until cancelled; then those under way are cancelled too, at their next wait."""
        async with asyncio.TaskGroup() as group:
            for _ in range(self._parallel):
                group.create_task(self._worker())

    def _set(self, key: Key, item: _Item, due: float) -> None:
        if item.waiting or (item.due is not None and item.due <= due):
            return
        item.due = due
        if item.timer is not None:
            item.timer.cancel()
            item.timer = None
        if not item.running:
            item.timer = asyncio.get_running_loop().call_at(due, self._is_due, key, item)

    def _is_due(self, key: Key, item: _Item) -> None:
        item.due, item.timer, item.waiting = None, None, True
        item.due_since = asyncio.get_running_loop().time()
        self._ready.put(key)

    async def _worker(self) -> None:
        while True:
            key = await self._ready.get()
            item = self._items.get(key)
            if item is not None and item.waiting and not self._ending:
                await self._round(key, item)

    async def _round(self, key: Key, item: _Item) -> None:
        loop = asyncio.get_running_loop()
        begun = self._running[key] = loop.time()
        self._waited(begun - item.due_since)
        item.waiting, item.running = False, True
        result, again = "done", None
        try:
            again = await self._act(key)
            item.failures, item.not_before, item.complaint = 0, 0.0, ""
        except RequeueAfter as reason:
            result = "again" if reason.expected else "failed"
            again = self._failed(key, item, reason, reason.after)
        except Exception as error:
            result = "failed"
            again = self._failed(key, item, error, None)
        finally:
            item.running = False
            del self._running[key]
            self._idle.set()
        self._counted(key, result, loop.time() - begun)
        if result == "done" and again is not None:
            again *= 1 + _JITTER * self._chance()  # never sooner: the plan has named a time
        due, item.due = item.due, None
        if due is not None:
            self._set(key, item, max(due, item.not_before, loop.time()))
        if again is not None:
            self._set(key, item, loop.time() + again)
        if item.timer is None and self._items.get(key) is item:
            del self._items[key]  # nothing is planned, so there is nothing to remember

    def _failed(self, key: Key, item: _Item, error: Exception, after: float | None) -> float:
        item.failures = min(item.failures + 1, 16)
        expected = isinstance(error, RequeueAfter) and error.expected and item.failures < _OFTEN
        doubled: float = _FIRST_RETRY * 2 ** (item.failures - 1)
        delay = min(doubled, _LONGEST_RETRY) * (1 + _JITTER * self._chance())
        delay = max(delay, after or 0.0)
        item.not_before = asyncio.get_running_loop().time() + delay
        text = f"{type(error).__name__}: {error}"
        if text != item.complaint and not expected:
            item.complaint = text
            known = isinstance(error, RequeueAfter)
            _LOGGER.warning(
                "%s: %s. It is tried again in %.1f s",
                key,
                error if known else f"the round ended with {text}",
                delay,
                exc_info=None if known else error,
                extra={"namespace": key.namespace, "application": key.name},
            )
        return delay
