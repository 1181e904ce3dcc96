"""The users' topics that an application reads and writes: they have to be there before it starts."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from streams_runtime.api import ApplicationSpec
from streams_runtime.api.reading.field_paths import under
from streams_runtime.api.spec.spec_values import OffsetReset
from streams_runtime.errors import MissingSourceTopicException, TopologyException
from streams_runtime.topology.nodes.aggregate_node import AggregateNode
from streams_runtime.topology.nodes.source_and_sink_nodes import SinkNode, SourceNode, TableSourceNode
from streams_runtime.topology.plan import Topology


def source_topics(topology: Topology) -> Mapping[str, str]:
    """Every topic that is read and is a user's, with the field that names it, or whose pattern it fits."""
    named = {
        node.topic: under(node.path, "topic")
        for node in topology.nodes
        if isinstance(node, SourceNode | TableSourceNode) and not node.by_pattern
    }
    fitting = {
        topic: under(node.path, "topicPattern")
        for node in topology.pattern_sources
        for topic in topology.source_topics
        if topic not in named and node.reads(topic)
    }
    return {**named, **fitting}


def sink_topics(topology: Topology, spec: ApplicationSpec) -> Mapping[str, str]:
    """Every topic that is written and is a user's, with the first field that names it; dead letters and late records
    included.
    """
    found: dict[str, str] = {}
    for node in topology.nodes:
        if isinstance(node, SinkNode):
            fields = (
                [("topic",)]
                if node.topic is not None
                else [("topics", index) for index in range(len(node.topics or ()))]
            )
            for topic, tokens in zip(node.users_topics, fields, strict=True):
                found.setdefault(topic, under(node.path, *tokens))
        if isinstance(node, AggregateNode) and node.late_topic is not None:
            found.setdefault(node.late_topic, under(node.path, "window", "late", "topic"))
    for field, topic in spec.processing.letter_topics.items():
        found.setdefault(topic, field)
    return found


def offset_resets(spec: ApplicationSpec) -> Mapping[str, OffsetReset]:
    """Where the topics of sources, or of a source's pattern, begin without a committed offset; those that begin at the
    beginning are left out.

    So are repartition topics: what the application has written there itself is read whole.
    """
    found = {
        source.topic_pattern or source.named_topic: source.begins_at(spec.kafka.offset_reset)
        for source in spec.topology.sources
    }
    return {topic: reset for topic, reset in found.items() if reset != "earliest"}


def check_external_topics(
    sources: Mapping[str, str], sinks: Mapping[str, str], present: Collection[str], address: str
) -> None:
    """Raises unless all of the users' topics are among `present`, the topics on the brokers at `address`.

    MissingSourceTopicException names every missing topic if one of them is a source; TopologyException
    names the missing sinks if only sinks are missing. Either way: create the topics and start again.
    """
    no_sources = {topic: field for topic, field in sources.items() if topic not in present}
    no_sinks = {topic: field for topic, field in sinks.items() if topic not in present}
    if no_sources:
        also = f"; neither are the sink topics {_listed(no_sinks)}" if no_sinks else ""
        raise MissingSourceTopicException(
            f"source topics are not on the brokers at {address}: {_listed(no_sources)}{also}."
            f" {_remedy(no_sources | no_sinks, address)}"
        )
    if no_sinks:
        raise TopologyException(
            f"sink topics are not on the brokers at {address}: {_listed(no_sinks)}. {_remedy(no_sinks, address)}"
        )


def check_patterns(topology: Topology, address: str) -> None:
    """Raises unless each pattern of a topology that is `resolved` fits a topic, and none fits one that is read anyway.

    MissingSourceTopicException: create a topic that fits. TopologyException: two patterns fit one topic; make one
    narrower. Either way, start again.
    """
    by_topic: dict[str, str] = {}
    for node in topology.pattern_sources:
        field = under(node.path, "topicPattern")
        fitting = [topic for topic in topology.source_topics if node.reads(topic)]
        if not fitting:
            raise MissingSourceTopicException(
                f"no topic on the brokers at {address} fits the pattern {node.topic!r} ({field}). Create one, or"
                " correct the pattern, and start the application again"
            )
        for topic in fitting:
            if by_topic.setdefault(topic, field) != field:
                raise TopologyException(
                    f"the topic {topic} fits the patterns of {by_topic[topic]} and {field}: a topic is read by one"
                    " source. Make one of them narrower, and start the application again"
                )


def _listed(topics: Mapping[str, str]) -> str:
    return ", ".join(f"{topic} ({field})" for topic, field in topics.items())


def _remedy(topics: Collection[str], address: str) -> str:
    command = f"kafka-topics.sh --bootstrap-server {address} --create --topic {next(iter(topics))} --partitions N"
    return f"Create them ({command}), or correct their names, and start the application again"
