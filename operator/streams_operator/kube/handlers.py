"""kopf's part: it watches the resources, in a thread and an event loop of its own, and each event only requeues one.

No handler here returns anything or keeps anything on an object; kopf writes nothing.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import kopf

from streams_operator.kube.kinds import APPLICATION, Kind
from streams_operator.model import Json

_LOGGER = logging.getLogger("streams_operator.kube.handlers")

_SERVER_TIMEOUT = 300  # whole seconds until the server ends a watch, and the next one takes over
_CONNECT_TIMEOUT = 10.0
_SILENCE = 75.0  # seconds without even a bookmark, which come every minute, after which a stream is dead
_PAGE = 100  # resources in one answer: kopf keeps a whole one as Python's dicts
_IDLE = 0.05  # seconds after which kopf lets go of a resource's last version, of which it holds all until then
_AGAIN = 2.0  # seconds until kopf is started again, should it have ended
_GUARD = 0.5  # seconds between two checks of the watches
_WATCH = "watcher for "
"""With this begins the name of each of kopf's tasks that watch."""
_END = 8.0  # seconds after which what is left of kopf is cancelled once more; it waits 5 before it cancels its tasks
_STOP = 12.0  # seconds that its end may take

OnChange = Callable[[Kind, Json, bool, Json], None]
"""Called with the kind, the metadata, whether it has gone, and the whole resource; in kopf's thread."""


class _Patience(Iterable[float]):
    """Delays between attempts, without end: a stream that gives up would be started again with all the others."""

    def __iter__(self) -> Iterator[float]:
        return itertools.chain((0.5, 1, 2, 4, 8), itertools.repeat(15))


class Watches:
    """kopf in a thread. It watches the resources of the given namespaces, or of all."""

    def __init__(self, namespaces: Sequence[str], on_change: OnChange) -> None:
        self._namespaces = namespaces
        self._on_change = on_change
        self._stop = threading.Event()
        self._stop_once = threading.Event()
        self._thread = threading.Thread(target=self._run, name="kopf", daemon=True)

    def start(self) -> None:
        """Begin to watch. All that there is comes as events first."""
        self._thread.start()

    def stop(self) -> None:
        """End the watches; returns when they have ended. Not for an event loop's thread."""
        self._stop.set()
        self._stop_once.set()
        self._thread.join(_STOP)

    def restart(self) -> None:
        """Begin all watches anew."""
        self._stop_once.set()

    @property
    def running(self) -> bool:
        """Whether the thread lives."""
        return self._thread.is_alive()

    def _run(self) -> None:
        while not self._stop.is_set():
            self._stop_once.clear()
            if self._stop.is_set():
                return
            try:
                asyncio.run(self._operate())
            except Exception as error:
                _LOGGER.error("the watches ended and begin anew: %s: %s", type(error).__name__, error)
                self._stop.wait(_AGAIN)

    async def _operate(self) -> None:
        guard = asyncio.create_task(self._guard())
        try:
            await kopf.operator(
                registry=_registry(self._on_change),
                settings=_settings(),
                standalone=True,
                clusterwide=not self._namespaces,
                namespaces=list(self._namespaces),
                stop_flag=self._stop_once,
            )
        finally:
            guard.cancel()

    async def _guard(self) -> None:
        """End kopf when it is asked for or when a watch has ended, which kopf itself may survive without it."""
        await self._until_it_shall_end()
        while True:
            await asyncio.sleep(_END)
            # kopf waits for ever for a watch that has not heeded its one cancellation: a watch takes it for a pause
            # if it comes together with that of the pause's own task, and goes on. So these are cancelled alone.
            for task in _watches():
                _LOGGER.warning("%s goes on, though all watches end; it is cancelled once more", task.get_name())
                task.cancel()

    async def _until_it_shall_end(self) -> None:
        watches: set[asyncio.Task[Any]] = set()
        while not self._stop_once.is_set():
            watches |= _watches()
            for task in watches:
                if task.done() and not task.cancelled() and (error := task.exception()) is not None:
                    _LOGGER.warning("%s ended, and all watches begin anew: %s", task.get_name(), error)
                    await asyncio.sleep(_AGAIN)
                    self._stop_once.set()
                    return
            watches = {task for task in watches if not task.done()}
            await asyncio.sleep(_GUARD)


def _watches() -> set[asyncio.Task[Any]]:
    """kopf's tasks that watch and have not ended."""
    return {task for task in asyncio.all_tasks() if task.get_name().startswith(_WATCH)}


def _registry(on_change: OnChange) -> kopf.OperatorRegistry:
    registry = kopf.OperatorRegistry()
    kopf.on.login(registry=registry)(kopf.login_via_client)
    kopf.on.event(
        group=APPLICATION.group,
        version=APPLICATION.version,
        plural=APPLICATION.plural,
        id=APPLICATION.plural,
        registry=registry,
    )(_handler(on_change))
    return registry


def _handler(on_change: OnChange) -> Callable[..., Any]:
    async def on_event(event: Any, **_: Any) -> None:
        found = event["object"]
        on_change(APPLICATION, found["metadata"], event["type"] == "DELETED", found)

    return on_event


def _settings() -> kopf.OperatorSettings:
    settings = kopf.OperatorSettings()
    settings.posting.enabled = False
    settings.scanning.disabled = False
    settings.watching.server_timeout = _SERVER_TIMEOUT
    settings.watching.client_timeout = _SERVER_TIMEOUT + 30
    settings.watching.connect_timeout = _CONNECT_TIMEOUT
    settings.watching.inactivity_timeout = _SILENCE
    settings.networking.request_timeout = 60.0
    settings.networking.connect_timeout = _CONNECT_TIMEOUT
    settings.networking.error_backoffs = _Patience()
    settings.watching.chunk_size = _PAGE
    settings.queueing.worker_limit = None
    settings.queueing.idle_timeout = _IDLE
    return settings
