"""Getting the topics ready for an application: check, derive, validate, make what is missing, or leave no
trace.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Collection, Mapping, Sequence

from streams_runtime.api import ApplicationSpec
from streams_runtime.errors import BrokerNotAvailableException, ConfigException, StreamsException
from streams_runtime.kafka.admin import Admin
from streams_runtime.kafka.types import TopicPartition, TopicSpec
from streams_runtime.topics.external import check_external_topics, sink_topics, source_topics
from streams_runtime.topics.policy import SetupPolicy, automatic
from streams_runtime.topics.validate import validate
from streams_runtime.topology.partitions import internal_topics, partition_counts
from streams_runtime.topology.plan import InternalTopic, Topology

_LOGGER = logging.getLogger("streams_runtime.topics")
# Seconds between two looks at topics that are being made.
_TICK = 0.1


class InternalTopicManager:
    """Checks and sets up the topics of applications. Holds no state: may be called again and by several
    threads.
    """

    def __init__(
        self,
        admin: Admin,
        timeout: float = 60.0,
        clock: Callable[[], float] = time.monotonic,
        pause: Callable[[float], None] = time.sleep,
    ) -> None:
        """`timeout`: seconds that new topics have to become usable on all brokers."""
        self._admin = admin
        self._timeout = timeout
        self._clock = clock
        self._pause = pause

    def make_ready(
        self, topology: Topology, spec: ApplicationSpec, policy: SetupPolicy = automatic
    ) -> Mapping[str, int]:
        """Makes the missing internal topics that `policy` allows; returns the partition counts of all topics.

        Several clients may call this at once, and one client again at any time. If it raises, the topics that
        this call made are gone again, unless the brokers stopped answering; then a later call goes on with
        them.

        Raises MissingSourceTopicException (create the topics that it names), TopologyException (sink topics
        are missing, or co-partitioned sources disagree in their counts),
        MisconfiguredInternalTopicException (correct the topics), ConfigException (the brokers refuse the
        settings of new topics), BrokerNotAvailableException (try again), and what `policy` raises.
        """
        made: set[str] = set()
        try:
            return self._make_ready(topology, spec, policy, made)
        except BaseException:
            self._remove(made)
            raise

    def _make_ready(
        self, topology: Topology, spec: ApplicationSpec, policy: SetupPolicy, made: set[str]
    ) -> Mapping[str, int]:
        external = self._external_counts(topology, spec)
        counts = partition_counts(topology, external)
        expected = internal_topics(topology, spec, counts)
        deadline = self._clock() + self._timeout
        fresh = False
        while True:
            findings = validate(expected, self._admin.describe_topics([topic.name for topic in expected]))
            findings.raise_misconfigured()
            if not findings.missing and (not fresh or self._usable(expected)):
                return {**external, **counts, **{topic.name: topic.partitions for topic in expected}}
            if self._clock() > deadline:
                late = [topic.name for topic in findings.missing or expected]
                raise BrokerNotAvailableException(
                    f"the new internal topics {', '.join(late)} did not become usable on the brokers at"
                    f" {self._admin.address} within {self._timeout:g} s. Check the brokers, then start again"
                )
            # Those made by this call that are not to be seen yet are on their way, not missing.
            absent = [topic for topic in findings.missing if topic.name not in made]
            fresh = fresh or bool(absent)
            if absent:
                made |= self._make(policy(expected, absent))
            self._pause(_TICK)

    def _external_counts(self, topology: Topology, spec: ApplicationSpec) -> dict[str, int]:
        sources, sinks = source_topics(topology), sink_topics(topology, spec)
        found = self._admin.describe_topics([*sources, *sinks], config=False)
        check_external_topics(sources, sinks, found, self._admin.address)
        return {name: topic.partitions for name, topic in found.items()}

    def _make(self, topics: Sequence[InternalTopic]) -> frozenset[str]:
        """Makes the topics, all or none; those that another client made meanwhile are left to the next
        validation.
        """
        specs = [TopicSpec(t.name, t.partitions, t.replication_factor, t.config_dict) for t in topics]
        # Asked first, so that what the brokers refuse on principle leaves nothing behind.
        self._raise_refusals(self._admin.create_topics(specs, validate_only=True).refused)
        result = self._admin.create_topics(specs)
        if result.refused:
            self._remove(result.created)
            self._raise_refusals(result.refused)
        if result.created:
            _LOGGER.info("created internal topics %s", ", ".join(sorted(result.created)))
        return result.created

    def _raise_refusals(self, refused: Mapping[str, StreamsException]) -> None:
        if refused:
            first = next(iter(refused.values()))
            reasons = "; ".join(str(reason) for reason in refused.values())
            kind = type(first) if len({type(reason) for reason in refused.values()}) == 1 else ConfigException
            raise kind(f"{reasons} (spec.internalTopics)") from first

    def _usable(self, topics: Sequence[InternalTopic]) -> bool:
        partitions = _partitions(topics)
        return len(self._admin.end_offsets(partitions)) == len(partitions)

    def _remove(self, names: Collection[str]) -> None:
        """Removes topics made by this call, except those that another client has already written to."""
        if not names:
            return
        try:
            found = self._admin.describe_topics(names, config=False)
            ends = self._admin.end_offsets(
                [TopicPartition(topic.name, i) for topic in found.values() for i in range(topic.partitions)]
            )
            used = {partition.topic for partition, end in ends.items() if end > 0}
            self._admin.delete_topics(set(names) - used)
        except StreamsException as failure:
            _LOGGER.warning(
                "setting up failed, and %s, which it had made, could not be removed: %s. Remove them by hand",
                ", ".join(sorted(names)),
                failure,
            )


def _partitions(topics: Sequence[InternalTopic]) -> list[TopicPartition]:
    return [TopicPartition(topic.name, number) for topic in topics for number in range(topic.partitions)]
