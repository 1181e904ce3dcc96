"""The plan of a topology as values: nodes, sub-topologies, tasks, stores and internal topics."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

from streams_runtime.errors import TopologyException, UnknownStateStoreException
from streams_runtime.topology.dedupe import DedupeNode
from streams_runtime.topology.foreign_key_nodes import AnswerNode, ForeignKeyJoinNode, InternalSink, SubscribeNode
from streams_runtime.topology.order import needed_first
from streams_runtime.topology.stream_joins import StreamJoinNode
from streams_runtime.topology.stream_nodes import FlatMapNode, PeekNode, StreamNode
from streams_runtime.topology.table_nodes import TableJoinNode, ToStreamNode, ToTableNode

StoreKind = Literal["key-value", "window", "session", "join", "unjoined", "dedupe", "subscription"]
"""`join` is the window store of a side of a join of streams, `unjoined` that of its records without a match.

`dedupe` is the window store of the ids that a dedupe has seen, `subscription` that of the rows which name a row of
another table.
"""

_LEAST_SEGMENT_INTERVAL = 60_000
_TASK_ID = re.compile(r"(0|[1-9][0-9]*)_(0|[1-9][0-9]*)")


@dataclass(frozen=True, slots=True)
class Format:
    """How bytes become columns.

    `name` is `string`, `bytes`, `long`, `int`, `double`, `json` or `avro`; `schema` is Spark DDL for json that is read,
    an Avro schema as JSON for avro that is read, or written with a declared one, and None for everything else. A
    primitive value gives one column named `value`.
    """

    name: str
    schema: str | None = None


@dataclass(frozen=True, slots=True)
class Aggregate:
    """One column of an aggregate step: `column` = `function`(`argument`).

    `function` is a name of state.aggregate_kinds.KINDS; `argument` a Spark SQL scalar expression, None for `count(*)`;
    `parameter` a number as text, for those functions that take one. Of python the parameter is the class's name, and
    the argument a struct of the columns that the class is given; of reduce it is what stands in its brackets, and the
    argument a struct of the columns that its lambda names. `path` is the field that it was declared in.
    """

    column: str
    function: str
    argument: str | None
    path: str
    parameter: str | None = None

    @property
    def call(self) -> str:
        """The call as the user wrote it."""
        if self.function == "python":
            return f"python('{self.parameter}', {(self.argument or '').removeprefix('struct(')}"
        if self.function == "reduce":
            return f"reduce({self.parameter})"
        parameter = "" if self.parameter is None else f", {self.parameter}"
        return f"{self.function}({self.argument or '*'}{parameter})"


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
    """Reads the repartition topic `topic`; its records carry the columns and the key of the node `origin`.

    `raw` ones carry bytes that only the nodes of a join by a foreign key understand.
    """

    name: str
    topic: str
    origin: str
    raw: bool = False


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
class SlidingWindows:
    """Windows [start, start + `size`], both ends included, that begin or end with a key's records. All in ms.

    One ends at each record's time and one begins 1 ms after it, if any record lies in it. A window takes records until
    stream time has passed its end by more than `grace`. The rest is as in TimeWindows.
    """

    size: int
    grace: int
    retention: int
    only_final: bool = False


@dataclass(frozen=True, slots=True)
class SessionWindows:
    """Windows of a key's records that are at most `gap` apart, from the first one's time to the last one's. All in ms.

    A session is closed once stream time has passed its end by more than `gap` and `grace`. The rest is as in
    TimeWindows.
    """

    gap: int
    grace: int
    retention: int
    only_final: bool = False


Windows = TimeWindows | SlidingWindows | SessionWindows


@dataclass(frozen=True, slots=True)
class AggregateNode:
    """A running aggregate of each key, or of each key's windows, kept in `store`; its output is a table.

    Records that come too late for a window go to the user's topic `late_topic`, if there is one.
    """

    name: str
    input: str
    aggregates: tuple[Aggregate, ...]
    store: str
    path: str
    windows: Windows | None = None
    late_topic: str | None = None


@dataclass(frozen=True, slots=True)
class JoinNode:
    """Each record of `input` beside what the table source `table` holds for its key when its turn comes.

    `select` holds (column, expression) in order: columns that are added or replaced. With `left` a record without a
    match goes on as well. `on` is what is looked up instead of the key, in a global table; None for any other table.
    """

    name: str
    input: str
    table: str
    left: bool
    select: tuple[tuple[str, str], ...]
    path: str
    on: str | None = None


@dataclass(frozen=True, slots=True)
class RepartitionSinkNode:
    """Writes the records of the key-by node `input` to the repartition topic `topic`.

    With `keeps_null_keys` also those without a key, which a left join (KIP-962) or a dedupe behind it passes on.
    """

    name: str
    input: str
    topic: str
    keeps_null_keys: bool = False


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
    | StreamNode
    | DedupeNode
    | KeyByNode
    | MergeNode
    | AggregateNode
    | JoinNode
    | StreamJoinNode
    | TableJoinNode
    | SubscribeNode
    | AnswerNode
    | ForeignKeyJoinNode
    | ToTableNode
    | ToStreamNode
    | RepartitionSinkNode
    | SinkNode
)


def inputs_of(node: Node) -> tuple[str, ...]:
    """The names of the nodes that `node` takes its records from, in order; none for a source.

    A global table is not among them: it belongs to no task.
    """
    match node:
        case SourceNode() | TableSourceNode() | RepartitionSourceNode():
            return ()
        case MergeNode():
            return node.inputs
        case JoinNode(on=None) | TableJoinNode():
            return (node.input, node.table)
        case StreamJoinNode():
            return (node.input, node.other)
        case AnswerNode() | ForeignKeyJoinNode():
            return (node.input, node.incoming)
        case _:
            return (node.input,)


def streams_of(node: Node) -> tuple[str, ...]:
    """The names of the nodes whose records `node` passes on; a table that a stream is joined with is only asked."""
    return (node.input,) if isinstance(node, JoinNode) else inputs_of(node)


def written_by(node: Node) -> str | None:
    """The topic that the node writes: a sink's, or the one for an aggregate's late records."""
    match node:
        case SinkNode() | RepartitionSinkNode() | SubscribeNode() | AnswerNode():
            return node.topic
        case AggregateNode():
            return node.late_topic
        case _:
            return None


def users_topics_written(nodes: Iterable[Node]) -> tuple[str, ...]:
    """The topics that the nodes write and that are the user's, each once."""
    found = (written_by(node) for node in nodes if not isinstance(node, RepartitionSinkNode | InternalSink))
    return tuple(dict.fromkeys(topic for topic in found if topic is not None))


