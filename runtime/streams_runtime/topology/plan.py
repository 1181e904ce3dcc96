"""The plan of a topology as values: nodes, sub-topologies, tasks, stores and internal topics."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

from streams_runtime.errors import TopologyException, UnknownStateStoreException
from streams_runtime.topology.order import needed_first

StoreKind = Literal["key-value", "window", "session"]

_LEAST_SEGMENT_INTERVAL = 60_000
_TASK_ID = re.compile(r"(0|[1-9][0-9]*)_(0|[1-9][0-9]*)")


@dataclass(frozen=True, slots=True)
class Format:
    """How bytes become columns.

    `name` is `string`, `bytes`, `long`, `int`, `double` or `json`; `schema` is Spark DDL for json that is
    read and None for everything else. A primitive value gives one column named `value`.
    """

    name: str
    schema: str | None = None


@dataclass(frozen=True, slots=True)
class Aggregate:
    """One column of an aggregate step: `column` = `function`(`argument`).

    `function` is count, sum, min, max or avg; `argument` a Spark SQL scalar expression, None for `count(*)`.
    `path` is the field that it was declared in.
    """

    column: str
    function: str
    argument: str | None
    path: str


@dataclass(frozen=True, slots=True)
class SourceNode:
    """A stream read from a user's topic. `timestamp` is an expression that replaces the record's own."""

    name: str
    topic: str
    key: Format
    value: Format
    timestamp: str | None
    path: str


@dataclass(frozen=True, slots=True)
class TableSourceNode:
    """A user's topic read as a table, kept in `store`; the topic itself is the store's changelog."""

    name: str
    topic: str
    key: Format
    value: Format
    timestamp: str | None
    store: str
    path: str


@dataclass(frozen=True, slots=True)
class RepartitionSourceNode:
    """Reads the repartition topic `topic`; its records carry the columns and the key of the node `origin`."""

    name: str
    topic: str
    origin: str


@dataclass(frozen=True, slots=True)
class TransformNode:
    """`where` (first) and `select` (then), either or both; `select` holds (column, expression) in order."""

    name: str
    input: str
    where: str | None
    select: tuple[tuple[str, str], ...] | None
    path: str


@dataclass(frozen=True, slots=True)
class KeyByNode:
    """Gives each record the value of the expression `key` as its key."""

    name: str
    input: str
    key: str
    path: str


@dataclass(frozen=True, slots=True)
class MergeNode:
    """All records of all inputs, which have the same columns."""

    name: str
    inputs: tuple[str, ...]
    path: str


@dataclass(frozen=True, slots=True)
class TimeWindows:
    """Windows [start, start + `size`) that begin at every multiple of `advance` since 1970. All in ms.

    A window is closed once stream time has reached its end and `grace`. `retention` is that of its store. With
    `only_final` a window is passed on when it has closed, and not at each change.
    """

    size: int
    advance: int
    grace: int
    retention: int
    only_final: bool = False


@dataclass(frozen=True, slots=True)
class AggregateNode:
    """A running aggregate of each key, or of each key's windows, kept in `store`; its output is a table."""

    name: str
    input: str
    aggregates: tuple[Aggregate, ...]
    store: str
    path: str
    windows: TimeWindows | None = None


@dataclass(frozen=True, slots=True)
class RepartitionSinkNode:
    """Writes the records of the key-by node `input` to the repartition topic `topic`."""

    name: str
    input: str
    topic: str


@dataclass(frozen=True, slots=True)
class SinkNode:
    """Writes to a user's topic. A format that is None was not declared."""

    name: str
    input: str
    topic: str
    key: Format | None
    value: Format | None
    path: str


Node = (
    SourceNode
    | TableSourceNode
    | RepartitionSourceNode
    | TransformNode
    | KeyByNode
    | MergeNode
    | AggregateNode
    | RepartitionSinkNode
    | SinkNode
)


def inputs_of(node: Node) -> tuple[str, ...]:
    """The names of the nodes that `node` takes its records from, in order; none for a source."""
    match node:
        case SourceNode() | TableSourceNode() | RepartitionSourceNode():
            return ()
        case MergeNode():
            return node.inputs
        case _:
            return (node.input,)


def needed_by(node: Node) -> tuple[str, ...]:
    """What has to be known before `node`: its inputs; for the source of a repartition topic, its origin."""
    return (node.origin,) if isinstance(node, RepartitionSourceNode) else inputs_of(node)


