"""Small values that every part shares when it speaks about Kafka: partitions, topics, group members."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from streams_runtime.errors import StreamsException


@dataclass(frozen=True, slots=True, order=True)
class TopicPartition:
    """One partition of a topic; sorts by topic, then number; prints as `orders-0`."""

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"

    @classmethod
    def parse(cls, text: str) -> TopicPartition:
        """The partition that `str()` printed. Raises ValueError for any other text."""
        topic, dash, number = text.rpartition("-")
        if not (topic and dash and number.isdecimal()):
            raise ValueError(f"{text!r} is not a topic partition such as orders-0")
        return cls(topic, int(number))


@dataclass(frozen=True, slots=True)
class TopicSpec:
    """A topic as it shall be made.

    `replication_factor` -1 leaves the number to the brokers' `default.replication.factor`; `config` holds
    topic properties by their Kafka names.
    """

    name: str
    partitions: int
    replication_factor: int = -1
    config: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class CreatedTopics:
    """What became of topics that were to be made: made by this call, there before it, or refused and why."""

    created: frozenset[str]
    existed: frozenset[str]
    refused: Mapping[str, StreamsException]


@dataclass(frozen=True, slots=True)
class TopicDescription:
    """A topic as the brokers have it. `config` holds the effective values, brokers' defaults included.

    `id` is another one when the topic is deleted and made anew under its name (KIP-516).
    """

    name: str
    partitions: int
    replication_factor: int
    config: Mapping[str, str] = field(default_factory=dict)
    id: str = ""


@dataclass(frozen=True, slots=True)
class GroupMember:
    """A live member of a consumer group, as the group's coordinator sees it.

    `client_id` and `instance_id` are what the member itself sent (`instance_id` is None for a dynamic
    member); `host` is the address that the broker saw, which need not be reachable. `target`: what the member is to
    have in the end; None: the coordinator does not say.
    """

    member_id: str
    instance_id: str | None
    client_id: str
    host: str
    assignment: tuple[TopicPartition, ...]
    target: tuple[TopicPartition, ...] | None = None
