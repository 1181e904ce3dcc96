"""The nodes of the plan that read topics, and those that write them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from streams_runtime.api.reading.topic_patterns import fits
from streams_runtime.topology.nodes.plan_node import PlanNode, StepNode, with_history
from streams_runtime.topology.store_specs import StoreSpec


@dataclass(frozen=True, slots=True)
class Format:
    """How bytes become columns.

    `name` is `string`, `bytes`, `long`, `int`, `double`, `json`, `avro`, `protobuf` or `jsonschema`; `schema` is Spark
    DDL for json that is read, an Avro schema, the text of a .proto or a JSON Schema for avro, protobuf and jsonschema
    that are read, or written with a declared one, and None for everything else; `message` is the one of a .proto, None
    the first. A primitive value gives one column named `value`.
    """

    name: str
    schema: str | None = None
    message: str | None = None


@dataclass(frozen=True, slots=True)
class FromTopicNode(PlanNode):
    """A node that takes its records from the topic `topic`."""

    topic: str

    @property
    def summary(self) -> str:
        """The source in a user's words."""
        return "read"

    @property
    def by_pattern(self) -> bool:
        """Whether `topic` is a pattern."""
        return False

    @property
    def read_topic(self) -> str | None:
        """The topic itself."""
        return self.topic

    def reads(self, topic: str) -> bool:
        """Whether the records of a topic are its own, among those that the sub-topology reads."""
        return topic == self.topic


@dataclass(frozen=True, slots=True)
class SourceNode(FromTopicNode):
    """A stream read from a user's topic. `timestamp` is an expression that replaces the record's own.

    With `by_pattern` it reads every topic whose whole name fits the regular expression `topic`.
    """

    KIND: ClassVar[str] = "source"

    key: Format
    value: Format
    timestamp: str | None
    path: str
    by_pattern: bool = False

    @property
    def summary(self) -> str:
        """The source in a user's words."""
        return "read every topic of this pattern" if self.by_pattern else "read"

    def reads(self, topic: str) -> bool:
        """Whether the records of a topic are its own, among those that the sub-topology reads."""
        return fits(self.topic, topic) if self.by_pattern else topic == self.topic


@dataclass(frozen=True, slots=True)
class TableSourceNode(FromTopicNode):
    """A user's topic read as a table, kept in `store`; the topic itself is the store's changelog.

    `history`: for how long (ms) the store keeps what each key had; None: the last value alone. With `own_changelog` the
    store has a changelog of its own, since the topic may have records that the table leaves out.
    """

    KIND: ClassVar[str] = "table-source"
    MAKES_TABLE: ClassVar[bool] = True

    key: Format
    value: Format
    timestamp: str | None
    store: str
    path: str
    history: int | None = None
    own_changelog: bool = False

    @property
    def summary(self) -> str:
        """The source in a user's words."""
        return f"read as a table{with_history(self.history)}"

    def store_specs(self, application_id: str) -> tuple[StoreSpec, ...]:
        """The topic's last values; it is their changelog, or they have one of their own."""
        if self.own_changelog:
            return (StoreSpec.kept(self.store, "key-value", application_id, self.name, history=self.history),)
        kept = StoreSpec(
            self.store, "key-value", self.topic, source_changelog=True, node=self.name, history=self.history
        )
        return (kept,)


@dataclass(frozen=True, slots=True)
class RepartitionSourceNode(FromTopicNode):
    """Reads the repartition topic `topic`; its records carry the columns and the key of the node `origin`.

    `raw` ones carry bytes that only the nodes of a join by a foreign key understand.
    """

    KIND: ClassVar[str] = "repartition-source"

    origin: str
    raw: bool = False

    @property
    def needs(self) -> tuple[str, ...]:
        """The node whose records it carries."""
        return (self.origin,)


@dataclass(frozen=True, slots=True)
class RepartitionSinkNode(StepNode):
    """Writes the records of `input` to the repartition topic `topic`, which has `partitions` if a number is declared.

    With `keeps_null_keys` also those without a key, which a left join (KIP-962) or a dedupe behind it passes on.
    `partition_by` gives the partition of each record, where that is not null; None: the key does. `path` is the step's.
    """

    KIND: ClassVar[str] = "repartition-sink"
    LEADS_OUT: ClassVar[bool] = True

    topic: str
    keeps_null_keys: bool = False
    partitions: int | None = None
    partition_by: str | None = None
    path: str = ""

    @property
    def needs_key(self) -> bool:
        """Unless what is behind it passes on records without one."""
        return not self.keeps_null_keys

    @property
    def summary(self) -> str:
        """The sink in a user's words."""
        return "write" if self.partition_by is None else f"write, partitionBy {self.partition_by}"

    @property
    def internal_topic(self) -> str | None:
        """The repartition topic."""
        return self.topic


@dataclass(frozen=True, slots=True)
class SinkNode(StepNode):
    """Writes to a user's topic, or each record to the one that `topic_by` gives.

    `topics` are those that `topic_by` may give; None: all that are there. A format that is None was not declared.
    `partition_by` gives the partition of each record, where that is not null; None: the key does.
    """

    KIND: ClassVar[str] = "sink"
    LEADS_OUT: ClassVar[bool] = True

    topic: str | None
    key: Format | None
    value: Format | None
    path: str
    topic_by: str | None = None
    topics: tuple[str, ...] | None = None
    partition_by: str | None = None

    @property
    def summary(self) -> str:
        """The sink in a user's words."""
        given = (("topicBy", self.topic_by), ("partitionBy", self.partition_by))
        return ", ".join(["write", *(f"{field} {text}" for field, text in given if text is not None)])

    @property
    def users_topics(self) -> tuple[str, ...]:
        """The sink's topic, or those that it is declared to write."""
        return (self.topics or ()) if self.topic is None else (self.topic,)

    @property
    def one_topic(self) -> str:
        """The topic of all records; empty where each has its own."""
        return self.topic or ""

    @property
    def is_direct(self) -> bool:
        """Whether rows go there as they are, without an expression that Spark would have to compute."""
        return self.topic_by is None and self.partition_by is None

    @property
    def writes_any(self) -> bool:
        """Whether it writes topics that it does not name."""
        return self.topic is None and self.topics is None
