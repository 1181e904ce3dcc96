"""The topics that no expression may send records to: `topicBy` gives a name for each record."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from streams_runtime.api.checks.topic_checks import BROKERS_OWN
from streams_runtime.api.reading.topic_patterns import fits
from streams_runtime.topology.partition_counts import internal_topic_names
from streams_runtime.topology.plan import Topology

_IS_READ = "this application reads"


@dataclass(frozen=True, slots=True)
class OwnTopics:
    """`named` says of each topic what it is, as the end of a sentence; those that fit `read_patterns` are read."""

    named: Mapping[str, str]
    read_patterns: tuple[str, ...] = ()

    @classmethod
    def of(cls, topology: Topology) -> OwnTopics:
        """Those of the brokers, and those that the application reads or has made for itself."""
        named = {
            **dict.fromkeys(BROKERS_OWN, "belongs to the brokers"),
            **dict.fromkeys(internal_topic_names(topology), "is an internal topic of this application"),
            **dict.fromkeys((*topology.source_topics, *topology.global_topics), _IS_READ),
        }
        return cls(named, topology.source_patterns)

    def what_is(self, topic: str) -> str | None:
        """What the topic is, as the end of a sentence; None: any record may go there."""
        if topic in self.named:
            return self.named[topic]
        return _IS_READ if any(fits(each, topic) for each in self.read_patterns) else None
