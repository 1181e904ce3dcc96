"""A broker that stands still: its connections stay open, what is sent to it lies in its socket, and nothing answers."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager

from streams_runtime.kafka.broker.embedded_broker import EmbeddedBroker


@contextmanager
def standing_still(broker: EmbeddedBroker) -> Iterator[None]:
    """Stop the broker's process where it is, and let it go on at the end."""
    assert broker.pid is not None
    os.kill(broker.pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(broker.pid, signal.SIGCONT)
