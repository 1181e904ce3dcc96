"""Waiting for a broker: who is asked, how often, and what a user is told meanwhile."""

from __future__ import annotations

import logging
import socket
import time
from collections.abc import Callable
from dataclasses import dataclass

from streams_runtime.errors import BrokerNotAvailableException
from streams_runtime.retry_backoff import backoff

_LOGGER = logging.getLogger("streams_runtime.kafka")
_DEFAULT_PORT = 9092
ASK_BROKER_AGAIN = (0.25, 10.0)
"""Seconds until a broker that is away is asked again: first, and at most.

The first retry comes soon because a broker that starts together with the application is the usual case; ten seconds at
most, so that an application is back soon after its broker is.
"""
# Seconds that one address has to accept a connection.
_CONNECT_TIMEOUT = 3.0
# Seconds between two looks at `should_stop` while waiting.
_TICK = 0.1


@dataclass(frozen=True, slots=True)
class FailedAttempt:
    """One attempt that found no broker: its number from 1, why, and the seconds until the next one."""

    address: str
    number: int
    reason: str
    retry_in: float

    def __str__(self) -> str:
        return (
            f"no connection to Kafka at {self.address}: {self.reason}"
            f" (attempt {self.number}; next in {self.retry_in:.1f} s)"
        )


def addresses(bootstrap_servers: str) -> tuple[tuple[str, int], ...]:
    """Host and port of each server of a bootstrap list such as `kafka-1:9092,SASL_SSL://[::1]:9093`."""
    found = []
    for server in filter(None, (part.strip() for part in bootstrap_servers.split(","))):
        place = server.rpartition("://")[2]
        host, colon, port = place.rpartition(":")
        if not colon or place.endswith("]"):
            host, port = place, str(_DEFAULT_PORT)
        found.append((host.strip("[]"), int(port)))
    return tuple(found)


def unreachable_reason(bootstrap_servers: str) -> str | None:
    """Why none of the servers accepts a connection, in the operating system's words; None when one of them
    does.
    """
    reasons: dict[str, None] = {}
    for place in addresses(bootstrap_servers):
        try:
            socket.create_connection(place, timeout=_CONNECT_TIMEOUT).close()
        except TimeoutError:
            reasons[f"no connection within {_CONNECT_TIMEOUT:.0f} s"] = None
        except OSError as failure:
            reasons[(failure.strerror or str(failure)).lower()] = None
        else:
            return None
    return "; ".join(reasons)


def log_failed_attempt(attempt: FailedAttempt) -> None:
    """What `wait_for_broker` does with a failed attempt unless told otherwise: one warning."""
    _LOGGER.warning("%s", attempt)


def wait_until_answered(
    ask: Callable[[], str | None],
    address: str,
    on_failure: Callable[[FailedAttempt], None] = log_failed_attempt,
    should_stop: Callable[[], bool] = lambda: False,
    timeout: float | None = None,
) -> bool:
    """Calls `ask` until it returns None; what it returns otherwise is the reason of the failure.

    Returns True then, False as soon as `should_stop` says so. Raises BrokerNotAvailableException after
    `timeout` seconds (None: never).
    """
    started = time.monotonic()
    for number, delay in enumerate(backoff(*ASK_BROKER_AGAIN), start=1):
        if should_stop():
            return False
        reason = ask()
        if reason is None:
            return True
        if timeout is not None and time.monotonic() + delay - started > timeout:
            raise BrokerNotAvailableException(
                f"no connection to Kafka at {address}: {reason} (tried {number} times in {timeout:g} s)."
                " Check that it runs and that the address is right"
            )
        on_failure(FailedAttempt(address, number, reason, delay))
        if _stopped_within(delay, should_stop):
            return False
    raise AssertionError("backoff() never ends")


def _stopped_within(seconds: float, should_stop: Callable[[], bool]) -> bool:
    end = time.monotonic() + seconds
    while (left := end - time.monotonic()) > 0:
        if should_stop():
            return True
        time.sleep(min(left, _TICK))
    return False
