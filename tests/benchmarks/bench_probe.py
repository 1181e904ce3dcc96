"""Waiting until a contestant is at work: a record goes in, and comes out."""

from __future__ import annotations

import time
from collections.abc import Callable

from bench_data import START_MS, Message
from bench_kafka import Cluster
from confluent_kafka import Consumer, TopicPartition

PROBE = Message(b"probe", b'{"user": "probe", "amount": 1, "ts": %d}' % START_MS, START_MS)
"""Of a user that the data do not have."""


class Outputs:
    """Reads a topic's records as they appear, with the moment at which each was seen; transactions once committed."""

    def __init__(self, cluster: Cluster, topic: str) -> None:
        self._consumer = Consumer(
            {
                "bootstrap.servers": cluster.bootstrap_servers,
                "log_level": 0,
                "group.id": "bench-outputs",
                "enable.auto.commit": False,
                "fetch.wait.max.ms": 100,
                # A partition that had nothing is asked again at once.
                "fetch.queue.backoff.ms": 5,
            }
        )
        self._consumer.assign([TopicPartition(topic, number, 0) for number in cluster.end_offsets(topic)])

    def next(self, timeout_s: float) -> tuple[bytes, bytes, float] | None:
        """Key, value and moment (seconds since the epoch) of the next record, or None when none comes."""
        message = self._consumer.poll(timeout_s)
        now = time.time()
        if message is None or message.error():
            return None
        key, value = message.key(), message.value()
        return None if key is None or value is None else (key, value, now)

    def close(self) -> None:
        """Free the connection."""
        self._consumer.close()


def wait_for_probe(outputs: Outputs, alive: Callable[[], object], limit_s: float) -> None:
    """Return when the probe, which was written into the input, has come out. Raises TimeoutError."""
    deadline = time.monotonic() + limit_s
    while (found := outputs.next(0.2)) is None or found[0] != PROBE.key:
        alive()
        if time.monotonic() > deadline:
            raise TimeoutError(f"the first record did not come out in {limit_s:.0f} s")
