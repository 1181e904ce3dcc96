"""Getting the topics ready for an application: check, derive, validate, make what is missing, or leave no
trace.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from streams_runtime.api import ApplicationSpec
from streams_runtime.errors import (
    BrokerNotAvailableException,
    ConfigException,
    MissingInternalTopicException,
    StreamsException,
)
from streams_runtime.kafka.admin.kafka_admin import Admin
from streams_runtime.kafka.types import TopicPartition, TopicSpec
from streams_runtime.topics.external_topics import (
    check_external_topics,
    check_patterns,
    sink_topics,
    source_topics,
)
from streams_runtime.topics.setup_policy import SetupPolicy, automatic
from streams_runtime.topics.table_changelogs import check_table_changelogs
from streams_runtime.topics.validate_internal import validate
from streams_runtime.topology.partition_counts import internal_topics, partition_counts
from streams_runtime.topology.plan import InternalTopic, Topology

_LOGGER = logging.getLogger("streams_runtime.topics")
# Seconds between two looks at topics that are being made.
_TICK = 0.1
# Seconds after which topics that are missing without a change are believed to be missing.
_SETTLED = 0.5


@dataclass(frozen=True, slots=True)
class Survey:
    """The topics as they are: partition counts of the users' (`external`) and of all that are read (`counts`), the
    internal topics as they have to be, and those of them that are missing.
    """

    external: Mapping[str, int]
    counts: Mapping[str, int]
    expected: tuple[InternalTopic, ...]
    missing: tuple[InternalTopic, ...]

    @property
    def existing(self) -> tuple[InternalTopic, ...]:
        """The internal topics that are there."""
        return tuple(topic for topic in self.expected if topic not in self.missing)

    @property
    def partitions(self) -> Mapping[str, int]:
        """How many partitions each topic has, or will have."""
        return {**self.external, **self.counts, **{topic.name: topic.partitions for topic in self.expected}}


@dataclass(frozen=True, slots=True)
class SetUp:
    """All topics are ready; `created` are the internal ones that this call made, in the order of the plan."""

    survey: Survey
    created: tuple[str, ...]

    @property
    def partitions(self) -> Mapping[str, int]:
        """How many partitions each topic has."""
        return self.survey.partitions


def topology_on(admin: Admin, topology: Topology) -> Topology:
    """The topology with the topics that its patterns fit at these brokers, which are asked only where there are any.

    Raises what Admin's methods raise.
    """
    return topology.resolved(admin.topic_names()) if topology.source_patterns else topology


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
        """`set_up`, of which only the partition counts of all topics are wanted."""
        return self.set_up(topology, spec, policy).partitions

    def look(self, topology: Topology, spec: ApplicationSpec) -> Survey:
        """The topics against what the application needs; changes nothing.

        Raises what `set_up` raises, except for internal topics that are missing: those are in the answer.
        """
        topology = topology_on(self._admin, topology)
        sources, sinks = source_topics(topology), sink_topics(topology, spec)
        found = self._admin.describe_topics([*sources, *sinks], config=False)
        # A topic of a pattern may have been deleted since.
        topology = topology.resolved(found)
        check_external_topics(source_topics(topology), sinks, found, self._admin.address)
        check_patterns(topology, self._admin.address)
        external = {name: topic.partitions for name, topic in found.items()}
        counts = partition_counts(topology, external)
        expected = internal_topics(topology, spec, counts)
        return Survey(external, counts, expected, self._missing(expected))

    def rehearse(self, topology: Topology, spec: ApplicationSpec, policy: SetupPolicy) -> Survey:
        """What `set_up` with this policy would begin with: `missing` is what it would make. Changes nothing.

        Raises what `set_up` would raise, the brokers' refusals of the new topics included.
        """
        survey = self.look(topology, spec)
        self._check_tables(topology, survey)
        if survey.missing:
            asked = _specs(policy(survey.expected, survey.missing))
            self._raise_refusals(self._admin.create_topics(asked, validate_only=True).refused)
        return survey

    def set_up(
        self,
        topology: Topology,
        spec: ApplicationSpec,
        policy: SetupPolicy = automatic,
        timeout: float | None = None,
        is_begun: bool = True,
    ) -> SetUp:
        """Makes the missing internal topics that `policy` allows. `timeout`: seconds in place of the manager's.

        `is_begun`: the application may have processed records before, and what it kept of them may be missing.

        Several clients may call this at once, and one client again at any time. If it raises, the topics that
        this call made are gone again, unless the brokers stopped answering; then a later call goes on with
        them.

        Raises MissingSourceTopicException (create the topics that it names), TopologyException (sink topics
        are missing, co-partitioned sources disagree in their counts, or a table's changelog would lack rows),
        MisconfiguredInternalTopicException (correct the topics), ConfigException (the brokers refuse the
        settings of new topics), BrokerNotAvailableException (try again), and what `policy` raises.
        """
        made: set[str] = set()
        try:
            survey = self.look(topology, spec)
            if is_begun:
                self._check_tables(topology, survey)
            return self._set_up(survey, policy, made, self._timeout if timeout is None else timeout)
        except BaseException:
            self._remove(made)
            raise

    def _check_tables(self, topology: Topology, survey: Survey) -> None:
        missing = {topic.name for topic in survey.missing}
        check_table_changelogs(self._admin, topology, missing, survey.external)

    def _set_up(self, survey: Survey, policy: SetupPolicy, made: set[str], timeout: float) -> SetUp:
        expected, missing = survey.expected, survey.missing
        permission = _Permission(policy, expected, self._clock)
        deadline = self._clock() + timeout
        fresh = bool(missing)
        while missing or (fresh and not self._usable(expected)):
            if self._clock() > deadline:
                late = [topic.name for topic in missing or expected]
                raise BrokerNotAvailableException(
                    f"the new internal topics {', '.join(late)} did not become usable on the brokers at"
                    f" {self._admin.address} within {timeout:g} s. Check the brokers, then start again"
                )
            # Those made by this call that are not to be seen yet are on their way, not missing.
            absent = [topic for topic in missing if topic.name not in made]
            if absent:
                made |= self._make(permission.of(absent))
            self._pause(_TICK)
            missing = self._missing(expected)
        return SetUp(replace(survey, missing=()), tuple(topic.name for topic in expected if topic.name in made))

    def _missing(self, expected: Sequence[InternalTopic]) -> tuple[InternalTopic, ...]:
        findings = validate(expected, self._admin.describe_topics([topic.name for topic in expected]))
        findings.raise_misconfigured()
        return findings.missing

    def _make(self, topics: Sequence[InternalTopic]) -> frozenset[str]:
        """Makes the topics, all or none; those that another client made meanwhile are left to the next
        validation.
        """
        if not topics:
            return frozenset()
        specs = _specs(topics)
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


class _Permission:
    """Asks the policy what may be made, and believes a refusal only when it lasts.

    Topics that another client makes at this moment appear one by one: some may be missing that will be there soon.
    """

    def __init__(self, policy: SetupPolicy, expected: Sequence[InternalTopic], clock: Callable[[], float]) -> None:
        self._policy = policy
        self._expected = expected
        self._clock = clock
        self._granted: frozenset[str] = frozenset()
        self._refused: frozenset[str] = frozenset()
        self._refused_at = 0.0

    def of(self, absent: Sequence[InternalTopic]) -> Sequence[InternalTopic]:
        """The topics of `absent` to make now; none while a refusal may still pass. Raises what the policy raises."""
        names = frozenset(topic.name for topic in absent)
        # What was allowed once stays allowed while it appears bit by bit, made by whomever.
        if names <= self._granted:
            return absent
        try:
            allowed = self._policy(self._expected, absent)
        except MissingInternalTopicException:
            if names != self._refused:
                self._refused, self._refused_at = names, self._clock()
            elif self._clock() - self._refused_at >= _SETTLED:
                raise
            return ()
        self._granted |= {topic.name for topic in allowed}
        return allowed


def _specs(topics: Iterable[InternalTopic]) -> list[TopicSpec]:
    return [TopicSpec(t.name, t.partitions, t.replication_factor, t.config_dict) for t in topics]


def _partitions(topics: Sequence[InternalTopic]) -> list[TopicPartition]:
    return [TopicPartition(topic.name, number) for topic in topics for number in range(topic.partitions)]
