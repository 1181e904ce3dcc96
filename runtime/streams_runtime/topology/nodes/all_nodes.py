"""The nodes of a topology: what is read, what becomes of it, what is written; and what each takes from others."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from streams_runtime.topology.nodes.dedupe_node import DedupeNode
from streams_runtime.topology.nodes.foreign_key_nodes import (
    ForeignKeyJoinNode,
    InternalSink,
    ResponseNode,
    SubscribeNode,
)
from streams_runtime.topology.nodes.stream_join_node import StreamJoinNode
from streams_runtime.topology.nodes.stream_nodes import StreamNode
from streams_runtime.topology.nodes.table_nodes import TableJoinNode, ToStreamNode, ToTableNode
from streams_runtime.topology.nodes.window_kinds import Windows


@dataclass(frozen=True, slots=True)
class Format:
    """How bytes become columns.

    `name` is `string`, `bytes`, `long`, `int`, `double`, `json`, `avro` or `protobuf`; `schema` is Spark DDL for json
    that is read, an Avro schema as JSON or the text of a .proto for avro and protobuf that are read, or written with a
    declared one, and None for everything else; `message` is the one of a .proto, None the first. A primitive value
    gives one column named `value`.
    """

    name: str
    schema: str | None = None
    message: str | None = None


@dataclass(frozen=True, slots=True)
class Aggregate:
    """One column of an aggregate step: `column` = `function`(`argument`).

    `function` is a name of state.aggregates.aggregate_kinds.KINDS; `argument` a Spark SQL scalar expression, None for
    `count(*)`; `parameter` a number as text, for those functions that take one. Of python the parameter is the class's
    name, and the argument a struct of the columns that the class is given; of reduce it is what stands in its brackets,
    and the argument a struct of the columns that its lambda names. `path` is the field that it was declared in.
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
    | ResponseNode
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
        case ResponseNode() | ForeignKeyJoinNode():
            return (node.input, node.incoming)
        case _:
            return (node.input,)


def streams_of(node: Node) -> tuple[str, ...]:
    """The names of the nodes whose records `node` passes on; a table that a stream is joined with is only asked."""
    return (node.input,) if isinstance(node, JoinNode) else inputs_of(node)


def written_by(node: Node) -> str | None:
    """The topic that the node writes: a sink's, or the one for an aggregate's late records."""
    match node:
        case SinkNode() | RepartitionSinkNode() | SubscribeNode() | ResponseNode():
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
