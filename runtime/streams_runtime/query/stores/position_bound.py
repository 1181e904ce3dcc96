"""What a query's answer has to contain: records of inputs, by their offsets (PositionBound, KIP-796)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from streams_runtime.errors import NotUpToBoundException
from streams_runtime.kafka.types import TopicPartition
from streams_runtime.query.stores.views import PartitionView, Queryable
from streams_runtime.query.wire.problems import InvalidQueryException

PositionBound = Mapping[TopicPartition, int]
"""Of partitions of inputs the offset of a record each: an answer contains what that record and those before it brought
about.
"""
NO_BOUND: PositionBound = {}


def parse_bound(name: str, texts: Iterable[str]) -> PositionBound:
    """The bound that a parameter `name` gives as texts such as `orders-2:57`; of one partition the largest counts.

    Raises InvalidQueryException: a text is none of these.
    """
    bound: dict[TopicPartition, int] = {}
    for text in texts:
        where, _, offset = text.rpartition(":")
        try:
            partition = TopicPartition.parse(where)
        except ValueError:
            partition = None
        if partition is None or not (offset.isascii() and offset.isdecimal()):
            raise InvalidQueryException(
                f"{name}: {text!r} is no record; give its topic, partition and offset, such as orders-2:57"
            )
        bound[partition] = max(bound.get(partition, 0), int(offset))
    return bound


def bound_texts(bound: PositionBound) -> list[str]:
    """The bound as `parse_bound` reads it."""
    return [f"{partition}:{offset}" for partition, offset in sorted(bound.items())]


def check_bound(queryable: Queryable, store: str, bound: PositionBound, stale: bool) -> None:
    """Return where every part of the bound says something of the store.

    Raises:
        InvalidQueryException: the store is of a global table or a test driver's, its tasks do not read the topic, the
            topic has no such partition, or the query takes stale contents too, of which nobody knows how far they are.
        StreamsRebalancingException: the number of partitions is not known yet; retry.
    """
    if not bound:
        return
    if stale:
        raise InvalidQueryException("position: copies that lag behind do not know theirs; leave it or `stale` out")
    topics = queryable.input_topics(store)
    if not topics:
        raise InvalidQueryException(
            f"position: store {store!r} has none (of global tables and in tests it is not known); leave it out"
        )
    count = queryable.partition_count(store)
    for each in bound:
        if each.topic not in topics:
            raise InvalidQueryException(
                f"position: what keeps store {store!r} reads {', '.join(sorted(topics))}, and not {each.topic}; give"
                " offsets of these"
            )
        if each.partition >= count:
            raise InvalidQueryException(f"position: {each} of {count} partitions, numbered from 0; give one of these")


def check_position(store: str, view: PartitionView, bound: PositionBound) -> None:
    """Return where a partition of the store contains what the bound says of its inputs.

    Raises NotUpToBoundException: it does not yet; retry.
    """
    position = view.position if bound else {}
    for each, offset in bound.items():
        if each.partition == view.partition and position.get(each, 0) <= offset:
            raise NotUpToBoundException(
                f"store {store!r}, partition {view.partition}: it contains {each} before offset {position.get(each, 0)}"
                f" alone, and not yet what was asked for, offset {offset}; retry"
            )
