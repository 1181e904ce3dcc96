"""The plan of a topology as values: nodes, sub-topologies, tasks, stores and internal topics."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

from streams_runtime.api.reading.topic_patterns import fits
from streams_runtime.errors import TopologyException, UnknownStateStoreException
from streams_runtime.topology.node_order import needed_first
from streams_runtime.topology.nodes.all_nodes import Node
from streams_runtime.topology.nodes.process_node import ProcessNode
from streams_runtime.topology.nodes.source_and_sink_nodes import (
    RepartitionSourceNode,
    SourceNode,
    TableSourceNode,
)
from streams_runtime.topology.nodes.step_nodes import MergeNode
from streams_runtime.topology.nodes.stream_join_node import StreamJoinNode
from streams_runtime.topology.nodes.stream_nodes import FlatMapNode
from streams_runtime.topology.store_specs import StoreSpec

_TASK_ID = re.compile(r"(0|[1-9][0-9]*)_(0|[1-9][0-9]*)")


@dataclass(frozen=True, slots=True)
class SubTopology:
    """Nodes that are connected without passing through a repartition topic, inputs before their consumers.

    `source_topics` are those that sources name; which ones patterns fit, the brokers tell (`Topology.resolved`).
    """

    id: int
    nodes: tuple[Node, ...]
    source_topics: tuple[str, ...]
    sink_topics: tuple[str, ...]
    repartition_sinks: tuple[str, ...]
    stores: tuple[StoreSpec, ...]
    _consumers: Mapping[str, tuple[Node, ...]] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        consumers: dict[str, list[Node]] = {}
        for node in self.nodes:
            for name in dict.fromkeys(node.inputs):
                consumers.setdefault(name, []).append(node)
        object.__setattr__(self, "_consumers", {name: tuple(nodes) for name, nodes in consumers.items()})

    @property
    def source_patterns(self) -> tuple[str, ...]:
        """The patterns of the topics that are read beside those that have names."""
        return tuple(node.topic for node in self.nodes if isinstance(node, SourceNode) and node.by_pattern)

    @property
    def reads_one_topic(self) -> bool:
        """Whether a task's records come from one log, and so have an order by themselves."""
        return len(self.source_topics) == 1 and not self.source_patterns

    def reads(self, topic: str) -> bool:
        """Whether its tasks read the topic, if it is there. A pattern is taken for a topic, too (in test drivers)."""
        return topic in self.source_topics or any(each == topic or fits(each, topic) for each in self.source_patterns)

    def resolved(self, topics: Collection[str]) -> SubTopology:
        """The same with `source_topics` as they are where these topics are there."""
        if not self.source_patterns:
            return self
        named = tuple(n.read_topic for n in self.nodes if n.read_topic and n.read_topic not in self.source_patterns)
        return replace(self, source_topics=(*named, *sorted({each for each in topics if self.reads(each)} - {*named})))

    def consumers_of(self, name: str) -> tuple[Node, ...]:
        """The nodes that take the records of the node `name`, in order."""
        return self._consumers.get(name, ())

    def leads_out(self, name: str) -> bool:
        """Whether the records of the node `name` reach a store, a topic, or a peek that nothing else follows."""
        return any(node.LEADS_OUT or self.leads_out(node.name) for node in self.consumers_of(name))


@dataclass(frozen=True, slots=True, order=True)
class TaskId:
    """One partition of one sub-topology; printed as Kafka Streams prints it (`0_1`)."""

    subtopology: int
    partition: int

    def __str__(self) -> str:
        return f"{self.subtopology}_{self.partition}"

    @classmethod
    def parse(cls, text: str) -> TaskId:
        """The reverse of str(). Raises ValueError when `text` is not two numbers joined by `_`."""
        match = _TASK_ID.fullmatch(text)
        if match is None:
            raise ValueError(f"{text!r} is not a task id: two numbers joined by _, such as 0_1")
        return cls(int(match[1]), int(match[2]))


@dataclass(frozen=True, slots=True)
class InternalTopic:
    """A topic that the application owns, as it has to be; `config` is sorted by property."""

    name: str
    kind: Literal["repartition", "changelog"]
    partitions: int
    replication_factor: int
    config: tuple[tuple[str, str], ...]

    @property
    def config_dict(self) -> Mapping[str, str]:
        """The topic's properties by name."""
        return dict(self.config)


@dataclass(frozen=True, slots=True)
class Function:
    """A function of the user's that expressions call as `name`. `pandas`: with a Series for each argument."""

    name: str
    reference: str
    returns: str
    pandas: bool
    path: str


