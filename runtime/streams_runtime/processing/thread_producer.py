"""A stream thread's producer: made anew whenever what the old one knows or has sent is no longer to be trusted."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from streams_runtime.api.reading.legal_names import transactional_id
from streams_runtime.kafka.consumer.group_consumer import GroupConsumer, Membership
from streams_runtime.kafka.producer.batch_producer import BatchProducer
from streams_runtime.kafka.producer.transactions import TransactionalProducer, transaction_seconds
from streams_runtime.processing.commits import AtLeastOnce, Commits, ExactlyOnce


class Output:
    """One producer at a time, by the application's guarantee. Used by the thread only."""

    def __init__(
        self,
        properties: Mapping[str, str],
        membership: Membership,
        exactly_once: bool,
        in_vain: Callable[[], bool],
        settings: Callable[[], Mapping[str, str]] = dict,
    ) -> None:
        """`in_vain`: whether it is of no use to go on waiting for the brokers to take records. Connects to nobody.

        `settings`: what a new producer has beside the properties (SinkTopics.producer_settings).
        """
        self._properties = properties
        self._settings = settings
        self._membership = membership
        self._exactly_once = exactly_once
        self._in_vain = in_vain
        self._producer: BatchProducer | None = None

    def make_ready(self) -> None:
        """Make a producer where there is none, and end the transaction that a killed predecessor may have left open.

        Call it before anything is restored.

        Raises:
            BrokerNotAvailableException: call again.
            ProducerFencedException: `close`, and call again.
        """
        client_id = f"{self._membership.client_id}|producer"
        if self._producer is None:
            properties = {**self._properties, **self._settings()}
            if self._exactly_once:
                name = transactional_id(self._membership.group, self._membership.instance_id)
                self._producer = TransactionalProducer(properties, client_id, name, self._in_vain)
            else:
                self._producer = BatchProducer(properties, client_id, self._in_vain)
        if isinstance(self._producer, TransactionalProducer):
            self._producer.initialise()

    def commits(self, consumer: GroupConsumer, should_stop: Callable[[], bool]) -> Commits:
        """How batches are committed with the producer that is there now."""
        assert self._producer is not None
        if isinstance(self._producer, TransactionalProducer):
            return ExactlyOnce(self._producer, consumer, transaction_seconds(self._properties))
        return AtLeastOnce(self._producer, consumer, should_stop)

    def close(self) -> None:
        """Close the producer; `make_ready` makes another one. May be called twice."""
        producer, self._producer = self._producer, None
        if producer is not None:
            producer.close()
