"""Changelogs of the oracle's stores written as the runtime writes them: produced, flushed, and only then stored."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from oracle_inputs import Input
from oracle_model import Model
from oracle_stores import Stores

from streams_runtime.api import parse_application
from streams_runtime.kafka.admin.kafka_admin import Admin
from streams_runtime.kafka.producer.batch_producer import BatchProducer
from streams_runtime.kafka.types import TopicPartition
from streams_runtime.topics.topic_manager import InternalTopicManager, SetUp
from streams_runtime.topology.plan import Topology

_BATCHES = 10


def set_up_topics(bootstrap: str, topology: Topology) -> SetUp:
    """Make the changelogs that are missing, with this project's configuration; raises for those that do not fit."""
    document = {
        "apiVersion": "streamsoperator.io/v1alpha1",
        "kind": "StreamsApplication",
        "metadata": {"name": "oracle"},
        "spec": {"topology": {"sources": [{"name": "in", "topic": "in", "value": {"format": "string"}}]}},
    }
    admin = Admin({"bootstrap.servers": bootstrap})
    try:
        return InternalTopicManager(admin).set_up(topology, parse_application(document).spec)
    finally:
        admin.close()


def write(bootstrap: str, stores: Stores, events: Sequence[Input], readings: Sequence[Input]) -> Counter[str]:
    """Process the records in batches into empty stores and their changelogs; the number of changes by store."""
    model, written = Model(), Counter[str]()
    ends: Counter[TopicPartition] = Counter()
    producer = BatchProducer({"bootstrap.servers": bootstrap}, "oracle-changelogs")
    for batch in range(_BATCHES):
        changes = model.take(_part(events, batch), _part(readings, batch))
        for (name, number), updates in changes.items():
            topic = stores[name][number].changelog.topic
            producer.send(topic, updates.keys, updates.values, updates.timestamps, number)
        producer.flush()
        for (name, number), updates in changes.items():
            store = stores[name][number]
            ends[store.changelog] += len(updates)
            written[name] += len(updates)
            store.write(updates, ends[store.changelog])
    producer.close()
    return written


def _part(records: Sequence[Input], batch: int) -> Sequence[Input]:
    size = -(-len(records) // _BATCHES)
    return records[batch * size : (batch + 1) * size]
