"""How many partitions each topic has, which tasks follow from that, and the internal topics in full."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from streams_runtime.api import ApplicationSpec
from streams_runtime.errors import TopologyException
from streams_runtime.topology.nodes.foreign_key_nodes import ResponseNode, SubscribeNode
from streams_runtime.topology.nodes.source_and_sink_nodes import RepartitionSinkNode
from streams_runtime.topology.plan import InternalTopic, TaskId, Topology
from streams_runtime.topology.store_specs import StoreSpec

# CreateTime: a record that is written again or restored keeps the time that it is about. Brokers refuse records whose
# times are an hour ahead of their clocks (KIP-937); what an input topic has, the topics made of it have to take.
_ALL = {"message.timestamp.type": "CreateTime", "message.timestamp.after.max.ms": str(2**63 - 1)}
_CHANGELOG = {**_ALL, "cleanup.policy": "compact"}
# The broker's clock and the records' times differ; Kafka Streams' windowstore.changelog.additional.retention.ms.
_CLOCK_DIFFERENCE = 24 * 60 * 60 * 1000
COMPACTION_LAG = "min.compaction.lag.ms"
# Unlimited: records go when they are processed, by DeleteRecords up to the committed offset, and not before.
_REPARTITION = {**_ALL, "cleanup.policy": "delete", "retention.ms": "-1"}


@dataclass(frozen=True, slots=True)
class ChangelogSpan:
    """How long (ms, from a record's own time by the brokers' clock) a changelog keeps what its store still has.

    `setting` is the topic's property that says so, `store` the store's name, `topic` the topic's without the
    application's.
    """

    store: str
    topic: str
    setting: str
    ms: int


def copartitioned(topology: Topology) -> tuple[tuple[str, ...], ...]:
    """Topics that need the same number of partitions: those of a sub-topology, of which a task reads the same one.

    The group gives each topic's partitions out by itself, in ranges. Ranges of topics of one size go to the same
    members; of others, a task's inputs would be at two members, and it would never start. Groups of at least two; no
    topic is in two groups.
    """
    groups = (sorted((*sub.source_topics, *sub.source_patterns)) for sub in topology.subtopologies)
    return tuple(tuple(group) for group in groups if len(group) > 1)


def partition_counts(topology: Topology, source_counts: Mapping[str, int]) -> Mapping[str, int]:
    """The number of partitions of every topic that is read, repartition topics included.

    A repartition topic has as many as are declared for it, or as the user's topics that it is co-partitioned with;
    else as the largest input of the sub-topologies that write it. `source_counts` are the user's topics, as the brokers
    have them. Raises TopologyException for a user's topic whose count is not given, and for user's topics
    that have to agree and do not.
    """
    topology = topology.resolved(source_counts)
    counts = dict.fromkeys(topology.source_topics, 0)
    for topic in counts:
        counts[topic] = source_counts.get(topic, 0)
        if counts[topic] < 1:
            raise TopologyException(
                f"the number of partitions of the source topic {topic!r} is not known;"
                " create the topic, then start again"
            )
    declared = _declared(topology)
    agreed = {group: _agreed(group, {**counts, **declared}) for group in copartitioned(topology)}
    fixed = {**{topic: count for group, count in agreed.items() for topic in group}, **declared}
    peers = {topic: group for group in agreed for topic in group}
    repartition = dict.fromkeys(topology.repartition_topics, 1)
    # A fixed point: each round only raises counts, and none is ever above the largest source's or declared one.
    while True:
        known = {**counts, **repartition}
        derived = {topic: fixed.get(topic) or _largest_input(topology, topic, known) for topic in repartition}
        raised = {topic: max(derived.get(peer, 0) for peer in peers.get(topic, (topic,))) for topic in repartition}
        if raised == repartition:
            return {**counts, **repartition}
        repartition = raised


def deciding_topics(topology: Topology) -> Mapping[str, frozenset[str]]:
    """For each internal topic the user's topics whose partition counts decide its own, or the declaration that does.

    A pattern stands for all topics that fit it.
    """
    declared = _declared(topology)
    peers = {topic: group for group in copartitioned(topology) for topic in group}
    users = frozenset((*topology.source_topics, *topology.source_patterns))
    between = {node.topic for node in topology.nodes if isinstance(node, SubscribeNode | ResponseNode)}

    def upstream(topics: tuple[str, ...]) -> frozenset[str]:
        seen: set[str] = set()
        waiting = list(topics)
        while waiting:
            topic = waiting.pop()
            if topic in seen:
                continue
            seen.add(topic)
            if topic in declared:
                continue
            if topic in between:
                # The table that reads it says how many partitions it has, whoever writes it.
                waiting += users.intersection(peers[topic])
            elif topic not in users:
                writers = (sub for sub in topology.subtopologies if topic in sub.repartition_sinks)
                waiting += [each for sub in writers for each in (*sub.source_topics, *sub.source_patterns)]
                waiting += peers.get(topic, ())
        return users & seen | {f"repartition.partitions: {declared[topic]}" for topic in seen & declared.keys()}

    found = {topic: upstream((topic,)) for topic in topology.repartition_topics}
    for sub in topology.subtopologies:
        for store in sub.stores:
            if not store.source_changelog:
                found[store.changelog_topic] = upstream((*sub.source_topics, *sub.source_patterns))
    return found


def tasks(topology: Topology, counts: Mapping[str, int]) -> tuple[TaskId, ...]:
    """Every task: as many for a sub-topology as its largest input has partitions.

    `counts` is what `partition_counts` gives.
    """
    return tuple(
        TaskId(sub.id, partition)
        for sub in topology.resolved(counts).subtopologies
        for partition in range(_task_count(sub.source_topics, counts))
    )


def internal_topic_names(topology: Topology) -> tuple[str, ...]:
    """The names of the topics that the application owns, in the order of `internal_topics`."""
    return tuple(
        name
        for sub in topology.subtopologies
        for name in (
            *sub.repartition_sinks,
            *(store.changelog_topic for store in sub.stores if not store.source_changelog),
        )
    )


def internal_topics(topology: Topology, spec: ApplicationSpec, counts: Mapping[str, int]) -> tuple[InternalTopic, ...]:
    """Every topic that the application owns, as it has to be; a table's source topic is not one of them.

    Properties: the library's, over them `spec.internalTopics.config`, over them the topic's own overrides.
    """
    found: list[InternalTopic] = []
    for sub in topology.resolved(counts).subtopologies:
        for topic in sub.repartition_sinks:
            found.append(_internal_topic(topology, spec, topic, counts[topic]))
        for store in sub.stores:
            if not store.source_changelog:
                partitions = _task_count(sub.source_topics, counts)
                found.append(_internal_topic(topology, spec, store.changelog_topic, partitions, store))
    return tuple(found)


def changelog_spans(topology: Topology, spec: ApplicationSpec) -> Mapping[str, ChangelogSpan]:
    """Of each changelog, by its name, that does not keep for ever what its store has: as declared, for how long."""
    found = {}
    for store in (each for sub in topology.subtopologies for each in sub.stores if not each.source_changelog):
        own, config = _declared_config(topology, spec, store.changelog_topic, _changelog(store))
        if store.windowing is not None:
            setting = "retention.ms" if "delete" in config["cleanup.policy"] else None
        else:
            setting = None if store.history is None else COMPACTION_LAG
        if setting is not None and int(config[setting]) >= 0:
            found[store.changelog_topic] = ChangelogSpan(store.name, own, setting, int(config[setting]))
    return found


def _internal_topic(
    topology: Topology, spec: ApplicationSpec, name: str, partitions: int, store: StoreSpec | None = None
) -> InternalTopic:
    """The changelog of `store`, or a repartition topic."""
    repartition = store is None
    _, config = _declared_config(topology, spec, name, _REPARTITION if store is None else _changelog(store))
    return InternalTopic(
        name=name,
        kind="repartition" if repartition else "changelog",
        partitions=partitions,
        replication_factor=spec.internal_topics.replication_factor,
        config=tuple(sorted(config.items())),
    )


def _declared_config(
    topology: Topology, spec: ApplicationSpec, name: str, library: Mapping[str, str]
) -> tuple[str, Mapping[str, str]]:
    """A topic's name without the application's, and its properties."""
    own, internal = name.removeprefix(f"{topology.application_id}-"), spec.internal_topics
    return own, {**library, **internal.config, **internal.overrides.get(own, {})}


def _changelog(store: StoreSpec) -> Mapping[str, str]:
    """The library's own properties of a store's changelog; windows go from it some time after they have expired, and
    what a table with a history has replaced stays for as long.
    """
    if store.history is not None:
        return {**_CHANGELOG, COMPACTION_LAG: str(store.history + _CLOCK_DIFFERENCE)}
    if store.windowing is None:
        return _CHANGELOG
    retention = store.windowing.retention + _CLOCK_DIFFERENCE
    return {**_ALL, "cleanup.policy": "compact,delete", "retention.ms": str(retention)}


def _declared(topology: Topology) -> dict[str, int]:
    """The repartition topics of which a number of partitions is declared."""
    sinks = (node for node in topology.nodes if isinstance(node, RepartitionSinkNode))
    return {sink.topic: sink.partitions for sink in sinks if sink.partitions is not None}


def _task_count(topics: tuple[str, ...], counts: Mapping[str, int]) -> int:
    return max(counts[topic] for topic in topics)


def _largest_input(topology: Topology, topic: str, counts: Mapping[str, int]) -> int:
    writers = (sub for sub in topology.subtopologies if topic in sub.repartition_sinks)
    return max(_task_count(sub.source_topics, counts) for sub in writers)


def _agreed(group: tuple[str, ...], counts: Mapping[str, int]) -> int | None:
    """The count of the user's topics in a group; None when it has none of them."""
    found = {topic: counts[topic] for topic in group if topic in counts}
    if len(set(found.values())) > 1:
        shown = ", ".join(f"{topic} has {count}" for topic, count in found.items())
        raise TopologyException(
            "these topics are merged, aggregated, deduped, processed or joined together and need the same number of"
            f" partitions: {shown}."
            " Make the counts equal, or put a repartition before the merge or the join, with the number of the others"
        )
    return next(iter(found.values()), None)
