"""Deleting from repartition topics what is processed: nobody else reads it, and their retention is without end."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Collection, Mapping

from streams_runtime.errors import BrokerNotAvailableException, StreamsException
from streams_runtime.kafka.admin import Admin
from streams_runtime.kafka.types import TopicPartition

_LOGGER = logging.getLogger("streams_runtime.tasks")
_INTERVAL = 30.0  # seconds; Kafka Streams' repartition.purge.interval.ms


class Purge:
    """Call `behind` after each batch: it deletes now and then. One thread uses it."""

    def __init__(
        self, admin: Admin, repartition_topics: Collection[str], clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._admin = admin
        self._topics = repartition_topics
        self._clock = clock
        self._purged = clock()
        self._refused = False  # by the last answer, of which a line has told

    def behind(self, committed: Mapping[TopicPartition, int]) -> None:
        """Delete the records before the committed offsets, if it is time. Brokers that are away, or refuse, are asked
        again later: the records take space, and nothing else waits for it (Kafka Streams' maybePurgeCommittedRecords).
        """
        if self._clock() - self._purged < _INTERVAL:
            return
        self._purged = self._clock()
        done = {each: offset for each, offset in committed.items() if each.topic in self._topics}
        try:
            self._admin.delete_records(done)
        except BrokerNotAvailableException as error:
            _LOGGER.warning("%s. The records are deleted later", error)
        except StreamsException as error:
            if not self._refused:
                _LOGGER.warning(
                    "%s. Processed records stay in the repartition topics and take space; the application goes on and"
                    " asks again every %.0f s",
                    str(error).rstrip("."),
                    _INTERVAL,
                )
            self._refused = True
        else:
            self._refused = False