@dataclass(frozen=True, slots=True)
class Topology:
    """The whole plan; sub-topologies are in the order of their ids, which count from 0, upstream first.

    `global_tables` are one sub-topology for each global table, with its source alone; they have no tasks, and the ids
    that come next.
    """

    application_id: str
    subtopologies: tuple[SubTopology, ...]
    functions: tuple[Function, ...] = ()
    global_tables: tuple[SubTopology, ...] = ()

    @property
    def every_subtopology(self) -> tuple[SubTopology, ...]:
        """Those with tasks, then those of global tables."""
        return (*self.subtopologies, *self.global_tables)

    @property
    def nodes(self) -> tuple[Node, ...]:
        """Every node, each after its inputs; the source of a repartition topic after its origin."""
        by_name = {node.name: node for sub in self.every_subtopology for node in sub.nodes}
        ordered = needed_first({name: node.needs for name, node in by_name.items()})
        return tuple(by_name[name] for name in ordered)

    @property
    def stores(self) -> tuple[StoreSpec, ...]:
        """Every store, sub-topology by sub-topology; global ones last."""
        return tuple(store for sub in self.every_subtopology for store in sub.stores)

    def node(self, name: str) -> Node:
        """The node of this name. Raises TopologyException when there is none."""
        by_name = {node.name: node for sub in self.every_subtopology for node in sub.nodes}
        if name not in by_name:
            raise TopologyException(f"the topology has no node {name!r}; it has {_listed(by_name)}")
        return by_name[name]

    def store(self, name: str) -> tuple[SubTopology, StoreSpec]:
        """The store of this name and its sub-topology. Raises UnknownStateStoreException: fix the name."""
        for sub in self.every_subtopology:
            for store in sub.stores:
                if store.name == name:
                    return sub, store
        raise UnknownStateStoreException(
            f"the topology has no store {name!r}; it has {_listed(s.name for s in self.stores)}"
        )

    @property
    def source_topics(self) -> tuple[str, ...]:
        """The user's topics that tasks read, each once; those of patterns only once `resolved` knows them."""
        internal = {*self.repartition_topics, *self.global_topics}
        by_name = [n.topic for n in self.nodes if isinstance(n, SourceNode | TableSourceNode) and not n.by_pattern]
        read = [*by_name, *(topic for sub in self.subtopologies for topic in sub.source_topics)]
        return tuple(topic for topic in dict.fromkeys(read) if topic not in internal)

    @property
    def pattern_sources(self) -> tuple[SourceNode, ...]:
        """The sources that read every topic of a pattern."""
        nodes = (node for sub in self.subtopologies for node in sub.nodes)
        return tuple(node for node in nodes if isinstance(node, SourceNode) and node.by_pattern)

    @property
    def source_patterns(self) -> tuple[str, ...]:
        """The patterns of the topics that tasks read beside those that have names."""
        return tuple(source.topic for source in self.pattern_sources)

    def resolved(self, topics: Collection[str]) -> Topology:
        """The topology as it is where these topics are there: with those that patterns fit among `source_topics`.

        Which nodes there are does not depend on it, nor what they do. Without a pattern it is the same one.
        """
        if not self.pattern_sources:
            return self
        return replace(self, subtopologies=tuple(each.resolved(topics) for each in self.subtopologies))

    @property
    def global_topics(self) -> tuple[str, ...]:
        """The user's topics of global tables, which every client reads in full."""
        return tuple(topic for sub in self.global_tables for topic in sub.source_topics)

    @property
    def sink_topics(self) -> tuple[str, ...]:
        """The user's topics that are written, each once."""
        return users_topics(self.nodes)

    @property
    def repartition_topics(self) -> tuple[str, ...]:
        """The repartition topics, each once, in the order of the sub-topologies that read them."""
        return tuple(n.topic for n in self.nodes if isinstance(n, RepartitionSourceNode))

    def sources_of(self, name: str) -> frozenset[str]:
        """The source nodes whose records reach the node of this name without passing a repartition topic.

        A join of streams counts as one: its results have one order, whatever they come from.
        """
        by_name = {node.name: node for sub in self.subtopologies for node in sub.nodes}
        found, waiting = set(), [name]
        while waiting:
            here = waiting.pop()
            if here not in found:
                found.add(here)
                waiting += () if isinstance(by_name[here], StreamJoinNode) else by_name[here].streams
        return frozenset(
            each for each in found if isinstance(by_name[each], StreamJoinNode) or not by_name[each].inputs
        )

    def flat_mapped(self, name: str) -> bool:
        """Whether records that reach the node come of a flatMap or a process step, without a topic between."""
        node = self.node(name)
        if isinstance(node, StreamJoinNode):
            return False  # its results have an order of their own
        return isinstance(node, FlatMapNode | ProcessNode) or any(self.flat_mapped(each) for each in node.streams)

    @property
    def reunions(self) -> frozenset[str]:
        """Merges in which records of one source meet again that have gone different ways."""
        found = set()
        for node in self.nodes:
            if isinstance(node, MergeNode):
                branches = [self.sources_of(name) for name in node.inputs]
                if sum(map(len, branches)) > len(frozenset().union(*branches)):
                    found.add(node.name)
        return frozenset(found)

    @property
    def tables(self) -> frozenset[str]:
        """Nodes whose output is a table: aggregates, table sources, toTable, joins of tables, transforms after them."""
        found: set[str] = set()
        for node in self.nodes:
            if node.makes_table(found):
                found.add(node.name)
        return frozenset(found)


def users_topics(nodes: Iterable[Node]) -> tuple[str, ...]:
    """The topics of the user's that the nodes write, each once."""
    return tuple(dict.fromkeys(topic for node in nodes for topic in node.users_topics))


def _listed(names: Iterable[str]) -> str:
    return ", ".join(names) or "none"
