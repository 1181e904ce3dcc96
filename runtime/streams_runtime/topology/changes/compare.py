"""Whether an upgrade from one topology to another keeps the state that is there: a pure comparison of two plans."""

from __future__ import annotations

from collections.abc import Iterator

from streams_runtime.topology.changes.change import Change, Owned, TopologyChanges
from streams_runtime.topology.changes.group_changes import uncounted_rows
from streams_runtime.topology.changes.partitioner_changes import partitioner_changes
from streams_runtime.topology.changes.source_table_changes import renamed_store
from streams_runtime.topology.changes.store_changes import store_changes
from streams_runtime.topology.nodes.source_and_sink_nodes import SourceNode, TableSourceNode
from streams_runtime.topology.partition_counts import deciding_topics, internal_topic_names
from streams_runtime.topology.plan import Topology

_ADDED, _EMPTY = "only the new topology has it", "it begins empty, without what was processed before"
_LOST = {"suppress": "changes that wait in it are never passed on"}
_SET_UP = (
    "nothing; with internalTopics.setup: manual the topic has to be made, by an init that allows for topics that are"
    " missing"
)


def changes(old: Topology, new: Topology) -> TopologyChanges:
    """What an upgrade of a running application from `old` to `new` does to its stores and internal topics.

    Changes of where, select, timestamps, sinks and of steps without stores are compatible and not listed, except where
    they change what a store holds. Both come from `build_topology`; the comparison knows what they know: types of
    columns that only Spark could tell, and partition counts, are not in it.
    """
    orphaned, added = _only_in(old, new), _only_in(new, old)
    if old.application_id != new.application_id:
        return TopologyChanges((_another_application(old, new),), orphaned, added)
    kept = [store.name for store in new.stores if store.name not in added.stores]
    items = (
        *_orphaned(old, orphaned),
        *(change for name in kept for change in store_changes(old, new, name)),
        *partitioner_changes(old, new),
        *_turned(old, new),
        *_partitions(old, new),
        *_new(old, new, added),
    )
    return TopologyChanges(items, orphaned, added)


def _only_in(one: Topology, other: Topology) -> Owned:
    stores = {store.name for store in one.stores} - {store.name for store in other.stores}
    topics = {*internal_topic_names(one)} - {*internal_topic_names(other)}
    if one.application_id != other.application_id:
        stores = {store.name for store in one.stores}
    return Owned(tuple(sorted(stores)), tuple(sorted(topics)))


def _another_application(old: Topology, new: Topology) -> Change:
    return Change(
        "changed",
        "spec.applicationId",
        f"was {old.application_id} and is {new.application_id}",
        "it names the consumer group and every internal topic: all stores begin empty, all sources are read as by a new"
        " application, and the old topics and offsets stay behind",
        "put it back, or create another resource beside the old one",
    )


def _orphaned(old: Topology, names: Owned) -> Iterator[Change]:
    for name in names.stores:
        _, store = old.store(name)
        kept = f"its changelog {store.changelog_topic} stays on the brokers, unused"
        yield Change(
            "orphaned",
            f"store {name}",
            "only the old topology has it",
            _LOST.get(store.kind, "its contents can't be queried any more")
            + ("" if store.source_changelog else f", and {kept}"),
            "keep the store's name, or delete what is left of it once nobody needs it",
        )
    for topic in names.topics:
        if topic in old.repartition_topics:
            yield Change(
                "orphaned",
                f"repartition topic {topic}",
                "only the old topology has it",
                "records in it that are not processed yet are never read",
                "keep the name of its step, or let the old version read it to its end first",
            )


def _new(old: Topology, new: Topology, names: Owned) -> Iterator[Change]:
    for name in names.stores:
        _, store = new.store(name)
        remedy = "nothing" if store.source_changelog else _SET_UP
        if (change := uncounted_rows(old, new, store)) is not None:
            yield change
        if (change := renamed_store(old, new, store)) is not None:
            yield change
        yield Change("new", f"store {name}", _ADDED, _EMPTY, remedy)
    for topic in names.topics:
        if topic in new.repartition_topics:
            yield Change(
                "new", f"repartition topic {topic}", "only the new topology has it", "it begins empty", _SET_UP
            )


def _turned(old: Topology, new: Topology) -> Iterator[Change]:
    """Topics that are read as a table instead of as a stream, or the other way round."""
    before = {node.topic: node for node in old.nodes if isinstance(node, SourceNode | TableSourceNode)}
    for node in new.nodes:
        if not isinstance(node, SourceNode | TableSourceNode):
            continue
        was = before.get(node.topic)
        if was is None or isinstance(was, TableSourceNode) == isinstance(node, TableSourceNode):
            continue
        one, other = ("table", "stream") if isinstance(was, TableSourceNode) else ("stream", "table")
        yield Change(
            "changed",
            node.path,
            f"the topic {node.topic} was read as a {one} and is read as a {other}",
            "its records mean something else to every step behind it, from the committed offset on: a record of a table"
            " replaces the one before it, one of a stream stands for itself",
            "read it as before, or start anew under another applicationId",
        )


def _partitions(old: Topology, new: Topology) -> Iterator[Change]:
    before, after = deciding_topics(old), deciding_topics(new)
    for topic, now in after.items():
        was = before.get(topic)
        if was is not None and was != now:
            yield Change(
                "changed",
                f"topic {topic}",
                f"its number of partitions followed {_listed(was)} and follows {_listed(now)}",
                "where their partition counts differ, it no longer fits: the application refuses it, since keys would"
                " be in other partitions",
                "compare the counts; where they are the same, allow the change",
            )


def _listed(topics: frozenset[str]) -> str:
    return " and ".join(sorted(topics))