def needed_by(node: Node) -> tuple[str, ...]:
    """What has to be known before `node`: inputs, and a table; for the source of a repartition topic, its origin."""
    if isinstance(node, JoinNode):
        return (node.input, node.table)
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

    `windowing` belongs to the kinds `window`, `session`, `join` and `dedupe`. Of a store that is `global_` every client
    has the whole, and no task a part.
    """

    name: str
    kind: StoreKind
    changelog_topic: str
    source_changelog: bool
    node: str
    windowing: Windowing | None = None
    global_: bool = False

    @property
    def is_queryable(self) -> bool:
        """Whether queries see it: what joins of two streams keep is theirs alone, as in Kafka Streams.

        So is what a dedupe keeps, and who subscribes to a row.
        """
        return self.kind not in ("join", "unjoined", "dedupe", "subscription")

    def __post_init__(self) -> None:
        sized = self.windowing is not None and self.windowing.size is not None
        timeless = self.kind in ("key-value", "unjoined", "subscription")
        if (self.windowing is None) != timeless or sized != (self.kind == "window"):
            raise TopologyException(
                f"store {self.name!r} of kind {self.kind} can't be kept by {self.windowing}: a window store needs size"
                " and retention, a session store and those of joins and dedupes a retention, a key-value store neither"
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

    def leads_out(self, name: str) -> bool:
        """Whether the records of the node `name` reach a store, a topic, or a peek that nothing else follows."""
        ends = AggregateNode | JoinNode | StreamJoinNode | DedupeNode | RepartitionSinkNode | SinkNode | PeekNode
        ends |= ToTableNode
        return any(isinstance(node, ends) or self.leads_out(node.name) for node in self.consumers_of(name))


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
        ordered = needed_first({name: needed_by(node) for name, node in by_name.items()})
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
        """The user's topics that tasks read, each once."""
        read = (n.topic for n in self.nodes if isinstance(n, SourceNode | TableSourceNode))
        return tuple(topic for topic in read if topic not in self.global_topics)

    @property
    def global_topics(self) -> tuple[str, ...]:
        """The user's topics of global tables, which every client reads in full."""
        return tuple(topic for sub in self.global_tables for topic in sub.source_topics)

    @property
    def sink_topics(self) -> tuple[str, ...]:
        """The user's topics that are written, each once."""
        return users_topics_written(self.nodes)

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
                waiting += () if isinstance(by_name[here], StreamJoinNode) else streams_of(by_name[here])
        return frozenset(
            each for each in found if isinstance(by_name[each], StreamJoinNode) or not inputs_of(by_name[each])
        )

    def flat_mapped(self, name: str) -> bool:
        """Whether records that reach the node come of a flatMap, without passing a repartition topic."""
        node = self.node(name)
        if isinstance(node, StreamJoinNode):
            return False  # its results have an order of their own
        return isinstance(node, FlatMapNode) or any(self.flat_mapped(each) for each in streams_of(node))

    @property
    def reunions(self) -> frozenset[str]:
        """Merges in which records of one source meet again that have gone different ways."""
        found = set()
        for node in self.nodes:
            if isinstance(node, MergeNode):
                ways = [self.sources_of(name) for name in node.inputs]
                if sum(map(len, ways)) > len(frozenset().union(*ways)):
                    found.add(node.name)
        return frozenset(found)

    def subtopology_of_topic(self, topic: str) -> SubTopology:
        """The one sub-topology that reads `topic`. Raises TopologyException when none does."""
        for sub in self.subtopologies:
            if topic in sub.source_topics:
                return sub
        read = (topic for sub in self.subtopologies for topic in sub.source_topics)
        raise TopologyException(f"no sub-topology reads the topic {topic!r}; they read {_listed(read)}")

    @property
    def tables(self) -> frozenset[str]:
        """Nodes whose output is a table: aggregates, table sources, toTable, joins of tables, transforms after them."""
        found: set[str] = set()
        for node in self.nodes:
            if isinstance(node, AggregateNode | TableSourceNode | TableJoinNode | ForeignKeyJoinNode | ToTableNode) or (
                isinstance(node, TransformNode) and node.input in found
            ):
                found.add(node.name)
        return frozenset(found)


def _listed(names: Iterable[str]) -> str:
    return ", ".join(names) or "none"
