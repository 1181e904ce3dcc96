"""A member that announces an instance to its group: it is counted in, and gets no partition."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

from confluent_kafka import Consumer

from streams_runtime.kafka.client.bounded import OverdueError, bounded
from streams_runtime.kafka.client.librdkafka import remind
from streams_runtime.kafka.client.librdkafka_errors import QuietLog, reason_of

_LOGGER = logging.getLogger("streams_runtime.kafka")
_NO_TOPIC = "^$"  # no topic has this name, and a pattern needs no right to a topic
_CLOSE_SECONDS = 10.0


class Announcement:
    """A dynamic member of a KIP-848 group, with a subscription that no topic matches. One thread uses it.

    The group forgets it when it is closed, and at the end of its session when the process is killed.
    """

    def __init__(self, properties: Mapping[str, str], group: str, client_id: str) -> None:
        """Join the group as `client_id`, in the background."""
        self._address = properties["bootstrap.servers"]
        config: dict[str, Any] = {
            **properties,
            "group.id": group,
            "group.protocol": "consumer",
            "group.remote.assignor": "range",
            "client.id": client_id,
            "enable.auto.commit": False,
        }
        self._consumer = Consumer(config, logger=QuietLog())
        self._consumer.subscribe([_NO_TOPIC])

    def poll(self) -> None:
        """To be called every few seconds: a member that does not poll is put out of its group. Does not wait."""
        message = self._consumer.poll(0)
        error = None if message is None else message.error()
        if error is not None:
            _LOGGER.debug("announcement: %s", reason_of(error))
        remind(self._consumer, self._address)

    def close(self) -> None:
        """Leave the group; returns within ten seconds."""
        try:
            bounded(self._consumer.close, _CLOSE_SECONDS)
        except OverdueError:
            _LOGGER.debug("the announcement was not closed in time; it ends with its session")
