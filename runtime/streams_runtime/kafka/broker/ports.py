"""Ports of the loopback address for servers that have to come back at the same one."""

from __future__ import annotations

import contextlib
import secrets
import socket
from pathlib import Path

from streams_runtime.errors import EnvironmentException
from streams_runtime.kafka.broker.broker_config import HOST

# The system gives outgoing connections a port of this range: one that a broker had before it was stopped could be
# theirs when it is started again. Without the file: the lowest of any system's range.
_OUTGOING = Path("/proc/sys/net/ipv4/ip_local_port_range")
_LOWEST_OUTGOING = 32_768
# Above what well-known servers use, those of Kubernetes among them (10248 to 10260, which a machine may start later),
# and below what it gives its services (30000 to 32767).
_FIRST, _END = 11_000, 30_000
_TRIES = 100  # a port


def free_ports(count: int) -> list[int]:
    """So many different ports of the loopback address that nobody listens at, nor connects from.

    Where outgoing connections may have any port, or most are taken, it is one that the system gives.
    """
    end = min(_END, _first_outgoing())
    with contextlib.ExitStack() as held:
        return [_bound(held.enter_context(socket.socket()), end) for _ in range(count)]


def require_free(port: int) -> None:
    """Return when a server can listen at this port of the loopback address.

    Raises:
        EnvironmentException: it can't; the message says why. Free the port, or take another.
    """
    with socket.socket() as probe:
        # As the JVM does: connections of an earlier server that are still closing do not count.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError as failure:
            raise EnvironmentException(
                f"port {port} of {HOST} can't be used: {(failure.strerror or str(failure)).lower()}."
                " Stop what listens there, or give another port"
            ) from failure


def _bound(probe: socket.socket, end: int) -> int:
    for _ in range(_TRIES if end > _FIRST else 0):
        # By the system's chance: a test's seed would give two processes the same port at the same time.
        port = _FIRST + secrets.randbelow(end - _FIRST)
        with contextlib.suppress(OSError):
            probe.bind((HOST, port))
            return port
    probe.bind((HOST, 0))
    return int(probe.getsockname()[1])


def _first_outgoing() -> int:
    try:
        return int(_OUTGOING.read_text(encoding="ascii").split()[0])
    except (OSError, ValueError, IndexError):
        return _LOWEST_OUTGOING
