"""What a stage of a batch gives: rows for stores, records for topics, and what waits for other stages."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import pyarrow as pa
import pyarrow.compute as pc

from streams_runtime.batch.columns import FRAGMENT_COLUMNS, OUT_KEY, OUT_RECORDS, OUT_TIME, OUT_WINDOW
from streams_runtime.batch.encode import Bytes, Headers
from streams_runtime.batch.peeks import Seen
from streams_runtime.batch.read_accounts import Account
from streams_runtime.topology.nodes.dedupe_node import DedupeNode
from streams_runtime.topology.nodes.join_node import JoinNode
from streams_runtime.topology.nodes.process_node import ProcessNode
from streams_runtime.topology.nodes.source_and_sink_nodes import RepartitionSinkNode, SinkNode
from streams_runtime.topology.nodes.step_nodes import MergeNode
from streams_runtime.topology.nodes.stream_join_node import StreamJoinNode
from streams_runtime.topology.nodes.suppress_node import SuppressNode
from streams_runtime.topology.nodes.table_nodes import ToStreamNode
from streams_runtime.topology.table_parts import TableRoot


@dataclass(frozen=True, slots=True)
class ChosenTopics:
    """The topic of each record, which the `topicBy` of a sink has given; null where it gave none.

    `origins` are the topic, partition and offset of the records that these came of, null where there is no single one.
    """

    sink: SinkNode
    names: Sequence[str | None]
    origins: tuple[Sequence[str | None], Sequence[int | None], Sequence[int | None]]

    def origin(self, row: int) -> str | None:
        """Where the record of a row came from: topic-partition@offset."""
        topic, partition, offset = (each[row] for each in self.origins)
        return None if topic is None or offset is None else f"{topic}-{partition}@{offset}"


@dataclass(frozen=True, slots=True)
class ChosenPartitions:
    """The partition of each record, which the `partitionBy` of a node has given; null where its key decides."""

    node: SinkNode | RepartitionSinkNode
    numbers: Sequence[int | None]


@dataclass(frozen=True, slots=True)
class Emission:
    """Records for one topic, in order. `headers` is None where no record has any. Timestamps in ms.

    `placed_by`: the keys that decide the partition where the records' own do not: those within windowed keys. With
    `partition` no key decides, and with `chosen_partitions` only where there is no number. With `chosen` each record
    has a topic of its own, and `topic` is empty; `sink` names the sink of records that were `chosen` for the one topic.
    """

    topic: str
    internal: bool
    keys: Bytes
    values: Bytes
    timestamps: list[int]
    headers: list[Headers | None] | None = None
    placed_by: Bytes | None = None
    partition: int | None = None
    chosen: ChosenTopics | None = None
    sink: str | None = None
    chosen_partitions: ChosenPartitions | None = None

    def __len__(self) -> int:
        return len(self.keys)

    def take(self, rows: Sequence[int]) -> Emission:
        """Some of the records."""
        return replace(
            self,
            keys=[self.keys[row] for row in rows],
            values=[self.values[row] for row in rows],
            timestamps=[self.timestamps[row] for row in rows],
            headers=None if self.headers is None else [self.headers[row] for row in rows],
            placed_by=None if self.placed_by is None else [self.placed_by[row] for row in rows],
            chosen_partitions=self.chosen_partitions
            and replace(self.chosen_partitions, numbers=[self.chosen_partitions.numbers[row] for row in rows]),
        )


@dataclass(frozen=True, slots=True)
class StoreBatch:
    """Rows of a batch for one store: which task's partition, which key, when. `columns` is the rest.

    - An aggregate has each (partition, key) once; `columns` is what its state is made of (AggregateState.of_batch). One
      of which every change counts has a row for each record and time window, with its ordinal (change_by_change).
    - A table source or a toTable has rows in offset order; `columns` is the value's bytes, each row's ordinal, and its
      headers where something asks for them. Rows without a key are there for their ordinals only.
    - A join by a foreign key has the changes of its result, in order.

    `within` divides the rows of a key: time windows by their start (OUT_WINDOW, in ms), sessions by fragments
    (FRAGMENT_COLUMNS), sliding windows by the order of records (ORDER). It says too for how many records a row stands.
    """

    node: TableRoot
    partitions: pa.ChunkedArray
    keys: pa.ChunkedArray
    timestamps: pa.ChunkedArray
    columns: pa.Table
    within: pa.Table | None = None

    @property
    def table(self) -> pa.Table:
        """All but what divides the rows of a key, with the names that Spark gives."""
        beside = {"_partition": self.partitions, OUT_KEY: self.keys, OUT_TIME: self.timestamps}
        return pa.table(beside | dict(zip(self.columns.column_names, self.columns.columns, strict=True)))

    def filter(self, mask: pa.ChunkedArray) -> StoreBatch:
        """The rows for which `mask` is true."""
        partitions, keys, timestamps = (each.filter(mask) for each in (self.partitions, self.keys, self.timestamps))
        within = None if self.within is None else self.within.filter(mask)
        return StoreBatch(self.node, partitions, keys, timestamps, self.columns.filter(mask), within)


@dataclass(frozen=True, slots=True)
class TableRows:
    """Changed rows of an aggregate, as the steps behind it see them: `columns` is what a user sees of the state.

    `starts` and `ends` (ms) where each row is a window. `gone`: which rows were deleted; their columns are null.
    `json`: what json_rows gives for the columns, where that was made for the store already.
    """

    partitions: pa.Array
    keys: pa.ChunkedArray
    timestamps: pa.Array
    columns: pa.Table
    starts: pa.ChunkedArray | pa.Array | None = None
    ends: pa.ChunkedArray | pa.Array | None = None
    gone: pa.Array | None = None
    json: Bytes | None = None

    def __len__(self) -> int:
        return len(self.partitions)

    def in_order_of_times(self) -> TableRows:
        """The same rows, by their times: what a batch changes once has no other order."""
        order = pc.array_sort_indices(self.timestamps)  # stable: what a session took in goes before the session
        each = (self.partitions, self.keys, self.timestamps, self.columns, self.starts, self.ends, self.gone)
        return TableRows(*(None if part is None else part.take(order) for part in each))

    @property
    def windows(self) -> tuple[pa.Array, pa.Array] | None:
        """Starts and ends; None where a row is no window."""
        return None if self.starts is None or self.ends is None else (self.starts, self.ends)


StageNode = JoinNode | StreamJoinNode | DedupeNode | ProcessNode | MergeNode | ToStreamNode | SuppressNode
"""Nodes behind which a further stage of a batch begins: their records meet stores, or those of other stages."""


@dataclass(frozen=True, slots=True)
class StageInput:
    """Rows of a batch that a stage begins with, of every partition: metadata and columns as expressions see them.

    `node` is the one that the stage begins behind. Before the node is applied to the stores the rows are as its side of
    Spark gives them, afterwards as the steps behind it take them.
    """

    node: StageNode
    rows: pa.Table


@dataclass(slots=True)
class StageOutput:
    """What a stage of a batch gives: rows for topics, stores, joins and dedupes, and the account of its records.

    `arrived` are the records of sources of raw ones, by their names: bytes of key and value, time (ms), and PLACE.
    `begun_with` is what the stage begins with; None where it begins with the batch. `inputs` are those of the stages
    behind it, as far as it gives their rows: several may be for one node, and are put together. `dropped`: how many
    records nodes did not take, by node and reason. `late`: by aggregate, how often a record was too late for a window
    by those before it in the batch.
    """

    accounts: dict[str, Account] = field(default_factory=dict)
    dropped: Counter[tuple[str, str]] = field(default_factory=Counter)
    late: Counter[str] = field(default_factory=Counter)
    emissions: list[Emission] = field(default_factory=list)
    store_batches: list[StoreBatch] = field(default_factory=list)
    inputs: list[StageInput] = field(default_factory=list)
    arrived: dict[str, pa.Table] = field(default_factory=dict)
    begun_with: StageInput | None = None
    peeks: list[Seen] = field(default_factory=list)

    @property
    def records(self) -> int:
        """Records read."""
        return sum(account.records for account in self.accounts.values())

    @property
    def readable(self) -> int:
        """How many of them are not broken."""
        return sum(account.records - account.broken for account in self.accounts.values())

    @property
    def keys(self) -> int:
        """Keys that aggregates and tables have of them."""
        return sum(len(each.keys) for each in self.store_batches)

    @property
    def broken(self) -> int:
        """Records that can't be read."""
        return sum(account.broken for account in self.accounts.values())


def store_batch_of(node: TableRoot, table: pa.Table, columns: list[str]) -> StoreBatch:
    """The rows that Spark gives for the store of `node`; `columns` are those of StoreBatch.columns."""
    within = [name for name in (OUT_WINDOW, *FRAGMENT_COLUMNS, OUT_RECORDS) if name in table.column_names]
    divided = table.select(within) if within else None
    return StoreBatch(node, table["_partition"], table[OUT_KEY], table[OUT_TIME], table.select(columns), divided)
