"""Where connections to brokers come from: a new one for each piece of work, or one that was kept from the last.

A new one is a login at each broker, and an operator with a thousand applications at one cluster would make thousands an
hour.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

from streams_runtime.kafka.admin.kafka_admin import Admin

_IDLE = 60.0  # seconds without work after which one is closed
_AGE = 600.0  # seconds after which one is not used again: brokers, addresses and what they resolve to change
_MOST = 64  # that nobody uses, over all clusters

_Identity = tuple[frozenset[tuple[str, str]], float]
"""Client properties, secret ones included, and the timeout: what is the same for all who share a connection."""


class Admins(Protocol):
    """Where connections come from, and go."""

    def take(self, properties: Mapping[str, str], timeout: float) -> Admin:
        """One with these client properties, and `timeout` seconds for a request; for one thread alone."""

    def give_back(self, admin: Admin, *, sound: bool) -> None:
        """The work with it has ended; `sound`: nothing has failed over it."""


class OfItsOwn:
    """A connection for each that asks."""

    def take(self, properties: Mapping[str, str], timeout: float) -> Admin:
        """Makes one."""
        return Admin(properties, timeout)

    def give_back(self, admin: Admin, *, sound: bool) -> None:
        """Closes it."""
        del sound
        admin.close()


@dataclass(frozen=True, slots=True)
class _Kept:
    admin: Admin
    identity: _Identity
    made_at: float
    idle_since: float


class KeptAdmins:
    """Keeps connections for the next that asks for such a one. Any thread may call."""

    def __init__(
        self,
        make: Callable[[Mapping[str, str], float], Admin] = Admin,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._make = make
        self._clock = clock
        self._lock = threading.Lock()
        self._idle: dict[int, _Kept] = {}  # by id; the longest idle first
        self._in_use: dict[int, tuple[_Identity, float]] = {}  # by id: of whom, and when it was made

    def take(self, properties: Mapping[str, str], timeout: float) -> Admin:
        """One that was given back, or a new one."""
        identity = frozenset(properties.items()), timeout
        with self._lock:
            old = self._old_ones()
            # The last one that was given back: the others become idle for long, and are closed.
            found = next((each for each in reversed(self._idle.values()) if each.identity == identity), None)
            if found is not None:
                del self._idle[id(found.admin)]
                self._in_use[id(found.admin)] = identity, found.made_at
        _close(old)
        if found is not None:
            return found.admin
        made = self._make(properties, timeout)
        with self._lock:
            self._in_use[id(made)] = identity, self._clock()
        return made

    def give_back(self, admin: Admin, *, sound: bool) -> None:
        """Keeps it, unless something has failed over it."""
        now = self._clock()
        with self._lock:
            identity, made_at = self._in_use.pop(id(admin))
            old = [] if sound else [admin]
            if sound:
                self._idle[id(admin)] = _Kept(admin, identity, made_at, now)
            old += self._old_ones()
        _close(old)

    def close(self) -> None:
        """Closes those that nobody uses."""
        with self._lock:
            idle = [each.admin for each in self._idle.values()]
            self._idle.clear()
        _close(idle)

    def _old_ones(self) -> list[Admin]:
        """Those that are kept no longer; the lock is held."""
        now, most = self._clock(), len(self._idle) - _MOST
        gone = [
            each.admin
            for place, each in enumerate(self._idle.values())
            if place < most or now - each.idle_since >= _IDLE or now - each.made_at >= _AGE
        ]
        for each in gone:
            del self._idle[id(each)]
        return gone


def _close(admins: list[Admin]) -> None:
    """Without the lock: a connection's threads may take a while to end."""
    for each in admins:
        each.close()
