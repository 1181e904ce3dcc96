"""The topics that users have of their own: makes those that are missing, and gives the command that feeds one."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence

from streams_runtime.api import ApplicationSpec
from streams_runtime.errors import BrokerNotAvailableException
from streams_runtime.kafka.admin.kafka_admin import Admin
from streams_runtime.kafka.types import TopicSpec
from streams_runtime.topics.external_topics import sink_topics, source_topics
from streams_runtime.topology.plan import Topology

SOURCE_PARTITIONS = 4
"""Partitions of a source topic that is made here: enough for some instances, few enough for a small machine."""

_SEEN_SECONDS = 30.0
_TICK = 0.05


def missing_topics(
    topology: Topology, spec: ApplicationSpec, present: Mapping[str, int], partitions: int | None = None
) -> tuple[TopicSpec, ...]:
    """The topics to be made; `present` has the partition counts of those that exist.

    All get `partitions`, or as many as the widest source that exists: sources may have to agree, and sinks follow them.
    """
    sources = [topic for topic in source_topics(topology) if topic not in present]
    existing = [present[topic] for topic in source_topics(topology) if topic in present]
    widest = partitions or max(existing, default=SOURCE_PARTITIONS)
    # A topic that is read and written is a source.
    sinks = [topic for topic in sink_topics(topology, spec) if topic not in present and topic not in sources]
    return tuple(TopicSpec(topic, widest) for topic in (*sources, *sinks))


def make_topics(admin: Admin, topics: Sequence[TopicSpec]) -> None:
    """Make them, and return when the broker shows them.

    Raises:
        BrokerNotAvailableException: the broker does not answer, or does not show what it made.
        StreamsException: the broker refuses a topic's name.
    """
    for reason in admin.create_topics(topics).refused.values():
        raise reason
    names = {topic.name for topic in topics}
    deadline = time.monotonic() + _SEEN_SECONDS
    while set(admin.describe_topics(names, config=False)) != names:
        if time.monotonic() > deadline:
            raise BrokerNotAvailableException(
                f"the broker at {admin.address} does not show topics that it made. Look at its log, then start again"
            )
        time.sleep(_TICK)


def feeding(topic: str, bootstrap_servers: str) -> str:
    """The command that feeds a topic."""
    return f"streamsapp produce {topic} FILE.csv --key COLUMN --bootstrap-servers {bootstrap_servers}"
