"""The left side of a join by a foreign key: which rows it asks for, and what the result is once they come.

What Kafka Streams has asked of the right side is decided here where it is known here: a row without a foreign key has
its result, or has none any more, at once. Of every other row an answer is asked for, also where Kafka Streams asks for
none because the old row can't have been joined: there an answer that comes late may be dropped for one that never
comes, and the old result would stay.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import pyarrow as pa

from streams_runtime.batch.columns import FOREIGN_KEY, NULL_VALUE, ORDER_TIME, OTHER, OUT_VALUE
from streams_runtime.batch.drop_reasons import DropReason
from streams_runtime.batch.encode import encoded
from streams_runtime.batch.rows import moments
from streams_runtime.batch.stage import Emission, StoreBatch
from streams_runtime.processors.aggregates.store_updates import table_updates
from streams_runtime.processors.contract import Applied, SparkSide, Stores
from streams_runtime.processors.tables.table_snapshots import At, Event, Events
from streams_runtime.state.open_store import key_value_store
from streams_runtime.state.subscriptions import Instruction, Response, Subscription, hash_of
from streams_runtime.topology.nodes.foreign_key_nodes import ForeignKeyJoinNode
from streams_runtime.topology.table_parts import TablePart


class _Decided(NamedTuple):
    """What an event says of a row: the other table's row beside it, None where there is none."""

    event: Event
    other: bytes | None


def subscriptions(old: bytes | None, new: bytes | None) -> list[tuple[bytes, Instruction]]:
    """What a left row asks for when its foreign key goes from `old` to `new`; None: no row, or none that it names.

    Each with the foreign key whose rows it goes to.
    """
    asked = []
    if old is not None and old != new:
        asked.append((old, Instruction.DELETE_KEY_NO_PROPAGATE))
    if new is not None:
        asked.append((new, Instruction.PROPAGATE_NULL_IF_NO_FK_VAL_AVAILABLE))
    return asked


def joined(node: ForeignKeyJoinNode, side: TablePart, spark: SparkSide, events: Events, stores: Stores) -> Applied:
    """A batch's subscriptions, the changes of the result, and what its stores will hold.

    `events` are the changes of the sources of `side` and the answers of the batch; there are some. A row that an inner
    join leaves out because it names no row counts as dropped.

    Raises ProcessorStateException: a store can't be read.
    """
    keys: list[bytes | None] = []
    gone: list[bool] = []
    if any(event.message is None for event in events.sequence):
        named = spark.foreign_keys(node, side, events.table())
        keys, gone = encoded(named[FOREIGN_KEY]), named[NULL_VALUE].to_pylist()
    nameless = 0
    asked: list[tuple[bytes, bytes, int]] = []
    decided: list[_Decided] = []
    for event in events.sequence:
        mine = hash_of(events.snapshots[event.after].stored)
        if event.message is None:
            asked += _asked(event, keys[event.before], keys[event.after], mine)
            if keys[event.after] is None:
                decided.append(_Decided(event, None))
                nameless += not gone[event.after]
        elif (response := Response.of(event.message)).hash == mine:
            decided.append(_Decided(event, response.row))
    done = Applied(dropped={DropReason.NULL_KEY: nameless} if node.type == "inner" else {})
    if asked:
        foreign, subscriptions, times = zip(*asked, strict=True)
        done.emissions.append(Emission(node.registrations, True, list(foreign), list(subscriptions), list(times)))
    if decided:
        changes = list(_changes(node, side, spark, events, decided, stores))
        done.changes = _in_columns(node, changes)
        done.updates = [
            (key_value_store(stores[partition], node.store), updates)
            for partition, updates in table_updates(done.changes).items()
        ]
    return done


def _asked(event: Event, old: bytes | None, new: bytes | None, mine: bytes | None) -> list[tuple[bytes, bytes, int]]:
    partition, key = event.at
    return [
        (foreign, Subscription(instruction, mine, key, partition).to_bytes(), event.time)
        for foreign, instruction in subscriptions(old, new)
    ]


def _changes(
    node: ForeignKeyJoinNode,
    side: TablePart,
    spark: SparkSide,
    events: Events,
    decided: Sequence[_Decided],
    stores: Stores,
) -> Iterator[tuple[Event, bytes | None]]:
    """The result's row after each event; that one was not there before and is not now is no change."""
    beside = pa.array([each.other for each in decided], pa.binary())
    asked = events.table([each.event.after for each in decided]).append_column(OTHER, beside)
    rows = spark.joined_by_foreign_key(node, side, asked)[OUT_VALUE].to_pylist()
    there = _there(node.store, {each.event.at for each in decided}, stores)
    for (event, _), text in zip(decided, rows, strict=True):
        if text is not None or event.at in there:
            yield event, None if text is None else text.encode()
        (there.discard if text is None else there.add)(event.at)


def _there(store: str, wanted: set[At], stores: Stores) -> set[At]:
    """Which of the rows the result has before the batch."""
    found = set()
    for number, of_task in stores.items():
        keys = sorted(key for partition, key in wanted if partition == number)
        stored = key_value_store(of_task, store).get_stored(keys)
        found |= {(number, key) for key, value in zip(keys, stored, strict=True) if value is not None}
    return found


def _in_columns(node: ForeignKeyJoinNode, changes: Sequence[tuple[Event, bytes | None]]) -> StoreBatch:
    """Changes as those of a toTable, each in the place of its event."""
    events = [event for event, _ in changes]
    times = pa.array([event.time for event in events], pa.int64())
    columns = {
        OUT_VALUE: pa.array([value for _, value in changes], pa.binary()),
        "_topic": pa.array([topic for _, _, _, topic, _, _ in (event.ordinal for event in events)], pa.string()),
        "_offset": pa.array([offset for *_, offset, _ in (event.ordinal for event in events)], pa.int64()),
        "_timestamp": moments(times),
        ORDER_TIME: pa.array([time for _, time, *_ in (event.ordinal for event in events)], pa.int64()).cast(
            pa.timestamp("us", tz="UTC")
        ),
    }
    partitions = pa.array([partition for partition, _ in (event.at for event in events)], pa.int32())
    keys = pa.array([key for _, key in (event.at for event in events)], pa.binary())
    where, whose, when = (pa.chunked_array([each]) for each in (partitions, keys, times))
    return StoreBatch(node, where, whose, when, pa.table(columns))