@dataclass(frozen=True, slots=True)
class Windowing:
    """How a window or session store keeps its records. All in ms.

    `retention`: how long a record is shown, in stream time; at least the windows' size and their grace. `size` is that
    of each window; None for sessions, each of which has its own. Raises TopologyException for windows that would
    expire before they end.
    """

    retention: int
    size: int | None = None

    def __post_init__(self) -> None:
        if self.retention < 1 or (self.size is not None and not 1 <= self.size <= self.retention):
            raise TopologyException(
                f"a store with windows of {self.size} ms and a retention of {self.retention} ms loses windows before"
                " they end; give it a retention of at least their size and grace"
            )

    @property
    def segment_interval(self) -> int:
        """Records of so many ms are dropped together, once all of them have expired; Kafka Streams' own rule."""
        return max(self.retention // 2, _LEAST_SEGMENT_INTERVAL)


@dataclass(frozen=True, slots=True)
class StoreSpec:
    """A state store. `changelog_topic` is a full name; with `source_changelog` the user's source topic.

    `windowing` belongs to the kinds `window` and `session`.
    """

    name: str
    kind: StoreKind
    changelog_topic: str
    source_changelog: bool
    node: str
    windowing: Windowing | None = None

    def __post_init__(self) -> None:
        sized = self.windowing is not None and self.windowing.size is not None
        if (self.windowing is None) != (self.kind == "key-value") or sized != (self.kind == "window"):
            raise TopologyException(
                f"store {self.name!r} of kind {self.kind} can't be kept by {self.windowing}: a window store needs size"
                " and retention, a session store a retention, a key-value store neither"
            )


@dataclass(frozen=True, slots=True)
class SubTopology:
    """Nodes that are connected without passing through a repartition topic, inputs before their consumers."""

    id: int
    nodes: tuple[Node, ...]
    source_topics: tuple[str, ...]
    sink_topics: tuple[str, ...]
    repartition_sinks: tuple[str, ...]
    stores: tuple[StoreSpec, ...]

    def consumers_of(self, name: str) -> tuple[Node, ...]:
        """The nodes that take the records of the node `name`, in order."""
        return tuple(node for node in self.nodes if name in inputs_of(node))


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
class Topology:
    """The whole plan; sub-topologies are in the order of their ids, which count from 0, upstream first."""

    application_id: str
    subtopologies: tuple[SubTopology, ...]

    @property
    def nodes(self) -> tuple[Node, ...]:
        """Every node, each after its inputs; the source of a repartition topic after its origin."""
        by_name = {node.name: node for sub in self.subtopologies for node in sub.nodes}
        ordered = needed_first({name: needed_by(node) for name, node in by_name.items()})
        return tuple(by_name[name] for name in ordered)

    @property
    def stores(self) -> tuple[StoreSpec, ...]:
        """Every store, sub-topology by sub-topology."""
        return tuple(store for sub in self.subtopologies for store in sub.stores)

    def node(self, name: str) -> Node:
        """The node of this name. Raises TopologyException when there is none."""
        by_name = {node.name: node for sub in self.subtopologies for node in sub.nodes}
        if name not in by_name:
            raise TopologyException(f"the topology has no node {name!r}; it has {_listed(by_name)}")
        return by_name[name]

    def store(self, name: str) -> tuple[SubTopology, StoreSpec]:
        """The store of this name and its sub-topology. Raises UnknownStateStoreException: fix the name."""
        for sub in self.subtopologies:
            for store in sub.stores:
                if store.name == name:
                    return sub, store
        raise UnknownStateStoreException(
            f"the topology has no store {name!r}; it has {_listed(s.name for s in self.stores)}"
        )

    @property
    def source_topics(self) -> tuple[str, ...]:
        """The user's topics that are read, each once."""
        return tuple(n.topic for n in self.nodes if isinstance(n, SourceNode | TableSourceNode))

    @property
    def sink_topics(self) -> tuple[str, ...]:
        """The user's topics that are written, each once."""
        return tuple(dict.fromkeys(n.topic for n in self.nodes if isinstance(n, SinkNode)))

    @property
    def repartition_topics(self) -> tuple[str, ...]:
        """The repartition topics, each once, in the order of the sub-topologies that read them."""
        return tuple(n.topic for n in self.nodes if isinstance(n, RepartitionSourceNode))

    def subtopology_of_topic(self, topic: str) -> SubTopology:
        """The one sub-topology that reads `topic`. Raises TopologyException when none does."""
        for sub in self.subtopologies:
            if topic in sub.source_topics:
                return sub
        read = (topic for sub in self.subtopologies for topic in sub.source_topics)
        raise TopologyException(f"no sub-topology reads the topic {topic!r}; they read {_listed(read)}")

    @property
    def tables(self) -> frozenset[str]:
        """Nodes whose output is a table: aggregates, table sources, and transforms after them."""
        found: set[str] = set()
        for node in self.nodes:
            if isinstance(node, AggregateNode | TableSourceNode) or (
                isinstance(node, TransformNode) and node.input in found
            ):
                found.add(node.name)
        return frozenset(found)


def _listed(names: Iterable[str]) -> str:
    return ", ".join(names) or "none"
