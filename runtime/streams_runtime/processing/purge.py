"""Deleting from repartition topics what is processed: nobody else reads it, and their retention is without end."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Collection, Mapping

from streams_runtime.errors import BrokerNotAvailableException, StreamsException
from streams_runtime.kafka.admin.kafka_admin import Admin
from streams_runtime.kafka.admin.pending_requests import Deletion
from streams_runtime.kafka.types import TopicPartition

_LOGGER = logging.getLogger("streams_runtime.tasks")
_INTERVAL = 30.0  # seconds; Kafka Streams' repartition.purge.interval.ms


class Purge:
    """Call `behind` after each batch: it has records deleted now and then, and never waits. One thread uses it."""

    def __init__(
        self, admin: Admin, repartition_topics: Collection[str], clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._admin = admin
        self._topics = repartition_topics
        self._clock = clock
        self._purged = clock()
        self._deletion: Deletion | None = None
        self._refused = False  # by the last answer, of which a line has told

    def behind(self, committed: Mapping[TopicPartition, int]) -> None:
        """Have the records before the committed offsets deleted, if it is time. Brokers that are away, or refuse, are
        asked again later: the records take space, and nothing else waits for it (Kafka Streams'
        maybePurgeCommittedRecords).
        """
        if self._deletion is not None:
            if not self._deletion.done:
                return
            self._tell(self._deletion.failure)
            if self._deletion.unanswered:
                self._admin.refresh()  # it may go on asking a broker that is gone
            self._deletion = None
        if self._clock() - self._purged < _INTERVAL:
            return
        self._purged = self._clock()
        done = {each: offset for each, offset in committed.items() if each.topic in self._topics}
        try:
            self._deletion = self._admin.delete_records(done) if done else None
        except StreamsException as error:
            self._tell(error)

    def _tell(self, failure: StreamsException | None) -> None:
        if isinstance(failure, BrokerNotAvailableException):
            _LOGGER.warning("%s. The records are deleted later", failure)
            return
        if failure is not None and not self._refused:
            _LOGGER.warning(
                "%s. Processed records stay in the repartition topics and take space; the application goes on and"
                " asks again every %.0f s",
                str(failure).rstrip("."),
                _INTERVAL,
            )
        self._refused = failure is not None
